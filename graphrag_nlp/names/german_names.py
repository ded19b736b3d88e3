"""German common nouns and names, which both have a capital, told apart by words and usage."""

import re

from graphrag_nlp.names.compounds import (
    COMMON_NOUN_END,
    GERMAN_ADJECTIVE,
    PLACE_END,
    is_certain_noun,
    is_german_noun,
    is_loan_word,
)
from graphrag_nlp.names.corpus_statistics import CorpusStatistics
from graphrag_nlp.names.known_names import find_german_type, find_known_type
from graphrag_nlp.names.name_joints import is_german_conference
from graphrag_nlp.names.name_words import (
    GERMAN_ADDRESSES,
    GIVEN_NAMES,
    PARTIES,
    REFERENCES,
    SURNAME_END,
    common_words,
    is_head_word,
    is_institution_word,
    is_role,
    known_firms,
    more_given_names,
)
from graphrag_nlp.names.type_classifier import rate_words
from graphrag_nlp.names.word_table import cue_type
from graphrag_nlp.text.languages import language_of, read_lists, word_set
from graphrag_nlp.text.places import large_place_names

_WORDS = read_lists("graphrag_nlp/names/data/words")
_GERMAN_STREET = re.compile(_WORDS["german_streets"])
_GERMAN_BODY = re.compile(_WORDS["german_bodies"])
# An adjective whose hyphen was lost: EUweit.
_SHORTENED_ADJECTIVE = re.compile(
    r"[A-ZÄÖÜ]{2,}(?:weit|intern|eigen|nah|feindlich|freundlich|konform|rechtlich)(?:e[mnrs]?)?"
)
# Nouns that no ordinal before them makes a name.
_PARTS = REFERENCES | {"lesung", "zeile", "stellvertreter", "mal"}
# The last noun of a word with capitals inside.
_INNER_NOUN = re.compile(r"(?<=\w)[A-ZÄÖÜ][a-zäöüß]{3,}$")
_ORDINAL = re.compile("(?:Erst|Zweit|Dritt|Viert|Fünft|Letzt|Nächst)e[nrs]?")
# A word is no surname if at least one of so many occurrences follows an article.
MIN_NOUN_RATIO = 5
# Minimum ratings of nouns that are surnames, and of frequent ones.
MIN_SURNAME, MIN_LISTED_SURNAME = 1, 3
MAX_SURNAME_LETTERS = 11
# Relatives and others after the "&" of a firm.
_FAMILY = frozenset("Sohn Söhne Töchter Brüder Gebrüder Partner Co Cie Kollegen Fils Sons".split())
_GERMAN_COMPANY_FORMS = frozenset("gmbh ag kg ohg kgaa gbr eg se mbh".split())
# Powers of the state, behind which a noun is the object: (wenn die) Regierung Auskünfte (gibt).
_POWERS = frozenset("Regierung Gericht Verfassung Parlament Opposition Koalition".split())
_NOUNS_LIKE_NAMES = word_set(_WORDS["german_nouns_like_names"])
_NOUNS_AND_NAMES = word_set(_WORDS["german_nouns_and_names"])
_OCCUPATIONS = word_set(_WORDS["german_occupations"])
_PLACES_WITH_ARTICLE = word_set(_WORDS["german_places_with_article"])


def is_german_phrase(usage: CorpusStatistics, number: int, span: list[str]) -> bool:
    """Return whether a German span has common nouns only: Neue Pakete, Mail Adresse."""
    if len(span) == 2 and _are_subject_and_object(*span):
        return True
    if len(span) == 2 and _is_thing_of_place(usage, number, *span):
        return True
    name = " ".join(span)
    is_species = len(span) == 2 and span[1].islower()  # Lynx lynx
    if len(span) > 2 and span[1] == "für" and is_german_conference(span[0]):
        return False
    if span[0] in GERMAN_ADDRESSES or is_species or _is_firm(span) or find_german_type(name):
        return False  # Burger King
    if len(span) == 2 and _lacks_hyphen(span[0]) and is_certain_noun(span[1]):
        return True  # Außenund Sicherheitspolitik
    if not usage.known_places.isdisjoint((*span, name)) or any(map(is_head_word, span)):
        return False
    if len(span) == 2 and _ORDINAL.fullmatch(span[0]) and span[1].lower() in _PARTS:
        return True  # Erste Beratung
    is_adjective = span[0].endswith(("e", "er", "es", "en"))
    if not usage.inside[number] and is_adjective and all(map(is_german_noun, span[1:])):
        return True  # Serielle Mäuse
    is_noun = span[0].endswith("ionen")  # Sanktionen Schritt
    is_title_case = usage.inside[number] and GERMAN_ADJECTIVE.fullmatch(span[0]) and not is_noun
    return (
        not is_title_case
        and all(word.islower() or is_certain_noun(word) or is_loan_word(word) for word in span)
        and not any(w in GIVEN_NAMES or find_known_type(w) not in ("", "person") for w in span)
    )


