"""Counts of capitalized spans and their words in the whole corpus."""

# Before Python 3.12, the annotation array[int] cannot be evaluated.
from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import filterfalse

import numpy as np
import polars as pl

from graphrag_index.nlp import name_spans
from graphrag_index.nlp.name_spans import INITIAL, PROSE
from graphrag_index.nlp.name_words import (
    GIVEN_NAMES,
    NAME_SUFFIXES,
    PLACE_WORDS,
    TYPE_WORDS,
    common_words,
    find_base_forms,
    is_role_only,
)
from graphrag_index.nlp.word_table import CUE_TYPES
from graphrag_index.text.languages import Language, is_title, language_of, read_lists, word_set
from graphrag_index.text.places import find_places

_WORDS = read_lists("nlp/data/words")
_GERMAN_BODY = re.compile(_WORDS["german_bodies"])
# A numeral with I, V or X: "CDC" and "DC" are acronyms.
_ROMAN_NUMERAL = re.compile(r"(?=.*[IVX])M*(?:C[MD]|D?C{0,3})(?:X[CL]|L?X{0,3})(?:I[XV]|V?I{0,3})")
# Words that refer to a part of a text, and what may follow them: Article 5, Annex B, Step 2.1.
_REFERENCES = word_set(_WORDS["references"])
_REFERRED = re.compile(r"[A-Z]?\d[\w./-]*|[IVXLCDM]+|[A-Z]\.?")
# Cities with at least this population are known places.
MIN_POPULATION = 100_000
# Maximum number of letters of an acronym that is also a frequent word: "WHO".
_MAX_ACRONYM_LETTERS = 5
_DOTTED_LETTERS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\.?")
_DEMONYM_END = re.compile(f"(?:{_WORDS['demonym_endings']})s?$")
_COMMON_NOUN_END = re.compile(f"(?:{_WORDS['german_common_noun_endings']})$")
_GERMAN_PLACE_END = re.compile(f"(?:{_WORDS['german_place_endings']})$")
# Names of places that German uses with an article: "die Schweiz".
_PLACES_WITH_ARTICLE = word_set(_WORDS["german_places_with_article"])
# German words of address have a capital: "Fragen Sie Ihren Arzt".
_GERMAN_ADDRESS = frozenset(("Sie", "Ihr", "Ihre", "Ihren", "Ihrem", "Ihrer", "Ihnen"))
_DEMONYMS = word_set(_WORDS["demonyms"])
_NO_NAME_END = re.compile(f"(?:{_WORDS['no_name_endings']})$")


def _find_known_places(names: Sequence[str]) -> frozenset[str]:
    """Return the names, and words of names, that are places for certain, or large cities."""
    texts = pl.Series(sorted({*names, *(word for name in names for word in name.split(" "))}))
    is_known = (pl.col("kind") != "city") | (pl.col("population") >= MIN_POPULATION)
    rows = find_places(texts.cast(pl.String)).filter(is_known)["row"]
    return frozenset(texts.gather(rows.unique()))


