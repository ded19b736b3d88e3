"""Spans of capitalized words in a text, and the parts of a text that are not read for names.

Ends of spans are found in span_ends.py, the case of sentences in sentence_case.py. Names in
bylines, credits, code and addresses say who wrote or published a text, not what it is about.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache

from graphrag_nlp.names.known_names import is_known_name
from graphrag_nlp.names.name_words import capital_pattern, is_wrapped_line, name_pattern
from graphrag_nlp.names.sentence_case import find_shouted_line, find_shouted_names, read_case
from graphrag_nlp.names.span_ends import HYPHENS, find_span, find_unbroken_end
from graphrag_nlp.text.code import Range, find_range_end, merge_ranges
from graphrag_nlp.text.languages import Language, read_lists
from graphrag_nlp.text.sentences import Sentence

# An abbreviation before its last letter: z. B., a. A., i. E.
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
_SECTION_TITLE, _SECTION = (re.compile(_LISTS["section_title"][key]) for key in ("title", "before"))
# Maximum number of characters of the word and the number before the first full stop.
_MAX_SECTION_CHARS = 20
# A term that a contract defines: (the "Landlord"). Its occurrences are no names, unless it is a
# part of the name before it: Brookline Properties LLC ("Brookline").
_DEFINED_TERM = re.compile(
    r"\([^()\"“”„«»]{0,25}[\"“„«] ?([^\W\d_a-z][^\W\d_]+(?: [^\W\d_]+){0,2}) ?[\"”“»]"
    r"[^()\"]{0,25}\)"
)
# A French contract: ", ci-après la Salariée", "ci-après dénommé « le Preneur »". The list behind
# "voir ci-après la Loire" has no comma or bracket before it.
_FRENCH_TERM = re.compile(
    r"i-après(?:,? (?:dénommé|désigné|appelé)e?s?,? (?:[«\"“] ?)?|,? [«\"“] ?"
    r"|(?:(?<=[,(] ci-après)|(?<=\(ci-après)),? )"
    r"(?:[Ll][ea]s? |[Ll]['’])([^\W\d_a-zà-ÿ]\w+)"
)
# An article at the start of a sentence, at which a span may begin.
_ARTICLE = re.compile(r"\b(?:(?:The|L[ae]s?|El|Los) |L['’])$")
_CHARS_BEFORE_TERM = 80
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
            sentence = read_case(text, sentences[number - 1], match.group(), all_prose, language)
            if sentence.is_shouted:
                yield from _find_shouted_spans(text, sentence.start, sentence.end, language)
        if sentence.is_shouted:
            reached = min(reached, sentence.end)
            continue
        if nameless and (nameless_end := find_range_end(nameless, start)):
            reached = nameless_end  # Minister of Health | Ann Brown
            continue
        has_capitals = text[start + 1 : start + 2].isupper()
        if has_capitals and (line := find_shouted_line(text, match, language)):
            reached = start + len(line)
            yield from _find_shouted_spans(text, start, reached, language)
            continue
        start, reached = find_span(text, match, sentence.end, language, is_plain=is_plain)
        mark = text[reached : reached + 1]
        if mark == "/" and text[reached - 1 : reached + 2 : 2].isdigit():
            continue  # a case: C-340/21
        initial = _may_begin_sentence(text, start, sentence.start, all_prose)
        end = find_unbroken_end(text, start, reached) if mark in HYPHENS else reached
        if end > start:
            # In a heading, a capital proves nothing.
            is_prose = sentence.is_prose and (has_capitals or not sentence.is_heading)
            yield start, end, initial, is_prose, has_title


class _SpanStarts:
    """Tests of the capitals in a text: whether the words of a span begin there."""

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
            return None  # z. B. Bern
        return match, title is not None


@cache
def _title_pattern(code: str) -> re.Pattern[str] | None:
    pattern = read_lists("graphrag_nlp/names/data/words")["titles_of_language"].get(code)
    return re.compile(pattern) if pattern else None


@cache
def _title_letters(code: str) -> frozenset[str]:
    """Return the capitals of which one begins each title; others may be among them."""
    return frozenset(
        filter(str.isupper, read_lists("graphrag_nlp/names/data/words")["titles_of_language"][code])
    )


def _find_shouted_spans(
    text: str, start: int, end: int, language: Language
) -> Iterator[CapitalizedSpan]:
    """Yield the bodies, and the known places, in a heading in capital letters."""
    for first, last, is_body in find_shouted_names(text, start, end, language):
        yield first, last, False, is_body, False


def _may_begin_sentence(text: str, start: int, sentence_start: int, all_prose: bool) -> bool:
    """Return whether a word begins a sentence, a quotation or a line, so any word has a capital."""
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
    """Return a regular expression for a minister and the fields behind: ministre des Transports."""
    field = f"(?:{'|'.join(fields.split())})\\b"
    return f"{opening}{field}(?:{joint}{field})*"


_PATTERNS += [re.compile(_portfolio_pattern(**parts)) for parts in _LISTS["portfolios"].values()]


def find_nameless_ranges(text: str) -> list[Range]:
    """Return the parts of a text without names, in order and without overlaps."""
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
    for match in _SECTION_TITLE.finditer(text):
        start = max(0, match.start() - _MAX_SECTION_CHARS)
        if section := _SECTION.search(text, start, match.start()):
            found.append((section.start(), match.end()))
    found += _find_defined_terms(text)
    return merge_ranges(found)


def _find_defined_terms(text: str) -> Iterator[Range]:
    terms = {
        match[1]
        for match in _DEFINED_TERM.finditer(text)
        if match[1] not in text[max(0, match.start() - _CHARS_BEFORE_TERM) : match.start()]
        and not any(word.isupper() for word in match[1].split())
    }
    if "i-après" in text:
        terms.update(match[1] for match in _FRENCH_TERM.finditer(text))
    for term in terms:
        if is_known_name(term):
            continue  # a country may be a party to a contract
        for match in re.finditer(rf"\b{re.escape(term)}\b", text):
            article = _ARTICLE.search(text, max(0, match.start() - 4), match.start())
            yield (article or match).start(), match.end()
