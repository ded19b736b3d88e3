"""Spans of capitalized words in a text, and the parts of a text that are not read for names.

In a sentence, a capital may prove a name; in a headline or a heading, it proves nothing. In text in
capital letters, only organizations, states and known places are names. Names in bylines, credits,
code and addresses say who wrote or published a text, not what it is about. Ends of spans are found
in span_ends.py.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from graphrag_nlp.names.known_names import is_known_name
from graphrag_nlp.names.name_words import (
    HEAD_FIRST,
    capital_pattern,
    common_words,
    is_organization_word,
    is_wrapped_line,
    name_pattern,
)
from graphrag_nlp.names.span_ends import find_span, find_unbroken_end
from graphrag_nlp.text.code import Range, find_range_end, merge_ranges
from graphrag_nlp.text.languages import Language, read_lists, word_set
from graphrag_nlp.text.places import large_place_names
from graphrag_nlp.text.sentences import Sentence

# Minimum share of words with a capital in a headline such as "Voters Reject Plan for Bridge", and
# minimum number of its words.
MIN_CAPITALIZED_SHARE, MIN_HEADLINE_WORDS = 0.6, 4
# Minimum share of words in lower case in a line that is a sentence without a full stop.
MIN_LOWER_SHARE, MIN_LOWER_SHARE_GERMAN, MIN_LOWER_SHARE_ROMANCE = 0.5, 0.3, 0.35
# Headlines in Romance languages are written like sentences: Audiard de retour à Cannes. Minimum
# number and share of words with a capital that only a line in title case has.
MIN_ROMANCE_CAPITALS, MIN_ROMANCE_SHARE = 5, 0.8
# German words in lower case that end as verbs do: Zeiss kauft Dorc.
_GERMAN_VERB = re.compile(r"[a-zäöüß]{3,}t")
MIN_GERMAN_CLAUSE_WORDS = 3
_NON_SPACE = re.compile(r"\S")
_SENTENCE_ENDS = frozenset(".!?…")
# The number of a section, at the start of a line: 5.4.3. Removing a Package, A.2 Ubuntu.
_SECTION = re.compile(r"[^\S\n]*(?:[-*] )?(?:[A-Z]|\d+)(?:\.\d+)+\.?[^\S\n]+(?=[A-Z])")
# Words that begin the name of a state: REPUBLIC OF.
STATES = word_set(read_lists("graphrag_nlp/names/data/words")["states"])
_SHOUTED_WORD = re.compile(r"[^\W\d_](?:[\w'’-]*\w)?\.?,?")
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
# Languages in which the first word of a name shows an organization.
_HEAD_FIRST = HEAD_FIRST | {"ro"}
# Particles inside the names of organizations: Cour de cassation, Supreme Court of Victoria.
_PARTICLES = word_set("of for de du des del la las los le les l der für")
_CONJUNCTIONS = word_set("and und et y e")
# Minimum number of characters of an organization in capitals, and of one that is a single word.
MIN_BODY_CHARS, MIN_BODY_WORD_CHARS = 8, 12
# The beginning of an abbreviation that ends with a capital: z. B., a. A., i. E.
_ABBREVIATED = re.compile(r"\b[a-zäöü]\. ?$")
# A French article or pronoun before a word in lower case: L'université, D'après.
_ELIDED_LOWER = re.compile(r"(?:[A-Z]|Qu)['’][a-zà-ÿ]")
_ELISIONS = frozenset("'’u")
_OPENING_MARKS = frozenset("\"'“„«‘:")
# Start and end of a span, and whether it begins a sentence, is in prose, and has a title before it.
# A plain tuple: spans are many.
CapitalizedSpan = tuple[int, int, bool, bool, bool]
# Ends of a note in brackets that is a sentence: (Pausa.) Efectuada la votación.
_NOTE_ENDS = frozenset((".) ", "!) ", "?) "))
_LISTS = read_lists("graphrag_nlp/names/data/nameless")
_PATTERNS = [re.compile(pattern) for pattern in _LISTS.values() if isinstance(pattern, str)]
_MAIL_ADDRESS = re.compile(r"\b[\w.+-]+@[\w-]+\.\w+")


def find_capitalized_spans(
    text: str, sentences: Sequence[Sentence], language: Language
) -> Iterator[CapitalizedSpan]:
    """Yield the spans of capitalized words in a document."""
    # Lists, tables and poems have no whole sentences, so each of their lines may contain names.
    in_prose = sum(s.end - s.start for s in sentences if s.prose)
    all_prose = in_prose * 3 < sum(s.end - s.start for s in sentences)
    sentence_starts = [*(sentence.start for sentence in sentences), len(text)]
    starts, nameless = _SpanStarts(text, language), find_nameless_ranges(text)
    is_plain = not (language.capitalizes_nouns or language.code in ("fr", "es") or "–" in text)
    reached, number = sentence_starts[0], 0
    for capital in capital_pattern().finditer(text):
        if capital.start() < reached or not (found := starts.match(capital.start())):
            continue
        match, has_title = found
        start, reached = match.span()
        if start >= sentence_starts[number]:
            number = bisect_right(sentence_starts, start, number)
            sentence = read_case(text, sentences[number - 1], all_prose, language)
            if sentence.is_shouted:
                yield from _find_shouted_spans(text, sentence.start, sentence.end, language)
        if sentence.is_shouted:
            reached = min(reached, sentence.end)
            continue
        if nameless and (nameless_end := find_range_end(nameless, start)):
            reached = nameless_end  # skip Minister of Health | Ann Brown
            continue
        has_capitals = text[start + 1 : start + 2].isupper()
        if has_capitals and (line := find_shouted_line(text, match, language)):
            reached = start + len(line)
            yield from _find_shouted_spans(text, start, reached, language)
            continue
        start, reached = find_span(text, match, sentence.end, language, is_plain=is_plain)
        mark = text[reached : reached + 1]
        if mark == "/" and text[reached - 1 : reached + 2 : 2].isdigit():
            continue  # the number of a court case: C-340/21
        initial = _may_begin_sentence(text, start, sentence.start, all_prose)
        end = find_unbroken_end(text, start, reached) if mark == "-" else reached
        if end > start:
            # In a heading, a capital proves no name.
            is_prose = sentence.is_prose and (has_capitals or not sentence.is_heading)
            yield start, end, initial, is_prose, has_title


class _SpanStarts:
    """Tests whether a span of capitalized words begins at a capital of a text."""

    def __init__(self, text: str, language: Language) -> None:
        self.text, self.pattern = text, name_pattern(language.code)
        self.titles = _title_pattern(language.code)
        self.title_letters = _title_letters(language.code) if self.titles else frozenset[str]()
        self.elides = language.code == "fr"

    def match(self, start: int) -> tuple[re.Match[str], bool] | None:
        """Return the words of the span at a capital, and whether a title stands before them.

        None if no span begins there.
        """
        text, titles = self.text, self.titles
        may_elide = self.elides and text[start + 1 : start + 2] in _ELISIONS
        if may_elide and _ELIDED_LOWER.match(text, start):
            return None  # L'université de Liège: the name does not begin at the article
        title = titles.match(text, start) if titles and text[start] in self.title_letters else None
        start = title.end() if title else start
        if not (match := self.pattern.match(text, start)):
            return None
        if titles and " " in match.group():
            # A title may end the span without its full stop: U.S. Rep | . Hal Burke
            inner = titles.search(text, start + 1, match.end() + 3)
            if inner and text[inner.start() - 1] == " " and inner.start() < match.end():
                # "Hier M. Lavigne": the title begins a new span.
                match = self.pattern.match(text, start, inner.start() - 1) or match
        if text[start + 1 : start + 2] == "." and _ABBREVIATED.search(text, start - 4, start):
            return None  # an abbreviation: z. B. Bern
        return match, title is not None


@cache
def _title_pattern(code: str) -> re.Pattern[str] | None:
    pattern = read_lists("graphrag_nlp/names/data/words")["titles_of_language"].get(code)
    return re.compile(pattern) if pattern else None


@cache
def _title_letters(code: str) -> frozenset[str]:
    """Return the capitals in the pattern of titles: every title begins with one of them."""
    return frozenset(
        filter(str.isupper, read_lists("graphrag_nlp/names/data/words")["titles_of_language"][code])
    )


def _find_shouted_spans(
    text: str, start: int, end: int, language: Language
) -> Iterator[CapitalizedSpan]:
    """Yield the organizations and known places in a heading in capital letters."""
    for first, last, is_body in find_shouted_names(text, start, end, language):
        yield first, last, False, is_body, False


def _may_begin_sentence(text: str, start: int, sentence_start: int, all_prose: bool) -> bool:
    """Return whether a word is where each word has a capital: first in a sentence or quotation."""
    return (
        start == sentence_start
        or (start <= sentence_start + 2 and not text[sentence_start].isalnum())
        or (text[start - 1] in _OPENING_MARKS and start > 1 and not _is_elision(text, start - 1))
        # After a colon, except acronyms: "Note: Keep it dry", but not "ICAO: KAEX".
        or text[start - 2 : start] in ("– ", "— ", "→ ")
        or text[start - 3 : start] in _NOTE_ENDS
        or (text[start - 1] == " " and _follows_colon(text, start))
        or (text[start - 1] == "\n" and not all_prose and not is_wrapped_line(text, start - 1))
    )


def _follows_colon(text: str, start: int) -> bool:
    before = text[max(0, start - 6) : start].rstrip(" ")
    return before.endswith(":") and not text[start : start + 2].isupper()


def _is_elision(text: str, at: int) -> bool:
    """Return whether a mark is the apostrophe of an article before a name: l'Italie."""
    return text[at] == "'" and text[at - 1].isalpha()


