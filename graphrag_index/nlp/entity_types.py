"""Types of named entities, from known places and given names, head words, and usage.

A name that can mean a place is a place unless the corpus uses the name for a person. Where no rule
is sure, a learned classifier decides.
"""

import re

import numpy as np

from graphrag_index.nlp import name_shapes, type_parts
from graphrag_index.nlp.head_types import (
    HEAD_LAST,
    find_head_type,
    find_shortened_companies,
    is_kind_of_thing,
)
from graphrag_index.nlp.known_names import find_german_type, find_known_type, find_likely_type
from graphrag_index.nlp.name_forms import ClassifiedNames
from graphrag_index.nlp.name_usage import MIN_KNOWN_PLACE_SHARE, NameUsage
from graphrag_index.nlp.name_words import (
    COMPANY_FORMS,
    DEMONYMS,
    GIVEN_NAMES,
    PARTIES,
    TYPE_WORDS_IN_SURNAMES,
    common_words,
    known_firms,
    more_given_names,
)
from graphrag_index.nlp.place_ratings import COUNTRY, TOWN, rate_known_places
from graphrag_index.nlp.type_classifier import (
    TYPES,
    classify_types,
    count_listed,
    find_known_types,
    share_of_things,
)
from graphrag_index.nlp.variants import Variants
from graphrag_index.nlp.word_table import CUE_TYPES, HINT_TYPES
from graphrag_index.text.languages import (
    PARTICLES,
    UNKNOWN_LANGUAGE,
    is_title,
    read_lists,
    word_set,
)

_LISTS = read_lists("nlp/data/entity_types")
# Forms that also begin a name: SCI Les Tilleuls, TSV Unterhaching.
_LEADING_FORMS = word_set(_LISTS["leading_forms"])
_SURNAMES = TYPE_WORDS_IN_SURNAMES | word_set(_LISTS["surnames"])
_WORD_MARKS = re.compile(r"^[\"“„«'‘(]+|[.,;:!?\"”»)]+$|['’]s$")
_GROUPS = word_set(_LISTS["groups"])
_PEOPLE = _GROUPS | PARTIES
_GROUP_ENDS = tuple(_LISTS["group_ends"].split())

# Minimum shares of mentions: after a preposition of place, for a name that is no known place, and
# after an article, for a name that is a thing.
MIN_PLACE_SHARE, MIN_THING_SHARE = 0.4, 0.25
# Minimum share of mentions beside a noun that shows a type: for most names, and for known places.
MIN_CUE_SHARE, MIN_PLACE_CUE_SHARE = 0.05, 0.3
# Minimum shares of mentions: next to a verb for persons, for one word; with an article for a thing.
MIN_VERB_SHARE, MIN_ARTICLE_SHARE = 0.3, 0.8
# Maximum numbers: of letters of an acronym, since longer ones are places of datelines, such as
# DETROIT; of mentions of a common word that is capitalized, but no name.
MAX_ACRONYM_LETTERS, MAX_RARE_MENTIONS = 4, 2
# Minimum share of mentions beside a word that shows a person, for a nickname such as Alex99.
MIN_NICKNAME_SHARE = 0.5


def find_entity_types(
    variants: Variants, classified: ClassifiedNames, counts: np.ndarray, lists: np.ndarray
) -> list[str]:
    """Return the type of each entity in `variants`; "" for what is no entity.

    Names of other entities are none, nor are bodies by one common word (the Council) that no longer
    name explains.

    `counts` has the mentions of each classified name, `lists` enumerations (number, entity).
    """
    return _TypeFinder(variants, classified, counts, lists).find_types()


