"""Tests whether a corpus uses capitalized spans as names: phrases, words, acronyms, nouns.

Terms of manuals and contracts, such as Rain Cover, have capitals but are no names.
"""

import re
from collections.abc import Sequence

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
    EVERYDAY_ACRONYMS,
    GIVEN_NAMES,
    GIVEN_PEOPLES,
    HEAD_FIRST,
    NAME_SUFFIXES,
    PARTIES,
    REFERENCES,
    common_words,
    is_head_word,
    is_institution_word,
    is_organization_word,
    is_role_only,
    known_firms,
    more_given_names,
)
from graphrag_nlp.names.type_classifier import rate_words
from graphrag_nlp.text.languages import Language, is_title, read_lists, word_set
from graphrag_nlp.text.type_words import TYPE_WORDS

_WORDS = read_lists("graphrag_nlp/names/data/words")
# Forms of companies that mean nothing else at the end of a name in capitals.
_CLEAR_COMPANY_FORMS = frozenset(
    "gmbh ag kg ohg gbr kgaa se ltd inc llc plc sa sas sasu sarl snc sl slu bv oy ab srl spa "
    "corp".split()
)
# A numeral with I, V or X: "CDC" and "DC" are acronyms.
_ROMAN_NUMERAL = re.compile(r"(?=.*[IVX])M*(?:C[MD]|D?C{0,3})(?:X[CL]|L?X{0,3})(?:I[XV]|V?I{0,3})")
# The number after a word that refers to a part of a text: Article 5, Annex B, Step 2.1.
_REFERRED = re.compile(r"[A-Z]?\d[\w./-]*|[IVXLCDM]+|[A-Z]\.?")
# Maximum number of letters of an acronym that is also a frequent word: "WHO".
_MAX_ACRONYM_LETTERS = 5
# Languages whose lists of frequent words have no names.
_WITH_DICTIONARY = frozenset("en de fr it pt nl sv da pl".split())
_MAX_WORD_ACRONYM_LETTERS = 9
# Codes of errors, parts and standards: E15, A4, EQ-3.
_CODE = re.compile(
    rf"(?:{_WORDS['keys']})(?:-.+)?|"
    r"EN|SAE|DIN|NF|HR[AB]|RCS|SIRE[NT]|IBAN|BIC|Nm|Wh|Ah|[MGT](?:Hz|Wh|Pa|[Bb]it)|[A-Z]\d{1,5}|[A-Z]{2,5}0\d{2,}|[A-Z]{2}-\d{1,4}|\w+(?:Error|Exception|Warning)|[IVX]+e"
)
_INITIAL = re.compile(r"[^\W\d_]\.")
_DOTTED_LETTERS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\.?")
# German words of address have a capital: "Fragen Sie Ihren Arzt".
_GERMAN_ADDRESS = frozenset(("Sie", "Ihr", "Ihre", "Ihren", "Ihrem", "Ihrer", "Ihres", "Ihnen"))
_SHOWN_WORDS = TYPE_WORDS | PARTIES
# Values in programs and their manuals.
_LITERALS = frozenset(("True", "False", "None", "Null"))
_NO_NAME_END = re.compile(f"(?:{_WORDS['no_name_endings']})$")
_GERMAN_STREET = re.compile(_WORDS["german_streets"])
_GERMAN_BODY = re.compile(_WORDS["german_bodies"])
# A word is no surname if at least one in this many occurrences follows an article.
MIN_NOUN_RATIO = 5
_NOUNS_LIKE_NAMES = word_set(_WORDS["german_nouns_like_names"])
_PLACES_WITH_ARTICLE = word_set(_WORDS["german_places_with_article"])
_HEADS = {code: word_set(heads) for code, heads in _WORDS["term_heads"].items()}
_ENDINGS = {code: re.compile(f"(?:{ends})s?$") for code, ends in _WORDS["term_endings"].items()}


def is_reference(words: list[str]) -> bool:
    """Return whether words refer to a part of a text: Article 5, Annex B; but not Ley 2/2007."""
    is_part = words[0].lower() in REFERENCES and "/" not in words[-1]
    return is_part and all(map(_REFERRED.fullmatch, words[1:]))


def is_code(word: str) -> bool:
    """Return whether a word is a code of an error, a part or a standard, or a key: E15, EN."""
    return "_" in word or _CODE.fullmatch(word) is not None


