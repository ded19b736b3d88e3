"""Tests of how names are written: like names of persons, of software, or like acronyms."""

import re
from collections.abc import Collection, Sequence

from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import (
    DEMONYM_END,
    more_given_names,
)
from graphrag_nlp.names.type_classifier import rate_words

PERSON_WORD = re.compile(r"(?:Ma?c)?[^\W\d_]['’]?[^\W\d_A-Z]+(?:['’-]?[^\W\d_][^\W\d_A-Z]+)?")
# A digit or a capital inside a word: Win32, ArrayBuffer, CAs; but not McDonald.
_CODED = re.compile(
    r"\b(?!(?:Mc|Mac|De|Di|Du|La|Le|Lo|Van|Von|Vander|Fitz|Al|El|Jo)[A-Z][a-z]+\b)\w*(?:\d|[a-z][A-Z]|[A-Z]{2}[a-z])"
)


def is_coded(name: str) -> bool:
    """Return whether a word is written as names of software are, and few names of persons are.

    A name whose first word is a given name is a person's however it is written: Ada BenSalem.
    """
    if name.istitle() and name.replace(" ", "").isalpha():
        return False  # the search below would take longer
    return _CODED.search(name) is not None and name.partition(" ")[0] not in more_given_names()


def is_plural_acronym(word: str) -> bool:
    """Return whether a word is an acronym in the plural: SDKs."""
    return len(word) > 2 and word[-1] == "s" and word[:-1].isupper()


def is_surname(word: str) -> bool:
    """Return whether many people have a word as their surname."""
    return rate_words([word])[word].surname > 1


def may_be_full_name(words: Sequence[str], common: Collection[str]) -> bool:
    """Return whether words, given without particles, are written like a person's full name."""
    if find_known_type(words[0]) == "organization":  # a product: Google Play
        return False
    if not 1 < len(words) <= 3 or not all(map(PERSON_WORD.fullmatch, words)):
        return False
    is_word = any(word.lower() in common for word in words)
    return not is_word and DEMONYM_END.search(words[0]) is None


def describe_shape(name: str) -> dict[str, float]:
    """Return the features of the shape of a name for the classifier of types."""
    words = name.split(" ")
    return {
        "one_word": len(words) == 1,
        "many_words": len(words) > 2,
        "capitals": name.isupper(),
        "digit": any(map(str.isdigit, name)),
        "demonym": DEMONYM_END.search(words[-1]) is not None,
    }
