"""Headlines of documents: titles, subjects of letters, first headings."""

import polars as pl

from graphrag_nlp.text.headlines import MAX_DOCUMENT_BYTES, read_headlines
from tests.fixtures.cases import cases


def headline_of(title: str, text: str = "", language: str = "en") -> str:
    columns = {"id": ["a"], "title": [title], "text": [text], "language": [language]}
    documents = pl.LazyFrame(columns)
    [headline] = read_headlines(documents)["headline"]
    return str(headline)


@cases("title, headline")
def test_a_title_is_a_headline_unless_it_names_a_file(title: str, headline: str) -> None:
    assert headline_of(title) == headline


@cases("text, headline")
def test_the_subject_of_a_letter_or_the_first_heading_is_a_headline(
    text: str, headline: str
) -> None:
    assert headline_of("note-1.txt", text) == headline


@cases("language, line, is_headline")
def test_dates_salutations_and_marks_of_documents_are_no_headlines(
    language: str, line: str, is_headline: bool
) -> None:
    found = headline_of("note-1.txt", f"{line}\n\nA pipe leaks.", language)
    assert found == (line if is_headline else "")


def test_the_first_turn_of_a_chat_is_no_headline() -> None:
    assert headline_of("chat.txt", "Ann: Hello there\n\nBob: Hello, Ann.") == ""


def test_what_stands_over_many_documents_and_the_title_of_a_book_are_no_headlines() -> None:
    titles = [*["Minutes"] * 6, *["Leaks"] * 2, "Pipes"]
    texts = [*[""] * 8, "x" * (MAX_DOCUMENT_BYTES + 1)]
    columns = {"id": list("abcdefghi"), "title": titles, "text": texts, "language": ["en"] * 9}
    documents = pl.LazyFrame(columns)
    assert read_headlines(documents)["headline"].to_list() == [*[""] * 6, "Leaks", "Leaks", ""]
