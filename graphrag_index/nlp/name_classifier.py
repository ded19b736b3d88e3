"""Classify capitalized spans as names, by the usage of their words in the whole corpus.

Words that the corpus mostly writes in lower case, or capitalizes at the start of
sentences only, are no names. A span that runs two names together, or a name and
words before it that do not belong to it, is cut.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from graphrag_index.nlp.base_forms import GIVEN_NAMES, is_given_name, is_oblique
from graphrag_index.nlp.corpus_statistics import CorpusStatistics
from graphrag_index.nlp.name_spans import CALENDAR, Names
from graphrag_index.nlp.type_keywords import KINDS
from graphrag_index.text.languages import Language
from graphrag_index.text.titles import PARTICLES, is_title, n_titles
from graphrag_index.text.word_lists import read_lists, word_set

_LISTS = read_lists("nlp/data/words")
_APPOSITIVES = word_set(_LISTS["appositives"])
_GERMAN_ADJECTIVE = re.compile(r"(?:e|en|em|es)$")
_PARTICLES = frozenset(("of", "von", "van", "de", "des", "der"))
# Kinds of places in German that are everyday words elsewhere: a cathedral, or a house.
_GERMAN_KINDS = frozenset(("dom",))
# Names that only look like German genitives: Lepsius, Adonis, Krauss.
_NO_GENITIVE = re.compile(r"(?:us|is|os|ss)$")
# German nouns that make a name of the person's name before them: the Otto Hahn Preis.
_NAMED_AFTER = word_set(_LISTS["german_named_after"])
# A span as rare as this may be two names that meet: "At Cape Evans Scott wrote".
_RARE = 2


@dataclass(frozen=True)
class ClassifiedNames:
    """The names in every distinct span.

    `parts` has one row per name in a span: `surface` (its number), `name`, and the
    `offset` and `length` in characters; spans that are no names have none. `bases` are
    the words of each name in their base forms. The shares say how often a preposition
    of place, any preposition, an article, or a verb of persons stands beside each name.
    `common` are the words of names that the corpus mostly writes in lower case.
    """

    names: list[str]
    languages: list[Language]
    bases: list[tuple[str, ...]]
    parts: pl.DataFrame
    place_share: np.ndarray
    preposition_share: np.ndarray
    determiner_share: np.ndarray
    person_share: np.ndarray
    common: frozenset[str]


def classify_names(found: Names, lower: Counter[str]) -> ClassifiedNames:
    """Classify each distinct span, after all documents were read."""
    found.restore_openings()
    usage = CorpusStatistics(found, lower)
    cutter = _Cutter(usage)
    names: dict[str, int] = {}
    languages: list[Language] = []
    rows: list[tuple[int, int, int, int]] = []
    for number in range(len(found.names)):
        for offset, text in cutter.names_in(number):
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
    times = np.maximum(np.bincount(named, usage.total[surface], len(names)), 1)
    # The word before a span precedes the first name in it only.
    first = parts["offset"].to_numpy() == 0
    whole = first & (parts["length"].to_numpy() == np.array([len(n) for n in found.names])[surface])

    def share(count: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.bincount(named[rows], count[surface[rows]], len(names)) / times

    return ClassifiedNames(
        names=list(names),
        languages=languages,
        bases=[
            usage.base(name.split(" "), language)
            for name, language in zip(names, languages, strict=True)
        ],
        parts=parts,
        place_share=share(usage.place, first),
        preposition_share=share(usage.preposition, first),
        determiner_share=share(usage.determiner, first),
        person_share=share(usage.person, whole),
        common=frozenset(w for name in names for w in name.split(" ") if usage.is_common(w)),
    )


class _Cutter:
    """Cuts spans into names."""

    def __init__(self, usage: CorpusStatistics) -> None:
        self.usage = usage
        self.spans = usage.words
        self.languages = usage.found.languages
        # Words behind a given name.
        self.surnames = {
            words[1] for words in self.spans if len(words) == 2 and words[0] in GIVEN_NAMES
        }

    def names_in(self, number: int) -> Iterator[tuple[int, str]]:
        """Yield the names in a span, each with its offset."""
        words = self.spans[number]
        pieces = [(0, 1)] if len(words) == 1 else self._pieces(number, 0, len(words))
        if pieces == [(0, len(words))]:
            if self.usage.is_name(number):
                yield 0, self.usage.found.names[number]
            return
        for first, last in pieces:
            if self._names_something(words[first:last], self.languages[number]):
                yield sum(map(len, words[:first])) + first, " ".join(words[first:last])

    def _names_something(self, words: list[str], language: Language) -> bool:
        """Tell whether a part of a span is a name by itself."""
        usage = self.usage
        if len(words) > 1:
            return not all(word.islower() or usage.is_common(word) for word in words)
        word = words[0]
        if usage.known(words, language):
            return True
        # It may be known only as a part of other names: Kern as in Thomas Kern.
        if is_given_name(word, language):
            return True
        base = usage.base(words, language)[0]
        if language.genitive_s:
            return base != word and not usage.is_common_noun(base)
        return bool(language.endings) and usage.is_part_of_name(word, language)

    def _pieces(self, number: int, first: int, last: int) -> list[tuple[int, int]]:
        """Cut the words from `first` to `last` of a span; return the spans of its parts."""
        words = self.spans[number][first:last]
        if len(words) > 1:
            cut = self._cut(number, words, begins=first == 0)
            if cut is not None:
                left, right = cut
                pieces = self._pieces(number, first, first + left) if left else []
                return pieces + self._pieces(number, first + right, last)
        return [(first, last)]

    def _cut(self, number: int, words: list[str], begins: bool) -> tuple[int, int] | None:
        """Return the end of the left part of a span and the start of the right one.

        A left part of no words is one that belongs to no name; None leaves the span whole.
        """
        language = self.languages[number]
        initial = begins and self.usage.inside[number] == 0
        if begins or language.capitalizes_nouns:
            right = self._foreword(words, language, initial)
            if right:
                return 0, right
        return (
            self._owner_seam(words, language)
            or self._particle_seam(number, words, language, initial)
            or self._person_seam(number, words, language, initial)
            or self._meeting_seam(number, words, language, begins)
            or self._noun_seam(number, words, language)
        )

    def _foreword(self, words: list[str], language: Language, initial: bool) -> int:
        """Count the words before the name: none or the first.

        The particle that joined them goes too.
        """
        if not self._is_foreword(words[0], words[1:], language, initial):
            return 0
        return next((i for i in range(1, len(words)) if not words[i].islower()), 0)

    def _is_foreword(self, word: str, rest: list[str], language: Language, initial: bool) -> bool:
        usage = self.usage
        if word.lower() in PARTICLES:
            return False
        if word.lower() in CALENDAR and word not in GIVEN_NAMES:
            # (said) Tuesday Whitmore; but Christmas Island.
            surname = len(rest) == 1 and rest[0] in self.surnames
            return surname or is_given_name(rest[0], language) or is_title(rest[0])
        if language.capitalizes_nouns:
            base = usage.base(rest[:1], language)
            if len(rest) == 1 and base != (rest[0],) and usage.known(list(base), language):
                # Den Namen Schillers; but Johann Schillers.
                return not is_given_name(word, language)
            # An adjective with a capital is part of a name; a noun with an article is not.
            adjective = _GERMAN_ADJECTIVE.search(word) and not usage.is_common_noun(rest[0])
            if adjective or usage.lower[word.lower()] or word in GIVEN_NAMES:
                return False
            if word.endswith("er") and (
                word.removesuffix("er") in usage.inside_words
                or self._begins_with_adjective(rest, language)
            ):
                return False
            return word.lower() not in KINDS and usage.is_common_noun(word)
        if usage.is_demonym(word) and len(rest) > 1 and self._may_be_person(rest):
            return True
        if not initial or usage.inside_words[word]:
            return False
        if usage.is_written_inside([word, *rest], language):
            # Pałac Kultury, if "w Pałacu Kultury" is written too.
            return False
        if is_given_name(word, language):
            # Miny Adama Wilka: only looks like a form of Mina, if nobody is called Mina.
            given = usage.base([word], language)[0]
            return given not in GIVEN_NAMES and is_given_name(rest[0], language)
        if usage.lower[word.lower()] > 0 or (word.endswith(("ing", "ed")) and len(word) > 5):
            return True
        return bool(language.endings) and self._governs(word, rest, language)

    def _begins_with_adjective(self, words: list[str], language: Language) -> bool:
        """Tell whether German words begin with an adjective: Allgemeine Zeitung, but not Goethe."""
        if is_given_name(words[0], language) or not _GERMAN_ADJECTIVE.search(words[0]):
            return False
        return len(words) > 1 or self.usage.lower[words[0].lower()] > 0

    def _governs(self, word: str, rest: list[str], language: Language) -> bool:
        """Tell whether a first word governs the name behind it, as verbs and some nouns do.

        "Dzieło Mikołaja Kopernika", "Учился Пушкин".
        """
        if word.lower() in _APPOSITIVES:
            return True
        if word.lower() in KINDS - _GERMAN_KINDS or rest[0].islower():
            return False
        if not is_title(word):
            verb = language.verb_endings and word.endswith(language.verb_endings)
            if verb or is_given_name(rest[0], language):
                return True
        base = self.usage.base(rest, language)
        if base == tuple(rest) and not is_oblique(rest[-1], language):
            return False
        if len(rest) == 1 and self.usage.is_part_of_name(rest[0], language):
            return True
        return self.usage.known(rest, language) > 0

    def _may_be_person(self, words: list[str]) -> bool:
        return not any(word.lower() in KINDS or self.usage.is_common(word) for word in words)

    def _is_full_name(self, words: list[str], language: Language) -> bool:
        """Tell whether words are a full name: a given name and no word for another kind."""
        words = [word for word in words if not is_title(word)]
        given = len(words) > 1 and is_given_name(words[0], language)
        return given and self._may_be_person(words[1:])

    def _owner_seam(self, words: list[str], language: Language) -> tuple[int, int] | None:
        """Cut behind an owner that is a name by itself: Goethes Haus, (the) Nimrod's Captain."""
        for at, word in enumerate(words[:-1], 1):
            if word.endswith(("'s", "’s")):
                if self.usage.known([word[:-2]], language):
                    return at, at
                continue
            genitive = language.genitive_s and word.endswith("s")
            if genitive and self._is_owner(words[:at], words[at:], language):
                return at, at
        return None

    def _is_owner(self, words: list[str], rest: list[str], language: Language) -> bool:
        """Tell whether words that end in s own what follows: Goethes Haus, Lena Harts Bruder."""
        base = self.usage.base(words[-1:], language)[0]
        if len(words) == 1:
            return base != words[0] and not self.usage.is_common_noun(base)
        if not language.capitalizes_nouns:
            return False
        if base != words[-1] and self.usage.known(words, language):
            return True
        if words[-1] in GIVEN_NAMES or _NO_GENITIVE.search(words[-1]):
            return False
        if rest[0].islower() or is_given_name(rest[0], language) or rest[-1].lower() in KINDS:
            return False
        return self._is_full_name(words, language) and rest[0] not in self.surnames

    def _particle_seam(
        self, number: int, words: list[str], language: Language, initial: bool
    ) -> tuple[int, int] | None:
        """Cut at an "of" between two names: Nimrod Expedition of Ernest Shackleton."""
        times = self.usage.total[number]
        for at, word in enumerate(words):
            if word not in _PARTICLES or not 0 < at < len(words) - 1:
                continue
            start = next((i for i in range(at, len(words)) if not words[i].islower()), None)
            if start is None:
                return None
            left, right = words[:at], words[start:]
            known = self.usage.known(right, language)
            if word == "of":
                if self._is_full_name(left, language):
                    return at, start
                both = self.usage.known(left, language) > times or at > 1
                if known >= max(3, 5 * times) and both:
                    return at, start
                if known > times and self._is_full_name(right, language) and both:
                    return at, start
                single = at == 1 and not _says_kind(left[0])
                if initial and single and known and not is_given_name(left[0], language):
                    return 0, start
            elif language.capitalizes_nouns and at == 1:
                person = any(is_given_name(w, language) for w in right)
                noun = not _says_kind(left[0])
                if noun and not is_given_name(left[0], language) and (person or known > times):
                    return at, start
        return None

    def _person_seam(
        self, number: int, words: list[str], language: Language, initial: bool
    ) -> tuple[int, int] | None:
        """Cut before a full name: (In) Annascaul Tom Crean, Innensenatorin Petra Lindner."""
        if words[-1].lower() in KINDS:
            return None
        at = next((i for i, word in enumerate(words) if is_given_name(word, language)), 0)
        left, right = words[:at], words[at:]
        if not at or left[-1].islower() or any("." in word for word in left):
            return None
        if n_titles([*left, right[0]]) == len(left):
            return None
        if language.capitalizes_nouns and not _says_kind(left[-1]):
            return at, at
        if len(right) < 2 or is_title(left[-1]):
            return None
        times = self.usage.total[number]
        if initial and language.endings and left[0].lower() not in KINDS:
            return at, at
        if self.usage.known(right, language) > times or self.usage.known(left, language) > times:
            return at, at
        return None

    def _meeting_seam(
        self, number: int, words: list[str], language: Language, begins: bool
    ) -> tuple[int, int] | None:
        """Cut a rare span where two names meet that are frequent: (at) Cape Evans Scott."""
        usage, times = self.usage, self.usage.total[number]
        if times > _RARE or not begins or words[-1].lower() in KINDS:
            return None
        opened = usage.preposition[number] > 0 or usage.determiner[number] > 0
        for at in range(len(words) - 1, 0, -1):
            if words[at - 1].islower() or words[at].islower():
                continue
            # Behind a preposition or an article even a single word may begin anew.
            if not (opened or language.capitalizes_nouns or 1 < at < len(words) - 1):
                continue
            if is_given_name(words[0], language) and at == 1:
                continue
            left, right = usage.known(words[:at], language), usage.known(words[at:], language)
            place = at > 1 and (words[0].lower() in KINDS or words[at - 1].lower() in KINDS)
            # In German an object may follow its subject: Im Jahr 1933 verließ Einstein Berlin.
            subject = language.capitalizes_nouns and at == 1
            if subject and left > times and usage.closing[words[0]] >= usage.opening[words[0]]:
                return at, at
            if right > times and (left > times or (place and usage.preposition[number])):
                return at, at
        return None

    def _noun_seam(
        self, number: int, words: list[str], language: Language
    ) -> tuple[int, int] | None:
        """Cut a German noun off behind a person: (dann hatte) Heinrich Brandt Ärger."""
        usage, times = self.usage, self.usage.total[number]
        left, noun = words[:-1], words[-1]
        if not language.capitalizes_nouns or len(left) < 2 or times > _RARE:
            return None
        if noun.lower() in KINDS | _NAMED_AFTER or left[-1] in GIVEN_NAMES:
            return None
        if not self._is_full_name(left, language):
            return None
        if usage.known(left, language) < times and not usage.known(left[-1:], language):
            return None
        # It may be a second surname, if it is one elsewhere.
        if noun in self.surnames or usage.known([noun], language):
            return None
        return len(left), len(left)


def _says_kind(word: str) -> bool:
    return word.lower() in KINDS or is_title(word)