class UsedNames:
    """Tests whether the corpus uses a span as a name."""

    def __init__(self, usage: CorpusStatistics) -> None:
        self.usage = usage
        # `is_name(number)` returns whether the corpus uses the span with this number as a name.
        self.is_name = bytes(map(self._is_used_as_name, range(len(usage.total)))).__getitem__

    def count_mentions(self, words: list[str], language: Language) -> int:
        """Count the mentions of the name with these words, in any inflected form."""
        usage = self.usage
        if language.code in usage.bases:
            numbers = usage.same_base.get(usage.base_form(words, language), [])
        else:
            number = usage.found.surfaces.get(" ".join(words))
            numbers = [] if number is None else [number]
        return sum(usage.total[number] for number in numbers if self.is_name(number))

    def _is_used_as_name(self, number: int) -> bool:
        usage = self.usage
        span = usage.split_words(number)
        if usage.in_prose[number] == 0 and not self.is_known(number, span):
            # Reject spans that occur only in headings and tables: their capitals prove nothing.
            return False
        if is_role_only(span) or not _GERMAN_ADDRESS.isdisjoint(span):
            return False
        if is_reference(span):
            return False
        if all(len(word.rstrip(".")) == 1 for word in span) and len(span) > 1:
            return False  # initials: P. L
        if is_code(span[0]) or any("_" in word for word in span):
            return False
        return (
            self._is_used_word(number, span[0])
            if len(span) == 1
            else self._is_used_phrase(number, span)
        )

    def _is_used_phrase(self, number: int, span: list[str]) -> bool:
        """Return whether the corpus uses a span of several words as a name."""
        usage, language = self.usage, self.usage.found.languages[number]
        is_shown = usage.person[number] or find_known_type(" ".join(span)) != ""
        if not is_shown and is_capitalized_term(span, language.code):
            return False
        is_body = language.code in HEAD_FIRST and is_organization_word(span[0])
        if is_body and usage.inside[number] and span[1].islower():
            return True  # la Société française d'astronomie, where "société" is frequent
        return not all(word.islower() or usage.is_common(word, language.code) for word in span)

    def _is_used_word(self, number: int, word: str) -> bool:
        """Return whether the corpus uses a single word as a name."""
        usage = self.usage
        inside, language = usage.inside[number], usage.found.languages[number]
        if len(word.rstrip(".")) < 2 or word.lower() in NAME_SUFFIXES:
            return False
        if word in _LITERALS or (is_title(word) and not usage.is_surname(word)):
            return False
        if _DOTTED_LETTERS.fullmatch(word):
            # Reject initials, which belong to another name; accept acronyms as in "the U.S.".
            used = usage.determiner[number] or usage.place[number]
            return bool(used or word.replace(".", "") in usage.found.surfaces)
        if word.isupper():
            return self._is_used_acronym(number, word)
        is_shown = usage.person[number] or word in usage.after_given or usage.is_surname(word)
        is_shown = is_shown or (usage.place[number] and word in usage.towns)
        if not is_shown and is_capitalized_term([word], language.code):
            return False
        if inside == 0:
            return usage.count_lower(word, language.code) == 0 and self._is_name_at_start(
                number, word, language
            )
        if usage.count_lower(word, language.code) > inside:
            return False
        if self._is_plain_word(number, word):
            return False
        return not language.capitalizes_nouns or is_german_name(usage, number, word)

    def _is_used_acronym(self, number: int, word: str) -> bool:
        """Return whether the corpus uses a word in capital letters as a name."""
        usage, language = self.usage, self.usage.found.languages[number]
        inside, total = usage.inside[number], usage.total[number]
        is_alone = total == 1 and not usage.determiner[number] and not usage.place[number]
        has_digit = any(map(str.isdigit, word))
        is_unsure = is_alone and not has_digit and not find_known_type(word)
        is_unsure = is_unsure and language.code != "en"
        if len(word) > _MAX_ACRONYM_LETTERS and is_unsure:
            # It may be a verb in capitals that the list of frequent words lacks: RESUELVE.
            return language.capitalizes_nouns and is_institution_word(word)
        is_frequent = word.lower() in common_words(language.code)
        return self.is_acronym(word, language) and bool(inside or total > 1 or not is_frequent)

    def _is_plain_word(self, number: int, word: str) -> bool:
        """Return whether a capitalized word inside sentences is a common word or names a people."""
        usage, language = self.usage, self.usage.found.languages[number]
        inside = usage.inside[number]
        is_shown = usage.person[number] or word in usage.after_given or word in usage.known_places
        is_common = word.lower() in common_words(language.code)
        is_shown = is_shown or word.lower() in _SHOWN_WORDS or find_known_type(word) != ""
        is_shown = is_shown or (inside > 1 and usage.is_surname(word))
        if is_common and inside <= 2 and not (is_shown or language.capitalizes_nouns):
            return True
        is_given = word in GIVEN_NAMES and word not in GIVEN_PEOPLES
        if not usage.is_demonym(word) or is_given or find_known_type(word):
            return False
        named = usage.person[number] or usage.place[number]
        described = max(usage.determiner[number], usage.before_noun[number])
        return not named or described * 2 >= inside

    def is_known(self, number: int, span: list[str]) -> bool:
        """Return whether a span is a known name, a full name of a person, or a company."""
        usage = self.usage
        name, language = " ".join(span), usage.found.languages[number]
        if len(span) == 1:
            is_inside = usage.total[number] > usage.at_start[number]
            return is_inside and usage.is_known_place(name, language.code) and len(name) > 3
        last = span[-1].lower().rstrip(".")
        has_initials = len(span) > 2 and all(map(_INITIAL.fullmatch, span[:-1]))
        is_person = (has_initials or span[0] in GIVEN_NAMES) and not common_words(language.code) & {
            last
        }
        if language.code in ("de", "fr") and len(span) == 2 and not is_person:
            common = common_words(language.code)
            is_given = span[0] in more_given_names() and span[0].lower() not in common
            is_person = is_given and last not in common and not is_organization_word(last)
        return name in usage.known_places or is_person or last in _CLEAR_COMPANY_FORMS

    def _is_name_at_start(self, number: int, word: str, language: Language) -> bool:
        """Return whether a word that occurs only at the start of sentences is a name."""
        usage = self.usage
        if language.capitalizes_nouns:
            return is_german_name(usage, number, word)
        is_kind = language.code == "en" and word.lower() in TYPE_WORDS
        if is_kind and word.lower() in common_words("en"):
            return find_known_type(word) != ""  # a film: Airport '79
        if usage.is_part_of_name(word, language) or usage.occurs_inside_sentence([word], language):
            return True
        if usage.is_known_place(word, language.code):
            return True
        is_common = word.lower() in common_words(language.code)
        if usage.total[number] > 1 and word in more_given_names() and not is_common:
            return True
        if find_known_type(word) == "organization" and not is_common:
            return True
        if _NO_NAME_END.search(word) or word.endswith(language.verb_endings):
            return False
        if usage.person[number] or word in GIVEN_NAMES or any(map(str.isupper, word[1:])):
            return True
        return usage.total[number] > 1 and bool(language.function_words) and not is_common

    def is_acronym(self, word: str, language: Language) -> bool:
        """Return whether a word in capitals is an acronym, and not an emphasized word."""
        usage = self.usage
        lower = word.lower()
        if _ROMAN_NUMERAL.fullmatch(word) or lower.replace(".", "") in EVERYDAY_ACRONYMS:
            return False
        is_common = lower in common_words("en") or lower in common_words(language.code)
        if usage.first_after_article[word] and language.code in ("de", "fr"):
            # After an article, an English word in capitals is an acronym, not emphasis: la HAS.
            is_common = lower in common_words(language.code)
        if is_common and language.code in _WITH_DICTIONARY and usage.inside_words[word] < 2:
            return find_known_type(word) != "" or word in ("US", "WHO", "IT")
        if len(word) <= _MAX_ACRONYM_LETTERS and "." not in word:
            return not usage.count_lower(word, language.code) or usage.inside_words[word] > 1
        if find_known_type(word) or self._occurs_in_title_case([word]):
            return True
        is_word = usage.count_lower(word, language.code) or word.lower() in common_words(
            language.code
        )
        if language.capitalizes_nouns:
            is_word = is_word or is_german_noun(word.capitalize())
        return not is_word and len(word.replace(".", "")) <= _MAX_WORD_ACRONYM_LETTERS

    def _occurs_in_title_case(self, words: list[str]) -> bool:
        """Return whether the corpus writes words that are in capitals also as a name in prose."""
        usage = self.usage
        title_case = " ".join(word.capitalize() for word in words)
        number = usage.found.surfaces.get(title_case)
        if number is None or not usage.in_prose[number]:
            return False
        # German writes every noun in title case: BENUTZER is a noun, no acronym.
        is_german = len(words) == 1 and usage.found.languages[number].capitalizes_nouns
        return not is_german or is_german_name(usage, number, title_case)


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
        return True  # a given name: Olli kommt.
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
    """Return whether a word follows a given name and is used as a surname; Annas Tod is none."""
    if word not in usage.after_given:
        return False
    if word.lower() not in common_words("de") and not is_loan_word(word):
        return True
    # Surnames follow few articles: Thomas Mann is no reason to take "ein Mann" for a person.
    is_determined = usage.determiner[number] * MIN_NOUN_RATIO >= usage.total[number]
    return rate_words([word])[word].surname > 0 and not is_determined


def is_capitalized_term(words: Sequence[str], code: str) -> bool:
    """Return whether words in title case are a technical term: a listed noun and frequent words."""
    if code not in _HEADS:
        return False
    # The listed noun is the word before "of" (Terms of Service), or the first (Válvula de Vapor).
    last = next((at - 1 for at, word in enumerate(words) if at and word.islower()), -1)
    head = words[0 if code in HEAD_FIRST else last]
    return head.lower() in _HEADS[code] and all(
        word.islower() or word == head or _is_plain(word, code) for word in words
    )


def _is_plain(word: str, code: str) -> bool:
    """Return whether a word is frequent, or ends as nouns and adjectives of a language do."""
    lower = word.lower()
    if not word.istitle() or find_known_type(word) or word in more_given_names():
        return False
    return lower in common_words(code) or _ENDINGS[code].search(lower) is not None