def _portfolio_pattern(opening: str, joint: str, fields: str) -> str:
    """Return a regular expression for a minister with the fields of the office."""
    field = f"(?:{'|'.join(fields.split())})\\b"
    return f"{opening}{field}(?:{joint}{field})*"


_PATTERNS += [re.compile(_portfolio_pattern(**parts)) for parts in _LISTS["portfolios"].values()]


def find_nameless_ranges(text: str) -> list[Range]:
    """Return the parts of a text that are not read for names, in order and without overlaps."""
    lines = f"\n{text}"
    # A range may begin at the line break before its first line.
    found = [
        (match.start() - 1, match.end() - 1)
        for pattern in _PATTERNS
        for match in pattern.finditer(lines)
        if "label" not in pattern.groupindex or not is_known_name(match["label"])
    ]
    if "@" in text:
        found += [match.span() for match in _MAIL_ADDRESS.finditer(text)]
    return merge_ranges(found)


class SentenceCase(NamedTuple):
    """Start and end of a sentence, and what its capitals prove."""

    start: int
    end: int
    # All letters are capitals: only known places are names for certain.
    is_shouted: bool
    # A capital inside the sentence shows a name. In headings and tables, it may not.
    is_prose: bool
    # It is an English heading in a list or in a table of contents.
    is_heading: bool


