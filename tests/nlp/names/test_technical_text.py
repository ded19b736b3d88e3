"""Names in manuals, changelogs and code."""

import pytest

from graphrag_index.steps.create_text_units import find_cut_offsets, make_sentence_rows
from graphrag_nlp.names.name_shapes import is_coded, is_plural_acronym
from tests.fixtures.cases import cases
from tests.fixtures.extraction import extract


@pytest.mark.parametrize(("language", "is_prose"), [("js", False), ("text", True)])
def test_sentences_in_code_are_no_prose(language: str, is_prose: bool) -> None:
    line = "Then the two of them print this line."
    text = f"We print it.\n\n```{language}\n\n{line}\n\n```\n"
    _, starts = find_cut_offsets(text)
    prose = {text[row[1] : row[2]]: row[3] for row in make_sentence_rows(0, text, starts)}
    assert prose[line] is is_prose


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("Calendly is slow. Calendly is big. Calendly is old. We use Calendly.", {"Calendly"}),
        ("Feedly is slow. Feedly is big. Feedly is old. We use Feedly.", {"Feedly"}),
        ("Grammarly said no. Grammarly hired two. We all use Grammarly.", {"Grammarly"}),
        ("Emily ran. Emily sat down. Emily slept. We saw Emily.", {"Emily"}),
        ("Kelly ran. Kelly sat down. Kelly slept. We saw Kelly.", {"Kelly"}),
        ("Sicily is hot. Sicily is big. Sicily is old. We left Sicily.", {"Sicily"}),
    ],
)
def test_names_that_end_like_adverbs_are_names(text: str, types: set[str]) -> None:
    found = extract(text, "The harbour was busy when Emil Rau came home.").types
    assert {name for name, kind in found.items() if kind != "noun phrase"} == {*types, "Emil Rau"}


@cases("name, expected")
def test_writing_of_software(name: str, expected: bool) -> None:
    assert is_coded(name) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("SDKs", True), ("IBM PCs", True), ("Ross", False), ("AS", False), ("DoS", False)],
)
def test_plurals_of_acronyms_are_told_by_their_shape(name: str, expected: bool) -> None:
    assert is_plural_acronym(name) is expected
