"""Spans of capitalized words that may be names.

Each occurrence of a span has flags for its usage: whether it begins a sentence, whether an article
or a preposition of place precedes it, and whether a verb of definition or of speech follows it.
"""

from __future__ import annotations

# Python before 3.12 cannot evaluate the annotation array[int]: keep annotations as strings.
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_nlp.names.base_forms import is_given_name
from graphrag_nlp.names.compounds import is_model
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import (
    CALENDAR_WORDS,
    GIVEN_NAMES,
    REFERENCES,
    word_before,
)
from graphrag_nlp.names.span_boundaries import find_capitalized_spans
from graphrag_nlp.names.span_usage import (
    BRACKETED,
    COMMA,
    CONJOINED,
    DETERMINER,
    INITIAL,
    LISTED,
    PERSON,
    PLACE,
    POSSESSIVE,
    PROSE,
    SPEAKER,
    WORD_AFTER,
    WORD_BEFORE,
    SpansOfPart,
    find_usage,
)
from graphrag_nlp.names.whole_names import find_defined_names, find_law_names
from graphrag_nlp.names.word_table import DocumentWords
from graphrag_nlp.text.languages import Language, is_title, language_of, read_lists, word_set
from graphrag_nlp.text.sentences import Sentence

_WORDS = read_lists("graphrag_nlp/names/data/words")
MAX_SPAN_WORDS = 8  # words in lower case do not count
MAX_SPAN_CHARS = 80

_WORDS_BEFORE_NUMBERS = word_set(_WORDS["numbered"])
# After these words, "June" is a date and no given name: "in June Carter sang".
_WORDS_BEFORE_DATES = word_set(_WORDS["before_dates"])
# Acronyms whose lower-case form is a function word.
_ACRONYMS = frozenset(("US", "WHO"))
# Forms of companies whose lower-case form is a function word.
_FORMS_LIKE_FUNCTION_WORDS = frozenset(("SA", "SE", "AS", "SAS"))
# Function words, months and feasts that begin a name if they have a capital inside a sentence:
# Last Supper, Jan Mayen, Easter Island.
_NAME_START_WORDS = word_set(_WORDS["name_openings"])
# Function words and months that are surnames after a given name: Theresa May.
_NAME_END_WORDS = word_set(_WORDS["name_closings"])
# Words that are no names: greetings and other words that begin sentences, and contractions.
_OPENERS = word_set(_WORDS["openers"])
_ELIDED_PRONOUNS = word_set(_WORDS["elided_pronouns"])
_CONTRACTION_ENDS = word_set(_WORDS["contraction_ends"])
# Capital letters that are function words, but may also be the initial of a surname: Kwame A.
_INITIAL_VOWELS = frozenset("AEOUY")
# Languages whose newspapers and places begin with an article: El Salvador.
_WITH_ARTICLE_IN_NAMES = frozenset(("fr", "es"))
_ARTICLES = frozenset(("el", "la", "las", "le", "les", "los"))
# The party before a state: "(R-Maine)".
_PARTY_PREFIX = re.compile(r"(?:[A-Z]-(?=[A-Z][a-z]{2})|[RDI]-(?=[A-Z][a-z]$))")
_ELIDED_WORD = re.compile(r"(?:[LDQld]|Qu|Dell|All|Nell|Dall|Sull)['’](?=[^\W\d_])")
_REFERENCE = re.compile(
    rf"(?i:(?:(?:{'|'.join(REFERENCES)}) (?:\d+|[IVXLC]+|[A-Z]|one|two|three|four|five|six|seven) "
    r"(?:of|to) (?:the )?)+)(?=[^\W\d_])"
)
# Text before the speaker in a line of a chat: [10:15] Sofia: hello
_LINE_START = re.compile(r"(?:\A|[\n\]>*-]) {0,3}\Z")