def _lacks_hyphen(word: str) -> bool:
    """Return whether a word joins a first part of a compound to "und": Außenund (Sicherheit)."""
    first = word.removesuffix("und")
    is_joined = len(word) - len(first) == 3 and len(first) > 3 and word not in more_given_names()
    return is_joined and not is_certain_noun(word) and _is_first_part(first)


def _is_first_part(word: str) -> bool:
    """Return whether a noun goes on behind a word: Außen(politik), Wasch(mittel)."""
    return is_certain_noun(f"{word}arbeit")


def _is_garbled(word: str) -> bool:
    """Return whether a noun has a lost hyphen or one too many: WLANNetz, EinArbeitnehmer."""
    head, _, tail = word.rpartition("-")
    if head and tail[0].islower():
        return is_certain_noun(head.replace("-", "") + tail)  # Riesenpro-blem
    last = _INNER_NOUN.search(word)
    if head or not last or not is_certain_noun(last.group()) or is_head_word(last.group()):
        return False
    first = word[: last.start()]
    is_acronym = len(first) > 1 and first.upper() == first
    is_function_word = first.lower() in language_of("de").function_words
    return (is_acronym or is_function_word) and not find_known_type(word)


def _are_subject_and_object(subject: str, noun: str) -> bool:
    """Return whether a noun stands behind a power of the state: (wenn die) Regierung Auskünfte."""
    is_plain = is_certain_noun(noun) and not is_head_word(noun) and not find_known_type(noun)
    return subject in _POWERS and is_plain


def _is_firm(span: list[str]) -> bool:
    """Return whether words end as firms do: Molkerei Steinbichler KG, Lang & Söhne."""
    is_family = len(span) > 2 and span[-2] == "&" and span[-1] in _FAMILY
    return is_family or span[-1].lower().rstrip(".") in _GERMAN_COMPANY_FORMS


def _is_thing_of_place(usage: CorpusStatistics, number: int, first: str, noun: str) -> bool:
    """Return whether words are a place's adjective and a plural or a person: Londoner Designer."""
    place = first.removesuffix("er")
    is_of_place = place != first and (place.lower() in large_place_names() or place in usage.towns)
    if not is_of_place or usage.total[number] > 1 or not is_certain_noun(noun):
        return False
    return (is_plural(noun) and not is_head_word(noun)) or is_role(noun)


def is_plural(noun: str) -> bool:
    """Return whether a German noun is the plural of a frequent word: Designer, Irritationen."""
    lower, common = noun.lower(), common_words("de")
    return is_certain_noun(noun) and any(
        len(stem := lower.removesuffix(end)) > 3 and stem != lower and stem in common
        for end in ("e", "en", "n", "er")
    )


