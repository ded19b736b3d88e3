"""Cuts of English spans of two names that other rules leave whole.

Such spans come from headings, lost line ends and roles: Homeland Security | John Kelly, Moscow |
Some Democrats, China-US.
"""

import re

from graphrag_nlp.names.head_types import find_head_type, is_plural_kind
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_shapes import is_adjective, is_people, is_surname
from graphrag_nlp.names.name_words import (
    DEMONYMS,
    GIVEN_NAMES,
    PARTIES,
    TYPE_WORDS_IN_SURNAMES,
    common_words,
    is_head_word,
    is_organization_word,
    is_role,
    more_given_names,
)
from graphrag_nlp.names.place_ratings import is_country
from graphrag_nlp.names.span_words import Cut, SpanWords
from graphrag_nlp.text.languages import (
    NAMING_TITLES,
    PARTICLES,
    is_title,
    read_lists,
    word_set,
)

_WORDS = read_lists("graphrag_nlp/names/data/words")
# Words that begin a sentence or a clause, and few titles of works go on with: Some Democrats.
_OPENINGS = word_set(_WORDS["sentence_openings"])
# Words of headlines in title case between two names: Laura Kuenssberg At Westminster.
_HEADLINE_WORDS = word_set(_WORDS["headline_joints"])
# Roles by their letters, before a person: (the) TD Catherine Murphy.
_LETTERS_OF_ROLES = frozenset("TD TDs AG PC MSP MLA MP MEP DA GP DJ".split())
# Words for members of a party, and the sides of a parliament before them: Opposition Members.
_MEMBER_WORDS = word_set(_WORDS["member_words"])
_SIDES = word_set(_WORDS["sides"])
_PARTY_MEMBERS = frozenset(("Democrat", "Republican"))
# Chambers before the name of their speaker or member: (Speaker of the) House | Paul Ryan.
_CHAMBERS = frozenset(("House", "Senate", "Congress", "Commons", "Parliament", "Assembly"))
# Prefixes of adjectives and roles before the name of a body or a place: Ex-IMF (boss).
_PREFIXES = frozenset(("Ex", "Anti", "Pro", "Post", "Pre", "Non", "Then"))
_PAIR = re.compile(r"([^\W\d_]{2,})-([^\W\d_]{2,})")
_PERSON_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['’-])+|[^\W\d_]\.")
# Maximum number of words of a person's name behind another name: Thomas de Maizière.
_MAX_PERSON_WORDS = 4


def is_given_full_name(words: list[str], *, rare: bool = False) -> bool:
    """Return whether English words are a frequent given name and a surname: Tom Price.

    The surname may be any word, but no head of an organization. If `rare`, the given name may be
    any of many languages.
    """
    given = more_given_names() if rare else GIVEN_NAMES
    if not 1 < len(words) <= _MAX_PERSON_WORDS or words[0] not in given:
        return False
    last = words[-1]
    is_thing = is_head_word(last) and last.lower() not in TYPE_WORDS_IN_SURNAMES
    if is_thing or is_organization_word(last) or last.islower() or is_role(last):
        return False
    return all(
        _PERSON_WORD.fullmatch(word) and (word[0].isupper() or word in PARTICLES) for word in words
    )


def begins_sentence(word: str) -> bool:
    """Return whether a capitalized English word begins a sentence, and is no given name."""
    return word.lower() in _OPENINGS and word not in more_given_names()


def cut_english_span(span: SpanWords, words: list[str]) -> Cut | None:
    """Return the position of a cut in an English span that other rules leave whole."""
    if span.language.code != "en":
        return None
    if words[-1].lower() in _MEMBER_WORDS and len(words) > 1:
        return _cut_before_members(span, words)
    if words[-1] in _PARTY_MEMBERS and span.usage.is_known_place(" ".join(words[:-1]), "en"):
        return len(words) - 1, len(words)  # (a) Virginia | Democrat
    if _ends_with_adjective(span, words):
        return len(words) - 1, len(words)  # (the) US | Olympic (swimmer)
    if len(words) < 3:
        return None
    return (
        _cut_before_full_name(span, words)
        or _cut_behind_full_name(words)
        or _cut_at_opening(span, words)
        or _cut_before_of(span, words)
    )


def _ends_with_adjective(span: SpanWords, words: list[str]) -> bool:
    """Return whether a name stands before the adjective of a people and a noun."""
    number, usage = span.number, span.usage
    if len(words) < 2 or words[-1].lower() not in DEMONYMS or words[-1] in more_given_names():
        return False
    if usage.before_noun[number] * 2 <= usage.total[number] or words[-2].islower():
        return False
    return not is_adjective(words[-2]) and _is_known(span, words[:-1])


def _cut_before_members(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut the members of a party off its name: Labour | Members; drop Opposition Members."""
    party = " ".join(words[:-1])
    is_party = find_known_type(party) == "organization" or words[-2].lower() in PARTIES
    if not is_party and span.usage.is_known_place(party, "en"):
        return len(words) - 1, len(words)  # Wales | MPs
    is_side = _SIDES.issuperset(word.lower() for word in words[:-1])
    is_side = is_side or all(map(is_adjective, words[:-1]))  # British MPs
    return ((len(words) - 1 if is_party else 0), len(words)) if is_party or is_side else None


def _cut_before_full_name(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut between a body or a place and a person: Homeland Security | John Kelly."""
    if _is_country_before_person(span, words):
        return 1, 1
    for at in range(1, len(words) - 1):
        is_rare = words[at] not in GIVEN_NAMES
        if not is_given_full_name(words[at:], rare=True):
            continue
        left_is_known = at > 1 and _is_known_body(span, words[:at])
        # Norway | Teimuraz Ramishvili
        if is_country(" ".join(words[:at])):
            left_is_known = not any(map(_is_frequent, words[at:]))
        if is_rare and not left_is_known:
            continue
        left, right = words[:at], at
        if left[-1] in _LETTERS_OF_ROLES:
            left.pop()
            if not left and words[0] == "DJ":
                return 0, at  # DJ Alan Freed
        else:
            while left and is_title(left[-1]) and left[-1].lower().rstrip(".") not in NAMING_TITLES:
                left.pop()
            right = len(left)
        if not left or not left[-1][0].isupper():
            return None
        own = left[:-1]
        if len(own) > 1 and is_people(left[-1]) and _is_body_or_place(span, own):
            return len(own), at  # Commission for Minors | Briton | Peter Saunders
        is_other = left[0] not in more_given_names() and not is_title(left[0])
        if len(left) == 1 and right < at and is_other:
            return 0, right  # Czech | General Petr Pavel
        if _is_body_or_place(span, left) or (len(left) < at and len(left) > 1 and is_other):
            return len(left), right
    return None


def _is_country_before_person(span: SpanWords, words: list[str]) -> bool:
    """Return whether a country stands before two words whose last is also used alone.

    Example: (the ambassador to) Iran | Levan Dzhagaryan, where Dzhagaryan is a name, too.
    """
    if len(words) != 3 or not is_country(words[0]) or words[0] in more_given_names():
        return False
    is_person = all(word.istitle() and not _is_frequent(word) for word in words[1:])
    is_person = is_person and not any(map(span.usage.is_demonym, words))
    is_place = any(span.usage.is_known_place(word, "en") for word in words[1:])
    return is_person and not is_place and span.count_known_mentions(words[2:]) > 0


def _is_frequent(word: str) -> bool:
    """Return whether a word is a frequent English one, or a kind of thing: Severn | Trent Water."""
    return word.lower() in common_words("en") or is_head_word(word) or is_title(word)


def _is_body_or_place(span: SpanWords, words: list[str]) -> bool:
    """Return whether words before a person's name are another name, and no given name."""
    name = " ".join(words)
    if len(words) == 1:
        if words[0] in more_given_names() or is_title(words[0]):
            return False
        is_acronym = words[0].isupper() and find_known_type(name) == "organization"
        return is_country(name) or is_acronym or name in _CHAMBERS
    if _is_known_body(span, words):
        return True
    lower = [word.lower() for word in words]
    kind = find_head_type(words, lower, "en")
    is_plain = common_words("en").issuperset(lower)  # Human Rights, Public Defender
    return kind == "organization" or is_plain or (kind != "" and len(words) > 2)


def _is_known_body(span: SpanWords, words: list[str]) -> bool:
    """Return whether words are a known organization or place."""
    name = " ".join(words)
    return find_known_type(name) in ("organization", "geo") or span.usage.is_known_place(name, "en")


def _cut_behind_full_name(words: list[str]) -> Cut | None:
    """Cut between an author and a publisher: Robert Faturechi | ProPublica."""
    if not is_given_full_name(words[:2]) or words[1].endswith(".") or words[2].islower():
        return None
    if len(words) == 3 and is_surname(words[2]):
        return None  # Mary Tyler Reynolds
    is_body = find_known_type(" ".join(words[2:])) == "organization"
    return (2, 2) if is_body else None


def _is_known(span: SpanWords, words: list[str]) -> bool:
    """Return whether words are a name by themselves: a known one, a person, or a frequent one."""
    name = " ".join(words)
    return (
        find_known_type(name) != ""
        or span.usage.is_known_place(name, "en")
        or is_given_full_name(words)
        or span.count_known_mentions(words) > span.times
    )


def _cut_at_opening(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut where a sentence begins inside a span: Moscow | Some Democrats."""
    for at in range(1, len(words) - 1):
        lower = words[at].lower()
        if words[at].islower() or not (lower in _OPENINGS or lower in _HEADLINE_WORDS):
            continue
        if lower in _OPENINGS and all(is_title(word) or is_role(word) for word in words[:at]):
            return 0, at + 1  # (said the) Professor | While Brexit
        is_alone = at == 1 and words[0] in more_given_names()  # Alexander The Great
        if is_alone or words[at - 1].islower() or not _is_known(span, words[:at]):
            continue
        if lower in _OPENINGS or _is_known(span, words[at + 1 :]):
            return at, at + 1
    return None


def _cut_before_of(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut a noun at the start of a sentence off a known name: Membership of | (the) EU."""
    if words[1] == "of" and is_plural_kind(words[0], "en"):
        rest = words[3:] if words[2] == "the" and len(words) > 3 else words[2:]
        is_place = span.usage.is_known_place(" ".join(rest), "en")
        return (0, len(words) - len(rest)) if is_place else None  # Governments of | Europe
    if not span.initial or words[1] != "of" or is_head_word(words[0]) or is_role(words[0]):
        return None
    is_word = words[0].lower() in common_words("en") or words[0].endswith(("tion", "ship", "ism"))
    if not is_word or words[0] in more_given_names() or is_title(words[0]):
        return None
    right = next((i for i in range(2, len(words)) if not words[i].islower()), 0)
    rest = words[right:]
    name = " ".join(rest)
    known = find_known_type(name) == "organization" or is_country(name)
    return (0, right) if right and known else None


def _find_prefixed_name(span: SpanWords) -> tuple[int, str] | None:
    """Return the offset and the name behind a prefix: Ex-IMF; None if there is no other name."""
    prefix, hyphen, first = span.words[0].partition("-")
    if not hyphen or prefix not in _PREFIXES or span.language.code != "en":
        return None
    name = " ".join(span.words)
    words = [first, *span.words[1:]]
    is_known = find_known_type(name) or span.usage.is_known_place(name, "en")
    if not first[:1].isupper() or is_known or not _is_known(span, words):
        return None
    return len(prefix) + 1, " ".join(words)


def find_pair(span: SpanWords) -> list[tuple[int, str]] | None:
    """Return the offsets and names in a word of two names: China-US; None if it is one name.

    Adjectives of peoples are no names: German-Turkey, Sunni-Shia. A prefix belongs to none.
    """
    if prefixed := _find_prefixed_name(span):
        return [prefixed]
    word = span.words[0]
    if len(span.words) > 1 or span.language.code != "en" or "-" not in word:
        return None
    found = _PAIR.fullmatch(word)
    if not found or find_known_type(word) or span.usage.is_known_place(word, "en"):
        return None
    first, last = found.groups()
    sides = ((0, first), (len(first) + 1, last))
    if all(is_adjective(side) and side not in GIVEN_NAMES for _, side in sides):
        return []
    known = [
        find_known_type(side) in ("organization", "person") or is_country(side) for _, side in sides
    ]
    is_other = [
        is_adjective(side) or span.count_known_mentions([side]) > span.times for _, side in sides
    ]
    if all(known) or (any(known) and all(a or b for a, b in zip(known, is_other, strict=True))):
        return [(at, side) for at, side in sides if not is_adjective(side) or side in GIVEN_NAMES]
    return None