# First three letters of months and days. They make the test for dates faster.
_CALENDAR_PREFIXES = frozenset(word[:3].title() for word in CALENDAR_WORDS)
# Text after the author of a paper: Okonkwo et al., Thissen (2020).
_AUTHOR = re.compile(r" (?:et al\b|\((?:19|20)\d\d[a-z]?\))")
_APOSTROPHES = frozenset(("'", "’"))
# Maximum number of characters of a bracket between a name and the word that shows its usage.
MAX_BRACKET_CHARS = 80
# Maximum number of characters of texts that are kept until the usage of their spans is found.
MAX_PENDING_CHARACTERS = 1_000_000
# Ends of words after a place: Baoding-headquartered.
_BEHIND_PLACES = ("-based", "-headquartered", "-area")
_BEHIND_BRACKET = (" ", ",")
# Text between two names of an enumeration.
_CONJUNCTIONS = ("and", "or", "und", "oder", "sowie", "et", "ou", "y", "o", "e", "&")
_LIST_JOINTS = frozenset(
    (", ", "; ", "), ", *(f"{c} {w} " for w in _CONJUNCTIONS for c in ("", ",")))
)


@dataclass
class NameCandidates:
    """Candidate spans as columns, with one value per occurrence in the order of the text."""

    document: array[int] = field(default_factory=lambda: array("i"))
    start: array[int] = field(default_factory=lambda: array("i"))
    surface: array[int] = field(default_factory=lambda: array("i"))
    flags: array[int] = field(default_factory=lambda: array("B"))
    # The type that words beside the span show: 0 if none, else 1 + its row in `CUE_TYPES`.
    cue: array[int] = field(default_factory=lambda: array("B"))
    # 1 if a span continues an enumeration with the span before it: "Exco, Zipvan and Orvelda".
    listed: array[int] = field(default_factory=lambda: array("B"))
    # Numbers of the distinct spans by text, and texts and languages by number.
    surfaces: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    languages: list[Language] = field(default_factory=list)
    # (short, long) numbers of spans that a text explains as an abbreviation: "Long Name (LN)".
    abbreviations: set[tuple[int, int]] = field(default_factory=set)
    # Numbers of the names that paragraphs define, by text. They differ from those in `surfaces`:
    # where a text defines "Hill", it is a name; elsewhere it may be a noun.
    defined: dict[str, int] = field(default_factory=dict)
    max_pending_characters: int = MAX_PENDING_CHARACTERS
    # The spans whose usage is still to be added, and the number of characters of their texts.
    _parts: list[SpansOfPart] = field(default_factory=list)
    _n_pending: int = 0
    # Cache of trimmed spans by the arguments of `_trim_span`.
    _trimmed: dict[tuple[str, str, bool, bool], tuple[TrimmedSpan, int] | None] = field(
        default_factory=dict
    )
    # (row, number of characters before the span, longer name) if a longer name may be meant.
    _longer: list[tuple[int, int, str]] = field(default_factory=list)

    def add_document(
        self,
        document: int,
        text: str,
        words: DocumentWords,
        sentences: Sequence[Sentence],
        language: Language,
        offset: int,
    ) -> None:
        """Collect the candidate spans of a part of a document that begins at `offset`."""
        rows = self._find_spans(text, sentences, language) if sentences else []
        if not rows:
            return
        columns = zip(*rows, strict=True)
        start, end, surface, marks = (np.array(column, np.int64) for column in columns)
        self.document.extend([document] * len(rows))
        self.start.frombytes((offset + start).astype(np.int32).tobytes())
        self.surface.frombytes(surface.astype(np.int32).tobytes())
        self.listed.frombytes((marks & LISTED > 0).astype(np.uint8).tobytes())

        self._parts.append(SpansOfPart(text, words, language, start, end, marks))
        self._n_pending += len(text)
        if self._n_pending >= self.max_pending_characters:
            self.add_usage()

    def add_usage(self) -> None:
        """Find the usage of the pending spans. Call it after the last document."""
        if self._parts:
            flags, cues = find_usage(self._parts)
            self.flags.frombytes(flags.astype(np.uint8).tobytes())
            self.cue.frombytes(cues.astype(np.uint8).tobytes())
            self._parts.clear()
        self._n_pending = 0

    def get_columns(self) -> dict[str, np.ndarray]:
        """Return the columns of the spans: document, start, surface, flags, cue and listed."""
        names = ("document", "start", "surface", "flags", "cue", "listed")
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
            "defined": pl.DataFrame({"number": self.defined.values()}, {"number": pl.Int32}),
            "abbreviations": pl.DataFrame(sorted(self.abbreviations), numbers, orient="row"),
            "longer": pl.DataFrame(self._longer, longer, orient="row"),
        }

    def add_frames(self, frames: Mapping[str, pl.DataFrame], first_document: int) -> None:
        """Add the candidates of later documents; their first has the number `first_document`."""
        defined = set(frames["defined"]["number"])
        numbers = [
            self._get_span_number(name, language_of(code), row in defined)
            for row, (name, code) in enumerate(frames["surfaces"].iter_rows())
        ]
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

    def is_defined(self, number: int) -> bool:
        """Return whether a span is a whole name because a paragraph defines it."""
        name = self.names[number]
        return self.defined.get(name, -1) == number or (" " in name and name in self.defined)

    def restore_cut_words(self) -> None:
        """Restore words and numbers that were cut off. Call it after reading all documents.

        "One Ton Depot" is restored if the corpus writes it inside a sentence. "Boeing 747" is
        restored if it is frequent compared with "Boeing", or looks like a model; "England 6" may be
        a score.
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
            elif not ahead and (
                times[name] > max(1, totals[self.surface[row]] // 4)
                or (
                    is_inside[self.surface[row]]
                    and is_model(
                        name,
                        self.languages[self.surface[row]],
                        determined=bool(flags[row] & DETERMINER),
                    )
                )
            ):
                self.surface[row] = self._get_span_number(name, self.languages[self.surface[row]])

    def _find_spans(
        self, text: str, sentences: Sequence[Sentence], language: Language
    ) -> list[tuple[int, int, int, int]]:
        """Return the candidate spans as (start, end before trimming, span number, flags)."""
        rows: list[tuple[int, int, int, int]] = []
        ended, has_authors = 0, _AUTHOR.search(text) is not None
        found_whole = (*find_defined_names(text, language), *find_law_names(text, language))
        defined = _drop_inner_ranges(found_whole)[::-1]
        for start, end, initial, prose, titled in find_capitalized_spans(text, sentences, language):
            while defined and defined[-1][1] <= start:
                ended = defined[-1][1]
                rows.append(self._add_defined_name(text, *defined.pop(), language))
            if defined and defined[-1][0] < end:
                continue
            may_be_date = text[start : start + 3] in _CALENDAR_PREFIXES
            dated = may_be_date and precedes_date(word_before(text, start))
            found = self._trim_span(text[start:end], language, initial or not prose, dated)
            if found is None:
                continue
            span, number = found
            marks = INITIAL if initial and not span.offset else WORD_BEFORE
            marks |= (PROSE if prose else 0) | (PERSON if titled else 0)
            start += span.offset
            if rows and (joint := text[ended:start]) in _LIST_JOINTS:
                # After ", and" a new clause may begin: only " and " joins two names for certain.
                marks |= LISTED | CONJOINED * (joint[0] == " ")
            after = text[end : end + 1]
            if after == " ":
                marks |= 0 if span.is_end_cut else WORD_AFTER
                if has_authors and _AUTHOR.match(text, end):
                    marks |= PERSON
                if (behind := _skip_bracket(text, end)) > end:
                    end = behind
                    marks |= BRACKETED
                    if text[end] == ",":
                        marks = (marks | COMMA) & ~WORD_AFTER
            elif after in _APOSTROPHES:
                marks |= POSSESSIVE
            elif after == ",":
                marks |= PERSON if text.startswith(", who", end) else COMMA
            elif after == ":":
                marks |= SPEAKER if _LINE_START.search(text, max(0, start - 4), start) else 0
            elif after == ")" and rows and ended == start - 2 and text[start - 1] == "(":
                marks |= LISTED if self._add_abbreviation(rows[-1][2], number) else 0
            elif after == "-" and text.startswith(_BEHIND_PLACES, end):
                marks |= PLACE
            if span.longer:
                self._longer.append((len(self.start) + len(rows), span.ahead, span.longer))
            rows.append((start, end, number, marks))
            ended = start + len(span.text)
        rows += (self._add_defined_name(text, *span, language) for span in reversed(defined))
        return rows

    def _add_defined_name(
        self, text: str, start: int, end: int, language: Language
    ) -> tuple[int, int, int, int]:
        """Store a name that a text defines; return its start, end, number and marks."""
        number = self._get_span_number(text[start:end], language, is_defined=True)
        return start, _skip_bracket(text, end), number, INITIAL | PROSE | WORD_AFTER

    def _trim_span(
        self, raw: str, language: Language, initial: bool, dated: bool
    ) -> tuple[TrimmedSpan, int] | None:
        """Call `trim_span` with a cache; return the trimmed span and its number."""
        key = language.code, raw, initial, dated
        if key not in self._trimmed:
            span = trim_span(raw.split(), language, initial, dated)
            self._trimmed[key] = span and (span, self._get_span_number(span.text, language))
        return self._trimmed[key]

    def _get_span_number(self, surface: str, language: Language, is_defined: bool = False) -> int:
        numbers = self.defined if is_defined else self.surfaces
        number = numbers.setdefault(surface, len(self.names))
        if number == len(self.names):
            self.names.append(surface)
            self.languages.append(language)
        return number

    def _add_abbreviation(self, before: int, number: int) -> bool:
        """Store two spans if one is the abbreviation of the other: "Long Name (LN)"."""
        for short, long in ((number, before), (before, number)):
            initials = (word[0] for word in self.names[long].split(" ") if word[0].isupper())
            if "".join(initials) == self.names[short].replace(".", ""):
                self.abbreviations.add((short, long))
                return True
        return False


def _skip_bracket(text: str, end: int) -> int:
    """Return the end of the bracket after a name, as in "Ada Byron (1815–1852)", or of the name."""
    if not text.startswith(" (", end):
        return end
    close = text.find(")", end, end + MAX_BRACKET_CHARS) + 1
    return close if text[close : close + 1] in _BEHIND_BRACKET and close else end


def _drop_inner_ranges(found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort ranges in the order of the text, and drop those that begin inside another."""
    ranges: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if not ranges or start >= ranges[-1][1]:
            ranges.append((start, end))
    return ranges


