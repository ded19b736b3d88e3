"""Decide which capitalized spans are names, by how the whole corpus uses their words.

Words that the corpus mostly writes in lower case, or capitalizes at the start of
sentences only, are no names. A span that merely runs two names together is cut.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from graphrag_index.core.languages import Language
from graphrag_index.linguistics.kinds import EVENT_WORDS, ORGANIZATION_WORDS, PLACE_WORDS
from graphrag_index.linguistics.names import BEFORE_NOUN, DETERMINER, INITIAL, PLACE, PROSE, Names

_ROMAN = re.compile(r"[IVXLCDM]+")
# Endings of English words for peoples and languages, and of German nouns that name nothing.
_DEMONYM = re.compile(
    r"(?:ish|ian|ean|ese|[a-z]can|rman|ayan|ench|utch|reek|wiss|shman|chman|elsh)s?$"
)
_GERMAN_COMMON = re.compile(
    r"(?:ung|ungen|heit|heiten|keit|keiten|schaft|schaften|tion|tionen|tät|täten|ismus|nis|nisse|"
    r"chen|lein|ment|mente|ling|linge|tum)$"
)
_GERMAN_ADJECTIVE = re.compile(r"(?:e|en|em|es)$")
_KINDS = ORGANIZATION_WORDS | PLACE_WORDS | EVENT_WORDS
# A span as rare as this may be two names that meet: "At Cape Evans Scott wrote".
_RARE = 2


@dataclass(frozen=True)
class Judged:
    """The verdict on every distinct span.

    `parts` has one row per name in a span: `surface` (its number), `name`, and the
    `offset` and `length` in characters; spans that are no names have none.
    `place_share` and `determiner_share` say how often a preposition of place, or an
    article, stands before each name. `common` are the words of names that the corpus
    mostly writes in lower case.
    """

    names: list[str]
    languages: list[Language]
    parts: pl.DataFrame
    place_share: np.ndarray
    determiner_share: np.ndarray
    common: frozenset[str]


def judge(found: Names) -> Judged:
    """Judge each distinct span once all documents are read."""
    usage = _Usage(found)
    names: dict[str, int] = {}
    languages: list[Language] = []
    rows: list[tuple[int, int, int, int]] = []
    for number in range(len(found.names)):
        for offset, text in usage.names_in(number):
            name = names.get(text)
            if name is None:
                name = names[text] = len(names)
                languages.append(found.languages[number])
            rows.append((number, name, offset, len(text)))
    parts = pl.DataFrame(
        rows,
        schema={"surface": pl.Int32, "name": pl.Int32, "offset": pl.Int32, "length": pl.Int32},
        orient="row",
    )
    surface, named = parts["surface"].to_numpy(), parts["name"].to_numpy()
    # What stands before a span stands before the first name in it only.
    first = parts["offset"].to_numpy() == 0
    times = np.maximum(np.bincount(named, usage.total[surface], len(names)), 1)
    place = np.bincount(named[first], usage.place[surface[first]], len(names))
    determiner = np.bincount(named[first], usage.determiner[surface[first]], len(names))
    common = frozenset(w for name in names for w in name.split(" ") if usage.is_common(w))
    return Judged(list(names), languages, parts, place / times, determiner / times, common)


class _Usage:
    """How the corpus uses the spans and their words."""

    def __init__(self, found: Names) -> None:
        self.found = found
        self.lower = found.lower_words
        surface = np.frombuffer(found.surface, np.int32) if found.surface else np.zeros(0, np.int32)
        flags = np.frombuffer(found.flags, np.int8) if found.flags else np.zeros(0, np.int8)
        n = len(found.names)

        def count(mask: np.ndarray) -> np.ndarray:
            return np.bincount(surface[mask], minlength=n)

        prose, initial = (flags & PROSE) > 0, (flags & INITIAL) > 0
        self.total = np.bincount(surface, minlength=n)
        self.in_prose = count(prose)
        # Inside of sentences, where a capital is not owed to the start.
        self.inside = count(prose & ~initial)
        self.determiner = count((flags & DETERMINER) > 0)
        self.place = count((flags & PLACE) > 0)
        self.before_noun = count((flags & BEFORE_NOUN) > 0)
        self.words = [name.split(" ") for name in found.names]
        self.inside_words: Counter[str] = Counter()
        self.in_longer: set[str] = set()
        self.heads: Counter[str] = Counter()
        self.determined: Counter[str] = Counter()
        rows = zip(self.words, self.inside.tolist(), self.total.tolist(), strict=True)
        for number, (words, inside, total) in enumerate(rows):
            for word in words:
                self.inside_words[word] += inside
            if len(words) > 1:
                self.in_longer.update(words)
            self.heads[words[0]] += total
            self.determined[words[0]] += int(self.determiner[number])

    def names_in(self, number: int) -> Iterator[tuple[int, str]]:
        """Yield the names in a span, each with its offset."""
        words, language = self.words[number], self.found.languages[number]
        first = self._foreword(words, language, bool(self.inside[number] == 0))
        offset = sum(map(len, words[:first])) + first
        words = words[first:]
        if first:
            known = self.found.surfaces.get(" ".join(words))
            if len(words) == 1 and (known is None or not self._is_name(known)):
                return
        elif not self._is_name(number):
            return
        at = self._seam(number, words) if len(words) > 1 else None
        if at is None:
            yield offset, " ".join(words)
            return
        left, right = at
        yield offset, " ".join(words[:left])
        yield offset + sum(map(len, words[:right])) + right, " ".join(words[right:])

    def is_common(self, word: str) -> bool:
        return self.lower[word.lower()] > self.inside_words[word]

    def _is_common_noun(self, word: str) -> bool:
        """German: a noun that often takes an article names nothing."""
        return self.heads[word] > 0 and self.determined[word] * 3 >= self.heads[word]

    def _foreword(self, words: list[str], language: Language, only_initial: bool) -> int:
        """Count the words at a span's start that do not belong to the name."""
        first = 0
        while first < len(words) - 1 and self._is_foreword(words, first, language, only_initial):
            first += 1
            # Nor does the particle that joined them.
            while first < len(words) - 1 and words[first].islower():
                first += 1
        return first

    def _is_foreword(
        self, words: list[str], first: int, language: Language, only_initial: bool
    ) -> bool:
        word, rest = words[first], words[first + 1 :]
        if language.capitalizes_nouns:
            # An adjective with a capital is part of a name; a noun with an article is not.
            adjective = _GERMAN_ADJECTIVE.search(word) and not self._is_common_noun(rest[0])
            if adjective or self.lower[word.lower()] or word.removesuffix("er") in self.heads:
                return False
            return bool(_GERMAN_COMMON.search(word)) or self._is_common_noun(word)
        if first == 0 and _DEMONYM.search(word) and len(rest) > 1 and self._may_be_person(rest):
            return True
        if first or not only_initial or self.inside_words[word]:
            return False
        return self.lower[word.lower()] > 0 or (word.endswith(("ing", "ed")) and len(word) > 5)

    def _may_be_person(self, words: list[str]) -> bool:
        return not any(word.lower() in _KINDS or self.is_common(word) for word in words)

    def _is_name(self, number: int) -> bool:
        words = self.words[number]
        if self.in_prose[number] == 0:
            # Headings and tables repeat names, but do not prove them.
            return False
        if len(words) > 1:
            return not all(word.islower() or self.is_common(word) for word in words)
        word, inside, total = words[0], self.inside[number], self.total[number]
        if len(word) < 2:
            return False
        if word.isupper():
            return not _ROMAN.fullmatch(word) and bool(inside or total > 1)
        if inside == 0:
            return self.lower[word.lower()] == 0 and word in self.in_longer
        if self.lower[word.lower()] > inside:
            return False
        if _DEMONYM.search(word) and (
            self.determiner[number] * 2 >= inside or self.before_noun[number] * 2 >= total
        ):
            return False
        if self.found.languages[number].capitalizes_nouns:
            return self._is_german_name(word, number)
        return True

    def _is_german_name(self, word: str, number: int) -> bool:
        """German: a single noun is a name only if something beyond its capital says so."""
        if self.determiner[number] * 4 > self.total[number] or _GERMAN_COMMON.search(word):
            return False
        return bool(
            word in self.in_longer
            or self.place[number]
            or (self.total[number] > 1 and self.determiner[number] == 0)
            or word + "s" in self.found.surfaces
        )

    def _seam(self, number: int, words: list[str]) -> tuple[int, int] | None:
        """Find where a span runs two names together: the end of one, the start of the other.

        "Nimrod Expedition of Ernest Shackleton" is cut if both are names elsewhere, and
        "(at) Cape Evans Scott" if it is rare and both are not.
        """
        times = self.total[number]
        for at, word in enumerate(words):
            if word in ("of", "von", "van", "de", "des", "der") and 0 < at < len(words) - 1:
                start = next((i for i in range(at, len(words)) if not words[i].islower()), None)
                if start is None:
                    continue
                right = self._known(words[start:])
                left = self._known(words[:at])
                if word == "of" and right >= max(3, 5 * times) and (left > times or at > 1):
                    return at, start
        if times > _RARE or not self.place[number]:
            return None
        for at in range(len(words) - 1, 0, -1):
            if words[at - 1].islower() or words[at].islower() or words[-1].lower() in _KINDS:
                continue
            if self._known(words[:at]) > times and self._known(words[at:]) > times:
                return at, at
        return None

    def _known(self, words: list[str]) -> int:
        """Return how often words are a name by themselves; 0 if they are none."""
        number = self.found.surfaces.get(" ".join(words))
        return int(self.total[number]) if number is not None and self._is_name(number) else 0
