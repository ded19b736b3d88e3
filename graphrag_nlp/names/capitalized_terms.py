"""Terms that manuals and contracts write with capitals, and that are no names: Rain Cover."""

import re
from collections.abc import Sequence

from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import HEAD_FIRST, common_words, more_given_names
from graphrag_nlp.text.languages import read_lists, word_set

_WORDS = read_lists("graphrag_nlp/names/data/words")
_HEADS = {code: word_set(heads) for code, heads in _WORDS["term_heads"].items()}
_ENDINGS = {code: re.compile(f"(?:{ends})s?$") for code, ends in _WORDS["term_endings"].items()}


def is_capitalized_term(words: Sequence[str], code: str) -> bool:
    """Return whether words in title case are a term: its head is listed, and no other word rare."""
    if code not in _HEADS:
        return False
    # The head of "Terms of Service" stands before the particle, and that of Válvula de Vapor first.
    last = next((at - 1 for at, word in enumerate(words) if at and word.islower()), -1)
    head = words[0 if code in HEAD_FIRST else last]
    return head.lower() in _HEADS[code] and all(
        word.islower() or word == head or _is_plain(word, code) for word in words
    )


def _is_plain(word: str, code: str) -> bool:
    """Return whether a word is frequent, or ends as nouns and adjectives of a language do."""
    lower = word.lower()
    if not word.istitle() or find_known_type(word) or word in more_given_names():
        return False
    return lower in common_words(code) or _ENDINGS[code].search(lower) is not None
