"""Shapes of words: how names of persons are written, and how names of software are."""

import re
from collections.abc import Collection, Sequence

from graphrag_nlp.names.compounds import is_german_noun
from graphrag_nlp.names.known_names import find_known_type, is_place
from graphrag_nlp.names.name_words import (
    DEMONYM_END,
    DEMONYMS,
    GIVEN_NAMES,
    SURNAME_END,
    common_words,
    more_given_names,
)
from graphrag_nlp.names.type_classifier import rate_words
from graphrag_nlp.text.languages import read_lists, word_set

PERSON_WORD = re.compile(r"(?:Ma?c)?[^\W\d_]['’]?[^\W\d_A-Z]+(?:['’-]?[^\W\d_][^\W\d_A-Z]+)?")
# A digit or a capital inside a word: Win32, ArrayBuffer, CAs; but not McDonald.
_CODED = re.compile(
    r"\b(?!(?:Mc|Mac|De|Di|Du|La|Le|Lo|Van|Von|Vander|Fitz|Al|El|Jo)[A-Z][a-z]+\b)\w*(?:\d|[a-z][A-Z]|[A-Z]{2}[a-z])"
)

_WORDS = read_lists("graphrag_nlp/names/data/words")
_PREFIXES = word_set(_WORDS["hyphen_prefixes"].lower())
# The words and acronyms in a word such as FreeTDS.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
# Doctrines and religions are no persons: Taoism.
DOCTRINE_ENDS = ("ism", "ismus", "isme", "ismo")
_NUMERAL = re.compile(r"[IVX]+")


def is_coded(name: str) -> bool:
    """Return whether a word is written as names of software are, and few names of persons are.

    A name whose first word is a given name is a person's however it is written: Ada BenSalem.
    """
    if name.istitle() and name.replace(" ", "").isalpha():
        return False  # the search below would take longer
    return _CODED.search(name) is not None and name.partition(" ")[0] not in more_given_names()


def is_double_name(name: str) -> bool:
    """Return whether a word may be two surnames: Höfling-Krüger, but not Kassel-Ost."""
    first, hyphen, last = name.partition("-")
    if not hyphen or not all(map(PERSON_WORD.fullmatch, (first, last))):
        return False
    if min(len(first), len(last)) < 3:
        return False
    # Rieder and Kolb end like German nouns, but are surnames.
    is_word = any(
        part.lower() in common_words("en")
        or part.lower() in common_words("de")
        or (is_german_noun(part) and not is_surname(part))
        for part in (first, last)
    )
    return not is_word and not any(map(is_place, (first, last)))


def is_adjective(word: str) -> bool:
    """Return whether a word is an adjective of a people or a faith: Slavic."""
    return word.lower() in DEMONYMS or DEMONYM_END.search(word) is not None


def is_people(word: str) -> bool:
    """Return whether a word is a listed adjective or noun of a people, without a name's use."""
    lower = word.lower()
    return not DEMONYMS.isdisjoint((lower, lower.removesuffix("s")))


def is_plural_acronym(word: str) -> bool:
    """Return whether a word is an acronym in the plural: SDKs."""
    return len(word) > 2 and word[-1] == "s" and word[:-1].isupper()


def is_written_together(word: str) -> bool:
    """Return whether a word is several words: MaxSpareThreads, or English ones: FreeTDS."""
    common, parts = common_words("en"), _PART.findall(word) if word.isalnum() else ()
    is_plain = all(len(part) > 1 and (part.isupper() or part.lower() in common) for part in parts)
    return len(parts) > 2 or (len(parts) == 2 and is_plain)


def is_joined_word(word: str) -> bool:
    """Return whether a hyphen joins an acronym, or common English words: How-To, HTTP-aware."""
    parts = word.split("-")
    if len(parts) == 1:
        return False
    common = common_words("en")
    is_plain = len(parts[0]) > 2 and all(part.lower() in common for part in parts)
    return is_plain or any(len(part) > 1 and part.isupper() for part in parts)


def is_joined_adjective(word: str) -> bool:
    """Return whether a word is an adjective with a hyphen: Non-native, Balto-Slavic."""
    first, hyphen, last = word.partition("-")
    if not hyphen or last in more_given_names():
        return False
    return is_adjective(last) or first.lower() in _PREFIXES


def is_no_place(name: str) -> bool:
    """Return whether one word is written as no name of a place is."""
    return " " not in name and (is_coded(name) or is_joined_word(name))


def is_no_person(name: str) -> bool:
    """Return whether a name is written as no name of a person is."""
    if is_coded(name):
        return True
    first, space, _ = name.partition(" ")
    if space:  # Indian Hindi
        is_people = first.lower() in DEMONYMS or first.endswith(("ian", "ean", "ese"))
        return is_people and first not in more_given_names()
    is_other = name.isupper() or name.lower() in DEMONYMS
    return is_other or is_joined_word(name) or is_joined_adjective(name)


def is_surname(word: str) -> bool:
    """Return whether many people have a word as their surname."""
    return rate_words([word])[word].surname > 1


def ends_as_surname(word: str) -> bool:
    """Return whether a word ends as surnames do, and is no English word."""
    return SURNAME_END.search(word) is not None and word.lower() not in common_words("en")


def may_be_full_name(words: Sequence[str], common: Collection[str]) -> bool:
    """Return whether words, without particles, may be a person's full name by their writing."""
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


def ends_in_noun(name: str) -> bool:
    """Return whether a name ends in a common English word that is no surname: Marvel Comics."""
    first, _, last = name.rpartition(" ")
    if not first or _NUMERAL.fullmatch(last) or first.partition(" ")[0] in GIVEN_NAMES:
        return False
    return last.lower() in common_words("en") and rate_words([last])[last].surname == 0