class CorpusStatistics:
    """Counts of capitalized spans and of their words in a corpus, and tests with these counts."""

    def __init__(self, found: name_spans.NameCandidates, lower: Counter[str]) -> None:
        self.found = found
        # Number of times that the corpus writes each word in lower case.
        self.lower = lower
        surface = np.frombuffer(found.surface, np.int32)
        flags = np.frombuffer(found.flags, np.uint8)

        def count_spans(flag: int, but: int = 0) -> array[int]:
            counted = flags & (flag | but) == flag
            counts = np.bincount(surface[counted], minlength=len(found.names))
            return array("i", counts.astype(np.int32).tobytes())

        self.total = count_spans(0)
        self.in_prose = count_spans(PROSE)
        # Occurrences inside sentences: their capital is not due to the start of the sentence.
        self.inside = count_spans(PROSE, but=INITIAL)
        self.determiner = count_spans(name_spans.DETERMINER)
        self.place = count_spans(name_spans.PLACE)
        self.preposition = count_spans(name_spans.PREPOSITION)
        self.before_noun = count_spans(name_spans.BEFORE_NOUN)
        self.person = count_spans(name_spans.PERSON)
        # Counts of spans beside a common noun that shows each of `CUE_TYPES`.
        cue = np.frombuffer(found.cue, np.uint8)
        self.cues = {
            kind: np.bincount(surface[cue == number], minlength=len(found.names))
            for number, kind in enumerate(CUE_TYPES, 1)
        }
        self.inside_words: Counter[str] = Counter()
        self.in_longer: set[str] = set()
        # Counts of words at the start and at the end of spans of several words.
        self.opening: Counter[str] = Counter()
        self.closing: Counter[str] = Counter()
        # Counts of the first words of spans: in all occurrences, and in those after an article.
        self.first_words: Counter[str] = Counter()
        self.first_after_article: Counter[str] = Counter()
        rows = zip(found.names, self.inside, self.total, self.determiner, strict=True)
        for name, inside, total, determined in rows:
            words = name.split(" ")
            for word in words:
                self.inside_words[word] += inside
            if len(words) > 1:
                self.in_longer.update(words)
                self.opening[words[0]] += total
                self.closing[words[-1]] += total
            self.first_words[words[0]] += total
            self.first_after_article[words[0]] += determined
        self._known_places = _find_known_places(found.names)
        self._bases = self._find_bases_by_language()
        # (language code, base form) of the words in spans of several words.
        self._longer_bases = {
            (code, bases[word])
            for code, bases in self._bases.items()
            for word in self.in_longer & bases.keys()
        }
        self._same_base: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, language in enumerate(found.languages if self._bases else ()):
            if language.code in self._bases:
                self._same_base[self.base_form(self.split_words(number), language)].append(number)
        # `is_name(number)` returns whether the corpus uses the span with this number as a name.
        self.is_name = bytes(map(self._is_used_as_name, range(len(found.names)))).__getitem__

    def split_words(self, number: int) -> list[str]:
        """Return the words of a span. They are not stored, since spans are many."""
        return self.found.names[number].split(" ")

    def _find_bases_by_language(self) -> dict[str, dict[str, str]]:
        """Return the base form of each word by language code, for languages that inflect names."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        rows = zip(self.found.names, self.found.languages, self.total, strict=True)
        for name, language, total in rows:
            if language.endings or language.genitive_s:
                for word in filterfalse(str.islower, name.split(" ")):
                    counts[language.code][word] += total
        return {
            code: find_base_forms(counted, language_of(code), self.opening, self.closing)
            for code, counted in counts.items()
        }

    def base_form(self, words: list[str], language: Language) -> tuple[str, ...]:
        """Return the base form of each word, or the word itself if no base form is known."""
        bases = self._bases.get(language.code)
        return tuple(bases.get(word, word) for word in words) if bases else tuple(words)

    def count_mentions(self, words: list[str], language: Language) -> int:
        """Count the mentions of the name with these words, in any inflected form."""
        if language.code in self._bases:
            numbers = self._same_base.get(self.base_form(words, language), [])
        else:
            number = self.found.surfaces.get(" ".join(words))
            numbers = [] if number is None else [number]
        return sum(self.total[number] for number in numbers if self.is_name(number))

    def occurs_inside_sentence(self, words: list[str], language: Language) -> bool:
        """Return whether a span, in any inflected form, occurs inside a sentence."""
        return any(self.inside[n] for n in self._same_base.get(self.base_form(words, language), []))

    def is_part_of_name(self, word: str, language: Language) -> bool:
        """Return whether a word, in any inflected form, occurs in a span of several words."""
        if word in self.in_longer:
            return True
        return (language.code, self.base_form([word], language)[0]) in self._longer_bases

    def is_known_place(self, word: str, code: str) -> bool:
        """Return whether a word is the name of a place and no frequent word of the language."""
        return word in self._known_places and word.lower() not in common_words(code)

    def is_common(self, word: str) -> bool:
        """Return whether the corpus mostly writes a word in lower case."""
        return self.lower[word.lower()] > self.inside_words[word]

    def is_common_noun(self, word: str) -> bool:
        """Return whether a German noun is a common noun, judged by its articles or its ending."""
        total, after_article = self.first_words[word], self.first_after_article[word]
        return 0 < total <= 3 * after_article or _COMMON_NOUN_END.search(word) is not None

    def is_demonym(self, word: str) -> bool:
        """Return whether a word names a people or a language, and is not used as a surname."""
        is_adjective = word.lower() in _DEMONYMS or _DEMONYM_END.search(word)
        return bool(is_adjective) and not self.is_surname(word)

    def is_surname(self, word: str) -> bool:
        """Return whether a word ends longer spans more often than it begins them."""
        return self.closing[word] > self.opening[word]

    def _is_used_as_name(self, number: int) -> bool:
        span = self.split_words(number)
        if self.in_prose[number] == 0:
            # Reject spans that occur only in headings and tables: their capitals prove nothing.
            return False
        if is_role_only(span) or not _GERMAN_ADDRESS.isdisjoint(span):
            return False
        if span[0].lower() in _REFERENCES and all(map(_REFERRED.fullmatch, span[1:])):
            return False
        if any("_" in word for word in span):
            return False  # a name in code
        if len(span) > 1:
            if all(map(str.isupper, span)) and not self._occurs_in_title_case(span):
                language = self.found.languages[number]
                acronyms = all(self.is_acronym(word, language) for word in span)
                if not acronyms or max(map(len, span)) > _MAX_ACRONYM_LETTERS:
                    return False
            if _DEMONYM_END.search(span[-1]) and self.before_noun[number] * 2 > self.total[number]:
                return False
            return not all(word.islower() or self.is_common(word) for word in span)
        word, inside, total = span[0], self.inside[number], self.total[number]
        language = self.found.languages[number]
        if len(word) < 2 or word.lower() in NAME_SUFFIXES:
            return False
        if is_title(word) and not self.is_surname(word):
            return False
        if _DOTTED_LETTERS.fullmatch(word):
            # Reject initials, which belong to another name; accept acronyms as in "the U.S.".
            used = self.determiner[number] or self.place[number]
            return bool(used or word.replace(".", "") in self.found.surfaces)
        if word.isupper():
            is_frequent = word.lower() in common_words(language.code)
            return self.is_acronym(word, language) and bool(inside or total > 1 or not is_frequent)
        if inside == 0:
            return self.lower[word.lower()] == 0 and self._is_name_at_start(number, word, language)
        if self.lower[word.lower()] > inside:
            return False
        is_shown = self.person[number] or self.place[number] or self.is_surname(word)
        is_shown = is_shown or self.preposition[number] or word.lower() in TYPE_WORDS
        is_common = word.lower() in common_words(language.code)
        if is_common and inside == 1 and not (is_shown or language.capitalizes_nouns):
            return False
        if word.lower() in PLACE_WORDS and total <= 2 and not self.determiner[number]:
            return False
        if self.is_demonym(word) and (
            self.determiner[number] * 2 >= inside or self.before_noun[number] * 2 >= total
        ):
            return False
        return not language.capitalizes_nouns or self._is_german_name(number, word)

    def _is_name_at_start(self, number: int, word: str, language: Language) -> bool:
        """Return whether a word that occurs only at the start of sentences is a name."""
        if language.capitalizes_nouns:
            return self._is_german_name(number, word)
        if self.is_part_of_name(word, language) or self.occurs_inside_sentence([word], language):
            return True
        if _NO_NAME_END.search(word) or word.endswith(language.verb_endings):
            return False
        if self.person[number] or word in GIVEN_NAMES:
            return True
        if self.is_known_place(word, language.code):
            return True
        is_common = word.lower() in common_words(language.code)
        return self.total[number] > 1 and bool(language.function_words) and not is_common

    def is_acronym(self, word: str, language: Language) -> bool:
        """Return whether a word in capitals is an acronym, and not an emphasized word."""
        if _ROMAN_NUMERAL.fullmatch(word):
            return False
        if len(word) <= _MAX_ACRONYM_LETTERS and "." not in word:
            return not self.lower[word.lower()] or self.inside_words[word] > 1
        is_word = self.lower[word.lower()] or word.lower() in common_words(language.code)
        return not is_word or self._occurs_in_title_case([word])

    def _occurs_in_title_case(self, words: list[str]) -> bool:
        """Return whether the corpus writes words that are in capitals also as a name in prose."""
        number = self.found.surfaces.get(" ".join(word.capitalize() for word in words))
        return number is not None and self.in_prose[number] > 0

    def _is_german_name(self, number: int, word: str) -> bool:
        """Return whether a single German noun is a name. German capitalizes all nouns."""
        if word in _PLACES_WITH_ARTICLE or self.is_known_place(word, "de"):
            return True
        if _GERMAN_BODY.fullmatch(word) or any(letter.isupper() for letter in word[1:]):
            return True  # RheinEnergie, AfD, Max-Planck-Institut
        is_shown = self.person[number] or self.is_surname(word) or word in GIVEN_NAMES
        if word.lower() in common_words("de") and not is_shown:
            return False
        if self.determiner[number] * 4 > self.total[number] or _COMMON_NOUN_END.search(word):
            return False
        return bool(
            self.is_part_of_name(word, self.found.languages[number])
            or (self.determiner[number] == 0 and _GERMAN_PLACE_END.search(word))
            or self.preposition[number]
            or self.person[number]
            or (self.total[number] > 1 and self.determiner[number] == 0)
            # A genitive without an article shows that the word is a name.
            or (self.first_words[word + "s"] and not self.first_after_article[word + "s"])
        )
