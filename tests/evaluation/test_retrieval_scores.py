"""Scores of rankings, by hand."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_evaluation.retrieval_scores import retrieval_scores


def test_the_scores_of_a_ranking() -> None:
    scores = retrieval_scores([{"a"}, {"x"}, {"b", "a"}, set()], {"a", "b"}, cutoffs=(2, 3))
    assert scores == {
        **{"recall@2": 0.5, "all_gold@2": 0.0, "ndcg@2": pytest.approx(1 / (1 + 1 / log2(3)))},
        **{"recall@3": 1.0, "all_gold@3": 1.0},
        "ndcg@3": pytest.approx((1 + 1 / log2(4)) / (1 + 1 / log2(3))),
        "mrr": 1.0,
    }


def test_what_lies_behind_the_last_cutoff_does_not_count() -> None:
    scores = retrieval_scores([{"x"}, set(), {"a"}], {"a"}, cutoffs=(2,))
    assert scores == {"recall@2": 0.0, "all_gold@2": 0.0, "ndcg@2": 0.0, "mrr": 0.0}


def test_without_gold_items_there_is_no_score() -> None:
    assert retrieval_scores([{"a"}], set()) == {}


def test_a_passage_can_hold_all_gold_spans() -> None:
    for k in (1, 2, 10):
        scores = retrieval_scores([{1, 2}, {1}], {1, 2}, cutoffs=(k,))
        assert scores == {f"recall@{k}": 1, f"all_gold@{k}": 1, f"ndcg@{k}": 1, "mrr": 1}
    scores = retrieval_scores([{1}, {1}, {2, 3}], {1, 2, 3}, cutoffs=(3,))
    best = 1 + 1 / log2(3) + 1 / log2(4)
    assert scores["ndcg@3"] == pytest.approx((1 + 1 / log2(4) + 1 / log2(5)) / best)


@given(st.lists(st.sets(st.integers(1, 5)), max_size=6), st.sets(st.integers(1, 5), min_size=1))
def test_scores_are_shares_and_recall_grows(ranked: list[set[int]], gold: set[int]) -> None:
    scores = retrieval_scores(ranked, gold, cutoffs=(1, 2, 4))
    assert all(0 <= score <= 1 + 1e-9 for score in scores.values())
    assert scores["recall@1"] <= scores["recall@2"] <= scores["recall@4"]
