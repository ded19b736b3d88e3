"""Cuts of capitalized spans at a particle between two names: Italy of Antonio Gramsci."""

import re

from graphrag_nlp.names.compounds import (
    COMMON_NOUN_END,
    is_certain_noun,
    is_german_noun,
    is_loan_word,
)
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import (
    COMPANY_FORMS,
    HEAD_FIRST,
    HEAD_WORDS,
    PARTIES,
    common_words,
    is_head_word,
    is_organization_word,
    is_role,
    known_firms,
    more_given_names,
)
from graphrag_nlp.names.span_words import Cut, SpanWords, is_type_word
from graphrag_nlp.names.type_classifier import rate_words
from graphrag_nlp.text.languages import is_title, read_lists, word_set
from graphrag_nlp.text.type_words import TYPE_WORDS

# Particles before a noun that is no name: Radtke zu Gast.
_PURPOSES = frozenset(("zur", "zu"))
# Nouns behind "zu". Other compounds are seats of noble families: Franz zu Löwenstein.
_NOUNS_OF_ZU = frozenset(read_lists("graphrag_nlp/names/data/words")["nouns_of_zu"].split())
# Minimum rating of a surname behind a thing and a particle: Valladolid de Pezzolano.
MIN_OWNER_SURNAME, MIN_ROMANCE_SURNAME = 1, 2
_CUT_PARTICLES = frozenset(("of", "von", "van", "de", "des", "der", "zu", "zur"))
# The end of an adjective behind "von der".
_DATIVE = re.compile(r"(?:ischen|lichen|alen|igen|iven|ären|deutschen)$")
# Titles before the "von" of a surname: Karl Freiherr von Stein.
_NOBLE_TITLES = frozenset(
    "graf gräfin freiherr freifrau prinz prinzessin herzog herzogin fürst fürstin baron baronin "
    "ritter edler edle markgraf landgraf pfalzgraf erzherzog könig kaiser junker".split()
)
# Acronyms of bodies that form a name together with the place behind them: CHU de Nantes.
_PLACED_ACRONYMS = word_set(read_lists("graphrag_nlp/names/data/words")["placed_acronyms"].upper())
_SPANISH_CHAMBERS = frozenset("Senado Cámara Congreso Parlamento Pleno Diputación".split())
_PROPOSERS = frozenset("Grupo Gobierno Partido Cortes".split())
_ACRONYM = re.compile(r"[A-Z]{3,6}")


def cut_at_particle(span: SpanWords, words: list[str], initial: bool) -> Cut | None:
    """Cut at a particle between two names: Nimrod Expedition of Ernest Shackleton."""
    is_romance = span.language.code in HEAD_FIRST
    if span.language.code == "es" and (cut := _cut_after_chamber(words)):
        return cut
    for at, word in enumerate(words):
        if word not in _CUT_PARTICLES or not 0 < at < len(words) - 1:
            continue
        may_have_purpose = not _is_body(" ".join(words[:at])) and _may_have_purpose(words[at - 1])
        # Lena Hart zu Fuß, although "Hart" is like a noun
        may_have_purpose = may_have_purpose and not span.is_full_name(words[:at])
        is_purpose = word in _PURPOSES and _is_purpose(word, words[at + 1])
        if (
            is_purpose
            and not may_have_purpose
            and " ".join(words[at + 1 :]) not in span.usage.towns
        ):
            return at, at + 1 + (word == "zu")  # X2Go zur Verbindung, Radtke zu Gast
        begins = is_romance and at == 1 and words[0][0].isupper()
        if begins and (cut := _cut_behind_romance_word(span, words, initial)):
            return cut
        start = next((i for i in range(at, len(words)) if not words[i].islower()), None)
        if start is None:
            return None
        left, right = words[:at], words[start:]
        if _belongs_to_body(span, left, right):
            return at, start
        if span.language.code == "de" and word == "von" and _is_made_by(span, left, right):
            return at, start
        single = _is_other_word(span, left)
        if word == "of":
            cut = _cut_at_of(span, words, at, start, initial)
        elif not (single and span.language.capitalizes_nouns):
            cut = _cut_at_von(span, words, at, start, initial) if word == "von" else None
        elif word == "von" and left[0].isupper():
            cut = at, start  # (auf dem) NAS von Synology
        elif is_german_noun(left[0]) or is_loan_word(left[0]):
            return None if _heads_body(span, left[0], right) else (0, start)
        elif any(map(span.is_given_name, right)) or span.count_known_mentions(right) > span.times:
            cut = at, start
        else:
            cut = None
        if cut:
            return cut
    return None


def _cut_after_chamber(words: list[str]) -> Cut | None:
    """Cut a Spanish chamber off what a group proposes there: (en el) Senado | del Grupo Catalán."""
    at = next((i for i, word in enumerate(words) if word in ("de", "del")), 0)
    right = next((i for i in range(at, len(words)) if words[i][0].isupper()), 0)
    is_cut = 0 < at < right and words[0] in _SPANISH_CHAMBERS and words[right] in _PROPOSERS
    return (at, right) if is_cut else None


