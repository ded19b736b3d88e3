"""Spans of capitalized words that may be names.

Each occurrence of a span has flags for its usage: whether it begins a sentence, whether an article
or a preposition of place precedes it, and whether a verb of definition or of speech follows it.
"""

# Before Python 3.12, the annotation array[int] cannot be evaluated.
from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.nlp import word_table
from graphrag_index.nlp.name_words import GIVEN_NAMES, is_given_name, word_before
from graphrag_index.nlp.span_boundaries import find_capitalized_spans
from graphrag_index.nlp.word_table import DocumentWords, Integers
from graphrag_index.text.languages import Language, is_title, language_of, read_lists, word_set
from graphrag_index.text.sentences import Sentence

_WORDS = read_lists("nlp/data/words")
MAX_SPAN_WORDS = 8
MAX_SPAN_CHARS = 80

# Bit flags for the usage of a span at one position in a text.
INITIAL, DETERMINER, PLACE, DEFINED, PROSE, BEFORE_NOUN, PERSON, PREPOSITION = (
    *(1, 2, 4, 8, 16, 32, 64, 128),
)

# Temporary flags for `_find_usage_flags`. WORD_BEFORE and WORD_AFTER: the word before or after the
# span shows the usage of the span. POSSESSIVE, COMMA: an apostrophe or a comma follows the span.
# SPEAKER: the span begins a line, and a colon follows.
WORD_BEFORE, WORD_AFTER, POSSESSIVE, COMMA, SPEAKER = 256, 512, 1024, 2048, 4096
# Maximum number of words from a name to the noun that explains the name: "was a late composer".
MAX_EXPLANATION_WORDS = 5
_LINE_STARTS = frozenset("\n]>*-")

CALENDAR_WORDS = word_set(_WORDS["calendar"])
_WORDS_BEFORE_NUMBERS = word_set(_WORDS["numbered"])
# First three letters of months and days. They make the test for dates faster.
_CALENDAR_PREFIXES = frozenset(word[:3].title() for word in CALENDAR_WORDS)
# After these words, "June" is a date and no given name: "in June Carter sang".
_WORDS_BEFORE_DATES = word_set(_WORDS["before_dates"])
# Acronyms whose lower-case form is a function word.
_ACRONYMS = frozenset(("US", "WHO"))
# Function words, months and feasts that begin a name if they have a capital inside a sentence:
# Last Supper, Jan Mayen, Easter Island.
_NAME_START_WORDS = word_set(_WORDS["name_openings"])
# Function words and months that are names after a given name: Theresa May.
_NAME_END_WORDS = word_set(_WORDS["name_closings"])
# Words that are no names: greetings and other words that begin sentences, and contractions.
_OPENERS = word_set(_WORDS["openers"])
_ELIDED_PRONOUNS = word_set(_WORDS["elided_pronouns"])
_CONTRACTION_ENDS = word_set(_WORDS["contraction_ends"])
# The party before a state: "(R-Maine)".
_PARTY_PREFIX = re.compile(r"[A-Z]-(?=[A-Z][a-z]{2})")
_ELIDED_WORD = re.compile(r"(?:[LDQld]|Qu|Dell|All|Nell|Dall|Sull)['’](?=[^\W\d_])")
_APOSTROPHES = frozenset(("'", "’"))


class TrimmedSpan(NamedTuple):
    """A span without the function words and dates at its start and end.

    `offset` and `length` are in characters; `number` is the row of its text in `names`.
    """

    offset: int
    length: int
    number: int
    # Whether words were removed at the end: they stand between the name and the word after it.
    is_end_cut: bool
    # A longer name that may be meant, as "One Ton Depot" for "Ton Depot", and its number of
    # additional characters before this span.
    longer: str = ""
    ahead: int = 0