class TrimmedSpan(NamedTuple):
    """A span without the function words and dates at its start and end.

    `offset` is in characters.
    """

    offset: int
    text: str
    # Whether words at the end were removed. They separate the name from the word after it.
    is_end_cut: bool
    # A longer name that may be meant, such as "One Ton Depot" for "Ton Depot", and the number of
    # its characters before this span.
    longer: str = ""
    ahead: int = 0


def trim_span(
    words: list[str], language: Language, initial: bool, dated: bool
) -> TrimmedSpan | None:
    """Remove function words and dates at the start and end of a span; None if nothing is left.

    `initial` is true where every word has a capital, as at the start of a sentence. `dated` is true
    if the word before the span shows that a month at the start of the span is a date.
    """
    first, last = count_reference_words(words), len(words)
    number_at_end = words[-1] if words[-1].isdigit() and len(words) > 1 else ""
    # Keep a number of four digits: it is the year of a law.
    is_year = len(number_at_end) == 4
    if number_at_end and not is_year and words[-2].lower() not in _WORDS_BEFORE_NUMBERS:
        last -= 1
    first, opening = _find_start(words, first, last, language, initial, dated)
    last = _find_end(words, first, last, language)
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
    n_words = sum(not word.islower() for word in words[first:last])
    if not is_capital or len(surface) > MAX_SPAN_CHARS or n_words > MAX_SPAN_WORDS:
        return None
    longer, ahead = "", 0
    if number_at_end and last == len(words) - 1:
        longer = f"{surface} {number_at_end}"
    elif 0 <= opening == first - 1:
        longer, ahead = f"{words[opening]} {surface}", len(words[opening]) + 1
    return TrimmedSpan(offset, surface, last < len(words), longer, ahead)


