"""The agreement of two judges on the same things."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Agreement:
    """The share of equal labels of two judges, and its part beyond chance.

    `n` things have a label of both, and `n_of_one` of one judge only: they are left out. `kappa`
    is 1 if they always agree, and 0 if they agree as often as their shares of labels alone make
    likely; None if both always give the same single label.
    """

    criterion: str
    n: int
    n_of_one: int
    share: float
    kappa: float | None


def measure_agreement(
    criterion: str, first: Mapping[Any, Hashable], second: Mapping[Any, Hashable]
) -> Agreement | None:
    """Compare the labels that two judges give to the same things; None if no thing has both.

    Cohen, A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20 (1960).
    """
    pairs = [(label, second[thing]) for thing, label in first.items() if thing in second]
    if not pairs:
        return None
    n, share = len(pairs), sum(a == b for a, b in pairs) / len(pairs)
    of_first, of_second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    by_chance = sum(of_first[label] * of_second[label] for label in of_first) / n**2
    kappa = (share - by_chance) / (1 - by_chance) if by_chance < 1 else None
    return Agreement(criterion, n, len(first.keys() ^ second.keys()), share, kappa)
