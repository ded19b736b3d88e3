"""Types of named entities, from known places and given names, head words, and usage.

A name that can mean a place is a place unless the corpus uses the name for a person. Where no rule
is sure, a learned classifier decides.
"""

from collections.abc import Sequence

import numpy as np

from graphrag_nlp.names import name_shapes
from graphrag_nlp.names.head_types import (
    HEAD_LAST,
    find_head_type,
    is_kind_of_thing,
)
from graphrag_nlp.names.known_names import (
    COUNTRY,
    TOWN,
    find_known_type,
    find_likely_type,
    rate_known_places,
)
from graphrag_nlp.names.name_forms import ClassifiedNames
from graphrag_nlp.names.name_shapes import is_coded
from graphrag_nlp.names.name_words import (
    COMPANY_FORMS,
    DEMONYMS,
    DIRECTIONS,
    GIVEN_NAMES,
    PARTIES,
    common_words,
    known_firms,
    more_given_names,
)
from graphrag_nlp.names.type_classifier import (
    TYPES,
    classify_types,
    count_listed,
    find_known_types,
    share_of_things,
)
from graphrag_nlp.names.variants import Variants
from graphrag_nlp.names.word_table import CUE_TYPES, HINT_TYPES
from graphrag_nlp.text.languages import (
    PARTICLES,
    read_lists,
    word_set,
)
from graphrag_nlp.text.type_words import TYPE_WORDS_IN_SURNAMES

_SURNAMES = TYPE_WORDS_IN_SURNAMES | word_set(
    read_lists("graphrag_nlp/names/data/entity_types")["surnames"]
)
# Minimum shares of mentions: after a preposition of place ("in"), of a place that is not known as
# one; after an article, of a name for a thing, such as a ship or a work.
MIN_PLACE_SHARE, MIN_THING_SHARE = 0.4, 0.25
# Minimum share of mentions beside a noun that shows a type ("city"); of known places, the second.
MIN_CUE_SHARE, MIN_PLACE_CUE_SHARE = 0.05, 0.3
# Minimum shares of mentions: of a person next to a verb ("said"); of a thing after an article.
MIN_VERB_SHARE, MIN_ARTICLE_SHARE = 0.3, 0.8
# Maximum number of letters of an acronym: longer words in capitals are places of datelines, such as
# DETROIT. Maximum number of mentions of a common word that is only by chance written as a name.
MAX_ACRONYM_LETTERS, MAX_RARE_MENTIONS = 4, 2
# Minimum shares of mentions: before a verb, a noun or a pronoun that suggests the type; after a
# preposition of place, of a known place.
MIN_HINT_SHARE, MIN_KNOWN_PLACE_SHARE = 0.2, 0.1
_LISTS = read_lists("graphrag_nlp/names/data/entity_types")
# Forms of organizations that begin a name: SCI Les Tilleuls, TSV Unterhaching.
_LEADING_FORMS = word_set(_LISTS["leading_forms"])
_GROUPS = word_set(_LISTS["groups"])
_PEOPLE = _GROUPS | PARTIES
_GROUP_ENDS = tuple(_LISTS["group_ends"].split())

# Codes of the states of the US: Austin TX.
STATE_CODES = frozenset(
    "AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ "
    "NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY".split()
)
# Minimum shares of mentions: of an acronym before a verb for persons, or among organizations, to be
# one itself; of a name like "Win32" beside a noun such as "engineer", to be a person.
MIN_SPEAKER_SHARE, MIN_LISTED_SHARE, MIN_SPEAKER_CUE_SHARE = 0.3, 0.25, 0.5


def find_entity_types(
    variants: Variants, classified: ClassifiedNames, counts: np.ndarray, lists: np.ndarray
) -> list[str]:
    """Return the type for each number in `variants`; "" if it is no entity of its own.

    Variants of another name are none. Neither is a common word for an organization (the Council),
    unless it was merged with a longer name.

    `counts` has the mentions of each classified name, `lists` rows (enumeration, entity in it).
    """
    return _TypeFinder(variants, classified, counts, lists).find_types()