def read_case(text: str, sentence: Sentence, all_prose: bool, language: Language) -> SentenceCase:
    """Find out what the capitals in a sentence prove.

    `all_prose` is true if each line of the text may contain names, since few are whole sentences.
    """
    words = text[sentence.start : sentence.end]
    has_full_stop = words[-1] in _SENTENCE_ENDS
    # In Romance languages, a headline on the first line is written like a sentence. Search in
    # place: copies of the text before each sentence would take quadratic time.
    is_first = language.code in HEAD_FIRST and not _NON_SPACE.search(text, 0, sentence.start)
    is_prose = sentence.prose or all_prose or has_full_stop or _is_clause(words, language, is_first)
    may_be_headline = not all_prose and not has_full_stop
    is_prose = is_prose and not (may_be_headline and _is_headline(words, language, is_first))
    may_be_heading = language.code == "en" and not sentence.prose and all_prose
    is_heading = may_be_heading and _is_heading(text, sentence.start)
    is_shouted = words.isupper() and " " in words
    return SentenceCase(sentence.start, sentence.end, is_shouted, is_prose, is_heading)


def _is_heading(text: str, start: int) -> bool:
    """Return whether a sentence is a heading with a mark or the number of a section: 2.1 Tests."""
    return text[start] == "#" or _SECTION.match(text, text.rfind("\n", 0, start) + 1) is not None


