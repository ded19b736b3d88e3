"""Types of named entities, from known places and given names, head words, and usage.

A name that can mean a place is a place unless the corpus uses the name for a person. Where no rule
is sure, a learned classifier decides.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from graphrag_nlp.names import name_shapes
from graphrag_nlp.names.head_types import (
    HEADS,
    find_head_type,
    find_shortened_companies,
)
from graphrag_nlp.names.known_names import COUNTRY, TOWN, find_known_type, find_likely_type
from graphrag_nlp.names.name_forms import ClassifiedNames
from graphrag_nlp.names.name_shapes import is_people, is_surname
from graphrag_nlp.names.name_words import (
    COMPANY_FORMS,
    DEMONYMS,
    GIVEN_NAMES,
    GIVEN_PEOPLES,
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
from graphrag_nlp.names.type_evidence import (
    MAX_ACRONYM_LETTERS,
    MIN_CUE_SHARE,
    MIN_KNOWN_PLACE_SHARE,
    MIN_PLACE_SHARE,
    MIN_VERB_SHARE,
    TypeEvidence,
)
from graphrag_nlp.names.variants import Variants
from graphrag_nlp.names.word_table import CUE_TYPES, HINT_TYPES
from graphrag_nlp.text.languages import (
    read_lists,
    word_set,
)

_LISTS = read_lists("graphrag_nlp/names/data/entity_types")
# Forms that also begin a name: SCI Les Tilleuls, TSV Unterhaching.
_LEADING_FORMS = word_set(_LISTS["leading_forms"])
_WORD_MARKS = re.compile(r"^[\"“„«'‘(]+|[.,;:!?\"”»)]+$|['’]s$")
_GROUPS = word_set(_LISTS["groups"])
_PEOPLE = _GROUPS | PARTIES
_GROUP_ENDS = tuple(_LISTS["group_ends"].split())

# Minimum share of mentions beside a word that shows a person, for a nickname such as Alex99.
MIN_NICKNAME_SHARE = 0.5
# Codes of the states of the US: Austin TX.
STATE_CODES = frozenset(
    "AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ "
    "NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY".split()
)
_TEAM_WORD = re.compile(r"[A-Z][a-z]{2,}s")
# A station of the US: KSBW-TV, WNYC FM.
_CALL_SIGN = re.compile(r"[KW][A-Z]{2,3}[ -](?:TV|FM|AM|DT)")
_DIRECTION = re.compile(r"(?:[NSEW]\.)+")
# Minimum share of mentions after an article, for the name of a team: the Albany Patroons.
MIN_TEAM_SHARE = 0.4
# Minimum number of letters of the city of a team: shorter words are numbers, as in Six Nations.
MIN_CITY_LETTERS = 4
# Minimum shares of the mentions of an acronym that show an organization: before a verb of persons,
# and in enumerations of organizations.
MIN_SPEAKER_SHARE, MIN_LISTED_SHARE = 0.3, 0.25


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
        # Numbers of the entities of which no rule is sure, and the types that the rules give.
        self.unsure: dict[int, str] = {}

    def find_types(self) -> list[str]:
        """Return the type of each name; bare kinds and names of other entities have none."""
        is_bare_kind = self.evidence.is_bare_kind
        types = [
            self._find_type(number) if entity == number and not is_bare_kind(number) else ""
            for number, entity in enumerate(self.entity_of.tolist())
        ]
        self._classify_unsure(types)
        self.kinds = dict(zip(self.names, types, strict=True))
        shortened = find_shortened_companies(self.names, types)
        return [self._correct_type(n, kind, *shortened) for n, kind in enumerate(types)]

    def _classify_unsure(self, types: list[str]) -> None:
        """Replace the types of which no rule is sure by those of the classifier."""
        names = [self.names[number] for number in self.unsure]
        sure = ["" if number in self.unsure else kind for number, kind in enumerate(types)]
        self.listed = count_listed(sure, self.lists)
        usages = [self.describe_usage(number) for number in self.unsure]
        found = classify_types(names, usages, list(self.unsure.values()), share_of_things(sure))
        for number, kind, known in zip(self.unsure, found, find_known_types(names), strict=True):
            has_article = self.evidence.has_article_of_thing(number)
            known = "" if has_article and known == "person" else known  # the Nimrod
            kind = known or "name" if has_article or kind == "name" else kind  # the Taj Mahal
            is_untyped = "name" in (kind, self.unsure[number])
            is_word = is_untyped and self.evidence.is_rare_word(number)
            # Ships and works are called by frequent words, too: the Discovery.
            is_word = is_word or (kind != "name" and self.evidence.is_plain_word(number))
            types[number] = "" if is_word else kind

    def _correct_type(self, number: int, kind: str, companies: set[str], firms: set[str]) -> str:
        """Correct a type by longer names of companies, by lists, and by the writing of the name.

        `companies` and `firms` are what `find_shortened_companies` returns.
        """
        name = self.names[number]
        is_given = name.partition(" ")[0] in more_given_names()
        share, hint = self.usage.hints[number]
        is_shown = number in self.persons and hint == "person" and share >= MIN_CUE_SHARE
        is_person = kind == "person" and (is_given or is_shown)
        is_open = kind in ("name", "person") and not is_person
        # Academy Awards Committee is no firm called Academy Awards.
        is_thing = kind == "name" and " " in name and number not in self.unsure
        is_company = is_open and name in companies and not self.known_places[number]
        is_company &= find_known_type(name) != "name" and not is_thing
        # Diamond Shamrock Corp is called Diamond, unless that is a place here.
        is_firm = name in firms and (number in self.unsure or " " not in name)
        is_open_firm = self.known_places[number] <= TOWN and not self.usage.place[number]
        is_firm &= is_open_firm and not is_shown and kind in ("name", "person", "geo")
        if is_company or is_firm:
            is_group = name_shapes.is_adjective(name) or name.lower() in _GROUPS
            kind = kind if is_group else "organization"
        if kind == "acronym":
            listed = (self.listed[number, : len(TYPES)] / self.usage.times[number]).tolist()
            kind = find_type_of_acronym(name, self.usage.person_verb[number], listed)
        if kind in TYPES and self._is_other_word(number, kind):
            kind = "acronym" if name.isupper() and name.isalpha() else "name"
        return kind

    def _find_type(self, number: int) -> str:
        """Return the type of a name by rules, and note a name of which none is sure."""
        name = self.names[number]
        words = name.split(" ")
        if not name.replace(" ", "").isalpha():
            words = [_WORD_MARKS.sub("", word) for word in words]
        if len(words) > 2 and (words[-1].isdigit() or not words[-1].lower().strip("ivx")):
            words.pop()  # World War II, West Virginia Route 9
        lower = [word.lower() for word in words]
        head, is_person = find_head_type(words, lower, self.codes[number]), number in self.persons
        is_placed = self.usage.place[number] >= MIN_KNOWN_PLACE_SHARE
        if lower[0] in ("st", "saint") and (is_placed or find_likely_type(name) == "geo"):
            is_person = is_person and self.usage.person_verb[number] > 0  # in St. Moritz
        if kind := self._find_known_type(number, lower, is_person):
            return kind
        is_group = len(words) == 1 and (lower[0] in _PEOPLE or lower[0].endswith(_GROUP_ENDS))
        # Indian Muslim, but not the Afghan Taliban
        is_group |= (
            len(words) > 1
            and find_known_type(words[-1]) != "organization"
            and all(word in _GROUPS or name_shapes.is_adjective(word) for word in lower)
        )
        is_person = is_person and not (is_group and words[0] not in GIVEN_NAMES)
        if is_person and self.evidence.is_used_for_person(number, words, head):
            return "person"
        if cue := self.evidence.find_cue_type(number, words, head, is_group):
            return cue
        if self.evidence.is_place(number, words):
            if self.evidence.may_be_surname(number):
                self.unsure[number] = "geo"
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

    def _find_known_type(self, number: int, lower: list[str], is_person: bool) -> str:
        """Return the type of a known name, a company with its form, or an English name; or ""."""
        name, code = self.names[number], self.codes[number]
        is_placed = self.known_places[number] and self.usage.place[number] >= MIN_PLACE_SHARE
        known = "" if is_placed else find_known_type(name)  # in Java
        if known in ("name", "event", "person"):
            return known
        has_form = lower[-1].replace(".", "") in COMPANY_FORMS or lower[0] in _LEADING_FORMS
        if (has_form and len(lower) > 1) or known == "organization":
            return "organization"
        if code != "en":
            return ""
        article, place = self.usage.determiner[number], self.known_places[number]
        if name in GIVEN_PEOPLES and not self.usage.person_verb[number]:
            return "name"  # the Roman walls
        return find_english_type(name, self.evidence.parts, place, article, is_person)

    def _find_open_type(self, number: int, lower: list[str]) -> str:
        """Return the type that the usage of a name shows, or its most frequent meaning."""
        name = self.names[number]
        kind = self.evidence.find_type_by_usage(number, lower)
        is_open = kind in ("acronym", "name") or self.usage.person_verb[number] < MIN_VERB_SHARE
        if is_open and (likely := find_likely_type(name)):
            return likely
        is_word = len(lower) == 1 and (any(map(str.isdigit, name)) or lower[0] in DEMONYMS)
        is_double = kind == "person" and name_shapes.is_double_name(name)
        if kind not in ("acronym", "organization") and not is_word and not is_double:
            self.unsure[number] = kind
        return kind

    def _is_other_word(self, number: int, kind: str) -> bool:
        """Return whether the writing of a name rules out the type: Win32 is no person."""
        name, (share, cue) = self.names[number], self.usage.cues[number]
        is_unsure, spoken = number in self.unsure, self.usage.person_verb[number]
        is_doctrine = name.endswith(name_shapes.DOCTRINE_ENDS) and (kind == "person" or is_unsure)
        if is_doctrine or name_shapes.is_plural_acronym(name):
            return True
        if kind == "organization":  # without a sign of one: MaxSpareThreads
            is_shown = kind in (cue if share else "", self.usage.find_hint(number))
            is_thing = name_shapes.is_written_together(name) or is_product(name, self.kinds)
            return is_unsure and not is_shown and is_thing
        if cue == kind and share >= MIN_NICKNAME_SHARE:
            return False
        if kind == "geo":
            return name_shapes.is_no_place(name) and not (self.known_places[number] and "-" in name)
        is_noun = self.codes[number] == "en" and spoken == 0 and name_shapes.ends_in_noun(name)
        return spoken < MIN_VERB_SHARE and (is_noun or name_shapes.is_no_person(name))

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


def find_english_type(
    name: str,
    ratings: Mapping[str, int],
    rating: int,
    article_share: float,
    is_person: bool,
) -> str:
    """Return the type that the words of an English name show; "" if none.

    `rating` rates the name as a place, and `ratings` the parts of names.
    """
    by_parts = "organization" if _CALL_SIGN.fullmatch(name) else ""
    if " " in name and not rating:
        by_parts = find_type_by_parts(name, ratings, article_share)
    return by_parts or find_type_of_group(name.split(" "), is_person, rating)


def find_type_by_parts(name: str, ratings: Mapping[str, int], article_share: float) -> str:
    """Return the type that the parts of an English name of several words show; "" if none.

    `ratings` rate parts of names as places, as `rate_known_places` does.
    """
    start, _, last = name.rpartition(" ")
    start_rating = ratings.get(start, 0)
    if _DIRECTION.fullmatch(start) and ratings.get(last, 0) == COUNTRY:
        return "geo"
    if start_rating and last in STATE_CODES:
        return "geo"
    first, _, rest = name.partition(" ")
    if first.rstrip(".") == "Co" and " " not in rest:
        return "geo"  # Co Meath
    if is_people(first) and ratings.get(rest, 0) == COUNTRY:
        return "geo"  # French Guinea
    if len(first) == 1 and is_surname(rest) and rest.lower() not in common_words("en"):
        return "person"  # (a pass by) C Healy
    body = start.rpartition(" ")[2].lower()
    if ratings.get(last, 0) and " " in start and HEADS.get(body) == "organization":
        return "organization"  # (the) One City Partnership Nottingham
    if first.isupper() and find_known_type(rest) == "organization":
        return "organization"  # UN World Food Programme
    is_city = 0 < start_rating < COUNTRY and len(start) >= MIN_CITY_LETTERS
    # The West and the South are no cities.
    is_city = is_city and start.partition(" ")[0].lower() not in common_words("en")
    is_team = is_city and article_share >= MIN_TEAM_SHARE and _TEAM_WORD.fullmatch(last)
    return "organization" if is_team and not _is_thing(last.lower()) else ""


def find_type_of_group(words: Sequence[str], is_person: bool, rating: int) -> str:
    """Return the type of English words that are a party or a people; "" if they are neither.

    House Republicans name their party. A people, its adjective and its language are no places,
    even if a region has the same name: Somali. `rating` rates the words as a place.
    """
    last = words[-1]
    if last.istitle() and last.lower() in PARTIES:
        return "organization"
    is_given = is_person and last in more_given_names()
    is_group = len(words) == 1 and is_people(last) and not is_given and rating != COUNTRY
    return "name" if is_group else ""


def _is_thing(plural: str) -> bool:
    """Return whether a plural names things or an event rather than a team: the Canterbury Tales."""
    singular = plural[:-3] + "y" if plural.endswith("ies") else plural.removesuffix("s")
    forms = {plural, singular, plural.removesuffix("es")}
    return not (forms.isdisjoint(HEADS) and forms.isdisjoint(common_words("en")))


def is_product(name: str, kinds: Mapping[str, str]) -> bool:
    """Return whether a name is of a known thing, or of a thing that an organization makes.

    Microsoft Office Professional Edition; Edinburgh Prolog; DEC Alpha, if Alpha is a thing in the
    corpus. `kinds` are the types of the names of the corpus.
    """
    words = name.split(" ")
    if words[0] in GIVEN_NAMES:
        return False
    for length in range(1, len(words)):
        start, rest = " ".join(words[:length]), " ".join(words[length:])
        is_firm = find_known_type(start) == "organization" or start in known_firms()
        is_firm = is_firm or kinds.get(start) == "organization" or start.isupper()
        if "name" in (find_known_type(start), find_known_type(rest)):
            return True
        is_thing = kinds.get(rest) in ("name", "acronym") and rest.lower() not in common_words("en")
        if is_firm and (is_thing or any(map(str.isdigit, rest))):
            return True
    return False


def find_type_of_acronym(name: str, speaker_share: float, listed: Sequence[float]) -> str:
    """Return the type of an acronym: that of the names beside which enumerations put it.

    `speaker_share` are the mentions before a verb of persons; `listed` are the persons, places
    and organizations in its enumerations for each mention.
    """
    person, geo, organization = listed
    if name in STATE_CODES:
        return "geo" if geo > max(person, organization) else "acronym"
    is_speaker = speaker_share >= MIN_SPEAKER_SHARE
    is_listed = organization >= MIN_LISTED_SHARE and organization > person + geo
    return "organization" if is_speaker or is_listed else "acronym"
