"""German common nouns and names, which both have a capital, told apart by words and usage."""

import re

from graphrag_nlp.names.compounds import (
    COMMON_NOUN_END,
    PLACE_END,
    is_certain_noun,
    is_german_noun,
    is_loan_word,
)
from graphrag_nlp.names.corpus_statistics import CorpusStatistics
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import (
    GIVEN_NAMES,
    PARTIES,
    common_words,
    is_head_word,
    known_firms,
    more_given_names,
)
from graphrag_nlp.names.type_classifier import rate_words
from graphrag_nlp.names.word_table import cue_type
from graphrag_nlp.text.languages import read_lists, word_set

_WORDS = read_lists("graphrag_nlp/names/data/words")
_GERMAN_STREET = re.compile(_WORDS["german_streets"])
_GERMAN_BODY = re.compile(_WORDS["german_bodies"])
# A word is no surname if at least one of so many occurrences follows an article.
MIN_NOUN_RATIO = 5
# Minimum ratings of nouns that are surnames, and of frequent ones.
MIN_SURNAME, MIN_LISTED_SURNAME = 1, 3
MAX_SURNAME_LETTERS = 11
_NOUNS_LIKE_NAMES = word_set(_WORDS["german_nouns_like_names"])
_OCCUPATIONS = word_set(_WORDS["german_occupations"])
_PLACES_WITH_ARTICLE = word_set(_WORDS["german_places_with_article"])


def is_german_name(usage: CorpusStatistics, number: int, word: str) -> bool:
    """Return whether a single German noun is a name. German capitalizes all nouns."""
    if word.lower() in _NOUNS_LIKE_NAMES and word not in usage.after_given:
        return False
    if word in _PLACES_WITH_ARTICLE or usage.is_known_place(word, "de"):
        return True
    if word in GIVEN_NAMES or _ends_name_of_person(usage, number, word) or word.lower() in PARTIES:
        return True
    if _GERMAN_BODY.fullmatch(word) or _GERMAN_STREET.fullmatch(word):
        return True
    if "-" in word and find_known_type(word) in ("organization", "geo"):
        return True  # Johanniter-Unfall-Hilfe
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
