"""Types of names by their heads: the words in names that show a type.

The head is the last word in Germanic languages, the first word in other languages, or the word
before a particle.
"""

from collections import Counter
from collections.abc import Sequence

from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_joints import is_partnership
from graphrag_nlp.names.name_words import (
    COMPANY_FORMS,
    GIVEN_NAMES,
    HEAD_FIRST,
    common_words,
    more_given_names,
)
from graphrag_nlp.text.languages import read_lists, word_set
from graphrag_nlp.text.places import large_place_names, town_names
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
# Words between the head of a German body or law and its topic.
_TOPIC_JOINTS = frozenset(("für", "zur", "zum", "über", "gegen"))
# Heads of German streets that are other nouns alone.
_GERMAN_STREETS = frozenset("ring tor ufer graben damm weg chaussee".split())
_COMPOUND_LANGUAGES = frozenset(("de", "nl", "sv", "da"))
# Heads that only stand at the end of an English name: Hill House.
_LAST_HEADS = word_set(_LISTS["last_heads"])
# Common words for a state and its powers, which head the names of other things: el Estado.
_BARE_KINDS = frozenset("estado estados ejecutivo ponencia".split())
# British spellings of kinds, which the list of frequent words lacks: the Centre.
_BRITISH_KINDS = frozenset("centre programme theatre organisation".split())
# Such words for powers that are too rare for the lists of frequent words: la Presidencia.
_BARE_BODIES = frozenset(
    "presidencia vicepresidencia asamblea pleno ponencia gobiernos présidence".split()
)
_CHAMBERS = frozenset("representatives commons lords assembly delegates councillors".split())
_LAWS = frozenset("Act Bill Directive Regulation Regulations".split())
_VERSUS = frozenset(("v", "vs"))
# Languages in which the head of a name is its last word.
HEAD_LAST = frozenset(("en", "und", *_COMPOUND_LANGUAGES))


def find_head_type(words: Sequence[str], lower: Sequence[str], code: str) -> str:
    """Return the type that a word in a name shows; "" if none does.

    `lower` are the words in lower case, and `code` is the language of the text.
    """
    if code in _COMPOUND_LANGUAGES:
        if _is_double_full_name(words):
            return ""
        if code == "de" and (kind := _find_type_before_topic(lower)):
            return kind
        if len(words) == 2 and lower[1] in _GERMAN_STREETS and lower[0].endswith("er"):
            return "geo"  # Leipziger Ring
        # A body stands before its place: Landgericht Hildesheim.
        first = lower[0].removesuffix("s")
        if len(words) > 1 and len(first) > 7 and first.endswith(_ENDS[0][1]):
            return "organization"
        for word in reversed(lower):
            for kind, ends in _ENDS:
                # Also in the genitive: Bundesgerichtshofs, Roten Kreuzes.
                bare = word.removesuffix("s")
                if (bare.removesuffix("e").endswith(ends) or word.endswith(ends)) and len(word) > 7:
                    return kind
                if bare.endswith(ends) and len(word) > 7:
                    return kind
    if len(words) == 1:
        return ""
    if code == "de" and is_branch(words):
        return "organization"
    if is_partnership(words) or (code == "de" and lower[0] == "rat" and lower[1] == "von"):
        return "organization"  # Ana Gil e hijos, Rat von Basel
    if not _VERSUS.isdisjoint(lower[1:-1]):
        return "name"
    # The head stands before a particle: University of Cape Town.
    particle = next((i for i, word in enumerate(words) if i and word.islower()), len(words))
    if code == "en" and words[-1] in _LAWS:
        return "name"  # Police and Criminal Evidence Act
    if "house of" in " ".join(lower) and code == "en" and lower[-1] in _CHAMBERS:
        return "organization"  # Michigan House of Representatives
    is_body = code in HEAD_FIRST and HEADS.get(lower[0]) == "organization"
    if is_body and particle > 1:
        return "organization"  # Organización Mundial de Turismo
    if particle < len(words) and HEADS.get(lower[particle - 1]) in ("name", "event"):
        return HEADS[lower[particle - 1]]  # Articles of Confederation
    # Also two words: Gyldendal Norwegian Publishing House.
    heads = (lower[-1], "-".join(lower[-2:]))
    if code in HEAD_LAST and "organization" in map(HEADS.get, heads):
        return "organization"
    if particle == len(words):
        places = (-1, 0) if code in HEAD_LAST else (0, 1, -1)
    else:
        places = (particle - 1, 0) if code in HEAD_LAST else (0, particle - 1)
        if code in HEAD_LAST and not (words[-1].islower() or words[-2].islower()):
            places = (particle - 1, 0, -1)  # Banc of California Stadium
    # "Bill Hatcher" is no bill, and "Open Society" no tournament; but "Port Talbot" is a place.
    is_name = (words[0] in GIVEN_NAMES or lower[0] == "open") and places[0] != 0
    # House Republicans, State Department Correspondents
    is_name = is_name or (code == "en" and places[0] == -1 and lower[0] in _LAST_HEADS)
    return next(
        (
            HEADS[lower[place]]
            for place in places
            if lower[place] in HEADS and not (is_name and place == 0)
        ),
        "",
    )


