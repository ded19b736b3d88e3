"""Answers from rows of a table: those with a value, their number, or the largest."""

from collections.abc import Mapping, Sequence, Set
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import fold, stem_word
from graphrag_nlp.text.phrases import fold_question
from graphrag_query.answer import Answer
from graphrag_query.answering.cell_values import read_dates, read_numbers
from graphrag_query.answering.comparisons import ORDERS
from graphrag_query.answering.direct_answer_words import find_phrases
from graphrag_query.answering.document_tables import (
    DocumentTable,
    find_documents_with_tables,
    has_like,
    read_tables,
    stems_of,
)
from graphrag_query.answering.extractive import Candidate, TextUnit, cite_passage
from graphrag_query.answering.gathered_lists import find_plural_noun
from graphrag_query.answering.list_answer import find_types_of_names
from graphrag_query.answering.tables import Cell
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD, WORD_LISTS

if TYPE_CHECKING:
    from graphrag_query.answer import Context

# Maximum number of words of a value by which rows are chosen.
MAX_WORDS_OF_VALUE = 4
# Maximum number of rows of a list that are shown.
MAX_ROWS = 30


class _Found(NamedTuple):
    """Rows that answer, the column that names the answers, and the one that decides."""

    rows: list[list[Cell]]
    named_by: int
    decided_by: int

    @property
    def names(self) -> list[str]:
        """The different answers."""
        return list(dict.fromkeys(row[self.named_by].text for row in self.rows))

    @property
    def key(self) -> frozenset[tuple[str, str]]:
        """The answers and their values, equal if two tables say the same."""
        cells = ((row[self.named_by], row[self.decided_by]) for row in self.rows)
        return frozenset((name.text, value.text) for name, value in cells)


class _Asked(NamedTuple):
    """The stems of a question: all in their order, those with meaning, and what it asks for.

    `order` is the kind of the comparison, "" without one, and `compared` has its folded words.
    """

    question: Question
    stems: list[str]
    content: Set[str]
    nouns: list[str]
    order: str
    compared: list[str]

    def holds(self, text: str) -> bool:
        """Return whether the question has all words of a text, one after the other."""
        words = stems_of(text)
        places = range(len(self.stems) - len(words) + 1)
        is_value = len(words) <= MAX_WORDS_OF_VALUE and not self.content.isdisjoint(words)
        return is_value and any(self.stems[i : i + len(words)] == words for i in places)


def answer_from_rows(
    question: Question, text_units: Mapping[int, TextUnit], context: "Context"
) -> Answer | None:
    """List the rows that have the values of a question, count them, or name the largest.

    Each word of the question must be a value, the name of a column, what the rows are, or a word
    such as "which". None if another one is left, or unless exactly one table answers.
    """
    order = _find_order(question)
    wants_all = bool(find_plural_noun(question)) or question.wanted.kind in ("other", "person")
    if question.wanted.kind == "yes_no":
        return None
    if not (wants_all or question.wanted.is_counted or order):
        return None
    asked = _read_question(question, order)
    answers = []
    for units in find_documents_with_tables(question, text_units):
        for table in read_tables(units):
            if found := _find_in_table(asked, table, units):
                answers.append((found, table, units))
    if len({found.key for found, *_ in answers}) != 1:
        return None
    found, table, units = answers[0]
    n_names = len(found.names)
    # A table may name a thing in several rows, which are not counted twice. One name is no list:
    # sentences say more about it.
    if not all(found.names) or (not order and not question.wanted.is_counted and n_names < 2):
        return None
    return _write(asked, found, table, units, context)


def _read_question(question: Question, order: str) -> _Asked:
    plain = _listed_words("plain_words", question) | _listed_words("bounding_words", question)
    words = [fold(word) for word in WORD.findall(question.text.lower())]
    compared = _find_compared_words(question, order) if order else []
    content = {stem_word(word) for word in words if word not in {*plain, *compared}}
    noun = find_plural_noun(question)
    nouns = [*map(fold, question.wanted.nouns), *stems_of(noun)]
    nouns = [noun for noun in dict.fromkeys(nouns) if noun in content]
    return _Asked(question, stems_of(question.text), content, nouns, order, compared)


def _find_compared_words(question: Question, order: str) -> list[str]:
    """Return the words of the first comparison of a question: "most expensive"."""
    plain = fold_question(question.text)
    found = find_phrases(order, question.language.code).search(plain)
    if not found:
        return []
    following = WORD.findall(plain[found.end() :])[:1]
    measured = set(map(fold, _word_lists()["measured_words"].split()))
    return [*found[0].split(), *(word for word in following if word in measured)]