def _is_made_by(span: SpanWords, left: list[str], right: list[str]) -> bool:
    """Return whether a thing stands before its maker or author: Jira | von Kopano."""
    name, owner = " ".join(left), " ".join(right)
    if left[0] in more_given_names() or left[0].islower() or find_known_type(name) == "person":
        return False
    if is_german_noun(left[-1]) or is_organization_word(left[-1]):
        return False
    if find_known_type(name) in ("name", "organization"):
        return len(right) > 1 or owner not in span.usage.towns
    if find_known_type(owner) == "organization" or owner in known_firms():
        return True
    rating, own = rate_words(right)[right[0]], rate_words(left)[left[0]]
    is_surname = len(right) == 1 and rating.surname >= MIN_OWNER_SURNAME and not rating.town
    return is_surname and len(left) == 1 and own.given_name == 0


def _is_other_word(span: SpanWords, words: list[str]) -> bool:
    """Return whether words are one word, and neither a type word nor a given name."""
    return len(words) == 1 and not is_type_word(words[0]) and not span.is_given_name(words[0])


def _belongs_to_body(span: SpanWords, left: list[str], right: list[str]) -> bool:
    """Return whether a thing or a part stands before its body: la sonde Juno de la NASA."""
    code = span.language.code
    if code in HEAD_FIRST and len(left) == 1 and right[0].isupper() and len(right[0]) > 2:
        is_plain = left[0].lower() in TYPE_WORDS | common_words(code)
        if not is_plain and not left[0].isupper():
            return True
    # Instituto de Biología de la UNAM
    is_acronym = len(right) == 1 and _ACRONYM.fullmatch(right[0]) is not None
    return code == "es" and len(left) > 1 and is_acronym


def _heads_body(span: SpanWords, noun: str, right: list[str]) -> bool:
    """Return whether a noun is a body or a council: Rat von Basel; but not an advice of Anna."""
    is_town = " ".join(right) in span.usage.towns and not span.is_given_name(right[0])
    return (noun == "Rat" and is_town) or is_organization_word(noun)


def _cut_at_von(
    span: SpanWords, words: list[str], at: int, start: int, initial: bool
) -> Cut | None:
    """Cut at the "von" at index `at`; the right part begins at `start`."""
    left, right = words[:at], words[start:]
    if span.language.capitalizes_nouns and _may_end_person(span, words, at):
        # "Nils Petersen von der TU Darmstadt", but "Ursula von der Leyen"
        is_adjective = len(right) > 1 and _DATIVE.search(right[0])
        is_body = right[0].isupper() or is_organization_word(right[0])
        is_cut = is_body or is_adjective or _has_surname(left) or _begins_group(words, at)
        return (at, start) if is_cut else None
    if initial and len(left) == 2 and _is_plain_noun(*left):
        return 0, start  # Emaillierte Bleche von Silit
    if words[at + 1] == "der" and len(left) > 1 and is_title(left[0]):
        return at, start  # Frau Lindqvist von der Datev
    return None


def _cut_behind_romance_word(span: SpanWords, words: list[str], initial: bool) -> Cut | None:
    """Cut one word before a particle off a name: Recetas de Karlos Arteaga, AC3321 de Tenerife."""
    is_word = words[0].lower() in common_words(span.language.code) or initial
    has_code = any(map(str.isdigit, words[0]))
    is_plain = is_role(words[0]) or (initial and words[0].lower() not in HEAD_WORDS)
    body = next((i for i in (2, 3) if is_organization_word(words[min(i, len(words) - 1)])), 0)
    if is_plain and body and len(words) > body + 1:
        return 0, 2 + words[2].islower()  # Notario del Ilustre Colegio
    owner = " ".join(words[2:])
    if span.is_given_name(words[0]) and (
        find_known_type(owner) == "organization" or owner in known_firms()
    ):
        return 1, 2  # Marta de Endesa
    is_acronym = _ACRONYM.fullmatch(words[0]) and not find_known_type(words[0])
    if is_acronym and (find_known_type(owner) == "organization" or owner in known_firms()):
        return 1, 2  # IVA de Volkswagen
    if len(words) == 3 and _is_thing_of_owner(span, words[0], words[2]):
        return 1, 2
    is_person = span.is_given_name(words[2]) and not span.is_given_name(words[0])
    if (is_person and words[0].lower() not in HEAD_WORDS) or has_code:
        return (0 if is_word or has_code else 1), 2
    return None


