import pytest

from graphrag_index.llm.reply_parser import parse_score


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (4, 4.0),
        ("4/5", 4.0),
        ("8 out of 10", 4.0),
        ("80 %", 4.0),
        ("3,5", 3.5),
        ([2, 5], 2.0),
        (95, 5.0),
        (-3, 0.0),
        (1e-7, 1e-7),
        ("9" * 5_000, 5.0),
        (1e300, None),
        (float("inf"), None),
        ([], None),
        (True, None),
        (None, None),
        ("high", None),
    ],
)
def test_scores_of_any_form_are_converted_to_one_scale(value: object, score: float | None) -> None:
    assert parse_score(value, 5) == score