@cache
def _word_lists() -> Mapping[str, Any]:
    return read_lists("table_rows", Path(__file__).parent)


def _listed_words(name: str, question: Question) -> frozenset[str]:
    """Return the folded words of a list in the language of a question, or in English."""
    lists = _word_lists()[name]
    return frozenset(map(fold, lists.get(question.language.code, lists["en"]).split()))


def _find_measured(compared: Sequence[str]) -> set[str]:
    """Return the stems of the names of columns that the words of a comparison measure."""
    measures = (measure.split("|") for measure in _word_lists()["measures"])
    return {
        stem
        for words, names in measures
        if not set(map(fold, words.split())).isdisjoint(compared)
        for stem in stems_of(names)
    }


def _find_order(question: Question) -> str:
    """Return the kind of the comparison that a question asks for; "" if it has none or counts."""
    plain, code = fold_question(question.text), question.language.code
    orders = [order for order in ORDERS if find_phrases(order, code).search(plain)]
    orders = [order for order in orders if ORDERS[order].in_time] or orders
    return orders[0] if len(orders) == 1 and not question.wanted.is_counted else ""


def _find_in_table(
    asked: _Asked, table: DocumentTable, units: Mapping[int, TextUnit]
) -> _Found | None:
    """Return the rows of a table that answer; None if a word of the question is left over."""
    named = [row for row in table.rows if asked.holds(row[0].text)]
    stems = [set(stems_of(row[0].text)) for row in named]
    # "Core drill" is not "Drill".
    named = [row for row in named if not any(set(stems_of(row[0].text)) < s for s in stems)]
    # "Which is older, A or B?" compares two rows.
    if named and (not asked.order or len(named) < 2):
        return None
    values = _find_values(asked, table, {row[0].text for row in named})
    if values is None:
        return None
    kept = [row for row in named or table.rows if all(row[i].text in values[i] for i in values)]
    if len(kept) < len(named):
        return None
    texts = [text for of_column in values.values() for text in of_column]
    in_values = set(chain.from_iterable(map(stems_of, (*texts, *(row[0].text for row in named)))))
    left = asked.content - in_values
    if named or len(values) == 1:
        either = WORD_LISTS["alternatives"].get(asked.question.language.code, "or")
        left -= set(stems_of(either))
    is_bounded = any(word in _bounding_stems(asked) for word in asked.stems)
    if is_bounded and any(letter.isdigit() for text in texts for letter in text):
        return None
    # "Who has the cheapest item?" asks for another column, unlike "Who is older, A or B?".
    if asked.order and asked.question.wanted.kind == "person" and not named:
        return None
    if asked.order:
        found = _find_extreme(asked, table, kept, set(values), left, are_named=bool(named))
    else:
        found = _choose_names(asked, table, kept, set(values), left, units) if values else None
    if found is None:
        return None
    known = {0, found.named_by, found.decided_by, *values}
    is_left = any(
        not known.intersection(table.columns_like(word)) and not has_like(table.about, word)
        for word in left
    )
    return None if is_left else found


def _bounding_stems(asked: _Asked) -> frozenset[str]:
    return frozenset(map(stem_word, _listed_words("bounding_words", asked.question)))


def _find_values(
    asked: _Asked, table: DocumentTable, names: Set[str]
) -> dict[int, list[str]] | None:
    """Return the values that a question has, by their columns; None if a column is uncertain.

    The names of rows are no values: Bob may be the manager of Ann.
    "Power tool" is not "Power".
    """
    found = {
        (i, cell.text)
        for row in table.rows
        for i, cell in enumerate(row)
        if i
        and asked.holds(cell.text)
        and not any(set(stems_of(cell.text)) <= set(stems_of(name)) for name in names)
    }
    stems = [set(stems_of(text)) for _, text in found]
    values: dict[int, list[str]] = {}
    for i, text in found:
        if not any(set(stems_of(text)) < other for other in stems):
            values.setdefault(i, []).append(text)
    # The same value in two columns.
    words = [word for of_column in values.values() for word in set(map(fold, of_column))]
    return values if len(words) == len(set(words)) else None


