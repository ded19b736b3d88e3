"""Whether two sentences say the same, by the words that carry what they say."""

import re
from collections.abc import Set

# Sentences are alike if they share more than this of the shorter one's telling words: one
# that another repeats with more around it, or in another order, adds nothing.
MAX_SHARED = 0.7
# Numbers, and words long enough not to be particles in most languages.
_TELLING = re.compile(r"\w{4,}|\d+")
_WORD = re.compile(r"\w+")


def telling_words(sentence: str) -> frozenset[str]:
    """Return the words by which sentences are compared, folded.

    In scripts of short words, where fewer than two are long, these are all its words.
    """
    folded = sentence.lower()
    words = frozenset(_TELLING.findall(folded))
    return words if len(words) > 1 else frozenset(_WORD.findall(folded))


def alike(a: Set[str], b: Set[str]) -> bool:
    """Tell whether the sentences of two sets of telling words say the same."""
    return len(a & b) > MAX_SHARED * min(len(a), len(b))
