"""Names that are known everywhere, and their types."""

import re
from collections.abc import Mapping
from functools import cache

from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.places import large_place_names

# Maximum length of an acronym that is known only as it is written.
MAX_ACRONYM_LETTERS = 3
# The mark of letters that were decoded wrongly, and letters that it may stand for: Sinn F\ufffdin.
_LOST = "\ufffd"
_LOST_LETTERS = re.compile(r"[^\x00-\x7f]+")
_SLASH = re.compile(r" ?/ ?")
_TYPES = {
    "places": "geo",
    "organizations": "organization",
    "events": "event",
    "others": "name",
    "persons": "person",
}


@cache
def list_known_names() -> Mapping[str, str]:
    """Return the type of each name in the list of `find_known_type`."""
    return _read("known_names")


@cache
def _likely_names() -> Mapping[str, str]:
    return _read("likely_names")


def _read(file: str) -> Mapping[str, str]:
    found = dict[str, str]()
    for key, names in read_lists(f"graphrag_nlp/names/data/{file}").items():
        # A line of the file ends behind a "|", and YAML joins lines with a space.
        found.update(dict.fromkeys(names.replace("| ", "|").split("|"), _TYPES[key]))
    return found


def find_known_type(name: str) -> str:
    """Return the type of a name that means one thing everywhere; "" if unknown.

    A name in lower case in the list is known in any case, but not as a short acronym (Rom is Rome,
    ROM a memory). Others are known only as they are written: "WHO", but not "who".
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
    """Return the types of the names with accents, each accent as the mark of a lost letter."""
    known = list_known_names()
    return {_LOST_LETTERS.sub(_LOST, n.lower()): t for n, t in known.items() if not n.isascii()}


def find_likely_type(name: str) -> str:
    """Return the type of what a name with several meanings most often stands for; "" if unknown."""
    return _likely_names().get(name, "")


def is_known_name(name: str) -> bool:
    """Return whether words are a known name, a country, a region or a large city."""
    return find_known_type(name) != "" or name.lower() in large_place_names()