def _choose_names(
    asked: _Asked,
    table: DocumentTable,
    rows: list[list[Cell]],
    with_values: Set[int],
    left: Set[str],
    units: Mapping[int, TextUnit],
) -> _Found | None:
    """Return rows with the column that has what is asked for: the first one, or another.

    "Who" needs a column of persons: the first one, or one that the question names.
    """
    decided_by = min(with_values)
    if asked.question.wanted.kind == "person" and not asked.nouns:
        types = find_types_of_names(asked.question.index, units)
        columns = [
            i
            for i in range(len(table.header))
            if i not in with_values
            and (i == 0 or any(i in table.columns_like(word) for word in left))
            and rows
            and all(types.get(row[i].text.lower()) == "person" for row in rows)
        ]
        return _Found(rows, columns[0], columns[0]) if len(columns) == 1 else None
    nouns = [noun for noun in asked.nouns if noun in left]
    columns = sorted({i for noun in nouns for i in table.columns_like(noun)})
    if not nouns or 0 in columns:
        return _Found(rows, 0, decided_by)
    if not columns:
        is_kind = any(has_like(table.about, noun) for noun in nouns)
        return _Found(rows, 0, decided_by) if is_kind else None
    if len(columns) > 1 or columns[0] in with_values:
        return None
    return _Found(rows, columns[0], columns[0])


def _find_extreme(
    asked: _Asked,
    table: DocumentTable,
    rows: Sequence[list[Cell]],
    with_values: Set[int],
    left: Set[str],
    *,
    are_named: bool,
) -> _Found | None:
    """Return the row with the largest or smallest value of the column that is meant.

    The question names the column, or its word for the comparison fits only this one. All its
    values must be read, and in a comparison of rows none may be missing.
    """
    in_time, smaller = ORDERS[asked.order]
    code = asked.question.language.code
    nouns = [noun for noun in asked.nouns if noun in left] or list(left)
    is_kind = any(0 in table.columns_like(n) or has_like(table.about, n) for n in nouns)
    others = [i for i in range(1, len(table.header)) if i not in with_values]
    columns = [i for i in others if any(i in table.columns_like(word) for word in left)]
    if not columns:
        names = _find_measured(asked.compared)
        columns = [i for i in others if not names.isdisjoint(stems_of(table.header[i]))]
    if len(columns) != 1 or not (are_named or is_kind):
        return None
    column = columns[0]
    filled = [row for row in table.rows if row[column].text]
    cells = [row[column].text for row in filled]
    is_rank = not set(map(fold, _word_lists()["ranks"].split())).isdisjoint(
        map(fold, WORD.findall(table.header[column].lower()))
    )
    read = read_dates(cells) if in_time else read_numbers(cells, code)
    compared = [(value, row) for value, row in zip(read, filled, strict=False) if row in rows]
    if is_rank or not compared or (are_named and len(compared) < len(rows)):
        return None
    best = (min if smaller else max)(value for value, _ in compared)
    found = [row for value, row in compared if value == best]
    return _Found(found, 0, column)


def _write(
    asked: _Asked,
    found: _Found,
    table: DocumentTable,
    units: Mapping[int, TextUnit],
    context: "Context",
) -> Answer:
    """Write the names of rows, each with the citation of the cell that decides."""
    rows = {row[found.named_by].text: row for row in reversed(found.rows)}
    names = found.names
    shown = names if asked.order else names[:MAX_ROWS]
    cited = []
    for number, name in enumerate(shown, 1):
        cell = rows[name][found.decided_by]
        stop = cell.start + len(cell.text)
        unit = next(
            unit
            for unit in units.values()
            if unit["start_char"] <= cell.start and stop <= unit["start_char"] + len(unit["text"])
        )
        start = unit["start_char"]
        candidate = Candidate.within(unit, cell.start - start, stop - start)
        cited.append(cite_passage(number, candidate, unit))
    if asked.order:
        value = f"{table.header[found.decided_by]}: {found.rows[0][found.decided_by].text}"
        numbers = "".join(f" [{citation.number}]" for citation in cited)
        text = f"{', '.join(names)} — {value}{numbers}"
    else:
        lines = [f"- {name} [{number}]" for number, name in enumerate(shown, 1)]
        if len(names) > len(shown):
            texts = _word_lists()["further_rows"]
            further = texts.get(asked.question.language.code, texts["en"])
            lines.append(f"- {further.format(n=len(names) - len(shown))}")
        listed = "\n".join(lines)
        text = f"{len(names)}:\n{listed}" if asked.question.wanted.is_counted else listed
    return asked.question.answer(text, citations=tuple(cited), context=context)