def _find_start(
    words: list[str], first: int, last: int, language: Language, initial: bool, dated: bool
) -> tuple[int, int]:
    """Return the index after the first function words and dates, and of a possible first word.

    The second is a function word or month that may begin the name; -1 if there is none.
    """
    opening = -1
    while first < last and _is_function_word_or_date(words[first], language):
        if _is_known_with_article(words[first:last], language):
            break
        dated = precedes_date(words[first - 1]) if first else dated
        if first < last - 1 and _may_begin_name(words[first : first + 2], dated, language):
            lower = words[first].lower()
            # "Monday Club" and "April Mills" are names; "May" in "May God help us" is not.
            named = words[first] in GIVEN_NAMES and lower not in language.function_words
            if not initial or (lower in CALENDAR_WORDS and (first or named)):
                break
            opening = first
        first += 1
    return first, opening


def _find_end(words: list[str], first: int, last: int, language: Language) -> int:
    """Return the index after the last word that is no function word and no date."""
    while last > first and _is_function_word_or_date(words[last - 1], language):
        if words[last - 1].islower() and _ELIDED_WORD.match(words[last - 1]):
            break  # part of the name: Institut de recherche pour l'agriculture
        is_form = words[last - 1] in _FORMS_LIKE_FUNCTION_WORDS and last - 1 > first
        if is_form and not words[last - 2].isupper():
            break  # the form of a company: Halden Optique SA
        closing = words[last - 1].lower() in _NAME_END_WORDS
        # "A" is an initial in "Kwame A"; "I" is a pronoun after "Emma".
        closing = closing or (words[last - 1] in _INITIAL_VOWELS and last - first == 2)
        if closing and last - 1 > first and is_given_name(words[last - 2], language):
            break
        # "I" is a numeral in "World War I" and "King Albert I".
        numeral = words[last - 1] == "I" and last - 1 > first
        if numeral and (words[last - 2] == "War" or is_title(words[first])):
            break
        last -= 1
    return last


