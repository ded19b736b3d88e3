"""Scores of rankings, by hand."""

from math import log2

import pytest

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
    scores = retrieval_scores([{1, 2}], {1, 2}, cutoffs=(1,))
    assert scores == {"recall@1": 1.0, "all_gold@1": 1.0, "ndcg@1": 1.0, "mrr": 1.0}
