"""Spans of capitalized words in a text, and what their capitals prove.

Ends of spans are found in span_ends.py, the case of sentences in sentence_case.py.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache

from graphrag_nlp.names.name_words import capital_pattern, is_wrapped_line, name_pattern
from graphrag_nlp.names.nameless import find_nameless_ranges
from graphrag_nlp.names.sentence_case import read_case
from graphrag_nlp.names.shouted_names import find_shouted_line, find_shouted_names
from graphrag_nlp.names.span_ends import HYPHENS, find_span, find_unbroken_end
from graphrag_nlp.text.languages import Language, read_lists
from graphrag_nlp.text.ranges import find_range_end
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


# Ends of a note in brackets that is a sentence: (Pausa.) Efectuada la votación.
_NOTE_ENDS = frozenset((".) ", "!) ", "?) "))


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
