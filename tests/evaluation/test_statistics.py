"""Intervals and tests agree with scipy's on known data."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.runs import Result
from graphrag_evaluation.statistics import (
    N_RESAMPLES,
    bootstrap_interval,
    compare_paired,
    holm_p_values,
    sign_flip_p_value,
)
from graphrag_evaluation.summary import Evaluation, largest_cutoffs, meaning
from graphrag_query.answer import Answer, Outcome

NOTHING = Answer("?", "", Outcome.NO_EVIDENCE)


def test_an_interval_is_that_of_scipy() -> None:
    # Imported here: it takes 0.6 CPU seconds, and every process of the suite collects this file.
    from scipy import stats

    scores = np.random.default_rng(3).beta(2, 1, 80)
    found = bootstrap_interval(scores.tolist())
    expected = stats.bootstrap(
        (scores,), np.mean, n_resamples=20_000, method="percentile", rng=5
    ).confidence_interval
    assert found is not None
    assert found.mean == pytest.approx(scores.mean())
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.004)


def test_without_scores_there_is_no_interval() -> None:
    assert bootstrap_interval([]) is None
    assert compare_paired([], [], []) is None


@pytest.mark.parametrize("n", [9, 60])
def test_a_test_of_independent_questions_is_that_of_scipy(n: int) -> None:
    from scipy import stats

    random = np.random.default_rng(n)
    first = random.normal(0.5, 0.2, n)
    second = first + random.normal(0.06, 0.2, n)
    found = compare_paired(first.tolist(), second.tolist(), [str(i) for i in range(n)])
    expected = stats.permutation_test(
        (second - first,), np.sum, permutation_type="samples", n_resamples=20_000, rng=1
    )
    assert found is not None
    assert found.n_clusters == n
    assert found.p_value == pytest.approx(expected.pvalue, abs=0.015)


def test_questions_of_one_document_count_as_one() -> None:
    first, second = [0.0] * 40, [1.0] * 40
    [alone, together] = [
        compare_paired(first, second, clusters)
        for clusters in ([str(i) for i in range(40)], [str(i % 4) for i in range(40)])
    ]
    assert alone is not None
    assert together is not None
    # None of the random ways is as extreme as the one that was observed.
    assert alone.p_value == 1 / (N_RESAMPLES + 1)
    # Four documents can show no difference, whatever its size.
    assert (alone.detectable, together.detectable) == (0, None)
    # Two of the sixteen ways to flip four signs.
    assert together.p_value == 2 / 16


def test_equal_systems_do_not_differ() -> None:
    scores = np.random.default_rng(0).random(30).tolist()
    found = compare_paired(scores, scores, [str(i) for i in range(30)])
    assert found is not None
    assert (found.interval.low, found.interval.high, found.p_value) == (0, 0, 1)


def test_the_detectable_difference_is_found_four_times_of_five() -> None:
    random = np.random.default_rng(11)
    names = [str(i) for i in range(50)]
    noise = random.normal(0, 0.3, (120, 50))
    plain = [compare_paired([0.0] * 50, row.tolist(), names) for row in noise]
    found = [
        sign_flip_p_value(row + difference.detectable) < 0.05
        for row, difference in zip(noise, plain, strict=True)
        if difference is not None and difference.detectable is not None
    ]
    assert len(found) == len(noise)
    assert 0.68 < np.mean(found) < 0.9


def test_corrected_p_values_are_those_of_the_paper() -> None:
    assert holm_p_values([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_p_values([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_a_correction_keeps_the_order_and_never_lowers(p_values: list[float]) -> None:
    corrected = holm_p_values(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, corrected, strict=True))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [corrected[i] for i in order] == sorted(corrected)


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
