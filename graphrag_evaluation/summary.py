"""The scores of systems with intervals, and the differences between systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from graphrag_evaluation.measures import EFFORT
from graphrag_evaluation.runs import Result
from graphrag_evaluation.statistics import (
    MAX_P_VALUE,
    Difference,
    Interval,
    bootstrap_interval,
    compare_paired,
    holm_p_values,
)


@dataclass(frozen=True)
class Comparison:
    """Two systems by one measure, on the questions that both have a score for.

    `corrected_p` is the p-value after Holm's correction over all pairs of this measure.
    """

    measure: str
    first: str
    second: str
    difference: Difference
    corrected_p: float

    @property
    def is_significant(self) -> bool:
        """Whether chance explains the difference in too few cases."""
        return self.corrected_p < MAX_P_VALUE


@dataclass(frozen=True)
class Evaluation:
    """The results of several systems on the same questions."""

    results: Mapping[str, Sequence[Result]]  # by name of the system

    def measures(self) -> list[str]:
        """Return the measures that some question has a score for, in the order of the scores."""
        found = (name for rows in self.results.values() for row in rows for name in row.scores)
        return list(dict.fromkeys(found))

    def interval(self, system: str, measure: str) -> Interval | None:
        """Return the mean of a measure for a system; None if no question has a score."""
        return self._intervals.get(measure, {}).get(system)

    def comparisons(self, measure: str) -> list[Comparison]:
        """Compare each pair of systems by a measure; a measure of effort is not compared."""
        return self._comparisons.get(measure, [])

    # Resampling takes seconds for a large evaluation: each figure is computed once.
    @cached_property
    def _intervals(self) -> dict[str, dict[str, Interval]]:
        found: dict[str, dict[str, Interval]] = {measure: {} for measure in self.measures()}
        for measure, intervals in found.items():
            for system, rows in self.results.items():
                scores = [row.scores[measure] for row in rows if measure in row.scores]
                if interval := bootstrap_interval(scores):
                    intervals[system] = interval
        return found

    @cached_property
    def _comparisons(self) -> dict[str, list[Comparison]]:
        measures = (measure for measure in self.measures() if measure not in EFFORT)
        return {measure: self._compare(measure) for measure in measures}

    def _compare(self, measure: str) -> list[Comparison]:
        pairs, differences = [], []
        for first, second in combinations(self.results, 2):
            scored = [
                (one.scores[measure], other.scores[measure], one.question.cluster)
                for one, other in zip(self.results[first], self.results[second], strict=True)
                if measure in one.scores and measure in other.scores
            ]
            if not scored:
                continue
            firsts, seconds, clusters = map(list, zip(*scored, strict=True))
            if found := compare_paired(firsts, seconds, clusters):
                pairs.append((first, second))
                differences.append(found)
        corrected = holm_p_values([difference.p_value for difference in differences])
        return [
            Comparison(measure, *pair, difference, p)
            for pair, difference, p in zip(pairs, differences, corrected, strict=True)
        ]