class _TypeFinder:
    """Rules for the type of each entity, and a classifier where no rule is sure."""

    def __init__(
        self,
        variants: Variants,
        classified: ClassifiedNames,
        counts: np.ndarray,
        lists: np.ndarray,
    ) -> None:
        self.lists, self.names, self.entity_of = lists, variants.names, variants.entity_of
        evidence = self.evidence = TypeEvidence(variants, classified, counts)
        self.usage, self.codes = evidence.usage, evidence.codes
        self.known_places, self.persons = evidence.known_places, evidence.persons
        # Entities whose type no rule is sure of, by number, with the type that the rules give.
        self.unsure: dict[int, str] = {}

    def find_types(self) -> list[str]:
        """Return the type of each entity; "" for variants of names, and words such as Council."""
        is_bare_kind = self.evidence.is_bare_kind
        types = [
            self._find_type(number) if entity == number and not is_bare_kind(number) else ""
            for number, entity in enumerate(self.entity_of.tolist())
        ]
        self._classify_unsure(types)
        return [self._correct_type(number, kind) for number, kind in enumerate(types)]

    def _classify_unsure(self, types: list[str]) -> None:
        """Replace the types of which no rule is sure by those of the classifier."""
        names = [self.names[number] for number in self.unsure]
        sure = ["" if number in self.unsure else kind for number, kind in enumerate(types)]
        self.listed = count_listed(sure, self.lists)
        usages = [self.describe_usage(number) for number in self.unsure]
        found = classify_types(names, usages, list(self.unsure.values()), share_of_things(sure))
        for number, kind, known in zip(self.unsure, found, find_known_types(names), strict=True):
            has_article = self.evidence.has_article_of_thing(number)
            known = "" if has_article and known == "person" else known  # a ship: the Nimrod
            kind = known or "name" if has_article or kind == "name" else kind  # the Taj Mahal
            is_untyped = "name" in (kind, self.unsure[number])
            is_word = is_untyped and self.evidence.is_rare_word(number)
            # A ship or a work may have a frequent word as its name: the Discovery.
            is_word = is_word or (kind != "name" and self.evidence.is_plain_word(number))
            types[number] = "" if is_word else kind

    def _correct_type(self, number: int, kind: str) -> str:
        """Correct the types of acronyms by enumerations, and of names written like software."""
        name, spoken = self.names[number], self.usage.person_verb[number]
        if kind == "acronym":
            listed = (self.listed[number, : len(TYPES)] / self.usage.times[number]).tolist()
            return find_type_of_acronym(name, spoken, listed)
        # A name like "Win32" is no person, unless it writes in a chat.
        share, cue = self.usage.cues[number]
        is_other = kind in ("person", "geo") and spoken < MIN_VERB_SHARE and is_coded(name)
        return "name" if is_other and (cue != kind or share < MIN_SPEAKER_CUE_SHARE) else kind

    def _find_type(self, number: int) -> str:
        """Return the type that rules give a name; note the name in `unsure` if no rule is sure."""
        name = self.names[number]
        words = name.split(" ")
        if len(words) > 2 and (words[-1].isdigit() or not words[-1].lower().strip("ivx")):
            words.pop()  # without the number: World War II, Route 9
        lower = [word.lower() for word in words]
        head, is_person = find_head_type(words, lower, self.codes[number]), number in self.persons
        if kind := self._find_known_type(number, lower):
            return kind
        is_group = len(words) == 1 and (lower[0] in _PEOPLE or lower[0].endswith(_GROUP_ENDS))
        if is_person and self.evidence.is_used_for_person(number, words, head):
            return "person"
        if cue := self.evidence.find_cue_type(number, words, head, is_group):
            return cue
        if self.evidence.is_place(number, words):
            return "geo"
        if lower[-1] in PARTIES and (len(words) == 1 or head == ""):
            return "organization"
        if head or is_person:
            return head or "person"
        if is_group:
            return "name"
        is_short = name.isupper() and len(name) < MAX_ACRONYM_LETTERS
        if name in known_firms() and not is_short:
            return "organization"
        return self._find_open_type(number, lower)

    def _find_known_type(self, number: int, lower: list[str]) -> str:
        """Return the type of a known name, or of a company by its form (Ltd); "" for others."""
        name = self.names[number]
        is_placed = self.known_places[number] and self.usage.place[number] >= MIN_PLACE_SHARE
        known = "" if is_placed else find_known_type(name)  # the island: in Java
        if known in ("name", "event", "person"):
            return known
        has_form = lower[-1].replace(".", "") in COMPANY_FORMS or lower[0] in _LEADING_FORMS
        if (has_form and len(lower) > 1) or known == "organization":
            return "organization"
        return ""

    def _find_open_type(self, number: int, lower: list[str]) -> str:
        """Return the type that the usage of a name shows, or that of its most frequent meaning."""
        name = self.names[number]
        kind = self.evidence.find_type_by_usage(number, lower)
        is_open = kind in ("acronym", "name") or self.usage.person_verb[number] < MIN_VERB_SHARE
        if is_open and (likely := find_likely_type(name)):
            return likely
        is_word = len(lower) == 1 and (any(map(str.isdigit, name)) or lower[0] in DEMONYMS)
        if kind not in ("acronym", "organization") and not is_word:
            self.unsure[number] = kind
        return kind

    def describe_usage(self, number: int) -> dict[str, float]:
        """Return the features of the usage of a name for the classifier."""
        name = self.names[number]
        words, rule = name.split(" "), self.unsure[number]
        share, hint = self.usage.hints[number]
        cue_share, cue = self.usage.cues[number]
        common, written_lower = common_words(self.codes[number]), self.evidence.written_lower
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
            "common": name in self.evidence.common,
            "written_lower": sum(word in written_lower for word in words) / len(words),
            "frequent": sum(word.lower() in common for word in words) / len(words),
            "may_be_person": number in self.persons,
            "known_place": self.known_places[number] > 0,
            "rule_person": rule == "person",
            "rule_geo": rule == "geo",
        }


