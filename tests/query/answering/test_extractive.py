from graphrag_query.answering.extractive import as_one_line, split_into_candidates
from tests.fixtures.cases import cases


@cases("sentence, expected")
def test_only_marks_of_quoted_letters_are_left_out_of_one_line(
    sentence: str, expected: str
) -> None:
    assert as_one_line(sentence) == expected


def test_a_candidate_has_its_place_in_the_document() -> None:
    text = "Share this with Coach Ann Berg left Bern in May. es/tj (AFP, dpa)"
    unit = {"human_readable_id": 0, "start_char": 100, "text": text, "source": text, "title": ""}
    [found] = split_into_candidates([unit], {0: 1.0})
    assert found.text == "Coach Ann Berg left Bern in May."
    assert text[found.start_char - 100 : found.end_char - 100] == found.text
