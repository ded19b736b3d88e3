"""Parsing of a text as a small model: sentences, names, list items and table rows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

UPPER = "A-ZÀ-ÖØ-ÞĀĆČĐŁŃŚŞŠŹŻŽΑ-ΩА-ЯЁ"
WORD = rf"[{UPPER}](?:[\w’'&.-]*\w)?"
NAME = re.compile(rf"\b{WORD}(?: (?:(?:of|de|del|la|von|van|der|bin|al) )?{WORD})*")
LETTERS = re.compile(r"\b[^\W\d_]+\b")
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\s*\n\s*\n\s*")
# Words that begin a sentence and are no name.
NO_NAMES = set(
    "a an and after all although as at before both but by during each every for from he her his "
    "how however i if in into is it its later many most no not of on one only or our she since so "
    "some such than that the their then there these they this those though through to two under "
    "until we what when where which while who with yet you der die das ein eine und le la les un "
    "une el los il".split()
)
ORGANIZATION = re.compile(
    r"\b(Inc|Ltd|Corp|Company|Society|University|Institute|Ministry|Bank|Party|Agency|Union|"
    r"Council|Committee|Group|Association|Foundation|Navy|Army|GmbH|AG)\b"
)
PLACE = re.compile(
    r"\b(River|Sea|Island|Islands|Bay|Ocean|City|Mount|Street|Lake|Coast|Station|Harbour|Point|"
    r"Land|Glacier)\b"
)
PLACE_BEFORE = ("in", "at", "near", "from")
SECTION = re.compile(r"^(?:#+|-{3,})\s*(?P<a>[\w ]+?)\s*(?:-{3,})?$|^(?P<b>[A-Z][\w ]+):$")
ROW = re.compile(r"^\|?\s*(\d+)\s*(?:[,|\t])\s*(.+?)\s*\|?\s*$")
ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.+)$")


def sentences(text: str) -> list[str]:
    return [part.strip().replace("\n", " ") for part in SENTENCE_END.split(text) if part.strip()]


def sentences_with_names(text: str) -> list[tuple[str, list[str]]]:
    """Yield each sentence with its capitalised names, each once, in order."""
    found = []
    for sentence in sentences(text):
        names: dict[str, None] = {}
        for match in NAME.finditer(sentence):
            name = match[0]
            while name and name.partition(" ")[0].lower() in NO_NAMES:
                name = name.partition(" ")[2]
            # A single word that stands elsewhere in lower case only begins its sentence.
            if match.start() == 0 and " " not in name and f" {name.lower()} " in text:
                continue
            if name:
                names[name] = None
        found.append((sentence, list(names)))
    return found


def kind_of(name: str, sentence: str) -> str:
    """Guess the type of a name."""
    kind = _kind_of_name(name)
    if kind != "organization" and any(f" {word} {name}" in sentence for word in PLACE_BEFORE):
        return "location"
    return kind


@lru_cache(maxsize=4096)
def _kind_of_name(name: str) -> str:
    if ORGANIZATION.search(name):
        return "organization"
    if PLACE.search(name):
        return "location"
    return "person" if " " in name else "concept"


@dataclass(frozen=True)
class Row:
    """A line of a table: its section, its number and the rest."""

    section: str
    number: int
    text: str


def rows(text: str) -> Iterator[Row]:
    """Yield the rows of tables that begin with a number, separated by comma, tab or bar."""
    section = "Data"
    for line in text.splitlines():
        line = line.strip()
        if match := SECTION.match(line):
            section = match["a"] or match["b"]
        elif match := ROW.match(line):
            yield Row(section, int(match[1]), match[2])


def items(text: str) -> list[str]:
    """Return the items of a list, each once."""
    found = [match[1] for line in text.splitlines() if (match := ITEM.match(line))]
    return list(dict.fromkeys(found))


def words(text: str) -> set[str]:
    return {word.lower() for word in LETTERS.findall(text) if len(word) > 3}
