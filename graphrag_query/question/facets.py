"""The facets of a question: the things and the periods that it names, and its topic.

A thing is the subject of documents: a company, a patient, a ticket, a product. It is found in the
names of subjects (titles, file names, fields, metadata), so that it need not be an entity.
"""

import math
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphrag_nlp.text.languages import Language
from graphrag_nlp.text.normalize import fold_name, stem_word
from graphrag_nlp.text.periods import Period, find_each, find_periods, names_latest
from graphrag_query.question.entity_linking import find_row
from graphrag_query.question.question_words import (
    WORD_LISTS,
    content_words,
    name_spans,
    stop_words_of,
)
from graphrag_query.store.index_store import IndexStore

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphrag_index.storage.mapped_table import Integers, MappedTable

    Numbers = npt.NDArray[np.int32]

# Minimum share (0 to 1) of a name, weighted by rarity, that its words in a question make up; and
# that of a thing in an enumeration without a period.
MIN_SHARE = 0.3
MIN_LISTED_SHARE = 0.5
# Maximum number of different names, without digits, in which the words of one thing stand: a word
# such as "film" stands in more.
MAX_NAMES = 8
# Maximum number of names that are read for one thing, also those of a series with numbers.
MAX_NAMES_READ = 256
# Maximum number of things of a question that names none.
MAX_THINGS = 24
# Minimum number of periods of the documents of one thing that are a series.
MIN_PERIODS = 2
# Maximum number of documents that the number of a record names.
MAX_OF_CODE = 3
# Minimum number of text units per document of a thing in an enumeration without a period.
MIN_TEXT_UNITS = 4
# Number of words whose names are kept in memory for the next question.
MAX_KEPT_WORDS = 4_096
_LEGAL_FORMS = frozenset(WORD_LISTS["legal_forms"].split())
_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")
_LAST_WORD = re.compile(r"([^\W_]+)\s+$")
_WHICH = re.compile(rf"\b(?:{'|'.join(WORD_LISTS['which_words'].split())})\s+\w+", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s$")
_AND = "and|or|vs|versus|und|oder|et|ou|y|o|e|u"
_LIST_JOINT = re.compile(rf"\W*(?:[,;/&]\s*(?:{_AND})?|\s(?:{_AND}))\.?\s*", re.IGNORECASE)
_PART_END = re.compile(r"[,;]|\b(?:and|or|und|oder|et|ou|y|o)\b", re.IGNORECASE)


class Thing(NamedTuple):
    """The subject of some documents, as the question writes it at `start` to `end`.

    `share` is the share of the subject's name that the question says. `documents` are ascending;
    `days` has a row for each, as `IndexStore.document_days`.
    """

    text: str
    start: int
    end: int
    share: float
    documents: "Integers"
    days: "Integers"

    @property
    def periods(self) -> list[Period]:
        """The periods of the documents, ascending, without duplicates."""
        return [
            Period.from_days(*days)
            for days in sorted(set(map(tuple, self.days.tolist())))
            if days[0]
        ]

    @property
    def is_code(self) -> bool:
        """Whether one word with a number names one document or a few, such as T-1042."""
        has_digit = " " not in self.text and any(map(str.isdigit, self.text))
        return has_digit and len(self.documents) <= MAX_OF_CODE

    @property
    def is_series(self) -> bool:
        """Whether the documents are about several periods."""
        return len(self.periods) >= MIN_PERIODS


@dataclass(frozen=True)
class Facets:
    """The things and periods that a question names, in its order, and the parts of its topic.

    A part has the stems of some content words. `asks_latest` is true if the question asks for the
    last period; `each` is the number of months of "each quarter", or 0. `names_list` is true if
    things stand in an enumeration.
    """

    things: tuple[Thing, ...] = ()
    periods: tuple[Period, ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()
    asks_latest: bool = False
    names_list: bool = False
    each: int = 0

    @property
    def is_dated(self) -> bool:
        """Whether the question asks for periods of a series."""
        asks = self.periods or self.asks_latest or self.each
        return bool(asks) and any(t.is_series for t in self.things)


def find_facets(index: IndexStore, text: str, language: Language) -> Facets:
    """Find the things, periods and topic of a question; no things in an index without subjects."""
    periods = find_periods(text)
    if not index.has_table("subject_names"):
        return Facets(periods=tuple(periods))
    things = _find_things(index, text, language, periods)
    if not things and periods and _asks_which_of_all(index, text, language, periods):
        things = _find_things_of(index, language, periods)
    joints = (text[one.end : other.start] for one, other in pairwise(things))
    names_list = any(map(_LIST_JOINT.fullmatch, joints))
    blank = text
    named = [(t.start, t.end) for t in things] + [(p.start, p.end) for p in periods]
    each = find_each(text)
    if each and any(start < each[1] and each[0] < end for start, end in named):
        # "Every third quarter of 2022" names a period.
        each = None
    named += [each[:2]] if each else []
    for start, end in sorted(named, reverse=True):
        # In "ticket T-17", the word before says only what kind of thing it is.
        blank = f"{_blank_kind(blank[:start], stop_words_of(language))} {blank[end:]}"
    if len(things) > 1 and (asking := _WHICH.search(blank)):
        blank = f"{blank[: asking.start()]} {blank[asking.end() :]}"
    frame = frozenset(map(stem_word, WORD_LISTS["frame_words"].split()))
    found = (content_words(part, language) for part in _PART_END.split(blank))
    parts = (tuple(stem for stem in stems if stem not in frame) for stems in found)
    return Facets(
        tuple(things),
        tuple(periods),
        tuple(dict.fromkeys(filter(None, parts))),
        names_latest(text),
        names_list,
        each[2] if each else 0,
    )


def _asks_which_of_all(
    index: IndexStore, text: str, language: Language, periods: Sequence[Period]
) -> bool:
    """Return whether "Which company ...?" asks about all things, and names no stranger.

    Where nouns have capitals, only a word that no document has may be a name.
    """
    asking = _WHICH.search(text)
    if asking is None or asking[0].split()[-1].lower() in stop_words_of(language):
        return False
    spans = [*((period.start, period.end) for period in periods), asking.span()]
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]} {text[end:]}"
    table = index.vectors("text_unit_text")
    return all(
        language.capitalizes_nouns
        and not table.find_matching_rows(name.text, 1, ["human_readable_id"]).is_empty()
        for name in name_spans(f"– {text}", language)
    )


