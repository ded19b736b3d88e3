import pytest

from graphrag_query.answering.extractive import find_min_score


@pytest.mark.parametrize(("best", "lowest"), [(1.5, 0.9), (0.0, 0.0), (-0.1, -0.1)])
def test_the_best_sentence_always_adds_to_an_answer(best: float, lowest: float) -> None:
    assert find_min_score(best) == pytest.approx(lowest)
