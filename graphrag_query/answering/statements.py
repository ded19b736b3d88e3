"""Statements of a text: sentences, turns of chats, fields, cells of tables, list items.

A statement is a text to quote, with the words that the layout adds to it: the speaker and the time
of a turn, the row and the column of a cell, the heading of a list. Patterns find the layout.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphrag_nlp.text.code import blank_code
from graphrag_nlp.text.languages import expand_pattern, read_lists, word_set
from graphrag_nlp.text.sentences import find_headings, split_sentences
from graphrag_query.answering.tables import find_tables
from graphrag_query.answering.wrapped_lines import find_lines, is_open_line
from graphrag_query.question.question_words import split_joined_words

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import IndexStore

_LISTS = read_lists("statements", Path(__file__).parent)
_TIME_FIELDS = word_set(_LISTS["time_fields"])
_SENDER_FIELDS = word_set(_LISTS["sender_fields"])
_SUBJECT_FIELDS = word_set(_LISTS["subject_fields"])
_RECIPIENT_FIELDS = word_set(_LISTS["recipient_fields"])
_HEAD_FIELDS = _TIME_FIELDS | _SENDER_FIELDS | _SUBJECT_FIELDS | _RECIPIENT_FIELDS
_SECOND_PERSON = word_set(_LISTS["second_person"])
_LABELLED_LINE = re.compile(expand_pattern(_LISTS["patterns"], "LABELLED_LINE"), re.MULTILINE)
# Rows of tables of web pages, which have marks only between cells.
_WEB_ROWS = re.compile(r"(?:^[^\n|]+ \| [^\n]*(?:\n|\Z)){2,}", re.MULTILINE)
_LIST_ITEM = re.compile(
    r"^[^\S\n]*(?:[-*+•]|\d{1,3}[.)])[^\S\n]+(?P<item>\S[^\n]*?)[^\S\n]*$", re.MULTILINE
)
# The heading of the description of an option or a function: maxRetries, retry(input, options?)
_HEADING_OF_CODE = re.compile(r"`?(?P<name>(?:[.-]*[a-z_]|[A-Z]\w*_)[\w.-]*)(?:\([^()]*\))?`?")
_LEAD_IN = re.compile(r"([^\n|.!?]{2,120})[:：]\s*$")
_WORD = re.compile(r"\w+")
# The end of a sentence, also before emojis.
_SENTENCE_END = re.compile(r"[.!?…。！？]\W*$")
# Emojis and other signs before a sentence. Opening quotation marks and currencies belong to it.
_SIGNS = re.compile(r"[^\w\"'“„«‘(\[$€£¥<#@+-]+")
# Minimum number of words of a labelled line that says something, in place of a short value.
MIN_WORDS_SAID = 6
# Maximum number of words of a value in a record, or of a cell in a row that is one statement.
MAX_WORDS_OF_VALUE = 15
# Maximum number of characters at the start of a line up to the mark after its label.
MAX_LABEL_CHARS = 100


class Opening(NamedTuple):
    """The state of a chat or letter at the start of a text: who speaks, when and about what."""

    speaker: str = ""
    time: str = ""
    subject: str = ""
    is_letter: bool = False


NO_OPENING = Opening()


class Statement(NamedTuple):
    """A part of a text that can be quoted, with the words that the layout adds to it.

    `prose` is false for headings and fragments. `label` is shown before a quotation: the speaker,
    the row and the column, or the heading of a list. `time` is when the speaker said it. The words
    of `about` count as words of the statement. `in_list` is true for an item of a list, and
    `in_turn` for the words of a speaker.
    """

    start: int
    end: int
    prose: bool
    label: str = ""
    about: str = ""
    time: str = ""
    in_list: bool = False
    in_turn: bool = False


def find_statements(text: str, opening: Opening = NO_OPENING) -> list[Statement]:
    """Split a text into statements, in the order of the text. Code and comments state nothing."""
    text = blank_code(text, is_part=True)
    labelled = _find_labelled_lines(text)
    turns, _ = _find_turns(text, labelled, opening)
    if turns:
        before = text[: labelled[0].start()] if labelled and not opening.speaker else ""
        said = [statement for turn in turns for statement in _split_turn(text, turn)]
        return [*(Statement(*sentence) for sentence in split_sentences(before)), *said]
    lines = list(_find_cells(text))
    for found in (_find_fields(text, labelled), _find_list_items(text), _find_web_rows(text)):
        lines += [line for line in found if not _overlaps(line, lines)]
    lines.sort()
    others = list(_split_outside(text, lines))
    return sorted([*lines, *_add_names_above(text, others)])


def find_openings(
    index: "IndexStore", text_units: Iterable[Mapping[str, Any]]
) -> dict[int, Opening]:
    """Map the numbers of text units inside chats and letters to their opening.

    The head of a chat is in the first text unit of the document, and the speaker of the first line
    is in the text unit before.
    """
    rows = index.open_mapped("text_unit_rows")
    later = [unit for unit in text_units if unit["start_char"]]
    starts, _ = rows.bounds("document", np.array([unit["document"] for unit in later], np.int64))
    states: dict[tuple[int, Opening], Opening] = {}

    def state_after(number: int, opening: Opening) -> Opening:
        if (number, opening) not in states:
            text = rows.text("text", number)
            states[number, opening] = _find_turns(text, _find_labelled_lines(text), opening)[1]
        return states[number, opening]

    openings = {}
    for unit, first in zip(later, starts.tolist(), strict=True):
        number = unit["human_readable_id"]
        opening = state_after(first, NO_OPENING)
        if number - 1 > first and any(opening):
            opening = state_after(number - 1, opening._replace(speaker="", is_letter=False))
        if any(opening):
            openings[number] = opening
    return openings


def _overlaps(statement: Statement, others: Iterable[Statement]) -> bool:
    return any(statement.start < other.end and other.start < statement.end for other in others)


def _split_outside(text: str, lines: Sequence[Statement]) -> Iterator[Statement]:
    """Split a text into sentences, without the parts up to the end of statements in `lines`."""
    if not lines:
        yield from (Statement(*sentence) for sentence in split_sentences(text))
        return
    for start, end, prose in split_sentences(text):
        inside = [line for line in lines if start < line.end and line.start < end]
        if not inside:
            yield Statement(start, end, prose)
            continue
        rest = inside[-1].end
        for sentence in split_sentences(text[rest:end]):
            if _WORD.search(text, rest + sentence.start, rest + sentence.end):
                yield Statement(rest + sentence.start, rest + sentence.end, sentence.prose)


def _add_names_above(text: str, statements: Sequence[Statement]) -> Iterator[Statement]:
    """Add the heading above to statements, if it is a single name of code: what they describe."""
    headings = find_headings(text) if "#" in text else []
    starts = [heading.start for heading in headings]
    for statement in statements:
        n_above = bisect_left(starts, statement.start)
        name = _HEADING_OF_CODE.fullmatch(headings[n_above - 1].words) if n_above else None
        if name and statement.prose:
            statement = statement._replace(label=name["name"], about=name["name"])
        yield statement


class _Turn(NamedTuple):
    """The words of one speaker, with their span. `addressee` is the only other speaker."""

    start: int
    end: int
    speaker: str
    time: str
    subject: str
    is_letter: bool
    addressee: str = ""


def _find_labelled_lines(text: str) -> list[re.Match[str]]:
    """Find the lines that begin with a speaker or the name of a field."""
    lines, start = [], 0
    for line in text.split("\n"):
        # A search for the marks is much faster than the pattern.
        if any(mark in line[:MAX_LABEL_CHARS] for mark in ":：>"):
            lines.append(_LABELLED_LINE.match(text, start))
        start += len(line) + 1
    found = [line for line in lines if line]
    counts = Counter(line["label"] for line in found)
    starts = {line.start() for line in found}
    return [
        line
        for line in found
        if counts[line["label"]] > 1 or not _continues_line(text, line.start(), starts)
    ]


def _continues_line(text: str, start: int, labelled: Container[int]) -> bool:
    """Return whether a line goes on with a sentence of the line before, in text of fixed width.

    "... took place in two parts, and the" may go on with "second race: Ann won it."
    """
    begin = text.rfind("\n", 0, start - 1) + 1
    return is_open_line(text[begin : max(start - 1, 0)]) and begin not in labelled


def _find_turns(
    text: str, lines: Sequence[re.Match[str]], opening: Opening
) -> tuple[list[_Turn], Opening]:
    """Find the turns of a chat or letter, and the state at the end; without any, an empty list.

    Labelled lines are turns if at least half of them say something, and not just a value.
    """
    if not lines and not opening.speaker:
        return [], opening
    values = [text[line.end() :].split("\n", 1)[0].strip() for line in lines]
    labels = [line["nick"] or line["label"].strip() for line in lines]
    spoken = [
        value
        for value, label in zip(values, labels, strict=True)
        if label.lower() not in _HEAD_FIELDS
    ]
    n_said = sum(
        len(value.split()) >= MIN_WORDS_SAID or bool(_SENTENCE_END.search(value))
        for value in spoken
    )
    n_names = sum(_is_like_name(label) for label in labels if label.lower() not in _HEAD_FIELDS)
    has_head = any(opening) or bool(labels and labels[0].lower() in _HEAD_FIELDS)
    is_chat = 2 * min(n_said, n_names) >= len(spoken) and len(spoken) >= (1 if has_head else 2)
    if not has_head and len(set(labels)) == len(labels):
        # Steps and notes of a manual: "Step 1: ..."
        is_chat &= 2 * len(lines) > sum(bool(line.strip()) for line in text.split("\n"))
    state, turns, start = opening, list[_Turn](), 0
    for line, label, value in zip(lines, labels, values, strict=True):
        key = label.lower()
        if key not in _HEAD_FIELDS and not is_chat:
            continue
        if state.speaker:
            turns.append(_Turn(start, line.start(), *state))
        start = line.end()
        if key in _TIME_FIELDS:
            state = state._replace(time=value)
        elif key in _SUBJECT_FIELDS:
            state = state._replace(subject=value)
        elif key in _SENDER_FIELDS and "\n\n" in text[start:]:
            # A blank line ends the head of a letter.
            speaker = value.split("<")[0].strip(' "') or value
            state = state._replace(speaker=speaker, is_letter=True)
        elif key not in _HEAD_FIELDS:
            time = (line["before"] or line["after"] or "").strip(" -,")
            state = Opening(label, time or state.time, state.subject)
        if key in _HEAD_FIELDS:
            start += len(value)
    if state.speaker:
        end = len(text)
        if not turns and opening.speaker and not lines:
            # The last turn of a chat ends with its paragraph.
            end = text.find("\n\n") if "\n\n" in text else end
        turns.append(_Turn(start, end, *state))
    speakers = list(dict.fromkeys(turn.speaker for turn in turns))
    if len(speakers) == 2:
        others = dict(zip(speakers, reversed(speakers), strict=True))
        turns = [turn._replace(addressee=others[turn.speaker]) for turn in turns]
    return turns, state


def _is_like_name(label: str) -> bool:
    """Return whether no word of a label begins with a small letter, as in names of speakers.

    "GNU/Linux" is no speaker.
    """
    if "/" in label:
        return False
    return not any(word[0].islower() for word in label.split()) or " " not in label


def _split_turn(text: str, turn: _Turn) -> Iterator[Statement]:
    """Split the words of a speaker into sentences; most line ends also end a sentence."""
    about = split_joined_words(f"{turn.speaker} {turn.time} {turn.subject}".rstrip())
    addressee = split_joined_words(turn.addressee)
    for offset, line_end in find_lines(text, turn.start, turn.end, is_letter=turn.is_letter):
        line = text[offset:line_end]
        for start, end, _ in split_sentences(line):
            signs = _SIGNS.match(line, start)
            start = signs.end() if signs else start
            words = _WORD.findall(line[start:end].lower())
            if words:
                is_to = bool(addressee) and not _SECOND_PERSON.isdisjoint(words)
                words_added = f"{addressee} {about}" if is_to else about
                said = Statement(offset + start, offset + end, True, turn.speaker, words_added)
                yield said._replace(time=turn.time, in_turn=True)


def _find_cells(text: str) -> Iterator[Statement]:
    """Find the cells of tables: a cell is about its row, and is shown with its column."""
    for table in find_tables(text):
        for row in table.rows:
            about = " ".join(cell.text for cell in row)
            for i, (start, cell) in enumerate(row):
                if not cell or (i == 0 and len(row) > 1):
                    continue
                column = table.column(i)
                label = ", ".join(filter(None, [row[0].text if i else "", column]))
                yield Statement(start, start + len(cell), True, label, f"{about} {column}")


def _find_web_rows(text: str) -> Iterator[Statement]:
    """Find the rows of tables of web pages. A row with a long cell is text in columns.

    The words of the first row count as words of the others, if it names the columns: it has no
    digit, and the text does not begin with it, as text may that was cut inside a table.
    """
    for table in _WEB_ROWS.finditer(text) if " | " in text else ():
        rows = [(table.start() + row.start(), row[0]) for row in re.finditer(r"[^\n]+", table[0])]
        rows = [(start, row) for start, row in rows if _has_short_cells(row)]
        has_header = table.start() > 0 and len(rows) > 2 and not re.search(r"\d", rows[0][1])
        header = rows.pop(0)[1] if has_header else ""
        for start, row in rows:
            yield Statement(start, start + len(row), True, about=header)


def _has_short_cells(row: str) -> bool:
    return all(len(cell.split()) <= MAX_WORDS_OF_VALUE for cell in row.split(" | "))


def _find_fields(text: str, lines: Iterable[re.Match[str]]) -> Iterator[Statement]:
    """Find the fields of records: two or more labelled lines, one after the other.

    A field is about the first value of its record, or about the heading above.
    """
    records: list[list[re.Match[str]]] = []
    reached = -1
    for line in lines:
        if line["label"]:
            if reached < 0 or text.count("\n", reached, line.start()) > 1:
                records.append([])
            records[-1].append(line)
            reached = line.end()
    headings, runs_end = find_headings(text), 0
    for record in records:
        values = [text[line.end() :].split("\n", 1)[0].split() for line in record]
        n_long = sum(len(words) > MAX_WORDS_OF_VALUE for words in values)
        if len(record) < 2 or 2 * n_long >= len(record):
            continue
        start = record[0].start()
        above = [heading for heading in headings if runs_end <= heading.start < start]
        subject, runs_end = above[-1].words if above else "", record[-1].end()
        for line in record:
            value = text[line.end() :].split("\n", 1)[0].strip()
            value = value.rstrip(",").strip('"')
            if not value:
                continue
            start = text.index(value, line.end())
            label = ", ".join(dict.fromkeys(filter(None, [subject, line["label"].strip()])))
            yield Statement(start, start + len(value), True, label, label)
            subject = subject or value


def _find_list_items(text: str) -> Iterator[Statement]:
    """Find the items of lists that have a heading or a line that ends with a colon above."""
    items = list(_LIST_ITEM.finditer(text))
    headings = find_headings(text) if items else []
    subject, reached = "", 0
    for item in items:
        between = text[reached : item.start()].rstrip()
        if between.strip():
            lead_in = _LEAD_IN.search(between)
            above = [heading.words for heading in headings if heading.start < item.start()]
            subject = lead_in[1].strip() if lead_in else above[-1] if above else ""
        reached = item.end()
        if subject:
            yield Statement(
                item.start("item"), item.end("item"), True, subject, subject, in_list=True
            )
