"""The agreement of two judges on the same things."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Agreement:
    """The share of equal labels of two judges, and its part beyond chance.

    `kappa` is 1 if they always agree, and 0 if they agree as often as their shares of labels
    alone make likely; None if both always give the same single label.
    """

    criterion: str
    n: int
    share: float
    kappa: float | None


def measure_agreement(
    criterion: str, first: Sequence[Hashable], second: Sequence[Hashable]
) -> Agreement | None:
    """Compare labels of the same things; things that one judge did not label are left out.

    Cohen, A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20 (1960).
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if not pairs:
        return None
    n, share = len(pairs), sum(a == b for a, b in pairs) / len(pairs)
    of_first, of_second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    by_chance = sum(of_first[label] * of_second[label] for label in of_first) / n**2
    kappa = (share - by_chance) / (1 - by_chance) if by_chance < 1 else None
    return Agreement(criterion, n, share, kappa)
