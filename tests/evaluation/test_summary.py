"""Means and differences of systems with literal scores."""

from collections.abc import Sequence

import numpy as np
import pytest

from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.runs import Result
from graphrag_evaluation.statistics import holm_p_values
from graphrag_evaluation.summary import Evaluation, largest_cutoffs, meaning
from graphrag_query.answer import Answer, Outcome

NOTHING = Answer("?", "", Outcome.NO_EVIDENCE)


def results(scores: Sequence[float | None], measure: str = "said") -> list[Result]:
    return [
        Result(
            EvaluationQuestion(str(at), "?"),
            NOTHING,
            {"seconds": float(at)} | ({} if score is None else {measure: score}),
            (),
            (),
        )
        for at, score in enumerate(scores)
    ]


def test_the_p_values_of_a_measure_are_corrected_together() -> None:
    random = np.random.default_rng(4)
    systems = {
        name: random.normal(mean, 0.5, 40) for name, mean in zip("abc", (0, 0.2, 0.5), strict=True)
    }
    evaluation = Evaluation({name: results(found.tolist()) for name, found in systems.items()})
    compared = evaluation.comparisons("said")
    assert [(one.first, one.second) for one in compared] == [("a", "b"), ("a", "c"), ("b", "c")]
    plain = [one.difference.p_value for one in compared]
    assert [one.corrected_p for one in compared] == holm_p_values(plain) != plain
    assert compared[1].difference.interval.mean == pytest.approx(
        systems["c"].mean() - systems["a"].mean()
    )


def test_effort_is_not_compared() -> None:
    evaluation = Evaluation({"a": results([1, 0]), "b": results([0, 0])})
    assert evaluation.measures() == ["seconds", "said"]
    assert evaluation.comparisons("seconds") == []
    assert len(evaluation.comparisons("said")) == 1


def test_only_questions_with_both_scores_are_compared() -> None:
    evaluation = Evaluation({"a": results([1, 0, None, 1]), "b": results([None, 1, 1, 1])})
    [compared] = evaluation.comparisons("said")
    assert (compared.difference.interval.n, compared.difference.interval.mean) == (2, 0.5)
    interval = evaluation.interval("a", "said")
    assert interval is not None
    assert (interval.n, interval.mean) == (3, pytest.approx(2 / 3))
    assert evaluation.interval("a", "recall@10") is None


def test_a_measure_with_several_numbers_is_shown_with_the_largest() -> None:
    measures = ["recall@10", "recall@2", "said", "seconds", "coverage@4000", "coverage@12000"]
    assert largest_cutoffs(measures) == ["recall@10", "said", "coverage@12000"]
    assert meaning("recall@10") == meaning("recall@k") != ""
    assert meaning("speed") == ""