class _TypeFinder:
    """The usage of each entity, and what is known of its name."""

    def __init__(
        self,
        variants: Variants,
        classified: ClassifiedNames,
        counts: np.ndarray,
        lists: np.ndarray,
    ) -> None:
        self.lists = lists
        self.names, self.persons = variants.names, variants.persons
        self.entity_of = variants.entity_of
        n = len(self.names)
        self.usage = NameUsage(variants, classified, counts)
        self.codes = [language.code for language in classified.languages]
        self.codes += [UNKNOWN_LANGUAGE.code] * (n - len(self.codes))
        self.common, self.written_lower = classified.common, classified.written_lower
        self.known_places = rate_known_places(self.names)
        longer = [name for name in self.names if " " in name]
        words = sorted({w for name in longer for w in (*name.split(" "), name.rpartition(" ")[0])})
        # Words of names, and names without their last word.
        self.parts = dict(zip(words, rate_known_places(words), strict=True))
        # Numbers of the entities of which no rule is sure, and the types that the rules give.
        self.unsure: dict[int, str] = {}

    def find_types(self) -> list[str]:
        """Return the type of each name; bare kinds and names of other entities have none."""
        types = [
            self._find_type(number) if entity == number and not self._is_bare_kind(number) else ""
            for number, entity in enumerate(self.entity_of.tolist())
        ]
        names = [self.names[number] for number in self.unsure]
        sure = ["" if number in self.unsure else kind for number, kind in enumerate(types)]
        self.listed = count_listed(sure, self.lists)
        usages = [self.describe_usage(number) for number in self.unsure]
        found = classify_types(names, usages, list(self.unsure.values()), share_of_things(sure))
        for number, kind, known in zip(self.unsure, found, find_known_types(names), strict=True):
            has_article = self._has_article_of_thing(number)
            known = "" if has_article and known == "person" else known  # the Nimrod
            kind = known or "name" if has_article or kind == "name" else kind  # the Taj Mahal
            is_untyped = "name" in (kind, self.unsure[number])
            types[number] = "" if is_untyped and self._is_rare_word(number) else kind
        self.kinds = dict(zip(self.names, types, strict=True))
        companies, firms = find_shortened_companies(self.names, types)
        for number, name in enumerate(self.names):
            is_given = name.partition(" ")[0] in more_given_names()
            share, hint = self.usage.hints[number]
            is_shown = number in self.persons and hint == "person" and share >= MIN_CUE_SHARE
            is_person = types[number] == "person" and (is_given or is_shown)
            is_open = types[number] in ("name", "person") and not is_person
            # Academy Awards Committee is no firm called Academy Awards.
            is_thing = types[number] == "name" and " " in name and number not in self.unsure
            is_company = is_open and name in companies and not self.known_places[number]
            is_company &= find_known_type(name) != "name" and not is_thing
            # Diamond Shamrock Corp is called Diamond, unless that is a place here.
            is_firm = name in firms and (number in self.unsure or " " not in name)
            is_open_firm = self.known_places[number] <= TOWN and not self.usage.place[number]
            is_firm &= is_open_firm and not is_shown and types[number] in ("name", "person", "geo")
            if is_company or is_firm:
                is_group = name_shapes.is_adjective(name) or name.lower() in _GROUPS
                types[number] = types[number] if is_group else "organization"
            if types[number] == "acronym":
                listed = (self.listed[number, : len(TYPES)] / self.usage.times[number]).tolist()
                types[number] = type_parts.find_type_of_acronym(
                    name, self.usage.person_verb[number], listed
                )
            if types[number] in TYPES and self._is_other_word(number, types[number]):
                types[number] = "acronym" if name.isupper() and name.isalpha() else "name"
        return types

    def _is_bare_kind(self, number: int) -> bool:
        """Return whether a name is only the kind of a body, a law or an event: the Council."""
        has_article = self.usage.determiner[number] >= MIN_THING_SHARE
        return has_article and is_kind_of_thing(self.names[number], self.codes[number])

    def _has_article_of_thing(self, number: int) -> bool:
        """Return whether an English name has an article as ships and works have: the Nimrod.

        In "a Kubrick film", it is that of a noun. German has articles before rivers, too.
        """
        has_article = (
            min(self.usage.determiner[number], 4 * self.usage.article[number]) >= MIN_ARTICLE_SHARE
        )
        return has_article and self.usage.place[number] == 0 and self.codes[number] == "en"

    def _is_other_word(self, number: int, kind: str) -> bool:
        """Return whether the writing of a name rules out the type: Win32 is no person."""
        name, (share, cue) = self.names[number], self.usage.cues[number]
        is_unsure, spoken = number in self.unsure, self.usage.person_verb[number]
        is_doctrine = name.endswith(name_shapes.DOCTRINE_ENDS) and (kind == "person" or is_unsure)
        if is_doctrine or name_shapes.is_plural_acronym(name):
            return True
        if kind == "organization":  # without a sign of one: MaxSpareThreads
            is_shown = kind in (cue if share else "", self.usage.find_hint(number))
            is_thing = name_shapes.is_written_together(name) or type_parts.is_product(
                name, self.kinds
            )
            return is_unsure and not is_shown and is_thing
        if cue == kind and share >= MIN_NICKNAME_SHARE:
            return False
        if kind == "geo":
            return name_shapes.is_no_place(name) and not (self.known_places[number] and "-" in name)
        is_noun = self.codes[number] == "en" and spoken == 0 and name_shapes.ends_in_noun(name)
        return spoken < MIN_VERB_SHARE and (is_noun or name_shapes.is_no_person(name))

    def _is_rare_word(self, number: int) -> bool:
        """Return whether a name is a rare word, without an article, that is in lower case too."""
        name = self.names[number]
        is_word = name in self.written_lower or name.lower() in common_words(self.codes[number])
        is_rare = bool(self.usage.times[number] <= MAX_RARE_MENTIONS)
        return is_rare and is_word and self.usage.determiner[number] == 0

    def _find_type(self, number: int) -> str:
        name = self.names[number]
        words = name.split(" ")
        if not name.replace(" ", "").isalpha():
            words = [_WORD_MARKS.sub("", word) for word in words]
        if len(words) > 2 and (words[-1].isdigit() or not words[-1].lower().strip("ivx")):
            words.pop()  # World War II, West Virginia Route 9
        lower = [word.lower() for word in words]
        head, is_person = find_head_type(words, lower, self.codes[number]), number in self.persons
        if lower[0] in ("st", "saint") and self.usage.place[number] >= MIN_KNOWN_PLACE_SHARE:
            is_person = is_person and self.usage.person_verb[number] > 0  # in St. Moritz
        is_placed = self.known_places[number] and self.usage.place[number] >= MIN_PLACE_SHARE
        known = "" if is_placed else find_known_type(name)  # in Java
        if not known and self.codes[number] == "de":
            known = find_german_type(name)
        if known == "organization" and " " not in name and self._is_addressed(number):
            known = ""  # el señor Puig
        if known in ("name", "event", "person"):
            return known
        has_form = lower[-1].replace(".", "") in COMPANY_FORMS or lower[0] in _LEADING_FORMS
        if (has_form and len(words) > 1) or known == "organization":
            return "organization"
        usage, place = self.usage.determiner[number], self.known_places[number]
        if self.codes[number] == "en" and (
            kind := type_parts.find_english_type(name, self.parts, place, usage, is_person)
        ):
            return kind
        is_group = len(words) == 1 and (lower[0] in _PEOPLE or lower[0].endswith(_GROUP_ENDS))
        is_person = is_person and not (is_group and words[0] not in GIVEN_NAMES)
        if is_person and self._is_used_for_person(number, words, head):
            return "person"
        cue_share, cue = self.usage.cues[number]
        is_country = self.known_places[number] == COUNTRY
        if cue == "person" and len(words) == 1 and words[0] not in GIVEN_NAMES:
            # A colon follows countries and headings too: "Somalia: ...".
            cue_share = 0 if is_country or name in self.written_lower else cue_share
        needed = MIN_PLACE_CUE_SHARE if self.known_places[number] else MIN_CUE_SHARE
        # Verbs of persons count more: the 1982 film Gandhi. A work may have any head.
        opposed = max(self.usage.place[number], self.usage.person_verb[number] * (cue != "person"))
        if cue == "person" and self.codes[number] == "en":
            opposed = max(opposed, self.usage.article[number])  # the Earthrise
        is_work = cue == "name" and cue_share > 0.5 and head != "organization"
        is_city = cue == "name" and len(words) > 1 and self.known_places[number] > TOWN
        is_place = is_city or (is_country and cue == "organization")
        is_surname = (
            cue == "person" and head == "geo" and not self.usage.place[number]
        )  # Kanye West
        is_surname = is_surname and len(words) == 2 and name_shapes.is_surname(words[1])
        is_other = (head and not is_work and not is_surname) or is_group or is_place
        if cue_share > max(needed, opposed) and not is_other:
            return cue
        if self._is_place(number, words):
            if self._may_be_surname(number):
                self.unsure[number] = "geo"
            return "geo"
        if lower[-1] in PARTIES and (len(words) == 1 or head == ""):
            return "organization"
        if head or is_person:
            return head or "person"
        if is_group:
            return "name"
        is_short = name.isupper() and len(name) < MAX_ACRONYM_LETTERS
        if name in known_firms() and not (is_short or self._is_addressed(number)):
            return "organization"
        kind = self._find_type_by_usage(number, name, lower)
        is_open = kind in ("acronym", "name") or self.usage.person_verb[number] < MIN_VERB_SHARE
        is_open = is_open and not self._is_addressed(number)
        if is_open and (likely := find_likely_type(name)):
            return likely
        is_word = len(words) == 1 and (any(map(str.isdigit, name)) or lower[0] in DEMONYMS)
        is_double = kind == "person" and name_shapes.is_double_name(name)
        if kind not in ("acronym", "organization") and not is_word and not is_double:
            self.unsure[number] = kind
        return kind

    def describe_usage(self, number: int) -> dict[str, float]:
        """Return the features of the usage of a name for the classifier."""
        name = self.names[number]
        words, rule = name.split(" "), self.unsure[number]
        share, hint = self.usage.hints[number]
        cue_share, cue = self.usage.cues[number]
        common = common_words(self.codes[number])
        listed = self.listed[number, : len(TYPES)] / (self.listed[number].sum() + 0.5)
        return {
            "place": self.usage.place[number],
            "preposition": self.usage.preposition[number],
            "determiner": self.usage.determiner[number],
            "article": self.usage.article[number],
            "person_verb": self.usage.person_verb[number],
            **{f"hint_{kind}": share * (hint == kind) for kind in HINT_TYPES},
            **{f"cue_{kind}": cue_share * (cue == kind) for kind in CUE_TYPES},
            **{f"listed_{kind}": share for kind, share in zip(TYPES, listed, strict=True)},
            **name_shapes.describe_shape(name),
            "common": name in self.common,
            "written_lower": sum(word in self.written_lower for word in words) / len(words),
            "frequent": sum(word.lower() in common for word in words) / len(words),
            "may_be_person": number in self.persons,
            "known_place": self.known_places[number] > 0,
            "rule_person": rule == "person",
            "rule_geo": rule == "geo",
        }

    def _may_be_surname(self, number: int) -> bool:
        """Return whether a known place is rather a surname: never after a preposition of place."""
        name = self.names[number]
        is_placed = self.usage.place[number] >= MIN_KNOWN_PLACE_SHARE
        if is_placed or " " in name or self.known_places[number] == COUNTRY:
            return False
        return name_shapes.is_surname(name)

    def _is_used_for_person(self, number: int, words: list[str], head: str) -> bool:
        """Return whether a name that may be a person's is no place or thing by its usage."""
        placed = self.usage.place[number]
        rating, spoken = self.known_places[number], self.usage.person_verb[number]
        is_country = rating == COUNTRY and words[0] not in more_given_names()
        if is_country and spoken < MIN_VERB_SHARE:
            return False
        if rating and (placed > spoken or (len(words) > 1 and words[0] not in GIVEN_NAMES)):
            return False
        if any(map(is_title, words[:-2])) and words[-2] in more_given_names():
            return True
        # A given name before a surname: Heath Ledger.
        is_full_name = words[0] in more_given_names() and words[0].lower() in _SURNAMES
        is_full_name |= self.codes[number] == "de" and len(words) == 2 and words[0] in GIVEN_NAMES
        if head and words[-1].lower() not in _SURNAMES and not (head == "geo" and is_full_name):
            return False
        if head == "geo" and more_given_names().isdisjoint(words[1:-1]):
            return placed < MIN_KNOWN_PLACE_SHARE and self.usage.preposition[number] < 0.5
        return True

    def _is_addressed(self, number: int) -> bool:
        """Return whether words of address precede a name that is no English one."""
        return self.codes[number] != "en" and self.usage.find_hint(number) == "person"

    def _is_place(self, number: int, words: list[str]) -> bool:
        """Return whether a name is a known place, and not used for something else."""
        rating = self.known_places[number]
        if find_known_type(self.names[number]) == "person":
            return self.usage.place[number] >= MIN_KNOWN_PLACE_SHARE
        # Romance languages put articles before regions: le Gers.
        with_article = self.usage.article[number] > 0.5 and self.codes[number] in HEAD_LAST
        if not rating or (with_article and rating < COUNTRY) or self.names[number] in self.common:
            return False
        if rating == COUNTRY or (len(words) > 1 and words[0] not in GIVEN_NAMES):
            return True
        if self._is_addressed(number):
            return False  # el señor Moro
        placed = max(self.usage.place[number], self.usage.preposition[number] / 2)
        if self.usage.person_verb[number] > placed and number in self.persons:
            return False
        name = self.names[number]
        if name.isupper() and (len(name) <= MAX_ACRONYM_LETTERS or rating == TOWN):
            return placed >= MIN_KNOWN_PLACE_SHARE
        given_names = more_given_names() if rating == TOWN else GIVEN_NAMES
        return placed >= MIN_KNOWN_PLACE_SHARE or words[0] not in given_names

    def _find_type_by_usage(self, number: int, name: str, lower: list[str]) -> str:
        """Return the type of a name without a known word, from the words around it."""
        hint = self.usage.find_hint(number)
        if len(lower) == 1:
            if name.isupper() and name.replace(".", "").isalpha():
                return hint if hint == "organization" else "acronym"
            if any(map(str.isdigit, name)):
                return "name"
            is_thing = self.usage.determiner[number] >= MIN_THING_SHARE or name in self.common
            if not is_thing and (
                find_known_type(name) == "person" or name_shapes.is_double_name(name)
            ):
                return "person"
            # The article is that of the noun behind the name: the Exco spokesman.
            if hint and name not in self.common and (hint != "person" or not is_thing):
                return hint
            is_open = name not in self.written_lower and not self.known_places[number]
            is_surname = is_open and self.usage.place[number] < MIN_KNOWN_PLACE_SHARE
            if not is_thing and is_surname and name_shapes.ends_as_surname(name):
                return "person"
            given = name in more_given_names() and self.usage.place[number] < MIN_KNOWN_PLACE_SHARE
            if not is_thing and (given or self.usage.person_verb[number] >= MIN_VERB_SHARE):
                return "person"
        elif hint:
            return hint
        elif self._looks_like_person(number, lower) or (
            self.usage.person_verb[number] >= MIN_VERB_SHARE and self.usage.place[number] == 0
        ):
            return "person"
        place, preposition = self.usage.place[number], self.usage.preposition[number]
        placed = place >= MIN_PLACE_SHARE or (place >= 0.15 and preposition >= 0.45)
        return "geo" if placed else "name"

    def _looks_like_person(self, number: int, lower: list[str]) -> bool:
        """Return whether a name of several words may be a person's, by its shape and usage."""
        first, *others = self.names[number].split(" ")
        words = [first, *(word for word in others if word.lower() not in PARTICLES)]
        if not name_shapes.may_be_full_name(words, common_words(self.codes[number])):
            return False
        # The corpus may write a surname in lower case too: Brooke Shields.
        named = words[0] in more_given_names() or words[-1] in more_given_names()
        if not named and not self.written_lower.isdisjoint(words):
            return False
        # Few places and things begin with a given name.
        given = words[0] in GIVEN_NAMES
        prepositions = 0 if given else self.usage.preposition[number] / (6 if named else 3)
        used = max(self.usage.place[number], self.usage.article[number], prepositions)
        is_placed = any(self.parts[word] for word in words[given:])
        return used < MIN_KNOWN_PLACE_SHARE and not is_placed
