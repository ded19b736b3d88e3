"""Types of names by their heads: the words in names that show a type.

The head is the last word in Germanic languages, the first word in other languages, or the word
before a particle.
"""

from collections.abc import Sequence

from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import (
    GIVEN_NAMES,
    HEAD_FIRST,
    common_words,
)
from graphrag_nlp.text.languages import read_lists, word_set
from graphrag_nlp.text.type_words import EVENT_WORDS, ORGANIZATION_WORDS, PLACE_WORDS

_LISTS = read_lists("graphrag_nlp/names/data/entity_types")
_NAMES = word_set(_LISTS["names"])
# Types by the head of a name. A law or a prize keeps the type "name". Later rows override.
HEADS: dict[str, str] = {
    **dict.fromkeys(EVENT_WORDS | word_set(_LISTS["events"]), "event"),
    **dict.fromkeys(_NAMES, "name"),
    **dict.fromkeys(PLACE_WORDS | word_set(_LISTS["places"]), "geo"),
    **dict.fromkeys(ORGANIZATION_WORDS | word_set(_LISTS["organizations"]), "organization"),
}
# Types by the end of a word, in languages with compounds.
_ENDS = (
    ("organization", tuple(_LISTS["organization_ends"].split())),
    ("geo", tuple(_LISTS["place_ends"].split())),
    ("event", tuple(_LISTS["event_ends"].split())),
    ("name", tuple(_LISTS["name_ends"].split())),
)
_COMPOUND_LANGUAGES = frozenset(("de", "nl", "sv", "da"))
# Words that show the type only at the end of an English name: Hill House.
_LAST_HEADS = word_set(_LISTS["last_heads"])
# Spanish words for a state and its powers, which alone are no names: el Estado.
_BARE_KINDS = frozenset("estado estados ejecutivo ponencia".split())
# British spellings of common words that the list of frequent words lacks: the Centre.
_BRITISH_KINDS = frozenset("centre programme theatre organisation".split())
_LAWS = frozenset("Act Bill Directive Regulation Regulations".split())
_VERSUS = frozenset(("v", "vs"))
# Languages in which the head of a name is its last word.
HEAD_LAST = frozenset(("en", "und", *_COMPOUND_LANGUAGES))


def find_head_type(words: Sequence[str], lower: Sequence[str], code: str) -> str:
    """Return the type that a word in a name shows; "" if none does.

    `lower` are the words in lower case, and `code` is the language of the text.
    """
    if code in _COMPOUND_LANGUAGES:
        # An organization stands before its place: Landgericht Hildesheim (a court in Hildesheim).
        first = lower[0].removesuffix("s")
        if len(words) > 1 and len(first) > 7 and first.endswith(_ENDS[0][1]):
            return "organization"
        for word in reversed(lower):
            for kind, ends in _ENDS:
                # Also in the genitive: Bundesgerichtshofs, Roten Kreuzes.
                forms = (word, bare := word.removesuffix("s"), bare.removesuffix("e"))
                if len(word) > 7 and any(form.endswith(ends) for form in forms):
                    return kind
    if len(words) == 1:
        return ""
    if not _VERSUS.isdisjoint(lower[1:-1]):
        return "name"
    # The head stands before a particle: University of Cape Town.
    particle = next((i for i, word in enumerate(words) if i and word.islower()), len(words))
    if code == "en" and words[-1] in _LAWS:
        return "name"  # a law: Police and Criminal Evidence Act
    is_body = code in HEAD_FIRST and HEADS.get(lower[0]) == "organization"
    if is_body and particle > 1:
        return "organization"  # by the first word: Organización Mundial de Turismo
    if particle < len(words) and HEADS.get(lower[particle - 1]) in ("name", "event"):
        return HEADS[lower[particle - 1]]  # by the word before "of": Articles of Confederation
    # The head may have two words: Gyldendal Norwegian Publishing House.
    heads = (lower[-1], "-".join(lower[-2:]))
    if code in HEAD_LAST and "organization" in map(HEADS.get, heads):
        return "organization"
    if particle == len(words):
        places = (-1, 0) if code in HEAD_LAST else (0, 1, -1)
    else:
        places = (particle - 1, 0) if code in HEAD_LAST else (0, particle - 1)
        if code in HEAD_LAST and not (words[-1].islower() or words[-2].islower()):
            places = (particle - 1, 0, -1)  # then the last: Banc of California Stadium
    # "Bill Hatcher" is no bill, and "Open Society" no tournament; but "Port Talbot" is a place.
    is_name = (words[0] in GIVEN_NAMES or lower[0] == "open") and places[0] != 0
    # At the start of a longer name, "House" shows no place: House Republicans.
    is_name = is_name or (code == "en" and places[0] == -1 and lower[0] in _LAST_HEADS)
    return next(
        (
            HEADS[lower[place]]
            for place in places
            if lower[place] in HEADS and not (is_name and place == 0)
        ),
        "",
    )


def is_kind_of_thing(name: str, code: str) -> bool:
    """Return whether a name is a common word for an organization, a law or an event: Council."""
    lower = name.lower()
    is_word = lower in common_words(code) or lower in _BRITISH_KINDS
    is_word = is_word or (code == "en" and name in GIVEN_NAMES)
    is_word = is_word and not find_known_type(name) and not name.isupper()
    return is_word and (HEADS.get(lower, "geo") != "geo" or lower in _BARE_KINDS)