@dataclass
class NameCandidates:
    """Candidate spans as columns, with one value per occurrence in the order of the text."""

    document: array[int] = field(default_factory=lambda: array("i"))
    start: array[int] = field(default_factory=lambda: array("i"))
    surface: array[int] = field(default_factory=lambda: array("i"))
    flags: array[int] = field(default_factory=lambda: array("B"))
    # The type that words beside the span show: 0 if none, else 1 + its row in `CUE_TYPES`.
    cue: array[int] = field(default_factory=lambda: array("B"))
    # Numbers of the distinct spans by text, and texts and languages by number.
    surfaces: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    languages: list[Language] = field(default_factory=list)
    # (short, long) numbers of spans that a text explains as an abbreviation: "Long Name (LN)".
    abbreviations: set[tuple[int, int]] = field(default_factory=set)
    # Cache of trimmed spans by the arguments of `_trim_span`.
    _trimmed: dict[tuple[str, str, bool, bool], TrimmedSpan | None] = field(default_factory=dict)
    # (row, number of additional characters, longer name) of spans that may be longer names.
    _longer: list[tuple[int, int, str]] = field(default_factory=list)

    def add_document(
        self,
        document: int,
        text: str,
        words: DocumentWords,
        sentences: Sequence[Sentence],
        language: Language,
    ) -> None:
        """Collect the candidate spans of one document."""
        rows = self._find_spans(text, sentences, language) if sentences else []
        if not rows:
            return
        columns = zip(*rows, strict=True)
        start, end, surface, marks = (np.array(column, np.int64) for column in columns)
        flags = _find_usage_flags(text, words, start, end, marks, language)
        self.document.extend([document] * len(rows))
        self.start.frombytes(start.astype(np.int32).tobytes())
        self.surface.frombytes(surface.astype(np.int32).tobytes())
        self.flags.frombytes(flags.astype(np.uint8).tobytes())
        self.cue.frombytes(_find_cues(words, start, end, marks).astype(np.uint8).tobytes())

    def get_columns(self) -> dict[str, np.ndarray]:
        """Return the document, the start, the surface number and the flags of each span."""
        names = ("document", "start", "surface", "flags", "cue")
        columns = {name: getattr(self, name) for name in names}
        return {name: np.frombuffer(column, column.typecode) for name, column in columns.items()}

    def to_frames(self) -> dict[str, pl.DataFrame]:
        """Return the candidates as frames, which `add_frames` adds to other candidates."""
        codes = [language.code for language in self.languages]
        texts = dict.fromkeys(("name", "language"), pl.String)
        numbers = dict.fromkeys(("short", "long"), pl.Int32)
        longer = {"row": pl.Int64, "ahead": pl.Int32, "name": pl.String}
        return {
            "spans": pl.DataFrame(self.get_columns()),
            "surfaces": pl.DataFrame({"name": self.names, "language": codes}, texts),
            "abbreviations": pl.DataFrame(sorted(self.abbreviations), numbers, orient="row"),
            "longer": pl.DataFrame(self._longer, longer, orient="row"),
        }

    def add_frames(self, frames: Mapping[str, pl.DataFrame], first_document: int) -> None:
        """Add the candidates of later documents; their first has the number `first_document`."""
        surfaces = frames["surfaces"].iter_rows()
        numbers = [self._get_span_number(name, language_of(code)) for name, code in surfaces]
        number = np.array(numbers, np.int32)
        n_rows = len(self.start)
        spans = frames["spans"].with_columns(
            pl.col("document") + first_document,
            surface=number[frames["spans"]["surface"].to_numpy()],
        )
        for name in spans.columns:
            getattr(self, name).frombytes(spans[name].to_numpy().tobytes())
        pairs = frames["abbreviations"].iter_rows()
        self.abbreviations.update((numbers[short], numbers[long]) for short, long in pairs)
        longer = frames["longer"].iter_rows()
        self._longer += ((n_rows + row, ahead, name) for row, ahead, name in longer)

    def restore_cut_words(self) -> None:
        """Restore words and numbers that were cut off. Call it after reading all documents.

        "One Ton Depot" is restored if the corpus writes it inside a sentence. "Boeing 747" is
        restored if it is frequent compared with "Boeing"; "England 6" may be a score.
        """
        times = Counter(name for _, ahead, name in self._longer if not ahead)
        flags = np.frombuffer(self.flags, np.uint8)
        surface = np.frombuffer(self.surface, np.int32)
        totals = np.bincount(surface)
        is_inside = np.zeros(len(self.names), bool)
        is_inside[surface[flags & (PROSE | INITIAL) == PROSE]] = True
        numbers = {
            name: self.surfaces[name] for _, _, name in self._longer if name in self.surfaces
        }
        proven = {name for name, number in numbers.items() if is_inside[number]}
        for row, ahead, name in self._longer:
            if ahead and name in proven:
                self.start[row] -= ahead
                self.surface[row] = self.surfaces[name]
                self.flags[row] |= INITIAL
            elif not ahead and times[name] > max(1, totals[self.surface[row]] // 4):
                self.surface[row] = self._get_span_number(name, self.languages[self.surface[row]])

    def _find_spans(
        self, text: str, sentences: Sequence[Sentence], language: Language
    ) -> list[tuple[int, int, int, int]]:
        """Return the candidate spans as (start, end before trimming, span number, flags)."""
        rows: list[tuple[int, int, int, int]] = []
        ended = 0
        for start, end, initial, prose in find_capitalized_spans(text, sentences, language):
            may_be_date = text[start : start + 3] in _CALENDAR_PREFIXES
            dated = may_be_date and _precedes_date(word_before(text, start))
            span = self._trim_span(text[start:end], language, initial or not prose, dated)
            if span is None:
                continue
            marks = INITIAL if initial and not span.offset else WORD_BEFORE
            marks |= PROSE if prose else 0
            start += span.offset
            after = text[end : end + 1]
            if after == " ":
                marks |= 0 if span.is_end_cut else WORD_AFTER
            elif after in _APOSTROPHES:
                marks |= POSSESSIVE
            elif after == ",":
                marks |= PERSON if text.startswith(", who", end) else COMMA
            elif after == ":":
                # The last character before the span that is no space.
                before = (text[max(start - 2, 0) : start].rstrip(" ") or "\n")[-1]
                marks |= SPEAKER if before in _LINE_STARTS else 0
            elif after == ")" and rows and ended == start - 2 and text[start - 1] == "(":
                self._add_abbreviation(rows[-1][2], span.number)
            if span.longer:
                self._longer.append((len(self.start) + len(rows), span.ahead, span.longer))
            rows.append((start, end, span.number, marks))
            ended = start + span.length
        return rows

    def _trim_span(
        self, raw: str, language: Language, initial: bool, dated: bool
    ) -> TrimmedSpan | None:
        """Remove function words and dates at the start and end of a span; None if nothing is left.

        `initial` is true if any first word would have a capital there. `dated` is true if
        the word before the span shows that a month at the start of the span is a date.
        """
        key = language.code, raw, initial, dated
        if key not in self._trimmed:
            self._trimmed[key] = self._trim_words(raw.split(), language, initial, dated)
        return self._trimmed[key]

    def _trim_words(
        self, words: list[str], language: Language, initial: bool, dated: bool
    ) -> TrimmedSpan | None:
        """Trim a span as `_trim_span` does, without its cache."""
        first, last = 0, len(words)
        number_at_end = words[-1] if words[-1].isdigit() and len(words) > 1 else ""
        if number_at_end and words[-2].lower() not in _WORDS_BEFORE_NUMBERS:
            last -= 1
        opening = -1
        while first < last and _is_function_word_or_date(words[first], language):
            dated = _precedes_date(words[first - 1]) if first else dated
            if first < last - 1 and _may_begin_name(words[first : first + 2], dated, language):
                lower = words[first].lower()
                # "Monday Club" and "April Mills" are names; "May" in "May God help us" is not.
                named = words[first] in GIVEN_NAMES and lower not in language.function_words
                if not initial or (lower in CALENDAR_WORDS and (first or named)):
                    break
                opening = first
            first += 1
        while last > first and _is_function_word_or_date(words[last - 1], language):
            closing = words[last - 1].lower() in _NAME_END_WORDS
            if closing and last - 1 > first and is_given_name(words[last - 2], language):
                break
            # "I" is a numeral in "World War I" and "King Albert I".
            numeral = words[last - 1] == "I" and last - 1 > first
            if numeral and (words[last - 2] == "War" or is_title(words[first])):
                break
            last -= 1
        if first == last:
            return None
        offset = sum(map(len, words[:first])) + first
        surface = " ".join(words[first:last])
        elision = _ELIDED_WORD.match(surface) if language.code in ("fr", "it") else None
        if elision:
            offset += elision.end()
            surface = surface[elision.end() :]
        party = _PARTY_PREFIX.match(surface)
        if party:
            offset += party.end()
            surface = surface[party.end() :]
        is_capital = not elision or surface[0].isupper()
        if not is_capital or len(surface) > MAX_SPAN_CHARS or last - first > MAX_SPAN_WORDS:
            return None
        longer, ahead = "", 0
        if number_at_end and last == len(words) - 1:
            longer = f"{surface} {number_at_end}"
        elif 0 <= opening == first - 1:
            longer, ahead = f"{words[opening]} {surface}", len(words[opening]) + 1
        number = self._get_span_number(surface, language)
        return TrimmedSpan(offset, len(surface), number, last < len(words), longer, ahead)

    def _get_span_number(self, surface: str, language: Language) -> int:
        number = self.surfaces.setdefault(surface, len(self.surfaces))
        if number == len(self.names):
            self.names.append(surface)
            self.languages.append(language)
        return number

    def _add_abbreviation(self, before: int, number: int) -> None:
        """Store two spans if one is the abbreviation of the other: "Long Name (LN)"."""
        for short, long in ((number, before), (before, number)):
            initials = (word[0] for word in self.names[long].split(" ") if word[0].isupper())
            if "".join(initials) == self.names[short].replace(".", ""):
                self.abbreviations.add((short, long))
                return


def _is_function_word_or_date(word: str, language: Language) -> bool:
    lower = word.lower()
    if word in _ACRONYMS:
        return False
    if word == "&":
        return True  # left over where the word after it was removed
    if lower in language.function_words or lower in CALENDAR_WORDS or lower in _OPENERS:
        return True
    head, apostrophe, end = lower.replace("’", "'").partition("'")
    if not apostrophe:
        return False
    is_contraction = end in _CONTRACTION_ENDS and (
        head in language.function_words or head in ("i", "let", "here")
    )
    # In French, a verb or a noun in lower case follows: "j'ai", but not "L'Équipe".
    is_elided = head in _ELIDED_PRONOUNS and not word[len(head) + 1 :][:1].isupper()
    return is_contraction or (is_elided and language.code in ("fr", "it"))


def _may_begin_name(words: list[str], dated: bool, language: Language) -> bool:
    """Return whether a function word or a month before a name may belong to the name."""
    word, lower = words[0], words[0].lower()
    if lower in _NAME_START_WORDS:
        return True
    if lower not in CALENDAR_WORDS or dated or _is_function_word_or_date(words[1], language):
        return False
    # In German, a day before a noun is not a name: "Sonntag Abend".
    return word in GIVEN_NAMES or not language.capitalizes_nouns


def _precedes_date(word: str) -> bool:
    return word.lower() in _WORDS_BEFORE_DATES or word[:1].isdigit()


def _find_usage_flags(
    text: str,
    words: DocumentWords,
    start: Integers,
    end: Integers,
    marks: Integers,
    language: Language,
) -> Integers:
    """Return the usage flags of spans: some flags of `marks`, and flags for the words around."""
    flags = marks & (PROSE | INITIAL | PERSON)
    # Find the index of the last non-empty word before each word.
    written = np.where(words.ends > words.starts, np.arange(len(words.starts)), 0)
    earlier = np.append(0, np.maximum.accumulate(written)[:-1])
    at = np.searchsorted(words.starts, start, "right") - 1
    before = words.kinds[earlier[at]].astype(np.int64) * (at > 0)
    # Look again at the word before spans that begin inside a word: "l'Institut".
    for row in np.flatnonzero(words.starts[at] != start):
        before[row] = word_table.kind_before_name(word_before(text, int(start[row])), language)
    before[(marks & WORD_BEFORE) == 0] = 0
    placed, other = before & word_table.PLACE_PREPOSITION, before & word_table.OTHER_PREPOSITION
    flags |= np.where(before & word_table.ARTICLE, DETERMINER, 0)
    flags |= np.where(placed | other, PREPOSITION, 0)
    # "in Taylor's house" does not show that Taylor is a place.
    flags |= np.where((placed > 0) & (marks & POSSESSIVE == 0), PLACE, 0)
    following = np.minimum(np.searchsorted(words.starts, end, "left"), len(words.starts) - 1)
    after = words.kinds[following].astype(np.int64)
    after[(marks & WORD_AFTER) == 0] = 0
    copula, verb = (after & word_table.COPULA) > 0, (after & word_table.PERSON_VERB) > 0
    flags |= np.where(copula, DEFINED, np.where(verb, PERSON, 0))
    noun = (after & (word_table.LOWER | word_table.FUNCTION)) == word_table.LOWER
    flags |= np.where(noun & ~copula & ~verb, BEFORE_NOUN, 0)
    return np.asarray(flags, np.int64)


def _find_cues(words: DocumentWords, start: Integers, end: Integers, marks: Integers) -> Integers:
    """Return the type that a common noun beside each span shows, as in `NameCandidates.cue`.

    The noun stands before the span (driver Dwayne Tilley; the city of Fryeburg), or after a verb or
    a comma behind the span (Verdi was a composer; Zipvan, a van rental company).
    """
    kinds, nouns = words.kinds, sum(word_table.CUE_NOUNS)
    at = np.searchsorted(words.starts, start, "right") - 1
    has_before = (marks & WORD_BEFORE > 0) & (at > 0)
    before = np.where(has_before, kinds[np.maximum(at - 1, 0)], 0)
    found = np.where(before & word_table.PUNCTUATED, 0, before & nouns)
    # "city of Fryeburg": only nouns of places stand before a preposition and the name.
    of_place = (before & word_table.OTHER_PREPOSITION > 0) & (at > 1)
    found |= np.where(of_place, kinds[np.maximum(at - 2, 0)] & word_table.CUE_NOUNS[2], 0)
    following = np.minimum(np.searchsorted(words.starts, end, "left"), len(kinds) - 1)
    # Behind a comma, skip the comma, which is written as a part of the name's last word.
    first = kinds[following]
    is_defined = (marks & WORD_AFTER > 0) & (first & word_table.COPULA > 0)
    is_explained = (marks & COMMA > 0) & (first & (nouns | word_table.INDEFINITE) > 0)
    open_rows = np.flatnonzero((is_defined | is_explained) & (found == 0))
    for ahead in range(MAX_EXPLANATION_WORDS):
        kind = kinds[np.minimum(following[open_rows] + ahead, len(kinds) - 1)]
        found[open_rows] = kind & nouns
        open_rows = open_rows[kind & (nouns | word_table.PUNCTUATED) == 0]
    cues = np.zeros(len(start), np.int64)
    for number, bit in reversed([*enumerate(word_table.CUE_NOUNS, 1)]):
        cues[found & bit > 0] = number
    cues[marks & SPEAKER > 0] = 1
    return cues