def _is_thing_of_owner(span: SpanWords, first: str, owner: str) -> bool:
    """Return whether a name stands before its maker or place: IRD de Montpellier."""
    lower, common = first.lower(), common_words(span.language.code)
    if lower in HEAD_WORDS or lower in TYPE_WORDS or is_role(first) or lower in common:
        return False
    is_place = owner in span.usage.known_places or owner in span.usage.towns
    if _ACRONYM.fullmatch(first):
        return is_place and first not in _PLACED_ACRONYMS
    if not first.isalpha():
        return False  # X. de Lamballe
    known = find_known_type(first)
    if known in ("name", "organization") and is_place:
        return True  # Nagios de Roubaix
    if span.is_given_name(first) or first in more_given_names():
        return False
    if not is_place and (find_known_type(owner) == "organization" or owner in known_firms()):
        return True  # Beyfortus de Sanofi
    is_town = first in span.usage.towns or first in span.usage.known_places
    rating = rate_words([owner])[owner]
    is_surname = rating.surname >= MIN_ROMANCE_SURNAME and not (rating.town or is_place)
    return is_surname and (is_town or known == "name") and owner.lower() not in common


def _cut_at_of(span: SpanWords, words: list[str], at: int, start: int, initial: bool) -> Cut | None:
    """Cut at the "of" at index `at`; the right part begins at `start`."""
    left, right = words[:at], words[start:]
    known = span.count_known_mentions(right)
    single = _is_other_word(span, left)
    if single and left[0].isupper() and _is_body(left[0]):
        return at, start  # FBI of the Trump era
    right_is_name = known > span.times and span.is_full_name(right)
    # (the) National University of Ireland, however frequent Ireland is
    is_headed = span.language.code == "en" and is_organization_word(left[-1])
    # but (the) Antarctic Expedition | of Adrien de Gerlache
    is_headed = is_headed and span.usage.is_known_place(" ".join(right), "en")
    is_whole = (
        find_known_type(" ".join(left)) != "" or left[-1].lower().rstrip(".") in COMPANY_FORMS
    )
    is_headed = is_headed and not is_whole  # (notify the) European Council | of the UK's intention
    right_is_name |= known >= max(3, 5 * span.times) and not is_headed
    left_is_name = at > 1 or span.count_known_mentions(left) > span.times
    is_place = single and span.usage.is_known_place(left[0], span.language.code)
    if is_place and (span.is_full_name(right) or words[at + 1] == "the"):
        return at, start  # news from Italy of Antonio Gramsci
    if (left_is_name and right_is_name) or span.is_full_name(left):
        return at, start
    is_named = span.is_rare_full_name(left) or span.is_full_name(left[1:])
    is_named = is_named or span.is_titled_surname(left)
    if span.language.code == "en" and is_named and not is_head_word(left[0]):
        return at, start  # Tammy Jo Sizemore of Hazard
    if span.language.code in ("en", "und") and _is_person_of_place(span, left, right):
        return at, start  # Jeb Bush of Florida
    if single and any(map(str.isdigit, left[0])):
        return at, start  # (a) DC3 of Royal Air Laos
    if initial and single and known:
        return 0, start
    if span.language.code == "en" and span.are_person_and_body(left, right):
        return at, start  # Perrin Long of Lipper Analytical Ltd
    return None


def _is_person_of_place(span: SpanWords, left: list[str], right: list[str]) -> bool:
    """Return whether words are a given name and a surname, and others a known place."""
    is_person = 1 < len(left) < 4 and left[0] in more_given_names() and not is_title(left[0])
    is_person = is_person and not any(is_head_word(word) or word.isupper() for word in left)
    return is_person and " ".join(right) in span.usage.known_places


def _is_plain_noun(adjective: str, noun: str) -> bool:
    """Return whether words are a German adjective and a noun that begins no name."""
    is_plain = is_german_noun(noun) and not is_head_word(noun)
    return is_plain and adjective.endswith(("e", "er", "es", "en"))


def _may_end_person(span: SpanWords, words: list[str], at: int) -> bool:
    """Return whether words up to an index are a full name, maybe with a rare given name."""
    left = words[:at]
    is_given = at > 1 and left[0] in more_given_names() and _begins_group(words, at)
    return is_given or span.is_full_name(left) or span.is_rare_full_name(left)


def _begins_group(words: list[str], at: int) -> bool:
    """Return whether a "von" at an index precedes a group: Ricarda Stein von den Grünen."""
    return at > 1 and (words[at + 1] in ("den", "dem") or words[at + 1].lower() in PARTIES)


def _has_surname(words: list[str]) -> bool:
    """Return whether words go on with a surname: Marc Stein (von Netscape), not Karl Theodor."""
    last = words[-1]
    is_given = last in more_given_names() or last.isupper() or not last.replace("-", "").isalpha()
    return len(words) > 1 and not is_given and last.lower() not in _NOBLE_TITLES


def _is_body(word: str) -> bool:
    """Return whether a word is a whole known body: Bundesregierung | zur Senkung."""
    return find_known_type(word) == "organization"


def _is_purpose(particle: str, word: str) -> bool:
    """Return whether a word behind "zu" or "zur" is a noun, and no seat of a noble family."""
    if particle == "zu" and word in _NOUNS_OF_ZU:
        return True
    is_seat = particle == "zu" and COMMON_NOUN_END.search(word) is None
    return is_certain_noun(word) and not is_seat


def _may_have_purpose(word: str) -> bool:
    """Return whether a name may go on with a purpose: Verein zur Förderung."""
    return is_german_noun(word) or is_organization_word(word) or is_head_word(word)
