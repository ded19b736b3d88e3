"""Find spans that may be names, where the script marks them by capitals.

A span is collected with signs of how it is used: does it begin a sentence, does an
article stand before it, a preposition of place, a verb of definition after it.
"""

# array[int] can be written only as text before Python 3.12.
from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

from graphrag_index.core.languages import Language
from graphrag_index.core.sentences import Sentence

MAX_WORDS = 8
MAX_CHARS = 80

# Flags of one occurrence.
INITIAL, DETERMINER, PLACE, DEFINED, PROSE, BEFORE_NOUN = 1, 2, 4, 8, 16, 32

_CALENDAR = frozenset(
    (
        "january february march april june july august september october november december "
        "monday tuesday wednesday thursday friday saturday sunday januar februar märz mai "
        "juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag "
        "sonntag jan feb mar apr jun jul aug sep sept oct nov dec christmas easter spring "
        "summer autumn winter"
    ).split()
)
_PARTICLES = {
    "en": r"of(?: the)?|de(?: la| los| las)?|del|du|da|di|van(?: der| den| de)?|von(?: der)?|la|le|"
    r"bin|ibn|dos|der",
    "de": r"von(?: der)?|van(?: der)?|zu|zur|de|of",
    "fr": r"de(?: la)?|du|des|le|la|von|van",
    "es": r"de(?: la| los| las)?|del|von|van",
    "it": r"di|del|della|dei|degli|da|de|von",
    "pt": r"de|do|da|dos|das|von",
    "nl": r"van(?: der| den| de)?|de|der|ten|ter|von",
}
_OTHER_PARTICLES = r"de|von|van|of|di|da|af|av"


def _uppercase_class() -> str:
    """Return the upper and title case letters of all scripts, as ranges of a character class."""
    ranges: list[list[int]] = []
    scripts = ((0x41, 0x2E00), (0xA640, 0xABC0), (0xFF21, 0xFF3B), (0x10400, 0x10450))
    for first, last in (*scripts, (0x118A0, 0x118C0), (0x1E900, 0x1E944)):
        for code in range(first, last):
            if chr(code).isupper() or chr(code).istitle():
                if ranges and ranges[-1][1] == code - 1:
                    ranges[-1][1] = code
                else:
                    ranges.append([code, code])
    return "".join(f"{chr(a)}-{chr(b)}" if b > a else chr(a) for a, b in ranges)


@cache
def _name_pattern(code: str) -> re.Pattern[str]:
    up = _uppercase_class()
    # Combining marks belong to the letter before them.
    letter = r"[\w\u0300-\u036f]"
    word = (
        rf"[{up}]{letter}*"
        rf"(?:(?:['’](?!s\b)|&|-(?=[{up}\d])|-(?:[a-z]{{1,5}}-)+(?=[{up}])){letter}+)*"
    )
    before = (
        rf"(?:(?:[{up}]\.|(?:St|Ste|Mt|Dr|Mr|Mrs|Ms|Prof|Capt|Cpt|Lt|Gen|Col|Sgt|Rev|Sen|Gov)\.)"
        r"-?[^\S\n]?)*"
    )
    # One character, so that a span and its words joined by single spaces are equally long.
    space = r"(?:[^\S\n]|\n(?!\s))"
    particles = _PARTICLES.get(code, _OTHER_PARTICLES)
    joined = rf"(?:(?:al|el|ad|an|as|ash|at|az)-|[dD]['’])?{word}"
    return re.compile(rf"{before}{word}(?:{space}(?:(?:{particles}){space})?{before}{joined})*")


@cache
def _capital() -> re.Pattern[str]:
    """Match a capital where a name can begin: not inside of a word, an address or a path."""
    # The look-behind comes after the letter: the engine then skips to letters quickly.
    return re.compile(rf"[{_uppercase_class()}](?<![\w/@.#\\-].)", re.DOTALL)


# What is written together with a name that follows it: al-Khwarizmi, d'Artagnan.
_PREFIX = re.compile(r"(?<!\w)(?:(?:al|el|ad|an|as|ash|at|az)-|[dD]['’])$")


_LOWER_WORD = re.compile(r"(?<![\w'’-])[^\W\d_A-Z]\w+")