def is_german_name(usage: CorpusStatistics, number: int, word: str) -> bool:
    """Return whether a single German noun is a name. German capitalizes all nouns."""
    if word.lower() in _NOUNS_LIKE_NAMES and word not in usage.after_given:
        return False
    if word.lower() in _NOUNS_AND_NAMES and _is_used_as_noun(usage, number, word):
        return False
    if word in _PLACES_WITH_ARTICLE or usage.is_known_place(word, "de"):
        return True
    if _is_garbled(word):
        return False
    if word in GIVEN_NAMES or _ends_name_of_person(usage, number, word) or word.lower() in PARTIES:
        return True
    if _GERMAN_BODY.fullmatch(word) or _GERMAN_STREET.fullmatch(word):
        return True
    if "-" in word and find_known_type(word) in ("organization", "geo"):
        return True  # Johanniter-Unfall-Hilfe
    if "-" in word:
        return _is_german_double_word(usage, word, usage.determiner[number] > 0)
    if _SHORTENED_ADJECTIVE.fullmatch(word):
        return False
    if any(letter.isupper() for letter in word[1:]):
        return not is_german_noun(word)  # RheinEnergie, AfD, but not TeilnehmerInnen
    if is_loan_word(word) and not find_known_type(word):
        return False
    is_certain = is_certain_noun(word)
    if usage.person[number] and not is_certain:
        return True
    is_listed = word.lower() in common_words("de")
    if word in usage.towns and (usage.place[number] or not is_listed):
        return True
    # Few common nouns that end like places follow a preposition without an article.
    may_be_place = (PLACE_END.search(word) and not is_listed) or not (
        is_certain or COMMON_NOUN_END.search(word)
    )
    if may_be_place and usage.preposition[number] and not usage.determiner[number]:
        return True
    if is_german_noun(word):
        return False
    is_shown = PLACE_END.search(word) or is_head_word(word) or word in more_given_names()
    if usage.determiner[number] * 3 >= usage.total[number] and not is_shown:
        return find_known_type(word) != "" or word in known_firms()
    if word in more_given_names() and not is_listed and rate_words([word])[word].given_name:
        return True  # Olli kommt.
    # A genitive without an article shows that the word is a name.
    genitive = usage.first_words[word + "s"] and not usage.first_after_article[word + "s"]
    return bool(
        usage.inside[number]
        or PLACE_END.search(word)
        or find_known_type(word)
        or word in known_firms()
        or usage.is_part_of_name(word, usage.found.languages[number])
        or (usage.total[number] > 1 and usage.determiner[number] == 0)
        or genitive
    )


def _is_used_as_noun(usage: CorpusStatistics, number: int, word: str) -> bool:
    """Return whether a noun that may be a name occurs once, or has articles: der Bernstein."""
    if word in usage.after_given or usage.person[number]:
        return False
    times, determined = usage.total[number], usage.determiner[number]
    is_placed = usage.place[number] * MIN_NOUN_RATIO >= times  # aus Wolfram
    return times < 2 or determined * MIN_NOUN_RATIO >= times or is_placed


def _ends_name_of_person(usage: CorpusStatistics, number: int, word: str) -> bool:
    """Return whether a word follows a given name, and is used as a surname: not Annas Tod."""
    if word not in usage.after_given:
        return False
    if word.lower() not in common_words("de") and not is_loan_word(word):
        return True
    # Surnames follow few articles: Thomas Mann is no reason to take "ein Mann" for a person.
    is_determined = usage.determiner[number] * MIN_NOUN_RATIO >= usage.total[number]
    return rate_words([word])[word].surname > 0 and not is_determined


def names_person(word: str) -> bool:
    """Return whether a German noun is that of a person: Gutachter, Förster."""
    return cue_type(word) == "person" or word.lower() in _OCCUPATIONS


def may_be_surname(word: str, has_office: bool = False) -> bool:
    """Return whether a German word behind a role may be a surname: Förster Huber, but not Geld.

    `has_office` is true behind an office, where few words are objects: Minister Töpfer.
    """
    if not (is_german_noun(word) or is_loan_word(word)):
        return True
    is_listed = word.lower() in common_words("de") and not has_office
    if PLACE_END.search(word) and not is_listed and len(word) <= MAX_SURNAME_LETTERS:
        return True  # Hohlfeld, but not Tätigkeitsfeld
    return rate_words([word])[word].surname >= (MIN_LISTED_SURNAME if is_listed else MIN_SURNAME)


def _is_german_double_word(usage: CorpusStatistics, word: str, has_article: bool) -> bool:
    """Return whether a German word with hyphens is a name: Goethe-Universität, Baden-Baden."""
    *first, last = word.split("-")
    if last.isupper() and all(map(is_certain_noun, first)):
        return False  # Benutzer-ID
    is_word = is_german_noun(last) or is_loan_word(last)
    is_plain = has_article or last.lower() in common_words("de") or is_loan_word(last)
    is_plain = is_plain or (is_certain_noun(last) and not SURNAME_END.search(last))
    if not is_word or not (is_plain or any(map(is_german_noun, first))):
        return True
    named = any(part in GIVEN_NAMES or part in usage.known_places for part in first)
    named = named or any(part in usage.after_given for part in first)
    are_words = all(is_german_noun(part) or is_loan_word(part) for part in first)
    return named or (is_institution_word(last) and not are_words)
