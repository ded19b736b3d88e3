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

from graphrag_index.nlp import name_spans, span_usage
from graphrag_index.nlp.compounds import (
    COMMON_NOUN_END,
    GERMAN_ADJECTIVE,
    PLACE_END,
    is_certain_noun,
    is_german_noun,
    is_loan_word,
)
from graphrag_index.nlp.name_words import (
    GIVEN_NAMES,
    KNOWN_NAMES,
    KNOWN_PLACES,
    NAME_SUFFIXES,
    PARTIES,
    PLACE_WORDS,
    TYPE_WORDS,
    common_words,
    find_base_forms,
    is_head_word,
    is_institution_word,
    is_role_only,
)
from graphrag_index.nlp.span_usage import INITIAL, PROSE
from graphrag_index.nlp.word_table import CUE_TYPES, FIRST_HINT, HINT_TYPES
from graphrag_index.text.languages import Language, is_title, language_of, read_lists, word_set
from graphrag_index.text.places import find_places

_WORDS = read_lists("nlp/data/words")
_COMPANY_FORMS = frozenset("gmbh ag kg ltd inc llc plc sa sas sl bv oy ab srl spa corp".split())
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
# Languages whose lists of frequent words have no names.
_WITH_DICTIONARY = frozenset("en de fr it pt nl sv da pl".split())
_MAX_WORD_ACRONYM_LETTERS = 9
# Codes of errors, parts and standards: E15, A4, EQ-3.
_CODE = re.compile(r"[A-Z]\d{1,3}|[A-Z]{2}-\d{1,4}|\w+(?:Error|Exception|Warning)|[IVX]+e")
_DOTTED_LETTERS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\.?")
_DEMONYM_END = re.compile(f"(?:{_WORDS['demonym_endings']})s?$")
_PLACES_WITH_ARTICLE = word_set(_WORDS["german_places_with_article"])
# German words of address have a capital: "Fragen Sie Ihren Arzt".
_GERMAN_ADDRESS = frozenset(("Sie", "Ihr", "Ihre", "Ihren", "Ihrem", "Ihrer", "Ihres", "Ihnen"))
_DEMONYMS = word_set(_WORDS["demonyms"])
_SHOWN_WORDS = TYPE_WORDS | KNOWN_NAMES | PARTIES
_ADJECTIVE_END = re.compile(r"(?:al|ern|ied|ic|ary|ive)$")
_NO_NAME_END = re.compile(f"(?:{_WORDS['no_name_endings']})$")


