"""Sentences that reports quote: what is trimmed, and which stand alone."""

import polars as pl

from graphrag_nlp.text.standalone import find_edges, stand_alone, trim_sentences
from tests.fixtures.cases import cases


@cases("sentence, expected")
def test_datelines_and_marks_of_tables_are_removed(sentence: str, expected: str) -> None:
    assert trim_sentences(pl.Series([sentence])).to_list() == [expected]


@cases("language, sentence, expected")
def test_sentences_that_need_the_text_around_them_do_not_stand_alone(
    language: str, sentence: str, expected: bool
) -> None:
    assert stand_alone(pl.Series([sentence]), pl.Series([language])).to_list() == [expected]


def test_edges_are_offsets_of_the_sentence() -> None:
    text = "Share this with\nCoach Ann\nleft. es/tj (dpa)"
    start, end = find_edges(text)
    assert text[start:end] == "Coach Ann\nleft."
    assert find_edges("The dam broke.") == (0, 14)
