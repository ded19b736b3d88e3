"""Find names where the script marks them: capitalized spans, judged by corpus statistics.

A span is collected with signs of how it is used (does it begin a sentence, does an
article stand before it, a preposition of place, a verb of definition after it).
When all documents are read, each distinct span is judged: words that the corpus
mostly writes in lower case, or only capitalizes at the start of sentences, are no names.
"""

# array[int] can be written only as text before Python 3.12.
from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from graphrag_index.core.languages import Language
from graphrag_index.core.sentences import Sentence

MAX_WORDS = 8
MAX_CHARS = 80

# Flags of one occurrence.
INITIAL, DETERMINER, PLACE, DEFINED, PROSE = 1, 2, 4, 8, 16

_CALENDAR = frozenset(
    (
        "january february march april june july august september october november december "
        "monday tuesday wednesday thursday friday saturday sunday januar februar märz mai "
        "juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag "
        "sonntag jan feb mar apr jun jul aug sep sept oct nov dec christmas easter spring "
        "summer autumn winter"
    ).split()
)
_ROMAN = re.compile(r"[IVXLCDM]+")
# Endings of English words for peoples and of German words for what is not named.
_DEMONYM = re.compile(r"(?:ish|ian|ean|ese|can|ican|ench|utch|eek|wiss|iss)s?$")
_GERMAN_COMMON = re.compile(
    r"(?:ung|ungen|heit|heiten|keit|keiten|schaft|schaften|tion|tionen|tät|täten|ismus|nis|nisse|"
    r"chen|lein|ment|mente|ling|linge|tum)$"
)
_GERMAN_ADJECTIVE = re.compile(r"(?:e|en|em|es)$")
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
        rf"(?:(?:al|el|ad|an|as|ash|at|az)-|[dD]['’])?[{up}]{letter}*"
        rf"(?:(?:['’](?!s\b)|&|-(?=[{up}\d])|-(?:[a-z]{{1,5}}-)+(?=[{up}])){letter}+)*"
    )
    before = (
        rf"(?:(?:[{up}]\.|(?:St|Ste|Mt|Dr|Mr|Mrs|Ms|Prof|Capt|Cpt|Lt|Gen|Col|Sgt|Rev|Sen|Gov)\.)"
        r"-?[^\S\n]?)*"
    )
    # One character, so that a span and its words joined by single spaces are equally long.
    space = r"(?:[^\S\n]|\n(?!\s))"
    particles = _PARTICLES.get(code, _OTHER_PARTICLES)
    return re.compile(
        rf"(?<![\w/@.#\\-]){before}{word}(?:{space}(?:(?:{particles}){space})?{before}{word})*"
    )


_LOWER_WORD = re.compile(r"(?<![\w'’-])[^\W\d_A-Z]\w+")


@dataclass
class Names:
    """All spans that may be names, as columns: one value per occurrence, in order of the text."""

    document: array[int] = field(default_factory=lambda: array("i"))
    start: array[int] = field(default_factory=lambda: array("i"))
    end: array[int] = field(default_factory=lambda: array("i"))
    surface: array[int] = field(default_factory=lambda: array("i"))
    sentence: array[int] = field(default_factory=lambda: array("i"))
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
        for match in _name_pattern(language.code).finditer(text):
            start, end = match.span()
            index = bisect_right(starts, start) - 1
            if index < 0 or shouted[index]:
                continue
            surface = match.group()
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
                if before in language.determiners:
                    flags |= DETERMINER
                if before in language.place_prepositions:
                    flags |= PLACE
            if text[end : end + 1] == " ":
                after = text[end + 1 : text.find(" ", end + 1, end + 16)]
                if after in language.copulas:
                    flags |= DEFINED
            number = self.surfaces.get(surface)
            if number is None:
                number = self.surfaces[surface] = len(self.surfaces)
                self.names.append(surface)
                self.languages.append(language)
            if text[start - 1 : start] == "(" and text[end : end + 1] == ")":
                self._add_abbreviation(document, start, surface, number)
            self.document.append(document)
            self.start.append(start)
            self.end.append(end)
            self.surface.append(number)
            self.sentence.append(index)
            self.flags.append(flags)

    def _add_abbreviation(self, document: int, start: int, surface: str, number: int) -> None:
        """Note what stands in brackets behind a name, if one abbreviates the other."""
        if not self.end or self.document[-1] != document or self.end[-1] != start - 2:
            return
        before = self.surface[-1]
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


@dataclass(frozen=True)
class Judged:
    """The verdict on every distinct span.

    `name_of[s]` is the number of the name that span s stands for, -1 if it is none;
    `cut[s]` says how many characters at its start do not belong to the name.
    `place_share` is the share of a name's mentions behind a preposition of place;
    `common` are words of names that the corpus mostly writes in lower case.
    """

    names: list[str]
    languages: list[Language]
    name_of: np.ndarray
    cut: np.ndarray
    place_share: np.ndarray
    common: frozenset[str]


