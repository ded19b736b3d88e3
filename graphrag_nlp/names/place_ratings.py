"""Ratings of names that can mean a known place, by the kind and the size of the place."""

import re
import unicodedata
from functools import cache

import polars as pl

from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.text.places import find_places, read_places

# Ratings of known places: a city with fewer people than `MIN_POPULATION`, a larger one or a
# region, and a country, a continent or a natural place.
TOWN, CITY, COUNTRY = 1, 2, 3
_APOSTROPHES = re.compile("['’-]+")
# A city with fewer people is a place only if the corpus uses its name like a place.
MIN_POPULATION = 100_000


def rate_known_places(names: list[str]) -> bytearray:
    """Return what each name is if it is a known place: 0, `TOWN`, `CITY` or `COUNTRY`."""
    ratings = bytearray(len(names))
    found = find_places(pl.Series(names, dtype=pl.String))
    for row, kind, population in found.select("row", "kind", "population").iter_rows():
        rating = COUNTRY if kind in ("country", "continent") else CITY
        if kind == "city" and population < MIN_POPULATION:
            rating = TOWN
        ratings[row] = max(ratings[row], rating)
    for row, name in enumerate(names):
        if find_known_type(name) == "geo":
            ratings[row] = COUNTRY
    return ratings


@cache
def _place_names() -> frozenset[str]:
    return frozenset(read_places()["name"])


def is_place(word: str) -> bool:
    """Return whether `rate_known_places` rates a word of three letters or more: a fast test."""
    name = _APOSTROPHES.sub(" ", unicodedata.normalize("NFC", word).lower()).strip(" ")
    return name in _place_names() or find_known_type(word) == "geo"


@cache
def _country_names() -> frozenset[str]:
    return frozenset(
        read_places().filter(pl.col("kind").is_in(("country", "continent")))["name"].to_list()
    )


def is_nation(name: str) -> bool:
    """Return whether a name is that of a country or a continent."""
    return name.lower() in _country_names()


def is_country(name: str) -> bool:
    """Return whether a name is that of a country, a continent or a known place.

    This is faster than rating a single name.
    """
    is_clear = len(name) > 2 or name.isupper()  # "us" is another word
    is_listed = is_clear and name.lower().replace(".", "") in _country_names()
    return is_listed or find_known_type(name) == "geo"
