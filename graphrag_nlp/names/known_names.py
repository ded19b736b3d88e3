"""Names and places that are known everywhere: their types, and ratings of places by size."""

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import polars as pl

from graphrag_nlp.text.places import find_places, large_place_names, read_places

DATA_FOLDER = Path(__file__).with_name("data")
# Maximum length of an acronym that must not be looked up in lower case: "ROM" is not Rom (Rome).
MAX_ACRONYM_LETTERS = 3
# The mark of a letter that was decoded wrongly, and letters that it may replace: Sinn F\ufffdin.
_LOST = "\ufffd"
_LOST_LETTERS = re.compile(r"[^\x00-\x7f]+")
_SLASH = re.compile(r" ?/ ?")
# Ratings of known places: a city with fewer people than `MIN_POPULATION`, a larger one or a
# region, and a country, a continent or a natural place.
TOWN, CITY, COUNTRY = 1, 2, 3
_APOSTROPHES = re.compile("['’-]+")
# A city with fewer people is a place only if the corpus uses its name like a place.
MIN_POPULATION = 100_000


@cache
def list_known_names() -> Mapping[str, str]:
    """Map each name that means one thing everywhere to its type."""
    return _read("known_names")


@cache
def _likely_names() -> Mapping[str, str]:
    return _read("likely_names")


def _read(file: str) -> Mapping[str, str]:
    found = dict[str, str]()
    for kind, names in read_sections(DATA_FOLDER / f"{file}.txt").items():
        found.update(dict.fromkeys(names, kind))
    return found


def read_sections(path: Path) -> Mapping[str, list[str]]:
    """Read a list of names by section: a line "[section]", then a name on each line."""
    _, *sections = path.read_text(encoding="utf-8").split("\n[")
    parts = (section.partition("]\n") for section in sections)
    return {heading: names.split("\n") for heading, _, names in parts}


def find_known_type(name: str) -> str:
    """Return the type of a name that means one thing everywhere; "" if unknown.

    An entry of the list in lower case matches any upper or lower case, but no short acronym ("Rom"
    is Rome, "ROM" a memory). Other entries match only as written: "WHO", but not "who".
    """
    known = list_known_names()
    if name in known:
        return known[name]
    lower = name.lower()
    if lower in known and not (len(name) <= MAX_ACRONYM_LETTERS and name.isupper()):
        return known[lower]
    if _LOST in name:
        return _names_with_lost_letters().get(_LOST_LETTERS.sub(_LOST, lower), "")
    if "/" in name and (joined := _SLASH.sub("/", name)) != name:
        return find_known_type(joined)
    return ""


@cache
def _names_with_lost_letters() -> Mapping[str, str]:
    """Map known names to types, with each accented letter replaced by the mark of a lost letter."""
    known = list_known_names()
    return {_LOST_LETTERS.sub(_LOST, n.lower()): t for n, t in known.items() if not n.isascii()}


def find_likely_type(name: str) -> str:
    """Return the type of the most frequent meaning of an ambiguous name; "" if unknown."""
    return _likely_names().get(name, "")


def is_known_name(name: str) -> bool:
    """Return whether words are a known name, a country, a region or a large city."""
    return find_known_type(name) != "" or name.lower() in large_place_names()


def rate_known_places(names: list[str]) -> bytearray:
    """Rate each name as a known place: `TOWN`, `CITY` or `COUNTRY`; 0 if it is none."""
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
    """Return whether a word of at least three letters is a known place; a fast test."""
    name = _APOSTROPHES.sub(" ", unicodedata.normalize("NFC", word).lower()).strip(" ")
    return name in _place_names() or find_known_type(word) == "geo"


@cache
def _country_names() -> frozenset[str]:
    return frozenset(
        read_places().filter(pl.col("kind").is_in(("country", "continent")))["name"].to_list()
    )


def is_country(name: str) -> bool:
    """Return whether a name is that of a country, a continent or a known place.

    This is faster than `rate_known_places` for a single name.
    """
    is_clear = len(name) > 2 or name.isupper()  # "us" may be the pronoun
    is_listed = is_clear and name.lower().replace(".", "") in _country_names()
    return is_listed or find_known_type(name) == "geo"
