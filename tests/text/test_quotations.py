import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.schema.settings.embedded_steps import CreateTextUnits
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Silent
from graphrag_index.steps.create_text_units import create_text_units
from graphrag_index.text.quotations import find_quotation, one_line, quotable
from tests.fixtures.fake_model import EarlierTables

FOOTER = "Sign up for the newsletter today!"
LONG = "The expedition went on over the ice. " * 6 + "Then it came home at last."


def quoted(*texts: str) -> list[list[str]]:
    """What can be quoted of each text."""
    rows = [
        {"id": f"{number}", "title": "", "text": text, "creation_date": ""}
        | {"raw_data": None, "path": "", "metadata": None}
        for number, text in enumerate(texts)
    ]
    documents = pl.DataFrame(rows, schema=TABLES["loaded_documents"].schema).lazy()
    batches = create_text_units(
        documents, settings=CreateTextUnits(), previous=EarlierTables(), progress=Silent()
    )
    sentences = pl.concat([batch["sentences"] for batch in batches])
    sentences = sentences.with_columns(quotable(sentences)).filter("quotable")
    places = sentences.select("document", "start_char", "end_char").rows()
    return [
        [texts[number][start:end] for document, start, end in places if document == number]
        for number in range(len(texts))
    ]


def test_lines_of_three_documents_are_not_quoted() -> None:
    texts = [
        f"The ship {name} sailed in May.\n\n{FOOTER}\n" for name in ("Fram", "Gauss", "Nimrod")
    ]
    assert quoted(*texts) == [[text.split("\n")[0]] for text in texts]
    assert quoted(*texts[:2])[0] == [texts[0].split("\n")[0], FOOTER]


def test_lines_that_stand_three_times_in_one_document_are_not_quoted() -> None:
    parts = [f"The ship {name} sailed in May." for name in ("Fram", "Gauss", "Nimrod")]
    assert quoted(f"\n\n{FOOTER}\n\n".join([*parts, "They all came home again."])) == [
        [*parts, "They all came home again."]
    ]


def test_all_sentences_of_a_repeated_line_are_furniture() -> None:
    footer = "We use cookies on this page. You may say no to that."
    own = "The ship {} sailed in May. The crew of {} slept a lot. Nobody was left on the quay."
    texts = [f"{own.format(name, name)}\n{footer}" for name in ("Fram", "Gauss", "Nimrod")]
    assert [len(found) for found in quoted(*texts)] == [3, 3, 3]


def test_a_sentence_repeated_in_one_line_is_no_furniture() -> None:
    line = "One sentence is here. " * 3
    assert quoted(f"{line}\n\nAnother one stands over there.") == [
        [*["One sentence is here."] * 3, "Another one stands over there."]
    ]


def test_copies_and_long_paragraphs_stay_quotable() -> None:
    wrapped = "The ship sailed in May.\nThe crew slept a lot.\nNobody was left behind."
    assert [len(found) for found in quoted(*[wrapped] * 4)] == [3] * 4
    assert [len(found) for found in quoted(*[LONG] * 4)] == [7] * 4
    nearly = (f"{wrapped}\n{wrapped.upper()}\nThis is the copy called {n}." for n in "123")
    assert [len(found) for found in quoted(*nearly)] == [7] * 3


def test_no_sentences_no_flags() -> None:
    assert quotable(TABLES["sentences"].empty()).to_list() == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was as secu-\nrity for it.", "It was as security for it."),
        ("He wrote:\n> What does\n> > it mean?", "He wrote: What does it mean?"),
        ("It was quoted secu-\n> rity.", "It was quoted security."),
        ("Die Vor-\nund Nachteile des Vor-\ntrags.", "Die Vor- und Nachteile des Vortrags."),
        ("Ein Nord-\nAtlantik-Schiff.", "Ein Nord-Atlantik-Schiff."),
        ("Zażół-\n  ćmy to.", "Zażółćmy to."),
        ("C'est le capi-\r\ntaine.", "C'est le capitaine."),
        ("It measured\n> 5 mm - and\n-3 degrees.", "It measured > 5 mm - and -3 degrees."),
        ("a  b\n c > d - e-f", "a b c > d - e-f"),
    ],
)
def test_a_quotation_stands_on_one_line_without_marks_of_layout(text: str, expected: str) -> None:
    assert one_line(text) == expected
    start, end = find_quotation(expected, f"(Before.\n{text}\nAfter.)") or (0, 0)
    assert start == 9
    assert one_line(f"(Before.\n{text}\nAfter.)"[start:end]) == expected


def test_what_a_text_does_not_say_is_not_found() -> None:
    assert find_quotation("It rained.", "It snowed.") is None
    assert find_quotation(" - ", "It snowed - much.") is None


@given(st.text(alphabet="aB.>- \n\u00ad1"), st.integers(0, 9), st.integers(0, 60))
def test_every_piece_of_a_text_is_found_in_it(text: str, start: int, length: int) -> None:
    quotation = one_line(text[start : start + length])
    place = find_quotation(quotation, text)
    assert (place is None) == (not any(c in "aB.1" for c in quotation))
    if place:
        letters = [c for c in quotation if c in "aB.1"]
        assert [c for c in text[slice(*place)] if c in "aB.1"] == letters
