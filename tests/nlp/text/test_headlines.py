"""Headlines of documents: titles, subjects of letters, first headings."""

import polars as pl
import pytest

from graphrag_nlp.text.headlines import MAX_DOCUMENT_BYTES, read_headlines


def headline_of(title: str, text: str = "", language: str = "en") -> str:
    columns = {"id": ["a"], "title": [title], "text": [text], "language": [language]}
    documents = pl.LazyFrame(columns)
    [headline] = read_headlines(documents)["headline"]
    return str(headline)


@pytest.mark.parametrize(
    ("title", "headline"),
    [
        ("Demon Dice", "Demon Dice"),
        ("Österreich", "Österreich"),
        ("Inception (film), 2010", "Inception (film), 2010"),
        ("St. Louis", "St. Louis"),
        ("Annual report 2023.pdf", "Annual report 2023"),
        # Numbers before a title, and sections behind it.
        ("8.9. Brightness-Contrast", "Brightness-Contrast"),
        ("Chapter 9. Text Management", "Text Management"),
        ("3) Text Management", "Text Management"),
        ("01 Introduction.pdf", "Introduction"),
        # A number that belongs to the title.
        ("2019 Budget", "2019 Budget"),
        ("2020 Budget.xlsx", "2020 Budget"),
        ("101 Dalmatians", "101 Dalmatians"),
        ("20 Years Later", "20 Years Later"),
        ("12 Angry Men.pdf", "12 Angry Men"),
        ("12 - Minutes of May.pdf", "Minutes of May"),
        ("2001: A Space Odyssey", "2001: A Space Odyssey"),
        ("3.5 Million People", "3.5 Million People"),
        ("Swine Flu [Oral Answers > Health]", "Swine Flu"),
        # Names of files, numbers and what is no text.
        ("Report.pdf", ""),
        ("Annual_report.pdf", ""),
        ("Annual_report", ""),
        ("Report 7", ""),
        ("report 7", ""),
        ("en-news-01", ""),
        ("20260408", ""),
        ("5 May 2023", ""),
        ("Draft", ""),
        ("IN BRIEF (Page 24)", ""),
        ("Two\nlines", ""),
        ("A" + 49 * " b" + "b", "A" + 49 * " b" + "b"),
        ("A" + 50 * " b" + "b", ""),
        ("", ""),
    ],
)
def test_a_title_is_a_headline_unless_it_names_a_file(title: str, headline: str) -> None:
    assert headline_of(title) == headline


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("From: Ann\nSubject: Re: [LIST] a leak??\n\nHello", "A leak?"),
        ("To: Bo\n  and Cy\nSubject: Fwd: RE: Leaks (was: Pipes)\n\nHello", "Leaks"),
        ("Subject: Leaks in\told  pipes\n\nHello", "Leaks in old pipes"),
        ("Subject: write to ann@example.org\n\nHello", ""),
        # What a sentence says of a subject is no head of a letter.
        ("They spoke. Subject: leaks\n\nHello", ""),
        ("# Leaks in pipes\nA pipe leaks.", "Leaks in pipes"),
        ("**Leaks in pipes**\n\nA pipe leaks.", ""),
        ("Leaks in pipes\n\nA pipe leaks.", "Leaks in pipes"),
        ("A pipe leaks.\n\nAnother bursts.", ""),
        ("A pipe leaks\nand another bursts.", ""),
    ],
)
def test_the_subject_of_a_letter_or_the_first_heading_is_a_headline(
    text: str, headline: str
) -> None:
    assert headline_of("note-1.txt", text) == headline


@pytest.mark.parametrize(
    ("language", "line", "is_headline"),
    [
        ("en", "Monday, 5 May 2023", False),
        ("de", "Berlin, den 5. Mai 2023", False),
        ("en", "Accident on 5 May 2023", True),
        ("en", "May 2023", False),
        ("en", "Budget (2023)", True),
        ("en", "Dear Sir or Madam", False),
        ("de", "Sehr geehrte Damen und Herren", False),
        ("de", "Liebe Anna", False),
        ("de", "Liebe in Zeiten der Cholera", True),
        ("fr", "Madame, Monsieur", False),
        ("en", "Good governance in Bern", True),
        ("en", "Page 1 of 7", False),
        ("de", "Seite 1 von 7", False),
        ("en", "CONFIDENTIAL DRAFT", False),
        ("fr", "Strictement confidentiel", False),
        ("en", "DRAFT v2", False),
        ("en", "Hi-fi systems compared", True),
        ("en", "Draft budget of the town", True),
        ("en", "Table of Contents", False),
        ("pl", "Spis treści", False),
        ("en", "Ann: Hello there", True),
        ("en", "Photo: Ann Smith", False),
    ],
)
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
