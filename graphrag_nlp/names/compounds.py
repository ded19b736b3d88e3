"""Tests for German common nouns and loan words, which are no names, and for product models."""

import re
from collections.abc import Container
from functools import lru_cache

from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import (
    GIVEN_NAMES,
    LOAN_WORDS,
    REFERENCES,
    common_words,
    is_head_word,
    more_given_names,
)
from graphrag_nlp.text.languages import Language, read_lists
from graphrag_nlp.text.places import large_place_names

_WORDS = read_lists("graphrag_nlp/names/data/words")
COMMON_NOUN_END = re.compile(f"(?:{_WORDS['german_common_noun_endings']})$")
# German adjectives. Inside a sentence, only those in names have a capital: Technisches Hilfswerk.
# Nouns with the same endings are excluded: Schnittstelle.
GERMAN_ADJECTIVE = re.compile(
    rf"(?!.*(?:{_WORDS['german_nouns_like_adjectives']})n?$)"
    rf"(?:.*[^\W\d_])?{_WORDS['german_adjectives']}",
    re.IGNORECASE,
)
PLACE_END = re.compile(f"(?:{_WORDS['german_place_endings']})$")
# Letters between the parts of a compound: Arbeit-s-platz, Katze-n-futter.
_LINKS = ("", "s", "es", "n", "en", "e", "er")
_ENDINGS = ("s", "e", "n", "en", "er", "es", "em", "ern", "nen", "in", "innen")
_LONG_STEM_ENDINGS = frozenset(("s", "n", "er", "em", "in", "ern", "nen", "innen"))
_ENDINGS_BY_LETTER = {
    letter: tuple(ending for ending in _ENDINGS if ending[-1] == letter) for letter in "enrms"
}
# The capital inside gender-neutral German nouns: TeilnehmerInnen.
_INNER_CAPITAL = re.compile("(?<=[a-zäöüß]{4})I(?=n(?:nen)?$)")
# Minimum lengths of a known last part that shows a compound alone; an inflected one must be longer.
MIN_CERTAIN_PART, MIN_INFLECTED_PART = 5, 6
MIN_PART = 4
# A rare given name is a common noun if it is a form of one of the most frequent words: Tage.
MAX_FREQUENT_RANK = 8_000
# Frequent last parts of compounds, although they are short: Gerätetyp.
_SHORT_PARTS = frozenset("typ art weg tag zug bau rad uhr tor öl eis hut see".split())


def is_made_of(word: str, known: Container[str]) -> bool:
    """Return whether a word in lower case is a known word, its inflected form, or a compound."""
    return _is_form(word, known) or any(
        _is_form(last := word[-length:], known)
        and (
            (_is_certain_part(last, known) and not PLACE_END.search(last))
            or _has_first_part(word[:-length], known)
        )
        for length in range(MIN_PART, len(word) - 2)
    )


def _is_certain_part(last: str, known: Container[str]) -> bool:
    """Return whether a last part alone shows a compound; "agoras" (Pythagoras) does not."""
    return len(last) >= MIN_CERTAIN_PART and (last in known or len(last) > MIN_INFLECTED_PART)


def is_made_only_of(word: str, known: Container[str]) -> bool:
    """Return whether a word in lower case is a known word's form, or made of known words."""
    return _is_form(word, known) or any(
        _is_form(word[-length:], known) and _has_first_part(word[:-length], known)
        for length in range(MIN_PART, len(word) - 2)
    )


def _is_form(word: str, known: Container[str]) -> bool:
    if word in known:
        return True
    # A plain loop, since it is faster than `any`: the test of a German noun spends most time here.
    for ending in _ENDINGS_BY_LETTER.get(word[-1:], ()):
        if word.endswith(ending) and word[: -len(ending)] in known:
            min_stem = MIN_PART if ending in _LONG_STEM_ENDINGS else 3
            if len(word) - len(ending) >= min_stem:
                return True
    return False


def _has_first_part(part: str, known: Container[str]) -> bool:
    return any(_is_first_part(part.removesuffix(link), known) for link in _LINKS)


def _is_first_part(part: str, known: Container[str]) -> bool:
    # The first part of a compound may be the stem of a verb or of an inflected noun.
    return len(part) > 2 and (
        any(part + ending in known for ending in ("", "e", "n", "en")) or is_made_of(part, known)
    )


@lru_cache(maxsize=65_536)
def is_certain_noun(word: str) -> bool:
    """Return whether a capitalized German word is made of known words only."""
    last, known = _last_part(word).lower(), common_words("de")
    return not _is_known_name(last) and is_made_only_of(last, known)


@lru_cache(maxsize=65_536)
def is_german_noun(word: str) -> bool:
    """Return whether a capitalized German word is a common noun, judged without its context."""
    last, known = _last_part(word), common_words("de")
    lower, english = last.lower(), common_words("en")
    return (
        not _is_known_name(lower)
        and (
            COMMON_NOUN_END.search(last) is not None
            or is_made_of(lower, known)
            # The last part may be English or short: Tastaturlayout, Gerätetyp.
            or any(
                (lower[-length:] in english or lower[-length:] in _SHORT_PARTS)
                and _has_first_part(lower[:-length], known)
                for length in range(3, len(lower) - 2)
                if length > MIN_PART or lower[-length:] in _SHORT_PARTS
            )
        )
    )


def _is_known_name(word: str) -> bool:
    """Return whether a word in lower case is a name that only looks like a compound: Microsoft."""
    if word in common_words("de"):
        return False
    name = word.capitalize()
    # "Tage" (days) is a form of a frequent word and no name; "Hermes" is no such form.
    is_form = _is_form(word, common_words("de", MAX_FREQUENT_RANK))
    is_given = name in GIVEN_NAMES or (name in more_given_names() and not is_form)
    return find_known_type(word) != "" or is_given


def is_loan_word(word: str) -> bool:
    """Return whether a word in a German text is a common English word: Upload, Creating."""
    lower, english = word.lower(), common_words("en")
    forms = {lower, lower.removesuffix("s")}
    if lower.endswith("ing"):
        forms.add(f"{lower[:-3]}e")
    return lower in common_words(LOAN_WORDS) or not english.isdisjoint(forms)


def is_model(name: str, language: Language, determined: bool = False) -> bool:
    """Return whether a name with a number is a product model (Silva 600), not a score.

    `determined` is true if an article precedes the name: none precedes a score such as "England 6".
    """
    base, _, number = name.rpartition(" ")
    words = base.lower().split(" ")
    if find_known_type(base) and " " not in base:
        return len(number) > 2 and find_known_type(base) == "organization"  # a firm: Peugeot 208
    if base.isupper() or find_known_type(base) or base.lower() in large_place_names():
        return False
    is_word = language.capitalizes_nouns and is_german_noun(base.rpartition(" ")[2])
    common = common_words(language.code)
    if is_word or (words[-1] in common and (len(words) == 1 or words[0] in common)):
        return False
    determined = determined and language.code in ("en", "es")
    is_plain = determined or base.split(" ")[0] not in more_given_names()
    is_plain = is_plain and not any(map(is_head_word, words))
    # A digit after one word is often a page or a score.
    is_number = len(number) > 1 or len(words) > 1 or determined
    return is_plain and is_number and words[0] not in REFERENCES


def _last_part(word: str) -> str:
    """Return the word after the last hyphen; "" if it has inner capitals: RheinEnergie, ADAC."""
    last = _INNER_CAPITAL.sub("i", word.rpartition("-")[2])
    has_capital = not last[1:].islower() and any(map(str.isupper, last[1:]))
    return "" if has_capital else last