def _is_headline(sentence: str, language: Language, is_first: bool = False) -> bool:
    """Return whether most words of a sentence without a full stop have a capital.

    `is_first` is true for the first line of a text in a Romance language.
    """
    if language.capitalizes_nouns:
        return False
    words = [word for word in sentence.split() if word.isalpha()]
    long = [word for word in words if len(word) > 3]
    capitals = sum(word[0].isupper() for word in long)
    if is_first:
        return MIN_ROMANCE_CAPITALS <= capitals > MIN_ROMANCE_SHARE * len(long)
    return len(words) >= MIN_HEADLINE_WORDS and capitals > MIN_CAPITALIZED_SHARE * len(long) > 1


def _is_clause(line: str, language: Language, is_first: bool) -> bool:
    """Return whether a line without a full stop reads like a sentence, with few capitals.

    `is_first` is true for the first line of a text in a Romance language.
    """
    words = [word for word in line.split() if word[:1].isalpha()]
    lower = sum(map(str.islower, words))
    functions = sum(word.rstrip(",").lower() in language.function_words for word in words)
    share = MIN_LOWER_SHARE
    if language.capitalizes_nouns:
        share = MIN_LOWER_SHARE_GERMAN
        has_verb = len(words) >= MIN_GERMAN_CLAUSE_WORDS and any(map(_GERMAN_VERB.fullmatch, words))
        if has_verb and lower >= share * len(words):
            return True
    elif is_first:
        share = MIN_LOWER_SHARE_ROMANCE
    return len(words) >= MIN_HEADLINE_WORDS and lower >= share * len(words) and functions > 0


def find_shouted_line(text: str, match: re.Match[str], language: Language) -> str:
    """Return the first line of a span if it is a headline in capital letters, or ""."""
    line = match.group().partition("\n")[0]
    if not line.isupper():
        return ""
    if line.count(" ") >= MIN_HEADLINE_WORDS - 1:
        return line
    # A short heading counts if it stands alone, and is an organization: TRIBUNAL SUPREMO.
    start, end = match.start(), match.start() + len(line)
    is_alone = text[max(0, start - 1) : start] in ("", "\n") and text[end : end + 1] == "\n"
    return line if is_alone and any(_find_bodies(text, start, end, language)) else ""


def find_shouted_names(
    text: str, start: int, end: int, language: Language
) -> Iterator[tuple[int, int, bool]]:
    """Yield the organizations and known places in capitals: (start, end, is organization)."""
    bodies = list(_find_bodies(text, start, end, language))
    for first, last in bodies:
        yield first, last, True
    for word in _LONG_WORD.finditer(text, start, end):
        name = word.group().lower()
        if any(first <= word.start() < last for first, last in bodies):
            continue
        if name in large_place_names() and name not in common_words(language.code):
            yield word.start(), word.end(), False


def _find_bodies(text: str, start: int, end: int, language: Language) -> Iterator[tuple[int, int]]:
    """Yield the spans of organizations and states in a heading in capital letters."""
    words = list(_SHOUTED_WORD.finditer(text, start, end))
    last_end = -1
    for at, word in enumerate(words):
        lower = word.group().rstrip(".,").lower()
        is_state = lower in STATES
        if word.start() < last_end or not (is_state or is_organization_word(lower)):
            continue
        first, last = at, at
        inside = _PARTICLES if is_state else _PARTICLES | _CONJUNCTIONS
        outside = language.function_words - inside
        if language.code not in _HEAD_FIRST and not is_state:
            while first and _are_joined(text, words[first - 1], words[first]):
                before = words[first - 1].group().lower()
                if before in language.function_words or len(before) < 2:
                    break
                first -= 1
        while last + 1 < len(words) and _are_joined(text, words[last], words[last + 1]):
            if words[last + 1].group().rstrip(".,").lower() in outside | _CONJUNCTIONS - inside:
                break
            last += 1
        while last > at and words[last].group().lower() in inside:
            last -= 1
        last_end = words[last].start() + len(words[last].group().rstrip(".,"))
        is_long = len(words) == 1 and len(lower) >= MIN_BODY_WORD_CHARS
        if is_long or (last > first and last_end - words[first].start() >= MIN_BODY_CHARS):
            yield words[first].start(), last_end


def _are_joined(text: str, word: re.Match[str], following: re.Match[str]) -> bool:
    """Return whether only a space or an apostrophe is between two words."""
    return text[word.end() : following.start()] in (" ", "'", "’") and word.group()[-1] not in ".,"
