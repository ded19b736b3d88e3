"""Removal of function words, dates and numbers at the start and end of a capitalized span."""

import re
from typing import NamedTuple

from graphrag_nlp.names.base_forms import is_given_name
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.law_names import count_reference_words
from graphrag_nlp.names.name_words import (
    CALENDAR_WORDS,
    GIVEN_NAMES,
)
from graphrag_nlp.text.languages import Language, is_title, read_lists, word_set

_WORDS = read_lists("graphrag_nlp/names/data/words")
MAX_SPAN_WORDS = 8  # without words in lower case
MAX_SPAN_CHARS = 80

_WORDS_BEFORE_NUMBERS = word_set(_WORDS["numbered"])
# After these words, "June" is a date and no given name: "in June Carter sang".
_WORDS_BEFORE_DATES = word_set(_WORDS["before_dates"])
# Acronyms whose lower-case form is a function word.
_ACRONYMS = frozenset(("US", "WHO"))
# Forms of companies whose lower-case form is a function word.
_FORMS_LIKE_FUNCTION_WORDS = frozenset(("SA", "SE", "AS", "SAS"))
# Function words, months and feasts that begin a name if they have a capital inside a sentence:
# Last Supper, Jan Mayen, Easter Island.
_NAME_START_WORDS = word_set(_WORDS["name_openings"])
# Function words and months that are names after a given name: Theresa May.
_NAME_END_WORDS = word_set(_WORDS["name_closings"])
# Words that are no names: greetings and other words that begin sentences, and contractions.
_OPENERS = word_set(_WORDS["openers"])
_ELIDED_PRONOUNS = word_set(_WORDS["elided_pronouns"])
_CONTRACTION_ENDS = word_set(_WORDS["contraction_ends"])
# Function words of one capital that may be the initial of a surname.
_INITIAL_VOWELS = frozenset("AEOUY")
# Languages whose newspapers and places begin with an article: El Salvador.
_WITH_ARTICLE_IN_NAMES = frozenset(("fr", "es"))
_ARTICLES = frozenset(("el", "la", "las", "le", "les", "los"))
# The party before a state: "(R-Maine)".
_PARTY_PREFIX = re.compile(r"(?:[A-Z]-(?=[A-Z][a-z]{2})|[RDI]-(?=[A-Z][a-z]$))")
_ELIDED_WORD = re.compile(r"(?:[LDQld]|Qu|Dell|All|Nell|Dall|Sull)['’](?=[^\W\d_])")


class TrimmedSpan(NamedTuple):
    """A span without the function words and dates at its start and end.

    `offset` is in characters.
    """

    offset: int
    text: str
    # Whether words were removed at the end: they stand between the name and the word after it.
    is_end_cut: bool
    # A longer name that may be meant, as "One Ton Depot" for "Ton Depot", and its number of
    # additional characters before this span.
    longer: str = ""
    ahead: int = 0


def trim_span(
    words: list[str], language: Language, initial: bool, dated: bool
) -> TrimmedSpan | None:
    """Remove function words and dates at the start and end of a span; None if nothing is left.

    `initial` is true if any first word would have a capital there. `dated` is true if
    the word before the span shows that a month at the start of the span is a date.
    """
    first, last = count_reference_words(words), len(words)
    number_at_end = words[-1] if words[-1].isdigit() and len(words) > 1 else ""
    # A number of four digits is the year of a law.
    is_year = len(number_at_end) == 4
    if number_at_end and not is_year and words[-2].lower() not in _WORDS_BEFORE_NUMBERS:
        last -= 1
    first, opening = _find_start(words, first, last, language, initial, dated)
    last = _find_end(words, first, last, language)
    if first == last:
        return None
    offset = sum(map(len, words[:first])) + first
    surface = " ".join(words[first:last])
    elision = _ELIDED_WORD.match(surface) if language.code in ("fr", "it") else None
    if elision:
        offset += elision.end()
        surface = surface[elision.end() :]
    party = _PARTY_PREFIX.match(surface)
    if party:
        offset += party.end()
        surface = surface[party.end() :]
    is_capital = not elision or surface[0].isupper()
    n_words = sum(not word.islower() for word in words[first:last])
    if not is_capital or len(surface) > MAX_SPAN_CHARS or n_words > MAX_SPAN_WORDS:
        return None
    longer, ahead = "", 0
    if number_at_end and last == len(words) - 1:
        longer = f"{surface} {number_at_end}"
    elif 0 <= opening == first - 1:
        longer, ahead = f"{words[opening]} {surface}", len(words[opening]) + 1
    return TrimmedSpan(offset, surface, last < len(words), longer, ahead)