def _find_things_of(
    index: IndexStore, language: Language, periods: Sequence[Period]
) -> list[Thing]:
    """Return all things with documents of some periods, in the order of these.

    Returns nothing if they are too many, or if one of the documents is of no series.
    """
    days, is_asked = index.document_days, np.zeros(len(index.document_days), bool)
    for period in periods:
        first, last = period.first.toordinal(), period.last.toordinal()
        is_asked |= (days[:, 0] >= max(first, 1)) & (days[:, 1] <= last)
    if (flags := index.row_flags("documents")) is not None:
        is_asked &= flags
    documents = np.flatnonzero(is_asked)
    if len(documents) > MAX_NAMES_READ:
        return []
    names = index.open_mapped("document_subjects").rows(documents, "entity")["entity"]
    things: dict[str, Thing] = {}
    for name in names.unique(maintain_order=True):
        found = _find_things(index, name, language, ())
        if len(found) != 1 or not found[0].is_series:
            return []
        things[name] = found[0]._replace(text=name, start=0, end=0)
    return list(things.values()) if len(things) <= MAX_THINGS else []


def _blank_kind(before: str, stop_words: Set[str]) -> str:
    """Remove the last word of a text if nothing but spaces follows it, and it is no stop word."""
    last = _LAST_WORD.search(before)
    return before if last is None or last[1].lower() in stop_words else before[: last.start()]


class _Word(NamedTuple):
    folded: str
    start: int
    end: int
    is_marked: bool  # has a capital or a digit, and is no stop word
    may_begin: bool  # is marked, or is no stop word of a question without capitals


def _find_things(
    index: IndexStore, text: str, language: Language, periods: Sequence[Period]
) -> list[Thing]:
    """Return the longest runs of words that stand in the name of a subject.

    A run beside a further capitalized word is a part of another name: "Acme Japan" is not Acme.
    """
    stop_words = stop_words_of(language)
    words = []
    for match in _WORD.finditer(text):
        if not any(p.start <= match.start() < p.end for p in periods):
            is_stop_word = match[0].lower() in stop_words
            is_marked = not (is_stop_word or match[0].islower())
            may_begin = is_marked or (text.islower() and not is_stop_word)
            words.append(_Word(fold_name(match[0]), *match.span(), is_marked, may_begin))
    found: list[Thing] = []
    first = 0
    while first < len(words):
        word = words[first]
        thing, length = _find_thing(index, text, words[first:])
        is_behind = bool(found) and word.start - found[-1].end <= len(", ")
        if thing is not None:
            before = words[first - 1] if first > 1 else None
            # "Holdings" of an unknown "Acme Holdings" is no name of its own.
            is_part = before and before.is_marked and before.end + 1 == word.start
            if is_behind and text[found[-1].end : thing.start].isspace():
                # "Douglas" and "Evans" of an unknown "Douglas Evans" are none either.
                found.pop()
            elif not is_part or is_behind:
                found.append(thing)
        elif word.is_marked and is_behind:
            last = found[-1]
            if word.folded in _LEGAL_FORMS:
                written = _POSSESSIVE.sub("", text[last.start : word.end])
                found[-1] = last._replace(text=written, end=word.end)
            elif text[last.end : word.start].isspace():
                found.pop()
        first += length
    return found