def find_type_of_acronym(name: str, speaker_share: float, listed: Sequence[float]) -> str:
    """Return the type of an acronym, by the types of the names beside it in enumerations.

    `speaker_share` is the share of its mentions before a verb for persons. `listed` has the number
    of persons, of places and of organizations in its enumerations, divided by its mentions.
    """
    person, geo, organization = listed
    if name in STATE_CODES:
        return "geo" if geo > max(person, organization) else "acronym"
    is_speaker = speaker_share >= MIN_SPEAKER_SHARE
    is_listed = organization >= MIN_LISTED_SHARE and organization > person + geo
    return "organization" if is_speaker or is_listed else "acronym"


class TypeEvidence:
    """Evidence for the type of each entity: known names, usage in the corpus, and tests of both."""

    def __init__(self, variants: Variants, classified: ClassifiedNames, counts: np.ndarray) -> None:
        self.names, self.persons = variants.names, variants.persons
        self.usage = NameUsage(variants, classified, counts)
        self.codes = [language.code for language in variants.languages]
        self.common, self.written_lower = classified.common, classified.written_lower
        self.known_places = rate_known_places(self.names)
        longer = [name for name in self.names if " " in name]
        words = sorted({w for name in longer for w in (*name.split(" "), name.rpartition(" ")[0])})
        # Ratings as a place of the words of names, and of names without their last word.
        self.parts = dict(zip(words, rate_known_places(words), strict=True))

    def is_bare_kind(self, number: int) -> bool:
        """Return whether a name is only a common word for an organization or event: the Council."""
        share = self.usage.determiner[number]
        return share >= MIN_THING_SHARE and is_kind_of_thing(self.names[number], self.codes[number])

    def has_article_of_thing(self, number: int) -> bool:
        """Return whether an English name has an article as ships and works have: the Nimrod.

        In "a Kubrick film", the article belongs to "film". German has articles before rivers, too.
        """
        has_article = (
            min(self.usage.determiner[number], 4 * self.usage.article[number]) >= MIN_ARTICLE_SHARE
        )
        return has_article and self.usage.place[number] == 0 and self.codes[number] == "en"

    def is_rare_word(self, number: int) -> bool:
        """Return whether a name is rare, has no article, and is also a word in lower case."""
        name = self.names[number]
        is_word = name in self.written_lower or name.lower() in common_words(self.codes[number])
        is_rare = bool(self.usage.times[number] <= MAX_RARE_MENTIONS)
        return is_rare and is_word and self.usage.determiner[number] == 0

    def is_plain_word(self, number: int) -> bool:
        """Return whether a name is a frequent English word, and nothing shows that it is a name."""
        name = self.names[number]
        if self.codes[number] not in HEAD_LAST or not (name.isalpha() and name[1:].islower()):
            return False
        lower, common = name.lower(), common_words("en")
        singular = lower[:-3] + "y" if lower.endswith("ies") else lower.removesuffix("s")
        if common.isdisjoint((lower, singular)) or name in more_given_names():
            return False
        determiner = self.usage.determiner[number]
        if lower in DIRECTIONS or (self.known_places[number] and determiner < MIN_THING_SHARE):
            return False
        if self.usage.person_verb[number] >= MIN_VERB_SHARE:
            return False
        return not name_shapes.is_surname(name) or determiner >= MIN_THING_SHARE

    def find_cue_type(self, number: int, words: list[str], head: str, is_group: bool) -> str:
        """Return the type that a noun beside a name shows; "" if the name itself contradicts it."""
        name = self.names[number]
        cue_share, cue = self.usage.cues[number]
        is_country = self.known_places[number] == COUNTRY
        if cue == "person" and len(words) == 1 and words[0] not in GIVEN_NAMES:
            # A colon follows speakers, but also countries and headings: "Somalia: ...".
            cue_share = 0 if is_country or name in self.written_lower else cue_share
        needed = MIN_PLACE_CUE_SHARE if self.known_places[number] else MIN_CUE_SHARE
        # A verb for persons is evidence against a work: the film Gandhi. A work may have any head.
        opposed = max(self.usage.place[number], self.usage.person_verb[number] * (cue != "person"))
        if cue == "person" and self.codes[number] == "en":
            opposed = max(opposed, self.usage.article[number])  # a thing: the Earthrise
        is_work = cue == "name" and cue_share > 0.5 and head != "organization"
        is_city = cue == "name" and len(words) > 1 and self.known_places[number] > TOWN
        is_place = is_city or (is_country and cue == "organization")
        # In "Kanye West", the head "West" is a surname, not a place.
        is_surname = cue == "person" and head == "geo" and not self.usage.place[number]
        is_surname = is_surname and len(words) == 2 and name_shapes.is_surname(words[1])
        is_other = (head and not is_work and not is_surname) or is_group or is_place
        return cue if cue_share > max(needed, opposed) and not is_other else ""

    def is_place(self, number: int, words: list[str]) -> bool:
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
        placed = max(self.usage.place[number], self.usage.preposition[number] / 2)
        if self.usage.person_verb[number] > placed and number in self.persons:
            return False
        name = self.names[number]
        if name.isupper() and (len(name) <= MAX_ACRONYM_LETTERS or rating == TOWN):
            return placed >= MIN_KNOWN_PLACE_SHARE
        given_names = more_given_names() if rating == TOWN else GIVEN_NAMES
        return placed >= MIN_KNOWN_PLACE_SHARE or words[0] not in given_names

    def is_used_for_person(self, number: int, words: list[str], head: str) -> bool:
        """Return whether a name that may be a person's is used for a person, not for a place."""
        placed = self.usage.place[number]
        rating, spoken = self.known_places[number], self.usage.person_verb[number]
        is_country = rating == COUNTRY and words[0] not in more_given_names()
        if is_country and spoken < MIN_VERB_SHARE:
            return False
        if rating and (placed > spoken or (len(words) > 1 and words[0] not in GIVEN_NAMES)):
            return False
        # "Heath" shows a place, but in "Heath Ledger" it is a given name before a surname.
        is_full_name = words[0] in more_given_names() and words[0].lower() in _SURNAMES
        is_full_name |= self.codes[number] == "de" and len(words) == 2 and words[0] in GIVEN_NAMES
        if head and words[-1].lower() not in _SURNAMES and not (head == "geo" and is_full_name):
            return False
        if head == "geo" and more_given_names().isdisjoint(words[1:-1]):
            return placed < MIN_KNOWN_PLACE_SHARE and self.usage.preposition[number] < 0.5
        return True

    def find_type_by_usage(self, number: int, lower: list[str]) -> str:
        """Return the type of a name without a known word, from the words around it."""
        name = self.names[number]
        hint = self.usage.find_hint(number)
        if len(lower) == 1:
            if name.isupper() and name.replace(".", "").isalpha():
                return hint if hint == "organization" else "acronym"
            if any(map(str.isdigit, name)):
                return "name"
            is_thing = self.usage.determiner[number] >= MIN_THING_SHARE or name in self.common
            if not is_thing and find_known_type(name) == "person":
                return "person"
            # An article may belong to the noun after the name: the Exco spokesman.
            if hint and name not in self.common and (hint != "person" or not is_thing):
                return hint
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
        # A surname may also be a word that the corpus has in lower case: Brooke Shields.
        named = words[0] in more_given_names() or words[-1] in more_given_names()
        if not named and not self.written_lower.isdisjoint(words):
            return False
        # Few places and things begin with a given name.
        given = words[0] in GIVEN_NAMES
        prepositions = 0 if given else self.usage.preposition[number] / (6 if named else 3)
        used = max(self.usage.place[number], self.usage.article[number], prepositions)
        is_placed = any(self.parts[word] for word in words[given:])
        return used < MIN_KNOWN_PLACE_SHARE and not is_placed


