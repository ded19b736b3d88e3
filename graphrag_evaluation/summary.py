"""The measures, the scores of systems with intervals, and the differences between systems."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from graphrag_evaluation.runs import Result
from graphrag_evaluation.statistics import (
    MAX_P_VALUE,
    Difference,
    Interval,
    bootstrap_interval,
    compare_paired,
    holm_p_values,
)
from graphrag_index.errors import SettingsError

# Effort, length and unread verdicts: their differences are not tested, and less is better.
EFFORT = ("seconds", "cpu_seconds", "tokens", "cost", "words", "judge_unread")

# The meaning of each measure. A measure at a cutoff k or a budget of n tokens has the number in
# its name, as in recall@10. `docs/generate.py` writes them into the documentation.
MEANINGS = {
    "recall@k": "share of the gold spans, or of the gold documents if there are no spans, in the "
    "first k passages",
    "all_gold@k": "1 if all gold spans or documents are in the first k passages",
    "mrr": "1 divided by the place of the first gold span or document",
    "coverage@n": "share of the gold statements that n tokens of context state",
    "outcome_right": "1 if the index answers what it can, and refuses what it cannot",
    "said": "1 if the answer has the short answer",
    "not_wrong": "1 if the answer is none that is known to be wrong",
    "citations_valid": "share of the citations whose quotation stands at its place in the document",
    "supported": "share of the sentences of the answer that the passages they cite state",
    "no_evidence_precision": "of the refused questions: share that cannot be answered",
    "no_evidence_recall": "of the questions that cannot be answered: share that is refused",
    "judged_statements": "share of the gold statements that the answer makes, as a judge quotes",
    "judged_faithful": "share of the claims of the answer that passages support, as a judge quotes",
    "judged_relevant": "how well the answer responds to the question, from 0 to 1, says a judge",
    "judged_correct": "1 if the answer is right, 0.5 if partly, as a judge quotes",
    "judge_unread": "verdicts of a judge that could not be read, or that lack their evidence",
    "seconds": "duration of the search",
    "cpu_seconds": "time of the processor",
    "tokens": "tokens of prompts and replies of models",
    "cost": "dollars for models",
    "words": "length of the answer",
}
_BY_FAMILY = {name.partition("@")[0]: meaning for name, meaning in MEANINGS.items()}


def meaning(measure: str) -> str:
    """Return the meaning of a measure such as recall@10; empty if it has none."""
    return _BY_FAMILY.get(measure.partition("@")[0], "")


def check_measures(names: Iterable[str]) -> None:
    """Raise SettingsError for a name that is no measure of an evaluation."""
    for name in names:
        family, mark, cutoff = name.partition("@")
        known = f"{family}@{'n' if family == 'coverage' else 'k'}" if mark else name
        if known not in MEANINGS or (mark and not cutoff.isdecimal()):
            raise SettingsError(f"There is no measure {name!r}, but {', '.join(MEANINGS)}.")


def largest_cutoffs(measures: Iterable[str]) -> list[str]:
    """Return the measures to show first: without effort, and at the largest cutoff or budget."""
    found: dict[str, str] = {}
    for name in measures:
        family = name.partition("@")[0]
        if name not in EFFORT and _cutoff(name) >= _cutoff(found.get(family, "")):
            found[family] = name
    return list(found.values())


def _cutoff(measure: str) -> int:
    digits = measure.partition("@")[2]
    return int(digits) if digits.isdecimal() else 0


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
        """Whether the difference is too unlikely to be chance (`MAX_P_VALUE`)."""
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