def _find_type_before_topic(lower: Sequence[str]) -> str:
    """Return the type of the word before "für" or "zur": Gesetz zur Hilfe; "" if it has none."""
    at = next((i for i, word in enumerate(lower) if i and word in _TOPIC_JOINTS), 0)
    if not at:
        return ""
    bare = lower[at - 1].removesuffix("s")
    ends = (kind for kind, ends in _ENDS if bare.removesuffix("e").endswith(ends))
    return HEADS.get(bare) or next(ends, "")


def is_branch(words: Sequence[str]) -> bool:
    """Return whether words are a body in capitals and a place of Germany: AOK Niedersachsen."""
    body, place = " ".join(words[:-1]), words[-1].lower()
    return (
        len(words) in (2, 3)
        and words[0].isupper()
        and (place in large_place_names() or place in town_names("DE", "AT", "CH"))
        and find_known_type(body) == "organization"
    )


def _is_double_full_name(words: Sequence[str]) -> bool:
    """Return whether words are two given names with a hyphen and a surname: Hans-Werner Kammer."""
    given = words[0].split("-")
    return len(words) == len(given) == 2 and more_given_names().issuperset(given)


def is_kind_of_thing(name: str, code: str) -> bool:
    """Return whether a name is a common word for a body, a law or an event: Council."""
    lower = name.lower()
    if lower in _BARE_BODIES:
        return code in HEAD_FIRST
    is_word = lower in common_words(code) or lower in _BRITISH_KINDS
    is_word = is_word or (code == "en" and name in GIVEN_NAMES)
    is_word = is_word and not find_known_type(name) and not name.isupper()
    return is_word and (HEADS.get(lower, "geo") != "geo" or lower in _BARE_KINDS)


def is_plural_kind(name: str, code: str) -> bool:
    """Return whether an English name is a kind of bodies or laws in the plural: Governments."""
    singular = name.removesuffix("s").lower()
    is_plural = code == "en" and name.endswith("s") and name.lower() not in HEADS
    is_word = singular in common_words(code) or singular.title() in GIVEN_NAMES
    return (
        is_plural and is_word and HEADS.get(singular, "geo") != "geo" and not find_known_type(name)
    )


def find_shortened_companies(
    names: Sequence[str], types: Sequence[str]
) -> tuple[set[str], set[str]]:
    """Return the starts of more companies than other names, and those of firms with their form.

    Exco Holdings Ltd may be called Exco, and Exco Holdings. Names without a type do not count.
    """
    counts, firms = Counter[str](), set[str]()
    for name, kind in zip(names, types, strict=True):
        words = name.split(" ") if kind and " " in name else []
        starts = [" ".join(words[:length]) for length in range(1, len(words))]
        for start in starts:
            counts[start] += 1 if kind == "organization" else -1
        if words and words[-1].lower().replace(".", "") in COMPANY_FORMS:
            firms.update(starts)
    return {start for start, count in counts.items() if count > 0}, firms