def _find_known_places(names: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names, and words of names, that are places for certain, or large cities; towns."""
    texts = pl.Series(sorted({*names, *(word for name in names for word in name.split(" "))}))
    found = find_places(texts.cast(pl.String))
    is_known = (pl.col("kind") != "city") | (pl.col("population") >= MIN_POPULATION)
    known = texts.gather(found.filter(is_known)["row"].unique())
    natural = (text for text in texts if text.lower() in KNOWN_PLACES)
    return frozenset((*known, *natural)), frozenset(texts.gather(found["row"].unique()))


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
        self.at_start = count_spans(INITIAL)
        self.determiner = count_spans(span_usage.DETERMINER)
        # Without articles of a noun behind the span: the Iowa state fair.
        self.article = count_spans(span_usage.DETERMINER, but=span_usage.BEFORE_NOUN)
        self.place = count_spans(span_usage.PLACE)
        self.preposition = count_spans(span_usage.PREPOSITION)
        self.before_noun = count_spans(span_usage.BEFORE_NOUN)
        self.person = count_spans(span_usage.PERSON)
        # Counts of spans beside a common noun that shows each of `CUE_TYPES`.
        cue = np.frombuffer(found.cue, np.uint8)
        self.cues = {
            kind: np.bincount(surface[cue == number], minlength=len(found.names))
            for number, kind in enumerate(CUE_TYPES, 1)
        }
        self.hints = {
            kind: np.bincount(surface[cue == number], minlength=len(found.names))
            for number, kind in enumerate(HINT_TYPES, FIRST_HINT)
        }
        self.inside_words: Counter[str] = Counter()
        self.in_longer: set[str] = set()
        # Words that end a longer span after a given name.
        self._after_given: set[str] = set()
        # Words after the kind of a place: Mount Terror.
        self._after_place_word: set[str] = set()
        # Counts of words at the start and at the end of spans of several words.
        self.opening: Counter[str] = Counter()
        self.closing: Counter[str] = Counter()
        # Counts of the first words of spans: in all occurrences, and in those after an article.
        self.first_words: Counter[str] = Counter()
        self.first_after_article: Counter[str] = Counter()
        rows = zip(found.names, self.inside, self.total, self.determiner, strict=True)
        for name, inside, total, determined in rows:
            words = name.split(" ")
            if len(words) > 1 and not GIVEN_NAMES.isdisjoint(words[:-1]):
                self._after_given.add(words[-1])
            elif len(words) == 2 and words[0].lower() in PLACE_WORDS:
                self._after_place_word.add(words[-1])
            for word in words:
                self.inside_words[word] += inside
            if len(words) > 1:
                self.in_longer.update(words)
                self.opening[words[0]] += total
                self.closing[words[-1]] += total
            self.first_words[words[0]] += total
            self.first_after_article[words[0]] += determined
        self._known_places, self._towns = _find_known_places(found.names)
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
        if 0 < total <= 3 * after_article:
            return True
        ends_name = word in self._after_given and word.lower() not in common_words("de")
        return is_german_noun(word) and not ends_name

    def is_demonym(self, word: str) -> bool:
        """Return whether a word names a people or a language, and is not used as a surname."""
        lower = word.lower()
        is_adjective = lower in _DEMONYMS or _DEMONYM_END.search(word) is not None
        return bool(is_adjective) and word not in self._after_given

    def is_surname(self, word: str) -> bool:
        """Return whether a word ends longer spans more often than it begins them."""
        return self.closing[word] > self.opening[word]

    def _is_used_as_name(self, number: int) -> bool:
        span = self.split_words(number)
        if self.in_prose[number] == 0 and not self._is_known(number, span):
            # Reject spans that occur only in headings and tables: their capitals prove nothing.
            return False
        if is_role_only(span) or not _GERMAN_ADDRESS.isdisjoint(span):
            return False
        is_law = "/" in span[-1]  # Ley 2/2007
        if (
            span[0].lower() in _REFERENCES
            and not is_law
            and all(map(_REFERRED.fullmatch, span[1:]))
        ):
            return False
        if any("_" in word for word in span) or _CODE.fullmatch(span[0]):
            return False  # a name in code, or a code
        if len(span) > 1:
            if is_title(span[-1]) and all(is_title(word) or "." in word for word in span):
                return False  # H.E. Mr
            if all(map(str.isupper, span)) and not self._occurs_in_title_case(span):
                language = self.found.languages[number]
                acronyms = all(self.is_acronym(word, language) for word in span)
                if not acronyms or max(map(len, span)) > _MAX_ACRONYM_LETTERS:
                    return False
            if _DEMONYM_END.search(span[-1]) and self.before_noun[number] * 2 > self.total[number]:
                return False
            if self.found.languages[number].capitalizes_nouns and self._is_german_phrase(
                number, span
            ):
                return False
            return not all(word.islower() or self.is_common(word) for word in span)
        word, inside, total = span[0], self.inside[number], self.total[number]
        language = self.found.languages[number]
        if len(word.rstrip(".")) < 2 or word.lower() in NAME_SUFFIXES:
            return False
        if is_title(word) and not self.is_surname(word):
            return False
        if _DOTTED_LETTERS.fullmatch(word):
            # Reject initials, which belong to another name; accept acronyms as in "the U.S.".
            used = self.determiner[number] or self.place[number]
            return bool(used or word.replace(".", "") in self.found.surfaces)
        if word.isupper():
            if len(word) > _MAX_ACRONYM_LETTERS and self.cues["person"][number]:
                return False  # a heading before a colon
            is_frequent = word.lower() in common_words(language.code)
            return self.is_acronym(word, language) and bool(inside or total > 1 or not is_frequent)
        if inside == 0:
            return self.lower[word.lower()] == 0 and self._is_name_at_start(number, word, language)
        if self.lower[word.lower()] > inside:
            return False
        is_shown = self.person[number] or word in self._after_given or word in self._known_places
        is_common = word.lower() in common_words(language.code)
        is_shown = is_shown or word.lower() in _SHOWN_WORDS or word in self._after_place_word
        is_shown = is_shown or (inside > 1 and self.is_surname(word))
        if is_common and inside <= 2 and not (is_shown or language.capitalizes_nouns):
            return False
        if is_common and self.before_noun[number] * 2 > inside and _ADJECTIVE_END.search(word):
            return False  # the Federal budget
        if word.lower() in PLACE_WORDS and total <= 2 and not self.determiner[number]:
            return False
        if self.is_demonym(word) and word not in GIVEN_NAMES:
            named = self.person[number] or self.place[number]
            if not named or max(self.determiner[number], self.before_noun[number]) * 2 >= inside:
                return False
        return not language.capitalizes_nouns or self._is_german_name(number, word)

    def _is_german_phrase(self, number: int, span: list[str]) -> bool:
        """Return whether a German span has common nouns only: Neue Pakete, Mail Adresse."""
        if not self._known_places.isdisjoint((*span, " ".join(span))) or any(
            map(is_head_word, span)
        ):
            return False
        is_adjective = span[0].endswith(("e", "er", "es", "en"))
        if not self.inside[number] and is_adjective and all(map(is_certain_noun, span[1:])):
            return True  # Serielle Mäuse
        is_title_case = self.inside[number] and GERMAN_ADJECTIVE.fullmatch(span[0])
        return (
            not is_title_case
            and all(word.islower() or is_certain_noun(word) or is_loan_word(word) for word in span)
            and not any(word in GIVEN_NAMES or word.lower() in KNOWN_NAMES for word in span)
        )

    def _is_known(self, number: int, span: list[str]) -> bool:
        """Return whether a span is a known name, a full name of a person, or a company."""
        name, language = " ".join(span), self.found.languages[number]
        if len(span) == 1:
            is_inside = self.total[number] > self.at_start[number]
            return is_inside and self.is_known_place(name, language.code) and len(name) > 3
        last = span[-1].lower().rstrip(".")
        is_person = span[0] in GIVEN_NAMES and not common_words(language.code) & {last}
        return name in self._known_places or is_person or last in _COMPANY_FORMS

    def _is_name_at_start(self, number: int, word: str, language: Language) -> bool:
        """Return whether a word that occurs only at the start of sentences is a name."""
        if language.capitalizes_nouns:
            return self._is_german_name(number, word)
        if self.is_part_of_name(word, language) or self.occurs_inside_sentence([word], language):
            return True
        if self.is_known_place(word, language.code):
            return True
        if _NO_NAME_END.search(word) or word.endswith(language.verb_endings):
            return False
        if self.person[number] or word in GIVEN_NAMES or any(map(str.isupper, word[1:])):
            return True
        is_common = word.lower() in common_words(language.code)
        return self.total[number] > 1 and bool(language.function_words) and not is_common

    def is_acronym(self, word: str, language: Language) -> bool:
        """Return whether a word in capitals is an acronym, and not an emphasized word."""
        if _ROMAN_NUMERAL.fullmatch(word):
            return False
        lower = word.lower()
        is_common = lower in common_words("en") or lower in common_words(language.code)
        if is_common and language.code in _WITH_DICTIONARY and self.inside_words[word] < 2:
            return word.lower() in KNOWN_NAMES or word in ("US", "WHO", "IT")
        if len(word) <= _MAX_ACRONYM_LETTERS and "." not in word:
            return not self.lower[word.lower()] or self.inside_words[word] > 1
        if word.lower() in KNOWN_NAMES or self._occurs_in_title_case([word]):
            return True
        is_word = self.lower[word.lower()] or word.lower() in common_words(language.code)
        return not is_word and len(word.replace(".", "")) <= _MAX_WORD_ACRONYM_LETTERS

    def _occurs_in_title_case(self, words: list[str]) -> bool:
        """Return whether the corpus writes words that are in capitals also as a name in prose."""
        number = self.found.surfaces.get(" ".join(word.capitalize() for word in words))
        return number is not None and self.in_prose[number] > 0

    def _is_german_name(self, number: int, word: str) -> bool:
        """Return whether a single German noun is a name. German capitalizes all nouns."""
        if word in _PLACES_WITH_ARTICLE or self.is_known_place(word, "de"):
            return True
        if word in GIVEN_NAMES or word in self._after_given or word.lower() in PARTIES:
            return True
        if "-" in word:
            return self._is_german_double_word(word, self.determiner[number] > 0)
        if _GERMAN_BODY.fullmatch(word) or any(letter.isupper() for letter in word[1:]):
            return True  # RheinEnergie, AfD
        if is_loan_word(word) and word.lower() not in KNOWN_NAMES:
            return False
        is_certain = is_certain_noun(word)
        if self.person[number] and not is_certain:
            return True
        if self.place[number] and word in self._towns:
            return True
        # Few common nouns that end like places follow a preposition without an article.
        if self.preposition[number] and not self.determiner[number]:
            is_listed = word.lower() in common_words("de")
            if (PLACE_END.search(word) and not is_listed) or not (
                is_certain or COMMON_NOUN_END.search(word)
            ):
                return True
        if is_german_noun(word):
            return False
        # A genitive without an article shows that the word is a name.
        genitive = self.first_words[word + "s"] and not self.first_after_article[word + "s"]
        return bool(
            self.inside[number]
            or PLACE_END.search(word)
            or word.lower() in KNOWN_NAMES
            or self.is_part_of_name(word, self.found.languages[number])
            or (self.total[number] > 1 and self.determiner[number] == 0)
            or genitive
        )

    def _is_german_double_word(self, word: str, has_article: bool) -> bool:
        """Return whether a German word with hyphens is a name: Goethe-Universität, Baden-Baden."""
        *first, last = word.split("-")
        is_word = is_german_noun(last) or is_loan_word(last)
        is_plain = has_article or last.lower() in common_words("de") or is_loan_word(last)
        if not is_word or not (is_plain or any(map(is_german_noun, first))):
            return True
        named = any(part in GIVEN_NAMES or part in self._known_places for part in first)
        named = named or any(part in self._after_given for part in first)
        return named or (is_institution_word(last) and not all(map(is_german_noun, first)))
