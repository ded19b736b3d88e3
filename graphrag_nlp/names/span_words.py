"""Tests of the words of one capitalized span: persons, genitives, and words before a name."""

import re

from graphrag_nlp.names.base_forms import is_given_name, is_oblique
from graphrag_nlp.names.compounds import (
    GERMAN_ADJECTIVE,
    is_certain_noun,
    is_german_noun,
    is_loan_word,
)
from graphrag_nlp.names.known_names import find_known_type, is_nation
from graphrag_nlp.names.name_joints import is_german_conference
from graphrag_nlp.names.name_shapes import is_coded
from graphrag_nlp.names.name_words import (
    CALENDAR_WORDS,
    COMPANY_FORMS,
    GIVEN_NAMES,
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
from graphrag_nlp.names.type_classifier import rate_words
from graphrag_nlp.names.used_names import UsedNames, is_code
from graphrag_nlp.text import languages
from graphrag_nlp.text.languages import is_title, n_titles, word_set
from graphrag_nlp.text.places import large_place_names
from graphrag_nlp.text.type_words import TYPE_WORDS, TYPE_WORDS_IN_SURNAMES

_WORDS = languages.read_lists("graphrag_nlp/names/data/words")
APPOSITIVES = word_set(_WORDS["appositives"])
APPOSITIVE_ENDS = tuple(_WORDS["appositive_ends"].split())
# Words that begin a sentence or a clause, and few titles of works go on with: While Brexit.
_SENTENCE_OPENINGS = word_set(_WORDS["sentence_openings"])
_PERSON_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['’-])+|[^\W\d_]\.")
# Maximum number of words of a person's name behind another name: Thomas de Maizière.
_MAX_PERSON_WORDS = 4
_INITIALS = re.compile(r"(?:[A-Z]\.)+")
_GERMAN_HEADS = word_set(_WORDS["german_heads"])
# Ends of bodies that stand before their place.
_PLACED_ENDS = ("polizei", "feuerwehr", "bergwacht", "wasserwacht", "jugendamt", "gesundheitsamt")
_INN_NAMES = word_set(_WORDS["german_inn_names"])
_HEADS_IN_NAMES = HEAD_WORDS - APPOSITIVES
# Appositives that rather are a part of the name behind them: Bank Austria.
_HEADS_OF_FIRMS = frozenset(("bank", "stiftung"))
# Appositives of software, but parts of the names of a library in a town and of a funding program:
# Bibliothek NumPy | Bibliothek Weimar, Programm Erasmus.
_SOFTWARE_OR_BODY = frozenset(("bibliothek", "programm"))
_ADJECTIVE_END = re.compile(r"(?:e|en|em|es)$")
_ADJECTIVE_ENDINGS = ("e", "er", "es", "en", "em")
# German words for types with another meaning elsewhere: "Dom" (cathedral), Polish "dom" (house).
_GOVERNED_TYPE_WORDS = TYPE_WORDS - {"dom"}
# Endings of names that only look like German genitives: Lepsius, Adonis, Krauss.
_NO_GENITIVE_END = re.compile(r"(?:us|is|os|ss)$")
# Adjectives of nations, which also begin names at the start of sentences.
_NATIONAL = re.compile(r"(?:Deutsch|International|National|[A-ZÄÖÜ][a-zäöüß]+isch)e[rsn]?")
# The last word of a product: Barino Compact S, Cardiolux M4.
_MODEL_END = re.compile(r"[A-Z]{1,2}\d{0,4}|[A-Z]\d{1,4}[A-Z]?")
# Words that begin names of German places: Bad Homburg.
_NAME_OPENINGS = frozenset(("Bad", "Sankt", "Groß", "Klein", "Alt", "Neu"))
# Position of a cut in a span: (end of the left part, start of the right part), indexes of words.
Cut = tuple[int, int]
# Minimum ratio of the times that a word is in lower case to those with a capital in a sentence, if
# it is to be no part of the name behind it.
MIN_LOWER_RATIO = 4


def _is_of_place(word: str) -> bool:
    """Return whether a German word is the adjective of a town: Karlsruher, Göttinger, Münchner."""
    stem = word[:-2].lower()
    forms = (stem, f"{stem}e", f"{stem}en", f"{stem.removesuffix('n')}en")
    return not large_place_names().isdisjoint(forms)


def _heads_german_name(word: str, rest: list[str]) -> bool:
    """Return whether a German noun begins a name: Gasthof Krone; but not (ein) Hotel Gäste."""
    if word.lower() not in _GERMAN_HEADS:
        return False
    name = rest[-1]
    is_word = is_certain_noun(name) or is_loan_word(name)
    return not is_word or name.lower() in _INN_NAMES or len(rest) > 1


def is_type_word(word: str) -> bool:
    """Return whether a word is the type of a thing or the title of a person."""
    return word.lower() in TYPE_WORDS or is_title(word)


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
        _PERSON_WORD.fullmatch(word) and (word[0].isupper() or word in languages.PARTICLES)
        for word in words
    )


def begins_sentence(word: str) -> bool:
    """Return whether a capitalized English word begins a sentence, and is no given name."""
    return word.lower() in _SENTENCE_OPENINGS and word not in more_given_names()


class SpanWords:
    """The words of a distinct capitalized span that may contain several names."""

    def __init__(self, used: UsedNames, surnames: set[str], number: int) -> None:
        self.used, self.usage = used, used.usage
        self.surnames, self.number = surnames, number
        self.words = self.usage.split_words(number)
        self.language = self.usage.found.languages[number]
        self.times = self.usage.total[number]
        # True if the span occurs only at the start of sentences.
        self.initial = self.usage.inside[number] == 0

    def count_known_mentions(self, words: list[str]) -> int:
        return self.used.count_mentions(words, self.language)

    def is_given_name(self, word: str) -> bool:
        return is_given_name(word, self.language)

    def base_form(self, word: str) -> str:
        return self.usage.base_form([word], self.language)[0]

    def is_name(self, words: list[str]) -> bool:
        """Return whether a part of the span is a name."""
        usage, word = self.usage, words[0]
        if len(words) > 1:
            return not all(
                word.islower() or usage.is_common(word, self.language.code) for word in words
            )
        # A word may be known only as a part of other names: "Kern" from "Thomas Kern".
        if word.isupper() and len(word) > 1:
            return not is_code(word) and self.used.is_acronym(word, self.language)
        is_known = self.is_given_name(word) or usage.is_known_place(word, self.language.code)
        is_body = find_known_type(word) == "organization"
        is_known |= is_body and word.lower() not in common_words(self.language.code)
        if is_known or self.count_known_mentions(words) or word in known_firms():
            return True
        if self.language.capitalizes_nouns and not (is_german_noun(word) or is_loan_word(word)):
            return len(word) > 2
        if self.language.capitalizes_nouns and word.lower() in PARTIES:
            return True
        if self.language.code in HEAD_FIRST and not self.initial and len(word) > 2:
            # A rare word inside a sentence: el Valladolid | de Pezzolano.
            is_word = word.lower() in common_words(self.language.code)
            return not is_word and usage.count_lower(word, self.language.code) == 0
        if self.language.genitive_s:
            base = self.base_form(word)
            return base != word and self._may_own(base)
        return bool(self.language.endings) and usage.is_part_of_name(word, self.language)

    def precedes_name(self, word: str, rest: list[str], initial: bool) -> bool:
        """Return whether the first word is not part of the name after it."""
        usage, language = self.usage, self.language
        if word.lower() in languages.PARTICLES or (word.isupper() and len(word) > 1):
            return False
        if word.lower() in CALENDAR_WORDS and word not in GIVEN_NAMES:
            # Cut "Tuesday" from "Tuesday Whitmore", but not "Christmas" from "Christmas Island".
            surname = len(rest) == 1 and rest[0] in self.surnames
            is_acronym = rest[0].isupper() and len(rest[0]) > 1
            return surname or is_acronym or self.is_given_name(rest[0]) or is_title(rest[0])
        if language.capitalizes_nouns:
            base = self.base_form(rest[0])
            if len(rest) == 1 and base != rest[0] and self.count_known_mentions([base]):
                # Cut "Namen" from "Namen Schillers", but not "Johann" from "Johann Schillers".
                return not self.is_given_name(word)
            return self._is_noun_before_name(word, rest, initial)
        is_body = is_head_word(rest[-1])
        is_people = usage.is_demonym(word) and len(rest) > 1 and not is_body
        if is_people and self.may_be_person(rest):
            # "Canadian Red Cross", "European Economic Area" have no other words.
            common = common_words(language.code)
            return not all(other.lower() in common for other in rest)
        if not initial or (usage.inside_words[word] and not self._begins_before_code(word, rest)):
            return False
        if language.code in HEAD_FIRST and rest[0].islower() and is_organization_word(word):
            return False  # Chambre de métiers de Corse
        inflects = language.endings or language.genitive_s
        if inflects and usage.occurs_inside_sentence([word, *rest], language):
            # "Pałac Kultury" is one name if the corpus also writes "w Pałacu Kultury".
            return False
        if self.is_given_name(word):
            # "Miny Adama Wilka": "Miny" is not a form of the name Mina if nobody is called Mina.
            return self.base_form(word) not in GIVEN_NAMES and self.is_given_name(rest[0])
        is_word = word.lower() in common_words(language.code) and not is_head_word(word)
        is_free = is_word and len(rest) == 1 and not is_body
        if is_free and self.count_known_mentions(rest) > self.times:
            return True  # Ask Wen
        if language.code == "fr" and is_word and len(rest) == 1 and rest[0].isupper():
            return True  # Parents CM2
        if usage.count_lower(word, self.language.code) > 0 or (
            word.endswith(("ing", "ed")) and len(word) > 5
        ):
            return True
        if language.code == "fr" and word.endswith("ez") and len(word) > 5:
            return True  # Raccordez L1
        return bool(language.endings) and self._may_govern_name(word, rest)

    def _begins_before_code(self, word: str, rest: list[str]) -> bool:
        """Return whether a frequent word begins a sentence before a name of software: Use PyPI."""
        lower, inside = self.usage.count_lower(word, self.language.code), self.usage.inside_words
        return lower >= MIN_LOWER_RATIO * inside[word] and is_coded(rest[0])

    def _is_noun_before_name(self, word: str, rest: list[str], initial: bool) -> bool:
        """Return whether a capitalized German word is a noun or a pronoun before a name."""
        usage = self.usage
        if word in GIVEN_NAMES or word in _NAME_OPENINGS or is_title(word):
            return False
        if rest[0] == "&":
            return False  # Briggs & Stratton
        if rest[-1].isdigit() and len(rest) > 1 and not is_certain_noun(word):
            return False  # Thermolux Eco 9
        if word.lower() in _SOFTWARE_OR_BODY and (
            rest[0] in usage.towns or rest[0] in more_given_names()
        ):
            return False
        is_word = is_german_noun(word) or is_loan_word(word)
        if not is_word and (_MODEL_END.fullmatch(rest[-1]) or all(map(is_loan_word, rest))):
            return False  # Barino Compact S, Auris Q50, Barino Home; but Fehler E15
        if _heads_german_name(word, rest) or self._has_place(word, rest):
            return False
        if word.lower().endswith(APPOSITIVE_ENDS):
            return True
        if find_known_type(word) not in ("", "person"):
            return False  # Linux Documentation Project
        if self.language.genitive_s and word.endswith("s") and self.is_genitive([word], rest):
            return False
        # Keep a capitalized adjective: inside a sentence, it shows that the words are a name.
        if GERMAN_ADJECTIVE.fullmatch(word) and (not initial or not usage.is_common_noun(rest[0])):
            return False
        if _NATIONAL.fullmatch(word) and is_organization_word(rest[0]):
            return False  # Förderung: Deutsches Zentrum für Luft- und Raumfahrt
        if usage.is_demonym(word) and is_loan_word(rest[-1]) and is_head_word(rest[-1]):
            return False  # American Astronomical Society
        if word.endswith("er") and is_organization_word(rest[0]) and _is_of_place(word):
            return False  # das Karlsruher Institut für Technologie
        if word.lower() in ("sie", "ihr", "ihre", "ihren", "ihrem", "ihrer", "ihres"):
            return True
        if usage.count_lower(word, self.language.code) and not is_certain_noun(word):
            # At the start of a sentence: Wichtige Git-Befehle.
            is_adjective = initial and word.endswith(_ADJECTIVE_ENDINGS)
            return is_adjective and not any(map(is_head_word, rest))
        place = word.removesuffix("er")
        is_of_place = place in usage.known_places or not is_certain_noun(word)  # but not Felder
        if place != word and (
            (is_of_place and place in usage.inside_words) or self._begins_with_adjective(rest)
        ):
            return False
        is_cue = word.lower() in APPOSITIVES - _HEADS_OF_FIRMS
        if is_cue and rest[0][0].isupper() and not all(map(is_loan_word, rest)):
            return True  # die App Barino Home
        if is_loan_word(word) and any(map(is_loan_word, rest)):
            return False  # an English name: Bug Tracking System
        is_head = word.lower() in _HEADS_IN_NAMES or is_organization_word(word)
        is_head |= is_german_conference(word)
        return not is_head and (usage.is_common_noun(word) or word.lower() in APPOSITIVES)

    def _has_place(self, word: str, rest: list[str]) -> bool:
        """Return whether a body stands before its town or region: Kantonspolizei Graubünden."""
        if len(rest) > 1 or not word.lower().endswith(_PLACED_ENDS):
            return False
        is_place = rest[0] in self.usage.towns or rest[0] in self.usage.known_places
        return is_place and not is_nation(rest[0])

    def _begins_with_adjective(self, words: list[str]) -> bool:
        """Return whether German words begin with an adjective, as in Allgemeine Zeitung."""
        if self.is_given_name(words[0]) or not _ADJECTIVE_END.search(words[0]):
            return False
        return len(words) > 1 or self.usage.count_lower(words[0], self.language.code) > 0

    def _may_govern_name(self, word: str, rest: list[str]) -> bool:
        """Return whether a word governs the name after it, as verbs and some nouns do.

        Examples: "Dzieło Mikołaja Kopernika", "Учился Пушкин".
        """
        if word.lower() in APPOSITIVES:
            return True
        if word.lower() in _GOVERNED_TYPE_WORDS or rest[0].islower():
            return False
        if not is_title(word):
            endings = self.language.verb_endings
            if (endings and word.endswith(endings)) or self.is_given_name(rest[0]):
                return True
        base = self.usage.base_form(rest, self.language)
        if base == tuple(rest) and not is_oblique(rest[-1], self.language):
            return False
        if len(rest) == 1 and self.usage.is_part_of_name(rest[0], self.language):
            return True
        return self.count_known_mentions(rest) > 0

    def may_be_person(self, words: list[str]) -> bool:
        return not any(
            word.lower() in TYPE_WORDS or self.usage.is_common(word, self.language.code)
            for word in words
        )

    def is_full_name(self, words: list[str]) -> bool:
        """Return whether words are a person's full name: they begin with a given name."""
        words = [word for word in words if not is_title(word)]
        given = len(words) > 1 and self.is_given_name(words[0])
        return given and self.may_be_person(words[1:])

    def is_rare_full_name(self, words: list[str]) -> bool:
        """Return whether words are a rare given name and words that no dictionary has."""
        common = common_words(self.language.code)
        return (
            1 < len(words) < 4
            and words[0] in more_given_names()
            and not is_title(words[0])
            and self.may_be_person(words)
            and not any(word.lower() in common or is_head_word(word) for word in words)
        )

    def is_titled_surname(self, words: list[str]) -> bool:
        """Return whether words are a title or initials before a surname: Mr D. Haynes."""
        if words[0].lower().rstrip(".") in languages.NAMING_TITLES:
            return False  # Queen Anne of Denmark
        rest = [word for word in words[n_titles(words) :] if not _INITIALS.fullmatch(word)]
        common = common_words(self.language.code)
        return 0 < len(rest) < min(len(words), 3) and not any(
            word.lower() in common or is_head_word(word) or is_role(word) or is_title(word)
            for word in rest
        )

    def are_person_and_body(self, left: list[str], right: list[str]) -> bool:
        """Return whether two unknown words may be a person's name, and others those of a body."""
        is_body = is_organization_word(right[-1]) or right[-1].lower().rstrip(".") in COMPANY_FORMS
        is_body = is_body or " ".join(right) in self.usage.known_places  # Des Linwood of Michigan
        return (
            is_body
            and 2 <= len(left) <= 3
            and all(word[0].isupper() and word.replace("-", "").isalpha() for word in left)
            and not any(word.lower() in common_words("en") or is_head_word(word) for word in left)
            and not any(self.usage.is_demonym(w) or w in self.usage.known_places for w in left)
            and not any(word.isupper() or is_role(word) or is_title(word) for word in left)
        )

    def is_genitive(self, words: list[str], rest: list[str]) -> bool:
        """Return whether words are a genitive with s: Goethes (Haus), Lena Harts (Bruder)."""
        base = self.base_form(words[-1])
        if self.language.code == "de" and self._owns_noun(words, rest):
            return True
        if len(words) == 1:
            return base != words[0] and self._may_own(base)
        if not self.language.capitalizes_nouns:
            return False
        if base != words[-1] and self.count_known_mentions(words):
            return True
        if words[-1] in GIVEN_NAMES or _NO_GENITIVE_END.search(words[-1]):
            return False
        if rest[0].islower() or self.is_given_name(rest[0]) or rest[-1].lower() in TYPE_WORDS:
            return False
        return self.is_full_name(words) and rest[0] not in self.surnames

    def _owns_noun(self, words: list[str], rest: list[str]) -> bool:
        """Return whether a surname with s stands before a common noun: Keplers Gesetze."""
        owner, noun = words[-1], rest[0]
        if len(rest) > 1 or not owner.endswith("s") or not is_certain_noun(noun) or is_role(noun):
            return False
        if is_german_noun(owner) or is_loan_word(owner) or owner in more_given_names():
            return False
        if self.usage.first_after_article[owner]:
            return False  # (dass die) Kitas Öffnungszeiten (haben)
        ratings = rate_words([owner, owner[:-1]])
        if ratings[owner].surname or ratings[owner].town or find_known_type(owner):
            return False  # Mertens Verlag
        if len(words) > 1:
            return self.is_full_name(words) or self.is_rare_full_name(words)
        return ratings[owner[:-1]].surname > 0

    def _may_own(self, word: str) -> bool:
        is_place = self.usage.is_known_place(word, self.language.code)
        is_place = is_place or word.lower().replace("-", " ") in large_place_names()
        return is_place or not self.usage.is_common_noun(word)
