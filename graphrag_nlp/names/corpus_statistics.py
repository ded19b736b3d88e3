"""Counts of capitalized spans and their words in the whole corpus."""

# Python before 3.12 cannot evaluate the annotation array[int]: keep annotations as strings.
from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import filterfalse

import numpy as np
import polars as pl

from graphrag_nlp.names import name_spans, span_usage
from graphrag_nlp.names.base_forms import find_base_forms
from graphrag_nlp.names.compounds import is_german_noun
from graphrag_nlp.names.known_names import MIN_POPULATION, find_known_type
from graphrag_nlp.names.name_words import DEMONYM_END, DEMONYMS, GIVEN_NAMES, common_words
from graphrag_nlp.names.span_usage import INITIAL, PROSE
from graphrag_nlp.names.word_table import CUE_TYPES, FIRST_HINT, HINT_TYPES
from graphrag_nlp.text.languages import Language, language_of
from graphrag_nlp.text.places import find_places

_GENITIVE_ARTICLES = frozenset(("des", "der", "eines", "einer"))


def _find_known_places(names: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names and words that are sure places or large cities, and all known places."""
    distinct = sorted({*names, *(word for name in names for word in name.split(" "))})
    texts = pl.Series(distinct, dtype=pl.String)
    found = find_places(texts)
    is_known = (pl.col("kind") != "city") | (pl.col("population") >= MIN_POPULATION)
    known = texts.gather(found.filter(is_known)["row"].unique())
    natural = (text for text in distinct if find_known_type(text) == "geo")
    return frozenset((*known, *natural)), frozenset(texts.gather(found["row"].unique()))


class CorpusStatistics:
    """Counts of capitalized spans and of their words in a corpus, and tests with these counts."""

    def __init__(self, found: name_spans.NameCandidates, lower: Mapping[str, Counter[str]]) -> None:
        self.found = found
        # Number of times that the corpus writes each word in lower case, by language code.
        self._lower = lower
        self._count_spans()
        self._count_words()
        self.known_places, self.towns = _find_known_places(found.names)
        self._group_by_base_form()

    def _count_spans(self) -> None:
        """Count the occurrences of each span: in all, inside sentences, after articles etc."""
        found = self.found
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
        self.at_start = count_spans(INITIAL)
        self.determiner = count_spans(span_usage.DETERMINER)
        # Articles of the span itself: in "the Iowa state fair", the article belongs to "fair".
        self.article = count_spans(span_usage.DETERMINER, but=span_usage.BEFORE_NOUN)
        self.place = count_spans(span_usage.PLACE)
        self.preposition = count_spans(span_usage.PREPOSITION)
        self.before_noun = count_spans(span_usage.BEFORE_NOUN)
        self.person = count_spans(span_usage.PERSON)
        cue = np.frombuffer(found.cue, np.uint8)

        def count_beside(kinds: Sequence[str], first: int) -> dict[str, np.ndarray]:
            return {
                kind: np.bincount(surface[cue == number], minlength=len(found.names))
                for number, kind in enumerate(kinds, first)
            }

        # By type: how often a noun beside a span shows the type, and how often a word suggests it.
        self.cues, self.hints = count_beside(CUE_TYPES, 1), count_beside(HINT_TYPES, FIRST_HINT)

    def _count_words(self) -> None:
        """Count the words of all spans by their position: first, last or any."""
        self.inside_words: Counter[str] = Counter()
        self.in_longer: set[str] = set()
        # Words that end a longer span after a given name.
        self.after_given: set[str] = set()
        # Counts of words at the start and at the end of spans of several words.
        self.opening: Counter[str] = Counter()
        self.closing: Counter[str] = Counter()
        # Counts of the first words of spans: in all occurrences, and in those after an article.
        self.first_words: Counter[str] = Counter()
        self.first_after_article: Counter[str] = Counter()
        rows = zip(self.found.names, self.inside, self.total, self.determiner, strict=True)
        for name, inside, total, determined in rows:
            words = name.split(" ")
            if len(words) > 1 and not GIVEN_NAMES.isdisjoint(words[:-1]):
                self.after_given.add(words[-1])
            for word in words:
                self.inside_words[word] += inside
            if len(words) > 1:
                self.in_longer.update(words)
                self.opening[words[0]] += total
                self.closing[words[-1]] += total
            self.first_words[words[0]] += total
            self.first_after_article[words[0]] += determined

    def _group_by_base_form(self) -> None:
        """Find the base forms of words, and group the spans that are forms of one name."""
        self.bases = self._find_bases_by_language()
        # (language code, base form) of the words in spans of several words.
        self._longer_bases = {
            (code, bases[word])
            for code, bases in self.bases.items()
            for word in self.in_longer & bases.keys()
        }
        self.same_base: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, language in enumerate(self.found.languages if self.bases else ()):
            if language.code in self.bases:
                self.same_base[self.base_form(self.split_words(number), language)].append(number)

    def split_words(self, number: int) -> list[str]:
        """Return the words of a span. They are not stored, to save memory."""
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
        bases = self.bases.get(language.code)
        if not bases:
            return tuple(words)
        end = len(words)
        if language.capitalizes_nouns:
            # Keep the words from a genitive article on: Gesetzes zur Änderung | des Weingesetzes
            end = next((i for i, w in enumerate(words) if i and w in _GENITIVE_ARTICLES), end)
        return (*(bases.get(word, word) for word in words[:end]), *words[end:])

    def occurs_inside_sentence(self, words: list[str], language: Language) -> bool:
        """Return whether a span, in any inflected form, occurs inside a sentence."""
        return any(self.inside[n] for n in self.same_base.get(self.base_form(words, language), []))

    def is_part_of_name(self, word: str, language: Language) -> bool:
        """Return whether a word, in any inflected form, occurs in a span of several words."""
        if word in self.in_longer:
            return True
        return (language.code, self.base_form([word], language)[0]) in self._longer_bases

    def is_known_place(self, word: str, code: str) -> bool:
        """Return whether a word is the name of a place and no frequent word of the language."""
        return word in self.known_places and word.lower() not in common_words(code)

    def count_lower(self, word: str, code: str) -> int:
        """Count the times that the texts of a language write a word in lower case."""
        counts = self._lower.get(code)
        # `Counter[word]` is slow for a missing word, and most names are missing.
        return counts.get(word.lower(), 0) if counts else 0

    def is_common(self, word: str, code: str) -> bool:
        """Return whether the corpus mostly writes a word in lower case."""
        return self.count_lower(word, code) > self.inside_words[word]

    def is_common_noun(self, word: str) -> bool:
        """Return whether a German noun is a common noun, judged by its articles or its ending."""
        total, after_article = self.first_words[word], self.first_after_article[word]
        if 0 < total <= 3 * after_article:
            return True
        ends_name = word in self.after_given and word.lower() not in common_words("de")
        return is_german_noun(word) and not ends_name

    def is_demonym(self, word: str) -> bool:
        """Return whether a word names a people or a language, and is not used as a surname."""
        lower = word.lower()
        is_adjective = lower in DEMONYMS or DEMONYM_END.search(word) is not None
        return bool(is_adjective) and word not in self.after_given

    def is_surname(self, word: str) -> bool:
        """Return whether a word ends longer spans more often than it begins them."""
        return self.closing[word] > self.opening[word]
