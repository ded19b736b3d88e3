"""Words related to those of a question: similar ones, and those of other languages.

Similar English words are found by the vectors of the static model that the package ships. Words in
other languages are those of the same subject (`common_subjects.yaml`), and words that begin alike.
"""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import chain, starmap

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.llm.local.static_model import load_word_table
from graphrag_index.llm.local.word_pieces import UNKNOWN
from graphrag_nlp.text.languages import Language
from graphrag_nlp.text.normalize import fold
from graphrag_query.question.foreign_words import (
    COGNATE_CHARS,
    find_other_languages,
    pattern_of,
)
from graphrag_query.question.question_words import WORD

# Cosine of two words above which they are related. A cosine of 1 counts 1, this one counts 0.
MIN_COSINE = 0.4
# How much a word of the same subject in another language counts, and a word that begins alike.
SUBJECT_SHARE, COGNATE_SHARE = 0.8, 0.6
# Factor of the weight of a word of no known subject, such as "progress" and "come".
WEIGHT_WITHOUT_SUBJECT = 0.5
# Minimum number of characters of a word that is the same in two languages, such as "Admin".
MIN_BORROWED_CHARS = 4
# Maximum number of words whose numbers are kept in memory.
MAX_KEPT_WORDS = 1 << 16
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RelatedWords:
    """The words of a question in lower case, and a pattern of words in other languages for each.

    A pattern is "" if the question's word is of no known subject. `has_others` tells whether texts
    are in other languages.
    """

    words: Sequence[str]
    patterns: Sequence[str]
    has_others: bool

    @classmethod
    def find(
        cls, words: Sequence[str], language: Language, others: Set[str] = frozenset()
    ) -> "RelatedWords":
        """Find the words of a question; `others` are the languages of texts besides its own."""
        found = [
            [pair for pair in find_other_languages(word, language.code) if pair[0] in others]
            for word in words
        ]
        return cls(words, ["|".join(starmap(pattern_of, pairs)) for pairs in found], bool(others))

    @property
    def subject_shares(self) -> Floats:
        """The factor of the weight of each word: a word of no known subject says less."""
        return np.array([1.0 if pattern else WEIGHT_WITHOUT_SUBJECT for pattern in self.patterns])

    def match(self, texts: Sequence[str]) -> Floats:
        """Return how well each text (row) has a word related to each word (column): 0 to 1."""
        matches = np.zeros((len(texts), len(self.words)))
        table, numbers = _word_table(), _word_numbers()
        words = [list(map(numbers.__getitem__, WORD.findall(text.lower()))) for text in texts]
        counts = np.fromiter(map(len, words), np.int64, len(words))
        if counts.any() and self.words:
            held = np.fromiter(chain.from_iterable(words), np.int64)
            asked = np.array(list(map(numbers.__getitem__, self.words)), np.int64)
            distinct = np.flatnonzero(np.bincount(held, minlength=len(table.lengths)))
            # BLAS would start threads, which cost more than this small product.
            cosines = np.einsum("ij,kj->ik", table.rows[distinct].astype(np.float32), _scale(asked))
            cosines /= table.lengths[distinct, np.newaxis]
            places = np.zeros(len(table.lengths), np.int64)
            places[distinct] = np.arange(len(distinct))
            starts = (np.cumsum(counts) - counts)[counts > 0]
            best = np.maximum.reduceat(cosines[places[held]], starts)
            matches[counts > 0] = np.clip((best - MIN_COSINE) / (1 - MIN_COSINE), 0, 1)
        if self.has_others:
            matches = np.maximum(
                matches, self.match_other_languages(pl.Series(texts, dtype=pl.String))
            )
        return matches

    def match_other_languages(self, texts: pl.Series) -> Floats:
        """Return how well each text (row) has a word in another language for each word (column)."""
        matches = np.zeros((len(texts), len(self.words)))
        lower = texts.str.to_lowercase()
        for column, (word, pattern) in enumerate(zip(self.words, self.patterns, strict=True)):
            if len(word) >= MIN_BORROWED_CHARS:
                start = re.escape(fold(word)[:COGNATE_CHARS])
                end = "" if len(word) > COGNATE_CHARS else r"\b"
                matches[lower.str.contains(rf"\b{start}{end}").to_numpy(), column] = COGNATE_SHARE
            if pattern:
                matches[lower.str.contains(pattern).to_numpy(), column] = SUBJECT_SHARE
        return matches


_word_table = cache(load_word_table)


class _WordNumbers(dict[str, int]):
    """The numbers of words in the table, or of their singulars; `UNKNOWN` for other words."""

    def __missing__(self, word: str) -> int:
        known = _word_table().numbers
        forms = (word.removesuffix("s"), word.removesuffix("es"), f"{word.removesuffix('ies')}y")
        number = next((known[form] for form in forms if form in known), known[UNKNOWN])
        if len(self) < MAX_KEPT_WORDS:
            self[word] = number
        return number


@cache
def _word_numbers() -> _WordNumbers:
    return _WordNumbers(_word_table().numbers)


def _scale(numbers: "npt.NDArray[np.int64]") -> "npt.NDArray[np.float32]":
    """Return the vectors of words at length 1; a word without a vector has zeros."""
    table = _word_table()
    vectors = table.rows[numbers].astype(np.float32) / table.lengths[numbers, np.newaxis]
    vectors[numbers == table.numbers[UNKNOWN]] = 0
    scaled: npt.NDArray[np.float32] = vectors
    return scaled
