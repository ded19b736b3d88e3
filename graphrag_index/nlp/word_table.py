"""The words of the corpus as numbers, so that what is asked of each is asked of arrays."""

# array[int] can be written only as text before Python 3.12.
from __future__ import annotations

from array import array
from collections import Counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graphrag_index.text.languages import Language
from graphrag_index.text.word_lists import read_lists, word_set

_LISTS = read_lists("nlp/data/words")
# What a word is, one bit each. In any case: before a name.
ARTICLE, PLACE_PREPOSITION, OTHER_PREPOSITION = 1, 2, 4
# As it is written: behind a name.
COPULA, PERSON_VERB, LOWER, FUNCTION = 8, 16, 32, 64
# As it is written: opens a noun phrase, or shows that one has ended.
OPENING, DETERMINER = 128, 256
# Without the punctuation behind it: what it may be in a noun phrase.
BARE_FUNCTION, LETTERS, PUNCTUATED, NO_MODIFIER, NO_NOUN, WEAK_HEAD = (
    *(512, 1024, 2048, 4096, 8192, 16384),
)

PUNCTUATION = ".,;:!?)"
_WORN = ".,;:!?()[]{}\"'“”„«»‘’*_"
# What is longer is no word: whole paragraphs have no space in some scripts.
LONGEST_WORD = 40
# Before verbs as well as before nouns.
_BEFORE_VERBS = frozenset(("to", "no", "any"))
# Endings and words that make no term of what they stand in.
_NO_NOUN = ("ly", "ed", "ing", "est", "ous", "ful", "ive", "able", "ible")
_NO_MODIFIER = ("ly", "iest")
_WEAK_MODIFIERS = word_set(_LISTS["weak_modifiers"])
_WEAK_HEADS = word_set(_LISTS["weak_heads"])

Kinds = npt.NDArray[np.uint16]
Integers = npt.NDArray[np.int64]


class Words(NamedTuple):
    """The words of one document: what stands between its single spaces and line ends.

    Where two of those follow each other, the word between them is empty.
    """

    kinds: Kinds
    starts: Integers
    ends: Integers


class Vocabulary:
    """The distinct words that the documents of one language use: their kinds and counts."""

    def __init__(self, language: Language) -> None:
        self._numbers = _Numbers(language)
        self._counts = array("q")

    def read(self, text: str) -> Words:
        """Count the words of a document and tell what each is."""
        words = text.replace("\n", " ").split(" ")
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
        self._counts.extend([0] * (len(self._numbers) - len(self._counts)))
        np.add.at(np.frombuffer(self._counts, np.int64), numbers, 1)
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        ends = np.cumsum(lengths + 1) - 1
        kinds = np.frombuffer(self._numbers.kinds, np.uint16)[numbers]
        return Words(kinds, ends - lengths, ends)

    def add_lower_words(self, counts: Counter[str]) -> None:
        """Add how often each word is written in lower case, without what it wears."""
        for word, kind, count in zip(self._numbers, self._numbers.kinds, self._counts, strict=True):
            if kind & LOWER:
                counts[word.strip(_WORN)] += count


class _Numbers(dict[str, int]):
    """Numbers words at first sight; what has no case is 0, like the empty word."""

    def __init__(self, language: Language) -> None:
        super().__init__({"": 0})
        self.language = language
        self.kinds = array("H", [0])
        self._opening = (
            language.determiners | language.place_prepositions | language.other_prepositions
        ) - _BEFORE_VERBS

    def __missing__(self, word: str) -> int:
        if len(word) > LONGEST_WORD or word.lower() == word.upper():
            return 0
        number = self[word] = len(self)
        self.kinds.append(self._kind(word))
        return number

    def _kind(self, word: str) -> int:
        language = self.language
        functions = language.function_words
        bare = word.rstrip(PUNCTUATION)
        return kind_before(word, language) | sum(
            kind
            for kind, holds in (
                (COPULA, word in language.copulas),
                (PERSON_VERB, word in language.person_verbs),
                (LOWER, word.islower()),
                (FUNCTION, word in functions),
                (OPENING, word in self._opening),
                (DETERMINER, word in language.determiners),
                (BARE_FUNCTION, bare in functions),
                (LETTERS, bare.islower() and bare.replace("-", "").isalpha()),
                (PUNCTUATED, bare != word),
                (NO_MODIFIER, word.endswith(_NO_MODIFIER) or word in _WEAK_MODIFIERS),
                (NO_NOUN, bare.endswith(_NO_NOUN)),
                (WEAK_HEAD, bare in _WEAK_HEADS),
            )
            if holds
        )


def kind_before(word: str, language: Language) -> int:
    """Return what a word is to a name that follows it."""
    lower = word.lower()
    if lower in (language.articles or language.determiners):
        return ARTICLE
    if lower in language.place_prepositions:
        return PLACE_PREPOSITION
    return OTHER_PREPOSITION if lower in language.other_prepositions else 0