def judge(found: Names) -> Judged:
    """Decide which spans are names, by how the whole corpus uses their words."""
    surface = np.frombuffer(found.surface, np.int32) if found.surface else np.zeros(0, np.int32)
    flags = np.frombuffer(found.flags, np.int8) if found.flags else np.zeros(0, np.int8)
    n = len(found.surfaces)

    def count(mask: np.ndarray) -> np.ndarray:
        return np.bincount(surface[mask], minlength=n)

    prose = (flags & PROSE) > 0
    initial = (flags & INITIAL) > 0
    total = count(np.ones(len(surface), bool))
    in_prose, inside = count(prose), count(prose & ~initial)
    determiner, place = count((flags & DETERMINER) > 0), count((flags & PLACE) > 0)

    words_of = [surface.split(" ") for surface in found.surfaces]
    # How often a word is capitalized inside of sentences, where only names (or nouns) are,
    # and whether it is part of a longer span there.
    inside_words: Counter[str] = Counter()
    in_longer: set[str] = set()
    determined: Counter[str] = Counter()
    heads: Counter[str] = Counter()
    for words, times, with_determiner, all_times in zip(
        words_of, inside.tolist(), determiner.tolist(), total.tolist(), strict=True
    ):
        for word in words:
            inside_words[word] += times
        if len(words) > 1:
            in_longer.update(words)
        determined[words[0]] += with_determiner
        heads[words[0]] += all_times
    lower = found.lower_words

    def is_common(word: str) -> bool:
        return lower[word.lower()] > inside_words[word]

    def is_common_noun(word: str) -> bool:
        """German: a noun that mostly takes an article, so no name."""
        return heads[word] > 0 and determined[word] * 3 >= heads[word]

    def leading(words: list[str], language: Language, only_initial: bool) -> int:
        """Count the words at a span's start that do not belong to the name."""
        first = 0
        while first < len(words) - 1:
            word = words[first]
            if language.capitalizes_nouns:
                adjective = _GERMAN_ADJECTIVE.search(word) and not is_common_noun(words[first + 1])
                known_adjective = lower[word.lower()] > 0 or word.removesuffix("er") in inside_words
                common = _GERMAN_COMMON.search(word) or is_common_noun(word)
                if not common or adjective or known_adjective:
                    break
            elif not (
                only_initial
                and first == 0
                and (
                    (lower[word.lower()] > 0 and inside_words[word] == 0)
                    or (word.endswith(("ing", "ed")) and inside_words[word] == 0 and len(word) > 5)
                )
            ):
                break
            first += 1
            while first < len(words) - 1 and words[first].islower():
                first += 1
        return first

    def is_name(words: list[str], number: int) -> bool:
        language = found.languages[number]
        if in_prose[number] == 0:
            # Headings and tables repeat names, but do not prove them.
            return False
        if len(words) > 1:
            return not all(is_common(word) or word.islower() for word in words)
        word = words[0]
        if len(word) < 2:
            return False
        if word.isupper():
            return not _ROMAN.fullmatch(word) and bool(inside[number] or total[number] > 1)
        common = lower[word.lower()]
        if inside[number] == 0:
            return common == 0 and word in in_longer
        if common > inside[number]:
            return False
        if _DEMONYM.search(word) and determiner[number] * 2 >= inside[number]:
            return False
        if language.capitalizes_nouns:
            if determiner[number] * 4 > total[number] or _GERMAN_COMMON.search(word):
                return False
            return bool(
                word in in_longer
                or place[number]
                or (total[number] > 1 and determiner[number] == 0)
                or word + "s" in found.surfaces
            )
        return True

    names: dict[str, int] = {}
    languages: list[Language] = []
    name_of = np.full(n, -1, np.int32)
    cut = np.zeros(n, np.int32)
    for number, (text, words) in enumerate(zip(found.surfaces, words_of, strict=True)):
        first = leading(words, found.languages[number], bool(inside[number] == 0))
        rest = words[first:]
        if first:
            shorter = " ".join(rest)
            cut[number] = len(text) - len(shorter)
            known = found.surfaces.get(shorter)
            if len(rest) == 1 and (known is None or not is_name(rest, known)):
                continue
            text = shorter
        elif not is_name(words, number):
            continue
        name = names.get(text)
        if name is None:
            name = names[sys.intern(text)] = len(names)
            languages.append(found.languages[number])
        name_of[number] = name
    share = np.bincount(name_of[name_of >= 0], place[name_of >= 0], minlength=len(names))
    times = np.bincount(name_of[name_of >= 0], total[name_of >= 0], minlength=len(names))
    common = frozenset(word for name in names for word in name.split(" ") if is_common(word))
    place_share = share / np.maximum(times, 1)
    return Judged(list(names), languages, name_of, cut, place_share, common)