def _is_known_with_article(words: list[str], language: Language) -> bool:
    """Return whether words are a known name that begins with an article: Le Monde, El País."""
    return (
        language.code in _WITH_ARTICLE_IN_NAMES
        and 1 < len(words) < 4
        and words[0].lower() in _ARTICLES
        and find_known_type(" ".join(words)) != ""
    )


def _is_function_word_or_date(word: str, language: Language) -> bool:
    lower = word.lower()
    if word in _ACRONYMS:
        return False
    if lower in language.function_words or lower in CALENDAR_WORDS or lower in _OPENERS:
        return True
    head, apostrophe, end = lower.replace("’", "'").partition("'")
    if not apostrophe:
        return False
    is_contraction = end in _CONTRACTION_ENDS and (
        head in language.function_words or head in ("i", "let", "here")
    )
    is_contraction = is_contraction or (head == "i" and language.code == "en")  # "I'ma" (I will)
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


def precedes_date(word: str) -> bool:
    """Return whether a word shows that a month after it is a date, not a given name: in June."""
    return word.lower() in _WORDS_BEFORE_DATES or word[:1].isdigit()


def count_reference_words(words: list[str]) -> int:
    """Count the words of references before a name: Title V of Part Three of the | Treaty."""
    found = _REFERENCE.match(" ".join(words)) if words[0].lower() in REFERENCES else None
    return found.group().count(" ") if found else 0
