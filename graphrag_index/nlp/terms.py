"""Terms: recurring noun phrases of two or three words in lower case, such as "sea ice".

Without a tagger, a noun phrase is told by its frame: an article or preposition stands
before it, a function word or punctuation after it. A term belongs to a subject, so
phrases that are spread over the whole corpus are left out.
"""

# array[int] can be written only as text before Python 3.12.
from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np

from graphrag_index.nlp.word_table import (
    BARE_FUNCTION,
    DETERMINER,
    FUNCTION,
    LETTERS,
    LOWER,
    NO_MODIFIER,
    NO_NOUN,
    OPENING,
    PUNCTUATED,
    PUNCTUATION,
    WEAK_HEAD,
    Integers,
    Kinds,
    Words,
)
from graphrag_index.text.languages import Language

MAX_TERM_WORDS = 3
# Spread is measured over blocks of characters, so that it works within a long document too.
BLOCK = 4_000
MIN_BLOCKS_TO_JUDGE = 8
MAX_BLOCK_SHARE = 0.25


@dataclass
class Terms:
    """Candidate phrases as columns: one value per occurrence, in order of the text."""

    document: array[int] = field(default_factory=lambda: array("i"))
    start: array[int] = field(default_factory=lambda: array("i"))
    end: array[int] = field(default_factory=lambda: array("i"))
    phrase: array[int] = field(default_factory=lambda: array("i"))
    phrases: dict[str, int] = field(default_factory=dict)
    # The block of each occurrence, numbered through the corpus.
    block: array[int] = field(default_factory=lambda: array("i"))
    n_blocks: int = 0

    def add(self, document: int, text: str, words: Words, language: Language) -> None:
        """Collect the phrases of one document."""
        first_block = self.n_blocks
        self.n_blocks += (len(text) + 1) // BLOCK + 1
        if language.capitalizes_nouns or not language.function_words:
            return
        first, last = _noun_phrases(words.kinds)
        starts = words.starts[first]
        for start, end in zip(starts.tolist(), words.ends[last].tolist(), strict=True):
            phrase = text[start:end].rstrip(PUNCTUATION).replace("\n", " ")
            self.phrase.append(self.phrases.setdefault(phrase, len(self.phrases)))
            self.end.append(start + len(phrase))
        self.document.extend([document] * len(starts))
        self.start.frombytes(starts.astype(np.int32).tobytes())
        self.block.frombytes((first_block + starts // BLOCK).astype(np.int32).tobytes())

    def accepted(self, min_frequency: int) -> np.ndarray:
        """Map each phrase to the phrase that names its term, or to -1.

        A term recurs, but not everywhere; plural and singular are one.
        """
        n = len(self.phrases)
        if not n:
            return np.zeros(0, np.int32)
        singular = np.arange(n, dtype=np.int32)
        for text, number in self.phrases.items():
            plural = self.phrases.get(text + "s")
            if plural is not None:
                singular[plural] = number
        term = singular[np.frombuffer(self.phrase, np.int32)]
        block = np.frombuffer(self.block, np.int32)
        pairs = np.unique(term.astype(np.int64) * self.n_blocks + block)
        spread = np.bincount(pairs // self.n_blocks, minlength=n)
        accepted = np.bincount(term, minlength=n) >= min_frequency
        if self.n_blocks >= MIN_BLOCKS_TO_JUDGE:
            accepted &= spread <= MAX_BLOCK_SHARE * self.n_blocks
        return np.where(accepted[singular], singular, np.int32(-1))


def _noun_phrases(kinds: Kinds) -> tuple[Integers, Integers]:
    """Return the first and the last word of each phrase in the context of a noun."""
    opening, function = (kinds & OPENING) > 0, (kinds & FUNCTION) > 0
    first = np.flatnonzero(opening[:-2] & ~function[1:-1] & ~function[2:]) + 1
    first = first[(kinds[first] & (LOWER | NO_MODIFIER)) == LOWER]
    # The words that may follow, a row for each phrase; behind the last word come none.
    padded = np.append(kinds, np.zeros(MAX_TERM_WORDS, np.uint16))
    window = padded[first[:, None] + np.arange(MAX_TERM_WORDS + 1)]
    part = (window & (LETTERS | BARE_FUNCTION)) == LETTERS
    punctuated = (window & PUNCTUATED) > 0
    # A phrase ends with a word that wears punctuation, or before the first that is no part.
    ends = ~part | punctuated
    end = ends.argmax(axis=1)
    row = np.arange(len(first))
    closing = window[row, end]
    # An article behind it shows a verb at its end: "the polar party built a hut".
    framed = ((closing & BARE_FUNCTION) > 0) & ((closing & DETERMINER) == 0)
    length = np.where(part[row, end], end + 1, end)
    accepted = ends.any(axis=1) & (part[row, end] | framed)
    accepted &= (length >= 2) & (length <= MAX_TERM_WORDS)
    length -= (length > 2) & ((window[row, length - 1] & WEAK_HEAD) > 0)
    accepted &= (window[row, length - 1] & (NO_NOUN | WEAK_HEAD)) == 0
    return first[accepted], (first + length - 1)[accepted]
