import pytest

from graphrag_query.answering.extractive import is_sentence, split_into_candidates


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("<ship> A small vessel that was built by Olga Nowak.", True),
        ("the old mills of the town that Olga Nowak built", False),
    ],
)
def test_a_fragment_with_a_full_stop_is_no_heading(paragraph: str, *, expected: bool) -> None:
    text = f"{paragraph}\n\nThe mill was sold in 1801."
    unit = {"human_readable_id": 0, "start_char": 0, "text": text, "title": ""}
    first = split_into_candidates([unit], {0: 1.0})[0]
    assert first.text == paragraph
    assert not first.prose
    assert is_sentence(first, unit) is expected
