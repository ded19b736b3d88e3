"""Tests of the words of one capitalized span: persons, genitives, and words before a name."""

import re

from graphrag_nlp.names.base_forms import is_given_name, is_oblique
from graphrag_nlp.names.compounds import (
    GERMAN_ADJECTIVE,
    is_certain_noun,
    is_german_noun,
    is_loan_word,
)
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import (
    GIVEN_NAMES,
    HEAD_FIRST,
    HEAD_WORDS,
    common_words,
    is_head_word,
    is_organization_word,
    is_role,
    known_firms,
    more_given_names,
)
from graphrag_nlp.names.used_names import UsedNames, is_code
from graphrag_nlp.text import languages
from graphrag_nlp.text.languages import is_title, word_set
from graphrag_nlp.text.places import large_place_names
from graphrag_nlp.text.type_words import TYPE_WORDS, TYPE_WORDS_IN_SURNAMES

_WORDS = languages.read_lists("graphrag_nlp/names/data/words")
APPOSITIVES = word_set(_WORDS["appositives"])
APPOSITIVE_ENDS = tuple(_WORDS["appositive_ends"].split())
_PERSON_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['’-])+|[^\W\d_]\.")
# Maximum number of words of a person's full name: Thomas de Maizière.
_MAX_PERSON_WORDS = 4
_HEADS_IN_NAMES = HEAD_WORDS - APPOSITIVES
# Nouns before a name that are rather a part of it: Bank Austria.
_HEADS_OF_FIRMS = frozenset(("bank", "stiftung"))
# Words for types, without "Dom": German for a cathedral, but Polish for any house.
_GOVERNED_TYPE_WORDS = TYPE_WORDS - {"dom"}
# Endings of names that only look like German genitives: Lepsius, Adonis, Krauss.
_NO_GENITIVE_END = re.compile(r"(?:us|is|os|ss)$")
# The last word of a product: Barino Compact S, Cardiolux M4.
_MODEL_END = re.compile(r"[A-Z]{1,2}\d{0,4}|[A-Z]\d{1,4}[A-Z]?")
# Words that begin names of German places: Bad Homburg.
_NAME_OPENINGS = frozenset(("Bad", "Sankt", "Groß", "Klein", "Alt", "Neu"))
# Position of a cut in a span: (end of the left part, start of the right part), indexes of words.
Cut = tuple[int, int]


def is_type_word(word: str) -> bool:
    """Return whether a word shows a type, as "river" does, or is the title of a person."""
    return word.lower() in TYPE_WORDS or is_title(word)


def is_given_full_name(words: list[str]) -> bool:
    """Return whether English words are a given name and a surname: Tom Price.

    The surname may be any word that does not show an organization or a role.
    """
    if not 1 < len(words) <= _MAX_PERSON_WORDS or words[0] not in more_given_names():
        return False
    last = words[-1]
    is_thing = is_head_word(last) and last.lower() not in TYPE_WORDS_IN_SURNAMES
    if is_thing or is_organization_word(last) or last.islower() or is_role(last):
        return False
    return all(
        _PERSON_WORD.fullmatch(word) and (word[0].isupper() or word in languages.PARTICLES)
        for word in words
    )


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
        if self.language.code in HEAD_FIRST and not self.initial and len(word) > 2:
            # A rare word with a capital inside a sentence is a name: el Valladolid | de Pezzolano.
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
        if language.capitalizes_nouns:
            return self._is_noun_before_name(word, rest, initial)
        if not initial or usage.inside_words[word]:
            return False
        if language.code in HEAD_FIRST and rest[0].islower() and is_organization_word(word):
            return False  # one name: Chambre de métiers de Corse
        inflects = language.endings or language.genitive_s
        if inflects and usage.occurs_inside_sentence([word, *rest], language):
            # "Pałac Kultury" is one name if the corpus also writes "w Pałacu Kultury".
            return False
        if self.is_given_name(word):
            # "Miny Adama Wilka": "Miny" is not a form of the name Mina if nobody is called Mina.
            return self.base_form(word) not in GIVEN_NAMES and self.is_given_name(rest[0])
        if usage.count_lower(word, self.language.code) > 0 or (
            word.endswith(("ing", "ed")) and len(word) > 5
        ):
            return True
        return bool(language.endings) and self._may_govern_name(word, rest)

    def _is_noun_before_name(self, word: str, rest: list[str], initial: bool) -> bool:
        """Return whether a capitalized German word is a noun or a pronoun before a name."""
        usage = self.usage
        if word in GIVEN_NAMES or word in _NAME_OPENINGS or is_title(word):
            return False
        if rest[0] == "&":
            return False  # one name: Briggs & Stratton
        is_word = is_german_noun(word) or is_loan_word(word)
        if not is_word and (_MODEL_END.fullmatch(rest[-1]) or all(map(is_loan_word, rest))):
            return False  # products: Barino Compact S, Auris Q50; but Fehler E15
        if word.lower().endswith(APPOSITIVE_ENDS):
            return True
        if self.language.genitive_s and word.endswith("s") and self.is_genitive([word], rest):
            return False
        # Keep a capitalized adjective: inside a sentence, it shows that the words are a name.
        if GERMAN_ADJECTIVE.fullmatch(word) and (not initial or not usage.is_common_noun(rest[0])):
            return False
        place = word.removesuffix("er")
        is_of_place = place in usage.known_places or not is_certain_noun(word)  # not Felder
        is_of_place = is_of_place and place in usage.inside_words
        if place != word and (is_of_place or (len(rest) > 1 and rest[0].endswith(("e", "en")))):
            return False  # one name: Frankfurter Allgemeine Zeitung
        is_cue = word.lower() in APPOSITIVES - _HEADS_OF_FIRMS
        if is_cue and rest[0][0].isupper() and not all(map(is_loan_word, rest)):
            return True  # the noun "App" in "die App Barino Home"
        if is_loan_word(word) and any(map(is_loan_word, rest)):
            return False  # an English name: Bug Tracking System
        is_head = word.lower() in _HEADS_IN_NAMES or is_organization_word(word)
        return not is_head and (usage.is_common_noun(word) or word.lower() in APPOSITIVES)

    def _may_govern_name(self, word: str, rest: list[str]) -> bool:
        """Return whether a word governs the name after it, as verbs and some nouns do.

        Examples: "Dzieło" (work) before "Mikołaja Kopernika", "Учился" (studied) before "Пушкин".
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

    def is_genitive(self, words: list[str], rest: list[str]) -> bool:
        """Return whether words are a genitive with s: Goethes (Haus), Lena Harts (Bruder)."""
        base = self.base_form(words[-1])
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

    def _may_own(self, word: str) -> bool:
        is_place = self.usage.is_known_place(word, self.language.code)
        is_place = is_place or word.lower().replace("-", " ") in large_place_names()
        return is_place or not self.usage.is_common_noun(word)
