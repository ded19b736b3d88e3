"""The tables of documents, read as a whole from their text units."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from graphrag_nlp.text.normalize import fold, stem_word
from graphrag_query.answering.extractive import TextUnit
from graphrag_query.answering.tables import Cell, find_tables
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD

# Maximum number of documents whose tables are read, and of text units of such a document: an answer
# about all rows of a table needs all of them.
MAX_DOCUMENTS = 4
MAX_TEXT_UNITS = 40
# Minimum number of letters in which two words begin alike: "borrow" and "Borrower".
MIN_COMMON_LETTERS = 5
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class DocumentTable(NamedTuple):
    """A table of a document: the text above it, the names of its columns, and its rows."""

    about: str
    header: list[str]
    rows: list[list[Cell]]

    def columns_like(self, word: str) -> list[int]:
        """Return the columns whose names have a word, in this or another form."""
        return [i for i, name in enumerate(self.header) if has_like(name, word)]


def find_documents_with_tables(
    question: Question, text_units: Mapping[int, TextUnit]
) -> Iterator[Mapping[int, TextUnit]]:
    """Yield the text units of each document of which a table was read, the best document first."""
    index = question.index
    with_tables = [n for n, unit in text_units.items() if any(find_tables(unit["text"]))]
    if not with_tables:
        return
    table = index.open_mapped("text_unit_rows")
    documents = table.rows(with_tables, "document")["document"].unique(maintain_order=True)
    documents = documents.head(MAX_DOCUMENTS)
    starts, stops = (ends.tolist() for ends in table.bounds("document", documents.to_numpy()))
    for start, stop in zip(starts, stops, strict=True):
        numbers = [n for n in range(start, stop) if index.text_units_behind("Sources", n)]
        if 0 < len(numbers) <= MAX_TEXT_UNITS:
            yield index.text_units(numbers)


def read_tables(units: Mapping[int, TextUnit]) -> list[DocumentTable]:
    """Read the tables of a document, whose text units may overlap.

    A table belongs to the nearest heading above it; alone in its document, also to the title. A
    row may lack cells at its end. A table without a header, or with longer rows, is left out.
    """
    text = ""
    for unit in units.values():
        text += "\n" * (unit["start_char"] - len(text))
        text += unit["text"][len(text) - unit["start_char"] :]
    headings = [(heading.start(), heading[1]) for heading in _HEADING.finditer(text)]
    found = list(find_tables(text))
    title = next(iter(units.values()))["title"]
    tables = []
    for header, rows in found:
        width = len(header)
        if len(rows) < 2 or not header or any(len(row) > width for row in rows):
            continue
        above = bisect_right(headings, rows[0][0].start, key=lambda heading: heading[0])
        about = headings[above - 1][1] if above else ""
        about = f"{title} {about}" if len(found) == 1 else about
        empty = Cell(rows[0][0].start, "")
        tables.append(
            DocumentTable(about, header, [row + [empty] * (width - len(row)) for row in rows])
        )
    return tables


def stems_of(text: str) -> list[str]:
    return [stem_word(fold(word)) for word in WORD.findall(text.lower())]


def has_like(text: str, word: str) -> bool:
    """Return whether a text has a word, in this or another form."""
    return any(
        stem == word
        or (
            min(len(stem), len(word)) >= MIN_COMMON_LETTERS
            and (stem.startswith(word) or word.startswith(stem))
        )
        for stem in stems_of(text)
    )
