"""Find terms: noun phrases of two or three words in lower case that recur, such as "sea ice".

Without a tagger, a noun phrase is told by its frame: an article or preposition stands
before it, a function word or punctuation after it. A term belongs to a subject, so
phrases that are spread over the whole corpus are left out.
"""

# array[int] can be written only as text before Python 3.12.
from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from graphrag_index.core.languages import Language

_NO_NOUN = ("ly", "ed", "ing", "est", "ous", "ful", "ive", "able", "ible")
_NO_MODIFIER = ("ly", "iest")
# Words that make no term of what they stand before or behind.
_WEAK_MODIFIERS = frozenset(
    (
        "good better best bad worse worst great greater greatest big bigger biggest small smaller "
        "smallest large larger largest long longer longest short new newer newest old older oldest "
        "high higher highest low lower lowest early earlier earliest late later latest young "
        "younger youngest whole entire full main own real true certain different similar "
        "important possible remaining following preceding previous next final general usual only "
        "single double total various numerous"
    ).split()
)
_WEAK_HEADS = frozenset(
    (
        "way back north south east west home time times part parts place places thing things end "
        "side sides kind kinds sort number amount lot day days week weeks month months year years "
        "people men women man woman one ones again ago away together alone enough later earlier"
    ).split()
)
_BEFORE_VERBS = frozenset(("to", "no", "any"))
MAX_TERM_WORDS = 3
# Spread is measured over blocks of so many characters, so that one long document is judged too.
BLOCK = 4_000
MIN_BLOCKS_TO_JUDGE = 8
MAX_BLOCK_SHARE = 0.25


@dataclass
class Terms:
    """Occurrences of phrases that may be terms, as columns, in order of the text."""

    document: array[int] = field(default_factory=lambda: array("i"))
    start: array[int] = field(default_factory=lambda: array("i"))
    end: array[int] = field(default_factory=lambda: array("i"))
    phrase: array[int] = field(default_factory=lambda: array("i"))
    phrases: dict[str, int] = field(default_factory=dict)
    # For each occurrence the block that it stands in; blocks are numbered through the corpus.
    block: array[int] = field(default_factory=lambda: array("i"))
    n_blocks: int = 0

    def add(self, document: int, words: Sequence[str], language: Language) -> None:
        """Collect the phrases of one document, given as the words between its spaces."""
        ends = list(accumulate(map(len, words)))
        first_block = self.n_blocks
        self.n_blocks += (ends[-1] + len(words)) // BLOCK + 1
        if language.capitalizes_nouns or not language.function_words:
            return
        stop = language.function_words
        opening = language.determiners | language.place_prepositions | language.other_prepositions
        opening -= _BEFORE_VERBS
        opened = [
            i
            for i, word in enumerate(words[:-2])
            if word in opening and words[i + 1] not in stop and words[i + 2] not in stop
        ]
        for at in opened:
            if not words[at + 1].islower():
                continue
            phrase = _phrase(words[at + 1 : at + 2 + MAX_TERM_WORDS], stop, language.determiners)
            if phrase is None:
                continue
            # The spaces before the phrase are as many as the words.
            position = ends[at] + at + 1
            number = self.phrases.setdefault(phrase, len(self.phrases))
            self.document.append(document)
            self.start.append(position)
            self.end.append(position + len(phrase))
            self.phrase.append(number)
            self.block.append(first_block + position // BLOCK)

    def accepted(self, min_frequency: int) -> np.ndarray:
        """Return for each phrase the phrase that names its term, or -1 if it is no term.

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


def _phrase(words: Sequence[str], stop: frozenset[str], determiners: frozenset[str]) -> str | None:
    """Return the noun phrase that a few words begin with; None if there is none."""
    if words[0].endswith(_NO_MODIFIER) or words[0] in _WEAK_MODIFIERS:
        return None
    for length, word in enumerate(words):
        bare = word.rstrip(".,;:!?)")
        if bare in stop:
            # An article behind it shows a verb at its end: "the polar party built a hut".
            if word in determiners:
                return None
            break
        if not bare.replace("-", "").isalpha() or not bare.islower():
            return None
        if bare != word:
            words = [*words[:length], bare]
            length += 1
            break
    else:
        return None
    if not 2 <= length <= MAX_TERM_WORDS:
        return None
    if length > 2 and words[length - 1] in _WEAK_HEADS:
        length -= 1
    phrase = words[:length]
    if phrase[-1].endswith(_NO_NOUN) or phrase[-1] in _WEAK_HEADS:
        return None
    return " ".join(phrase)
