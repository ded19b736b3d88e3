"""Answers from rows of a table: those with a value, their number, or the largest."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from graphrag_index.text.normalize import fold, stem_word
from graphrag_query.answer import Answer
from graphrag_query.answering.comparisons import ORDERS
from graphrag_query.answering.direct_answer_words import find_phrases
from graphrag_query.answering.extractive import Candidate, TextUnit, cite_passage
from graphrag_query.answering.gathered_lists import find_plural_noun
from graphrag_query.answering.tables import Cell, Table, find_tables
from graphrag_query.question.cues import fold_question
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD, content_words

if TYPE_CHECKING:
    from graphrag_query.answer import Context

# Maximum number of documents whose tables are read, and of text units of such a document: an answer
# about all rows of a table needs all of them.
MAX_DOCUMENTS = 4
MAX_TEXT_UNITS = 40
# Maximum number of words of a value by which rows are chosen.
MAX_WORDS_OF_VALUE = 4
# Minimum number of letters in which two words begin alike: "borrow" and "Borrower".
MIN_COMMON_LETTERS = 5
# Maximum number of rows of a list.
MAX_ROWS = 30
# Minimum share (0 to 1) of the cells of a column that are numbers or dates, to compare its rows.
MIN_SHARE_OF_NUMBERS = 0.8
_NUMBER = re.compile(r"[-+]?\d[\d.,' ]*")
_DATE = re.compile(r"(?:1[5-9]|20)\d\d(?:-\d\d(?:-\d\d)?)?")


class _Row(NamedTuple):
    """A row, with the number of its text unit and the names of its columns."""

    cells: list[Cell]
    text_unit: int
    header: tuple[str, ...]

    @property
    def key(self) -> str:
        """The first cell, which names the row."""
        return self.cells[0].text


class _Asked(NamedTuple):
    """The stems of a question, in their order and those that carry meaning."""

    stems: list[str]
    content: Set[str]

    def holds(self, text: str) -> bool:
        """Return whether the question has all words of a text, one after the other."""
        words = _stems(text)
        places = range(len(self.stems) - len(words) + 1)
        is_short = 0 < len(words) <= MAX_WORDS_OF_VALUE
        return is_short and any(self.stems[i : i + len(words)] == words for i in places)

    def left_without(self, texts: Iterable[str]) -> set[str]:
        """Return the words with meaning that none of the texts has, in this or another form."""
        known = {stem for text in texts for stem in _stems(text)}
        return {word for word in self.content if not any(_is_alike(word, k) for k in known)}


def answer_from_rows(
    question: Question, text_units: Mapping[int, TextUnit], context: "Context"
) -> Answer | None:
    """List the rows that have the values of a question, count them, or name the largest.

    The question may say nothing but the values, the names of columns, and what the rows are. None
    if it does, or if the texts have no such table.
    """
    wants_all = bool(find_plural_noun(question)) or question.wanted.kind in ("other", "person")
    order = _find_order(question)
    if not wants_all and not question.wanted.is_counted and not order:
        return None
    asked = _Asked(_stems(question.text), set(content_words(question.text, question.language)))
    asked = asked._replace(content={stem_word(fold(word)) for word in asked.content})
    for units in _documents_with_tables(question, text_units):
        about = f"{next(iter(units.values()))['title']} {_headings(units)}"
        if found := _find_in_document(question, asked, _read_rows(units), about, order):
            return _write(question, found, units, context, is_row=bool(order))
    return None


def _find_in_document(
    question: Question, asked: _Asked, rows: Iterable[_Row], about: str, order: str
) -> list[tuple[_Row, int]]:
    """Return the rows of a table of a document that answer, each with the column that decides."""
    tables: dict[tuple[str, ...], list[_Row]] = {}
    for row in rows:
        tables.setdefault(row.header, []).append(row)
    for rows in tables.values():
        named = [row for row in rows if asked.holds(row.key)]
        # "Which is older, A or B?" compares two rows.
        if len(rows) < 2 or (named and (not order or len(named) < 2)):
            continue
        if order:
            found = _find_extreme(question, asked, named or rows, order, are_named=bool(named))
        else:
            found = _find_rows(asked, rows, about)
        if found and (len(found) > 1 or order or question.wanted.is_counted):
            return found
    return []


def _stems(text: str) -> list[str]:
    return [stem_word(fold(word)) for word in WORD.findall(text.lower())]


def _is_alike(a: str, b: str) -> bool:
    return a == b or (
        min(len(a), len(b)) >= MIN_COMMON_LETTERS and (a.startswith(b) or b.startswith(a))
    )


def _headings(units: Mapping[int, TextUnit]) -> str:
    texts = "\n".join(unit["text"] for unit in units.values())
    return " ".join(re.findall(r"^#+ (.+)$", texts, re.MULTILINE))


def _find_order(question: Question) -> str:
    """Return the kind of the comparison that a question asks for, if it names no two things."""
    plain, code = fold_question(question.text), question.language.code
    orders = [order for order in ORDERS if find_phrases(order, code).search(plain)]
    orders = [order for order in orders if ORDERS[order].in_time] or orders
    return orders[0] if len(orders) == 1 and not question.wanted.is_counted else ""


def _documents_with_tables(
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


def _read_rows(units: Mapping[int, TextUnit]) -> Iterator[_Row]:
    """Yield the rows of the tables of a document once, although text units may overlap.

    A table that goes on in the next text unit keeps its header there.
    """
    seen: set[int] = set()
    headers: dict[int, list[str]] = {}
    for number, unit in units.items():
        for table in find_tables(unit["text"]):
            header = table.header or headers.get(_width(table), [])
            headers[len(header)] = header
            for cells in table.rows:
                place = unit["start_char"] + cells[0].start if cells else -1
                if place >= 0 and place not in seen and len(cells) > 1:
                    seen.add(place)
                    yield _Row(cells, number, tuple(header))


def _width(table: Table) -> int:
    return max(map(len, table.rows), default=0)


def _find_rows(asked: _Asked, rows: Sequence[_Row], about: str) -> list[tuple[_Row, int]]:
    """Return the rows that have the values of a question, each with the column of a value."""
    values: dict[int, dict[str, list[_Row]]] = {}
    for row in rows:
        for i, cell in enumerate(row.cells[1:], 1):
            if asked.holds(cell.text):
                values.setdefault(i, {}).setdefault(cell.text, []).append(row)
    if not values:
        return []
    found: list[list[_Row]] = []
    for of_column in values.values():
        # "Power tool" is not "Power".
        longest = [v for v in of_column if not any(_is_part(v, other) for other in of_column)]
        found.append([row for value in longest for row in of_column[value]])
    texts = [text for of_column in values.values() for text in of_column]
    header = rows[0].header
    if asked.left_without([*texts, *header, about]):
        return []
    kept = [row for row in rows if all(row in of_column for of_column in found)]
    return [(row, min(values)) for row in kept[:MAX_ROWS]]


def _is_part(value: str, other: str) -> bool:
    return set(_stems(value)) < set(_stems(other))


def _find_extreme(
    question: Question, asked: _Asked, rows: Sequence[_Row], order: str, *, are_named: bool
) -> list[tuple[_Row, int]]:
    """Return the row with the largest or smallest value of the only column that can be meant."""
    in_time, smaller = ORDERS[order]
    header = rows[0].header
    whole = [row for row in rows if len(row.cells) == len(header)]
    columns = [
        i
        for i in range(1, len(header))
        if _is_compared([row.cells[i].text for row in whole], in_time=in_time)
    ]
    named = [i for i in columns if not asked.content.isdisjoint(_stems(header[i]))]
    columns = named or columns
    if len(columns) != 1:
        return []
    keys = [row.key for row in rows] if are_named else []
    left = asked.left_without([*header, *_words_of_order(question, order), *keys])
    # "Most expensive" has a word beside the order.
    if len(left) > (0 if named else 1) or not (are_named or _names_key(asked, header)):
        return []
    valued = [
        (value, row)
        for row in whole
        if (value := _read_number(row.cells[columns[0]].text, in_time=in_time)) is not None
    ]
    best = (min if smaller else max)(value for value, _ in valued)
    return [(row, columns[0]) for value, row in valued if value == best]


def _is_compared(cells: Sequence[str], *, in_time: bool) -> bool:
    """Return whether most cells of a column are dates, or numbers other than years."""
    n_least = MIN_SHARE_OF_NUMBERS * len(cells)
    is_time = bool(cells) and sum(bool(_DATE.fullmatch(cell)) for cell in cells) >= n_least
    if in_time or is_time:
        return in_time and is_time
    return bool(cells) and sum(bool(_NUMBER.fullmatch(cell)) for cell in cells) >= n_least


def _names_key(asked: _Asked, header: Sequence[str]) -> bool:
    """Return whether a question has a word of the first column, whose cells name the rows."""
    return any(_is_alike(word, stem) for word in asked.content for stem in _stems(header[0]))


def _words_of_order(question: Question, order: str) -> list[str]:
    plain = fold_question(question.text)
    return [found[0] for found in find_phrases(order, question.language.code).finditer(plain)]


def _read_number(text: str, *, in_time: bool) -> float | None:
    """Read a date or a number; None if the text is neither."""
    if in_time:
        return float(text.replace("-", "").ljust(8, "0")) if _DATE.fullmatch(text) else None
    digits = re.sub(r"[,' ](?=\d{3}\b)", "", text.strip()) if _NUMBER.fullmatch(text) else ""
    try:
        return float(digits.replace(",", "."))
    except ValueError:
        return None


def _write(
    question: Question,
    found: Sequence[tuple[_Row, int]],
    units: Mapping[int, TextUnit],
    context: "Context",
    *,
    is_row: bool,
) -> Answer:
    """Write the names of rows, each with the citation of the cell that decides."""
    cited = []
    for number, (row, column) in enumerate(found, 1):
        unit, cell = units[row.text_unit], row.cells[column]
        candidate = Candidate.within(unit, cell.start, cell.start + len(cell.text))
        cited.append(cite_passage(number, candidate, unit))
    names = [row.key for row, _ in found]
    if is_row:
        row, column = found[0]
        value = f"{row.header[column]}: {row.cells[column].text}"
        numbers = "".join(f" [{citation.number}]" for citation in cited)
        text = f"{', '.join(names)} — {value}{numbers}"
    else:
        listed = "\n".join(f"- {name} [{number}]" for number, name in enumerate(names, 1))
        text = f"{len(names)}:\n{listed}" if question.wanted.is_counted else listed
    return question.answer(text, citations=tuple(cited), context=context)