@dataclass
class Names:
    """All spans that may be names, as columns: one value per occurrence, in order of the text."""

    document: array[int] = field(default_factory=lambda: array("i"))
    start: array[int] = field(default_factory=lambda: array("i"))
    end: array[int] = field(default_factory=lambda: array("i"))
    surface: array[int] = field(default_factory=lambda: array("i"))
    flags: array[int] = field(default_factory=lambda: array("b"))
    # Distinct spans, numbered in order of first appearance; their texts and languages by number.
    surfaces: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    languages: list[Language] = field(default_factory=list)
    # Pairs of spans that the text explains as short and long: "Long Name (LN)".
    abbreviations: set[tuple[int, int]] = field(default_factory=set)
    # How often the corpus writes a word in lower case.
    lower_words: Counter[str] = field(default_factory=Counter)

    def add(self, document: int, text: str, sentences: list[Sentence], language: Language) -> None:
        """Collect the spans of one document."""
        if not sentences:
            return
        lower_words = _LOWER_WORD.findall(text)
        if not lower_words and not any(map(str.isupper, text)):
            return
        self.lower_words.update(lower_words)
        starts = [sentence.start for sentence in sentences]
        # Lists, tables and poems have no whole sentences: there, every line may name something.
        in_prose = sum(s.end - s.start for s in sentences if s.prose)
        all_prose = in_prose * 3 < sum(s.end - s.start for s in sentences)
        shouted = [_is_shouted(text[s.start : s.end]) for s in sentences]
        function_words = language.function_words
        pattern = _name_pattern(language.code)
        surfaces, capital_pattern = self.surfaces, _capital()
        articles = language.articles or language.determiners
        rows: list[tuple[int, int, int, int]] = []
        reached = 0
        for capital in capital_pattern.finditer(text):
            match = pattern.match(text, capital.start()) if capital.start() >= reached else None
            if match is None:
                continue
            start, end = match.span()
            reached = end
            index = bisect_right(starts, start) - 1
            if index < 0 or shouted[index]:
                continue
            surface = match.group()
            if end > sentences[index].end:
                # What looked like an initial ended the sentence.
                surface = text[start : sentences[index].end].rstrip(".")
                end = start + len(surface)
            if " " in surface or "\n" in surface:
                start, end, surface = _trim(surface, start, end, function_words)
                if not surface:
                    continue
            elif surface.lower() in function_words or surface.lower() in _CALENDAR:
                continue
            if len(surface) > MAX_CHARS or surface.count(" ") >= MAX_WORDS:
                continue
            sentence = sentences[index]
            flags = PROSE if sentence.prose or all_prose else 0
            first = sentence.start
            if (
                start == first
                or (start <= first + 2 and not text[first].isalnum())
                or (text[start - 1] in '"“„«‘:' and start > 1)
            ):
                flags |= INITIAL
            else:
                before = text[
                    text.rfind(" ", max(0, start - 20), start - 1) + 1 : start - 1
                ].lower()
                if before in articles:
                    flags |= DETERMINER
                if before in language.place_prepositions:
                    flags |= PLACE
            if text[end : end + 1] == " ":
                after = text[end + 1 : text.find(" ", end + 1, end + 16)]
                if after in language.copulas:
                    flags |= DEFINED
                elif after.islower() and after not in function_words:
                    flags |= BEFORE_NOUN
            number = surfaces.get(surface)
            if number is None:
                number = surfaces[surface] = len(surfaces)
                self.names.append(surface)
                self.languages.append(language)
            if text[start - 1 : start] == "(" and text[end : end + 1] == ")":
                self._add_abbreviation(rows, start, surface, number)
            rows.append((start, end, number, flags))
        if rows:
            columns = zip(*rows, strict=True)
            self.document.extend([document] * len(rows))
            for column in (self.start, self.end, self.surface, self.flags):
                column.extend(next(columns))

    def _add_abbreviation(
        self, rows: list[tuple[int, int, int, int]], start: int, surface: str, number: int
    ) -> None:
        """Note what stands in brackets behind the last name, if one abbreviates the other."""
        if not rows or rows[-1][1] != start - 2:
            return
        before = rows[-1][2]
        name = self.names[before]
        if _initials(name) == surface.replace(".", ""):
            self.abbreviations.add((number, before))
        elif _initials(surface) == name.replace(".", ""):
            self.abbreviations.add((before, number))


def _initials(name: str) -> str:
    return "".join(word[0] for word in name.split(" ") if word[0].isupper())


def _is_shouted(sentence: str) -> bool:
    """Tell whether a sentence is all in capitals, so that capitals mark nothing in it."""
    return sentence.isupper() and " " in sentence


def _trim(
    surface: str, start: int, end: int, function_words: frozenset[str]
) -> tuple[int, int, str]:
    """Cut function words and dates from both ends of a span of several words."""
    words = surface.split()
    first, last = 0, len(words)
    while first < last and (
        words[first].lower() in function_words or words[first].lower() in _CALENDAR
    ):
        first += 1
    while last > first and (
        words[last - 1].lower() in function_words or words[last - 1].lower() in _CALENDAR
    ):
        last -= 1
    if first == last:
        return start, end, ""
    if first == 0 and last == len(words):
        return start, end, " ".join(words)
    begin = sum(map(len, words[:first])) + first
    trimmed = " ".join(words[first:last])
    return start + begin, start + begin + len(trimmed), trimmed
