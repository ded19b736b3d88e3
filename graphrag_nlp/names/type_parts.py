"""Types that the parts of a name show: a city with its state, a team, a product of a firm."""

import re
from collections.abc import Mapping, Sequence

from graphrag_nlp.names.head_types import HEADS
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_shapes import is_people, is_surname
from graphrag_nlp.names.name_words import (
    GIVEN_NAMES,
    PARTIES,
    common_words,
    known_firms,
    more_given_names,
)
from graphrag_nlp.names.place_ratings import COUNTRY

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