class NameUsage:
    """The usage of each entity in `variants`; `counts` has the mentions of each classified name.

    `place`, `preposition`, `determiner` and `article` are shares of mentions after such a word, and
    `person_verb` next to a verb for persons. `cues` has the type that most nouns beside a name
    show, `hints` the type that most words suggest, each with its share.
    """

    def __init__(self, variants: Variants, classified: ClassifiedNames, counts: np.ndarray) -> None:
        n = len(variants.names)
        entity_of = variants.entity_of[: len(classified.names)]
        times = self.times = np.maximum(np.bincount(entity_of, counts, n), 1)

        def share_of(share: np.ndarray) -> list[float]:
            shares: list[float] = (np.bincount(entity_of, counts * share, n) / times).tolist()
            return shares

        def most_shown(by_type: dict[str, np.ndarray]) -> list[tuple[float, str]]:
            """Return the type that most words beside each entity show, with their share."""
            shares = np.array([*map(share_of, by_type.values())])
            kinds = map([*by_type].__getitem__, shares.argmax(axis=0).tolist())
            return [*zip(shares.max(axis=0).tolist(), kinds, strict=True)]

        self.place = share_of(classified.place_share)
        self.preposition = share_of(classified.preposition_share)
        self.determiner = share_of(classified.determiner_share)
        self.article = share_of(classified.article_share)
        self.hints = most_shown(classified.hint_shares)
        self.person_verb = share_of(classified.person_share)
        self.cues = most_shown(classified.cue_shares)

    def find_hint(self, number: int) -> str:
        """Return the type that the words after a name suggest; "" if none or if unsure."""
        share, kind = self.hints[number]
        placed = max(self.place[number], self.article[number]) if kind == "person" else 0
        return kind if share >= MIN_HINT_SHARE and placed < MIN_KNOWN_PLACE_SHARE else ""