def _find_thing(index: IndexStore, text: str, words: Sequence[_Word]) -> tuple[Thing | None, int]:
    """Return the thing that begins with the first word, and the number of its words, at least 1."""
    if not words[0].may_begin:
        return None, 1
    names = index.open_mapped("subject_names")
    held: Integers = _names_with(index, words[0].folded)
    length = 1
    run = words[0].folded
    found = _names_in_run(names, held, run)
    while length < len(words) and len(found):
        longer = f"{run} {words[length].folded}"
        fewer = np.intersect1d(held, _names_with(index, words[length].folded), assume_unique=True)
        still = _names_in_run(names, fewer, longer)
        if not len(still):
            break
        held, run, found, length = fewer, longer, still, length + 1
    # "Inc" of an unknown "Acme, Inc." is no name.
    if not found or {word.folded for word in words[:length]} <= _LEGAL_FORMS:
        return None, length if found else 1
    shares = {row: _share_of(index, run, name) for row, name in found.items()}
    kept = [
        row
        for row, share in shares.items()
        if max(share, _share_of_entity(index, run, row)) >= MIN_SHARE
    ]
    distinct = {re.sub(r"\d+", "", found[row]) for row in kept}
    if not kept or len(distinct) > MAX_NAMES:
        return None, length
    documents = np.unique(names.lists("documents", np.array(kept))[0])
    if (flags := index.row_flags("documents")) is not None:
        documents = documents[flags[documents]]
    # A name of all documents, such as that of a folder, is no thing in a question without capitals.
    is_any = not words[0].is_marked and len(documents) == index.n_rows("document_rows") > 1
    if is_any or not len(documents):
        return None, length
    start, end = words[0].start, words[length - 1].end
    share = max(shares[row] for row in kept)
    written = _POSSESSIVE.sub("", text[start:end])
    return Thing(written, start, end, share, documents, index.document_days[documents]), length


def _names_with(index: IndexStore, word: str) -> "Numbers":
    """Return the names of subjects that contain a folded word, as ascending rows."""
    kept = index.kept_subject_words
    if word not in kept:
        if len(kept) >= MAX_KEPT_WORDS:
            kept.clear()
        table = index.open_mapped("subject_words")
        row = find_row(table, "word", word)
        kept[word] = (
            np.zeros(0, np.int32) if row is None else table.numbers("names", row).astype(np.int32)
        )
    return kept[word]


def _names_in_run(names: "MappedTable", rows: "Integers", run: str) -> dict[int, str]:
    """Return the names among some rows in which the words of a run stand side by side."""
    if not 0 < len(rows) <= MAX_NAMES_READ:
        return {}
    pairs = ((row, names.text("name", row)) for row in rows.tolist())
    return {row: name for row, name in pairs if f" {run} " in f" {name} "}


def _share_of(index: IndexStore, run: str, name: str) -> float:
    """Return the share of a name, weighted by rarity, that a run of its words makes up."""
    n_names = len(index.open_mapped("subject_names"))

    def weigh(words: str) -> float:
        return sum(
            math.log(1 + n_names / max(len(_names_with(index, w)), 1)) for w in words.split()
        )

    return weigh(run) / (weigh(name) or 1.0)


def _share_of_entity(index: IndexStore, run: str, row: int) -> float:
    """Return the share of a thing that a run of words makes up, if its name begins with them.

    "Acme" is half of "Acme Holdings", but less of the title "Acme Holdings: annual report".
    """
    document = int(index.open_mapped("subject_names").numbers("documents", row)[0])
    entity = fold_name(index.open_mapped("document_subjects").text("entity", document))
    return _share_of(index, run, entity) if f"{entity} ".startswith(f"{run} ") else 0.0
