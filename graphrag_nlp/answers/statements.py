"""Statements of a passage: sentences, turns of chats, items of lists, rows, lines of logs.

A statement is a text to quote, with the words that the layout adds to it: the speaker and the time
of a turn, the columns of a row, the heading of a list. Patterns find the layout.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from graphrag_nlp.text.code import blank_code
from graphrag_nlp.text.languages import expand_pattern, read_lists, word_set
from graphrag_nlp.text.lines import locate
from graphrag_nlp.text.normalize import stem_word
from graphrag_nlp.text.sentences import (
    DOT_LEADER,
    LOG_LINE,
    find_headings,
    join_lines,
    split_sentences,
)
from graphrag_nlp.text.standalone import find_edges
from graphrag_nlp.text.tables import MAX_WORDS_OF_CELL, find_tables

WORD = re.compile(r"[^\W_]+")
# The place between words that are written together, as in "WolfgangSchulz".
_JOINED_WORDS = re.compile(r"(?<=[a-zß-öø-ÿ])(?=[A-ZÀ-Þ][a-zß-öø-ÿ])")
_LISTS = read_lists("statements", Path(__file__).parent / "data")
_TIME_FIELDS, _SENDER_FIELDS, _SUBJECT_FIELDS = (
    word_set(_LISTS[name]) for name in ("time_fields", "sender_fields", "subject_fields")
)
_HEAD_FIELDS = (
    _TIME_FIELDS | _SENDER_FIELDS | _SUBJECT_FIELDS | word_set(_LISTS["recipient_fields"])
)
_LABELLED_LINE = re.compile(expand_pattern(_LISTS["patterns"], "LABELLED_LINE"), re.MULTILINE)
_LIST_ITEM = re.compile(
    r"^[^\S\n]*(?:[-*+•]|\d{1,3}[.)])[^\S\n]+(?P<item>\S[^\n]*?)[^\S\n]*$", re.MULTILINE
)
_CONTENTS_LINE = re.compile(rf"{DOT_LEADER.pattern}\d+\s*$")
_FIELD = re.compile(rf"[^\s:][^:]{{0,59}}: \S+(?:\s+\S+){{0,{MAX_WORDS_OF_CELL - 1}}}")
_LEAD_IN = re.compile(r"([^\n|.!?]{2,120})[:：]\s*$")
# The end of a sentence, also before emojis.
_SENTENCE_END = re.compile(r"[.!?…。！？]\W*$")
# Minimum number of words of a labelled line that says something, in place of a short value.
MIN_WORDS_SAID = 6
# Maximum number of words of a part of a turn that is one statement.
MAX_WORDS_OF_TURN = 40
# Maximum number of characters at the start of a line up to the mark after its label.
MAX_LABEL_CHARS = 100
# Minimum number of characters of a line whose sentence may go on in the next line.
MIN_CHARS_OF_FULL_LINE = 40
# Minimum number of spaces of a fragment that is quoted like a sentence.
MIN_SPACES_OF_FRAGMENT = 5
# Maximum number of passages whose statements are kept in memory.
MAX_KEPT_PASSAGES = 256


@dataclass(frozen=True)
class Passage:
    """A text unit: `score` says how well it matches, and `link` how well others lead to it.

    `start_char` is its place in the document. `before` are the texts of the first text unit of the
    document and of the one just before, which tell who speaks in a chat. `language` is the code of
    its language if that is not the one of the question. `source` has the characters of the
    document if words of the text are joined, or it has a header. `dated` are the stems of the words
    with which the question names the period that the document is about.
    """

    number: int
    text: str
    title: str = ""
    start_char: int = 0
    score: float = 0.0
    link: float = 0.0
    before: tuple[str, ...] = ()
    language: str = ""
    source: str = ""
    dated: frozenset[str] = frozenset()

    def place(self, statement: "Statement") -> int:
        """Return the offset of a statement in the document."""
        source = self.source or self.text
        return self.start_char + locate(self.text, source, statement.start, statement.end)[0]


@dataclass(frozen=True, eq=False)
class Statement:
    """A part of a text that can be quoted: `start` and `end` are its place in the text.

    `label` is shown before it: the speaker or what stands above a list. `time` is when the speaker
    said it, and `about` has further words that the layout adds. `columns` name the cells of a row.
    """

    start: int
    end: int
    text: str
    label: str = ""
    time: str = ""
    about: str = ""
    is_turn: bool = False
    cells: tuple[str, ...] = ()
    stems: frozenset[str] = field(default=frozenset(), repr=False)
    label_stems: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def said(self) -> str:
        """The text on one line, after its label; a row as cells with the names of their columns."""
        text = "; ".join(self.cells) if self.cells else join_lines(self.text)
        label = f"{self.label} ({self.time})" if self.time else self.label
        return f"{label}: {text}" if label else text

    @property
    def text_to_embed(self) -> str:
        """The text after its label. The digits of a time would make all lines of a chat similar."""
        return f"{self.label}: {self.text}" if self.label else self.text


class Opening(NamedTuple):
    """The state of a chat or letter at the start of a text: who speaks, when and about what."""

    speaker: str = ""
    time: str = ""
    subject: str = ""
    is_letter: bool = False


def split_joined_words(text: str) -> str:
    """Separate the words of names that are written together, such as "WolfgangSchulz"."""
    return _JOINED_WORDS.sub(" ", text)


def find_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text, also of words that are written together."""
    words = {*WORD.findall(text.lower()), *WORD.findall(split_joined_words(text).lower())}
    return frozenset(map(stem_word, words))