def _find_start(
    words: list[str], first: int, last: int, language: Language, initial: bool, dated: bool
) -> tuple[int, int]:
    """Return the index behind function words and dates, and that of one that may begin the name.

    The second is -1 if there is none.
    """
    opening = -1
    while first < last and _is_function_word_or_date(words[first], language):
        if _is_known_with_article(words[first:last], language):
            break
        dated = precedes_date(words[first - 1]) if first else dated
        if first < last - 1 and _may_begin_name(words[first : first + 2], dated, language):
            lower = words[first].lower()
            # "Monday Club" and "April Mills" are names; "May" in "May God help us" is not.
            named = words[first] in GIVEN_NAMES and lower not in language.function_words
            if not initial or (lower in CALENDAR_WORDS and (first or named)):
                break
            opening = first
        first += 1
    return first, opening


def _find_end(words: list[str], first: int, last: int, language: Language) -> int:
    """Return the index behind the last word that is no function word and no date."""
    while last > first and _is_function_word_or_date(words[last - 1], language):
        if words[last - 1].islower() and _ELIDED_WORD.match(words[last - 1]):
            break  # Institut de recherche pour l'agriculture
        is_form = words[last - 1] in _FORMS_LIKE_FUNCTION_WORDS and last - 1 > first
        if is_form and not words[last - 2].isupper():
            break  # Halden Optique SA
        if words[last - 1] == "Est" and last - 1 > first:
            break  # Safer Grand Est
        closing = words[last - 1].lower() in _NAME_END_WORDS
        # Kwame A; but not "Emma I"
        closing = closing or (words[last - 1] in _INITIAL_VOWELS and last - first == 2)
        if closing and last - 1 > first and is_given_name(words[last - 2], language):
            break
        # "I" is a numeral in "World War I" and "King Albert I".
        numeral = words[last - 1] == "I" and last - 1 > first
        if numeral and (words[last - 2] == "War" or is_title(words[first])):
            break
        last -= 1
    return last


def _is_known_with_article(words: list[str], language: Language) -> bool:
    """Return whether words are a known name that begins with an article: Le Monde, El País."""
    return (
        language.code in _WITH_ARTICLE_IN_NAMES
        and 1 < len(words) < 4
        and words[0].lower() in _ARTICLES
        and find_known_type(" ".join(words)) != ""
    )


def _is_function_word_or_date(word: str, language: Language) -> bool:
    lower = word.lower()
    if word in _ACRONYMS:
        return False
    if word == "&":
        return True  # left over where the word after it was removed
    if lower in language.function_words or lower in CALENDAR_WORDS or lower in _OPENERS:
        return True
    head, apostrophe, end = lower.replace("’", "'").partition("'")
    if not apostrophe:
        return False
    is_contraction = end in _CONTRACTION_ENDS and (
        head in language.function_words or head in ("i", "let", "here")
    )
    is_contraction = is_contraction or (head == "i" and language.code == "en")  # I'ma
    # In French, a verb or a noun in lower case follows: "j'ai", but not "L'Équipe".
    is_elided = head in _ELIDED_PRONOUNS and not word[len(head) + 1 :][:1].isupper()
    return is_contraction or (is_elided and language.code in ("fr", "it"))


def _may_begin_name(words: list[str], dated: bool, language: Language) -> bool:
    """Return whether a function word or a month before a name may belong to the name."""
    word, lower = words[0], words[0].lower()
    if lower in _NAME_START_WORDS:
        return True
    if lower not in CALENDAR_WORDS or dated or _is_function_word_or_date(words[1], language):
        return False
    # In German, a day before a noun is not a name: "Sonntag Abend".
    return word in GIVEN_NAMES or not language.capitalizes_nouns


def precedes_date(word: str) -> bool:
    """Return whether a month after a word is a date, and no given name."""
    return word.lower() in _WORDS_BEFORE_DATES or word[:1].isdigit()
