"""Shapes of words: how names of persons are written, and how names of software are."""

import re

from graphrag_index.nlp.compounds import is_german_noun
from graphrag_index.nlp.name_words import common_words, more_given_names
from graphrag_index.nlp.place_ratings import rate_known_places

PERSON_WORD = re.compile(r"(?:Ma?c)?[^\W\d_]['’]?[^\W\d_A-Z]+(?:['’-]?[^\W\d_][^\W\d_A-Z]+)?")
# A digit or a capital inside a word: Win32, ArrayBuffer, CAs; but not McDonald.
_CODED = re.compile(
    r"\b(?!(?:Mc|Mac|De|Di|Du|La|Le|Lo|Van|Von|Vander|Fitz|Al|El|Jo)[A-Z][a-z]+\b)\w*(?:\d|[a-z][A-Z]|[A-Z]{2}[a-z])"
)


def is_coded(name: str) -> bool:
    """Return whether a word is written as names of software are, and few names of persons are.

    A name whose first word is a given name is a person's however it is written: Ada BenSalem.
    """
    return _CODED.search(name) is not None and name.partition(" ")[0] not in more_given_names()


def is_double_name(name: str) -> bool:
    """Return whether a word may be two surnames: Höfling-Krüger, but not Kassel-Ost."""
    first, hyphen, last = name.partition("-")
    if not hyphen or not all(map(PERSON_WORD.fullmatch, (first, last))):
        return False
    known = rate_known_places([first, last])
    is_word = any(
        is_german_noun(part) or part.lower() in common_words("en") for part in (first, last)
    )
    return min(len(first), len(last)) > 2 and not any(known) and not is_word