@lru_cache(MAX_KEPT_PASSAGES)
def find_statements(text: str, before: tuple[str, ...] = ()) -> tuple[Statement, ...]:
    """Split a text into statements, in the order of the text. Code and comments state nothing.

    `before` has the texts that come before in the document (see `Passage`).
    """
    opening = Opening()
    for earlier in before[:1] + before[-1:]:
        opening = _find_turns(earlier, _find_labelled_lines(earlier), opening)[1]
        if not any(opening):
            break
    blank = _blank_contents(blank_code(text, is_part=True))
    labelled = _find_labelled_lines(blank)
    turns, _ = _find_turns(blank, labelled, opening)
    if turns:
        head = blank[: labelled[0].start()] if labelled and not opening.speaker else ""
        found = [*_split_prose(head), *(s for turn in turns for s in _split_turn(blank, turn))]
    else:
        lines = [*_find_rows(blank)]
        lines += [line for line in _find_log_lines(blank) if not _overlaps(line, lines)]
        lines += [line for line in _find_items(blank) if not _overlaps(line, lines)]
        lines += [line for line in _find_fields(blank, labelled) if not _overlaps(line, lines)]
        lines.sort(key=lambda line: line.start)
        found = [*lines]
        bounds = [0, *(place for line in lines for place in (line.start, line.end)), len(blank)]
        for start, end in zip(bounds[::2], bounds[1::2], strict=True):
            found += _split_prose(blank, start, end)
        # Headers state nothing.
        found = sorted((s for s in found if s.text), key=lambda s: s.start)
    return tuple(map(_add_stems, found))


def _add_stems(statement: Statement) -> Statement:
    names = " ".join((statement.label, statement.time, statement.about))
    stems = find_stems(statement.text)
    fields = {**vars(statement), "stems": stems, "label_stems": find_stems(names)}
    return Statement(**fields)


def _blank_contents(text: str) -> str:
    """Replace the lines of a table of contents, which end with dots and a page, by spaces."""
    if not DOT_LEADER.search(text):
        return text
    return "\n".join(
        " " * len(line) if _CONTENTS_LINE.search(line) else line for line in text.split("\n")
    )


