"""Intervals, tests and corrections for scores of the same questions.

All functions are seeded: equal scores give equal figures.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Batch = npt.NDArray[np.float32]

SEED = 17
N_RESAMPLES = 10_000
CONFIDENCE = 0.95
# A difference with a p-value from this on may be chance.
MAX_P_VALUE = 0.05
# Sign flips of fewer clusters have no lower p-value: it is at least 2 / 2**n.
MIN_CLUSTERS = 6
# The probability that a true difference of the minimum detectable size is found.
POWER = 0.8
# With at most this many clusters, all sign flips are tried instead of a sample.
MAX_EXACT_CLUSTERS = 12
# Quantiles of the standard normal distribution for `CONFIDENCE`, two-sided, and for `POWER`.
_Z_CONFIDENCE, _Z_POWER = 1.959964, 0.841621
# Number of resampled means in a batch, to limit memory.
_BATCH = 1_000
_MAX_DRAWS = 10_000_000
# Up to this many questions, their resamples are kept in memory: 40 KB for each question.
MAX_KEPT = 2_000


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval."""

    mean: float
    low: float
    high: float
    n: int  # number of questions


@dataclass(frozen=True)
class Difference:
    """The difference of two systems on the same questions: the second minus the first.

    `detectable` is the smallest true difference that as many questions find with a probability
    of `POWER`; None if they are of fewer than `MIN_CLUSTERS` clusters, which can show none.
    """

    interval: Interval
    p_value: float
    detectable: float | None
    n_clusters: int


def bootstrap_interval(scores: Sequence[float]) -> Interval | None:
    """Return the mean of scores with its percentile bootstrap interval; None without scores.

    Efron & Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    values = np.asarray(scores, dtype=float)
    if not len(values):
        return None
    means = np.concatenate([counts @ values for counts in _batches(_draw_resamples, len(values))])
    return _percentile_interval(values.mean(), means / len(values), len(values))


def ratio_interval(counts: npt.ArrayLike, totals: npt.ArrayLike) -> Interval | None:
    """Return the ratio of two sums over clusters, with its bootstrap interval; None if 0 of 0.

    A cluster, such as a document, is drawn as a whole, since its rows are not independent. `n` is
    the sum of the totals. Clusters with equal counts and totals are drawn together: the number of
    draws of each kind is multinomial.
    """
    pairs = np.stack([np.asarray(counts, dtype=float), np.asarray(totals, dtype=float)], axis=1)
    pairs = pairs[pairs[:, 1] > 0]
    if not len(pairs):
        return None
    count, total = pairs.sum(axis=0)
    sums = _resample_sums(pairs)
    return _percentile_interval(count / total, sums[:, 0] / sums[:, 1], int(total))


def f1_interval(
    right: npt.ArrayLike,
    n_stated: npt.ArrayLike,
    found: npt.ArrayLike,
    n_wanted: npt.ArrayLike,
) -> Interval | None:
    """Return the harmonic mean of precision and recall over clusters, with its interval.

    Precision is `right` of `n_stated` rows, recall `found` of `n_wanted` rows: two different
    counts, since two stated rows may stand for one wanted row. `n` is the number of wanted rows.
    None without stated or without wanted rows.
    """
    rows = np.stack(
        [np.asarray(values, dtype=float) for values in (right, n_stated, found, n_wanted)], axis=1
    )
    rows = rows[rows[:, 1] + rows[:, 3] > 0]
    totals = rows.sum(axis=0)
    if not totals[1] or not totals[3]:
        return None
    f1 = _harmonic_means(_resample_sums(rows))
    return _percentile_interval(_harmonic_means(totals[None])[0], f1, int(totals[3]))


def _harmonic_means(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return F1 of each row: precision is right / stated, and recall is found / wanted."""
    right, stated, found, wanted = sums.T
    # One division of whole numbers: the figure is rounded once.
    below = right * wanted + found * stated
    means: npt.NDArray[np.float64] = 2 * right * found / np.where(below > 0, below, 1)
    return means