def _split_prose(text: str, start: int = 0, end: int | None = None) -> Iterator[Statement]:
    """Split a part of a text into sentences and long fragments; headings state nothing."""
    part = text[start:end]
    for first, last, is_prose in split_sentences(part) if part.strip() else ():
        sentence = part[first:last]
        is_whole = sentence.endswith((".", "!", "?", "…"))
        is_heading = not is_whole and part.startswith("\n\n", last)
        # "Dee sails." is a sentence; a word with a full stop may be an abbreviation.
        is_short_sentence = is_whole and " " in sentence and sentence[0].isupper()
        is_long = sentence.count(" ") >= MIN_SPACES_OF_FRAGMENT and not is_heading
        if is_prose or is_short_sentence or is_long:
            left, right = find_edges(sentence)
            place = start + first
            yield Statement(place + left, place + right, sentence[left:right])


def _overlaps(statement: Statement, others: Iterable[Statement]) -> bool:
    return any(statement.start < other.end and other.start < statement.end for other in others)


@dataclass(frozen=True)
class _Turn:
    """The words of one speaker, with their span."""

    start: int
    end: int
    opening: Opening


def _find_labelled_lines(text: str) -> list[re.Match[str]]:
    """Find the lines that begin with a speaker or the name of a field.

    A line that goes on with a sentence of the line before, in text of fixed width, is none:
    "... took place in two parts, and the" may go on with "second race: Ann won it."
    """
    found, start, before = [], 0, ""
    for line in text.split("\n"):
        # A search for the marks is much faster than the pattern.
        if any(mark in line[:MAX_LABEL_CHARS] for mark in ":：>"):
            match = _LABELLED_LINE.match(text, start)
            is_open = len(before) >= MIN_CHARS_OF_FULL_LINE and (
                before[-1].isalnum() or before[-1] == ","
            )
            if match:
                found.append((match, is_open and not _LABELLED_LINE.match(before)))
        start, before = start + len(line) + 1, line.rstrip()
    counts = Counter(match["label"] for match, _ in found)
    return [match for match, goes_on in found if not goes_on or counts[match["label"]] > 1]


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
        (label, value)
        for label, value in zip(labels, values, strict=True)
        if label.lower() not in _HEAD_FIELDS
    ]
    n_said = sum(
        len(value.split()) >= MIN_WORDS_SAID or bool(_SENTENCE_END.search(value))
        for _, value in spoken
    )
    n_names = sum(_is_like_name(label) for label, _ in spoken)
    has_head = any(opening) or bool(labels and labels[0].lower() in _HEAD_FIELDS)
    is_chat = 2 * min(n_said, n_names) >= len(spoken) >= (1 if has_head else 2)
    if not has_head and len(set(labels)) == len(labels):
        # Steps and notes of a manual: "Step 1: ..."
        is_chat &= 2 * len(lines) > sum(bool(line.strip()) for line in text.split("\n"))
    state, turns, start = opening, list[_Turn](), 0
    for line, label, value in zip(lines, labels, values, strict=True):
        key = label.lower()
        if key not in _HEAD_FIELDS and not is_chat:
            continue
        if state.speaker:
            turns.append(_Turn(start, line.start(), state))
        start = line.end() + (len(value) if key in _HEAD_FIELDS else 0)
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
    if state.speaker:
        end = len(text)
        if not turns and opening.speaker and not lines:
            # The last turn of a chat ends with its paragraph.
            end = text.find("\n\n") if "\n\n" in text else end
        turns.append(_Turn(start, end, state))
    return turns, state


def _is_like_name(label: str) -> bool:
    """Return whether a label may name a speaker: no word begins with a small letter."""
    has_small = any(word[0].islower() for word in label.split())
    return "/" not in label and (not has_small or " " not in label)


def _split_turn(text: str, turn: _Turn) -> Iterator[Statement]:
    """Split the words of a speaker into pieces of whole sentences, those of a letter singly."""
    body = text[turn.start : turn.end].rstrip()
    pieces: list[tuple[int, int]] = []
    for start, end, _ in split_sentences(body):
        if not WORD.search(body, start, end):
            continue
        is_near = pieces and len(body[pieces[-1][0] : end].split()) <= MAX_WORDS_OF_TURN
        if is_near and not turn.opening.is_letter:
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    speaker, time, subject, _ = turn.opening
    for start, end in pieces:
        place = turn.start + start
        yield Statement(
            place, turn.start + end, body[start:end], speaker, time, subject, is_turn=True
        )


def _find_rows(text: str) -> Iterator[Statement]:
    """Find the rows of tables, whose cells have the names of their columns if there is a header.

    Headers have no text. A table with a long cell is mostly text in columns. A text of short fields
    alone, such as a record of a file, is one row.
    """
    fields = [line.strip() for line in text.strip().split("\n")]
    if len(fields) > 1 and all(map(_FIELD.fullmatch, fields)):
        start = text.index(fields[0])
        record = text[start:].rstrip()
        yield Statement(start, start + len(record), record, cells=tuple(fields))
    for table in find_tables(text):
        header = table.rows[table.header].cells if table.header >= 0 else []
        cells = (cell for row in table.rows for cell in row.cells)
        # Below a header with rules around it, cells may have lines of text.
        is_sure = table.header == 1
        if not is_sure and any(len(cell.split()) > MAX_WORDS_OF_CELL for cell in cells):
            continue
        for i, row in enumerate(table.rows):
            end = row.start + len(row.line.rstrip())
            if row.is_rule or i <= table.header or not any(row.cells):
                yield Statement(row.start, end, "")
                continue
            named = [
                f"{header[j]}: {cell}" if j < len(header) and header[j] and j else cell
                for j, cell in enumerate(row.cells)
                if cell
            ]
            about = " ".join([table.title, *header])
            yield Statement(row.start, end, row.line.rstrip(), about=about, cells=tuple(named))


def _find_log_lines(text: str) -> Iterator[Statement]:
    """Find the lines that begin with a time stamp, if there are several."""
    lines = list(LOG_LINE.finditer(text))
    for line in lines if len(lines) > 1 else ():
        said = line[0].rstrip()
        yield Statement(line.start(), line.start() + len(said), said)


def _find_items(text: str) -> Iterator[Statement]:
    """Find the items of lists that have a heading or a line that ends with a colon above."""
    items = list(_LIST_ITEM.finditer(text))
    headings = find_headings(text) if items else []
    label, reached = "", 0
    for item in items:
        between = text[reached : item.start()].rstrip()
        if between.strip():
            lead_in = _LEAD_IN.search(between)
            above = [heading.words for heading in headings if heading.start < item.start()]
            label = lead_in[1].strip() if lead_in else above[-1] if above else ""
        reached = item.end()
        if label:
            yield Statement(item.start("item"), item.end("item"), item["item"], label)


def _find_fields(text: str, lines: Sequence[re.Match[str]]) -> Iterator[Statement]:
    """Find the fields of records: two or more labelled lines with short values in a row.

    A field is about the first value of its record, or about the heading above.
    """
    headings = find_headings(text) if len(lines) > 1 else []
    records: list[list[tuple[re.Match[str], str]]] = []
    reached = -1
    for line in lines:
        value = text[line.end() :].split("\n", 1)[0].strip().rstrip(",").strip('"')
        if line["label"] and value and len(value.split()) <= MAX_WORDS_OF_CELL:
            if reached < 0 or text.count("\n", reached, line.start()) > 1:
                records.append([])
            records[-1].append((line, value))
            reached = line.end()
    for record in records:
        if len(record) < 2:
            continue
        above = [heading.words for heading in headings if heading.start < record[0][0].start()]
        subject = above[-1] if above else ""
        for line, value in record:
            start = text.index(value, line.end())
            label = ", ".join(dict.fromkeys(filter(None, [subject, line["label"].strip()])))
            yield Statement(start, start + len(value), value, label)
            subject = subject or value