def _resample_sums(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the sums of the rows of each resample."""
    kinds, n_clusters = np.unique(rows, axis=0, return_counts=True)
    random = np.random.default_rng(SEED)
    shares = n_clusters / len(rows)
    # The draws do not depend on the size of a batch.
    size = max(1, min(_BATCH, _MAX_DRAWS // len(kinds)))
    sizes = [min(size, N_RESAMPLES - start) for start in range(0, N_RESAMPLES, size)]
    return np.concatenate([random.multinomial(len(rows), shares, n) @ kinds for n in sizes])


def _percentile_interval(mean: float, resampled: npt.NDArray[np.float64], n: int) -> Interval:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail))
    return Interval(float(mean), float(low), float(high), n)


def compare_paired(
    first: Sequence[float], second: Sequence[float], clusters: Sequence[str]
) -> Difference | None:
    """Compare two systems on the same questions; None without questions.

    `clusters` has the document of each question. The p-value is that of a two-sided permutation
    test that exchanges the two systems in all questions of a document together, since these
    questions are not independent.
    """
    differences = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    interval = bootstrap_interval(differences.tolist())
    if interval is None:
        return None
    names, of_question = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.bincount(of_question, weights=differences, minlength=len(names)).astype(float)
    detectable = None
    if len(sums) >= MIN_CLUSTERS:
        error = float(np.sqrt(len(sums) * sums.var(ddof=1)))
        detectable = (_Z_CONFIDENCE + _Z_POWER) * error / len(differences)
    return Difference(interval, sign_flip_p_value(sums), detectable, len(names))


def sign_flip_p_value(sums: npt.NDArray[np.float64]) -> float:
    """Return the two-sided p-value of a sum of differences, by flips of their signs.

    Few differences are flipped in all ways; of many, `N_RESAMPLES` random ways are tried, and
    the way that was observed counts as one of them (Phipson & Smyth, Stat. Appl. Genet. Mol.
    Biol. 9, 2010).
    """
    observed = abs(sums.sum())
    # Sums of the same numbers in another order differ by rounding.
    limit = observed - 1e-9 * max(1.0, observed)
    if len(sums) <= MAX_EXACT_CLUSTERS:
        ways = (np.arange(1 << len(sums))[:, None] >> np.arange(len(sums))) & 1
        return float((np.abs((1 - 2 * ways) @ sums) >= limit).mean())
    n_extreme = sum(
        int((np.abs(signs @ sums) >= limit).sum())
        for signs in _batches(_draw_sign_flips, len(sums))
    )
    return (n_extreme + 1) / (N_RESAMPLES + 1)


def _batches(draw: Callable[[int], Iterator[Batch]], n: int) -> Iterable[Batch]:
    """Return batches of `N_RESAMPLES` rows of `n` numbers; equal calls share the rows."""
    return _keep_batches(draw, n) if n <= MAX_KEPT else draw(n)


# An evaluation resamples the same questions for each measure and each pair of systems.
@lru_cache(maxsize=4)
def _keep_batches(draw: Callable[[int], Iterator[Batch]], n: int) -> list[Batch]:
    return list(draw(n))


def _draw_resamples(n: int) -> Iterator[Batch]:
    """Yield how often each of `n` values is drawn."""
    random = np.random.default_rng(SEED)
    for _ in range(N_RESAMPLES // _BATCH):
        drawn = random.integers(0, n, (_BATCH, n)) + n * np.arange(_BATCH)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=n * _BATCH)
        yield counts.reshape(_BATCH, n).astype(np.float32)


def _draw_sign_flips(n: int) -> Iterator[Batch]:
    """Yield random signs of `n` values."""
    random = np.random.default_rng(SEED)
    for _ in range(N_RESAMPLES // _BATCH):
        yield (1 - 2 * random.integers(0, 2, (_BATCH, n))).astype(np.float32)


def holm_p_values(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values of several comparisons, in their order.

    Holm, A simple sequentially rejective multiple test procedure, Scand. J. Stat. 6 (1979).
    """
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = highest
    return corrected
