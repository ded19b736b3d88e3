"""Citations of reports, in Microsoft's syntax: `[Data: Entities (1, 2); Reports (3, +more)]`."""

import re
from collections.abc import Callable, Iterator, Mapping, Set

from graphrag_index.text.citation_forms import citations_in, may_be_prose, rows_of
from graphrag_index.text.word_lists import read_lists, word_set

# Numbers of the rows that stand in a context, by the name of the section.
Shown = Mapping[str, Set[int]]
# Which number stands for that of a section; None if the row may not be cited.
NumberOf = Callable[[str, int], int | None]

# A name is what stands before a number; "(3-5)" are 3, 4 and 5, but "(-1)" is no row's number.
_TOKEN = re.compile(
    r"(?P<name>[^\W\d_]+)[\s:：(（\[#]+(?=[-–]?\d)"
    r"|(?<![^\W_和及])(?P<first>\d+)\s*[-–—]\s*(?P<last>\d+)(?![^\W和及])"
    r"|(?<![^\W_和及])(?P<number>[-–]?\d+)(?![^\W和及])|(?P<more>\+)"
)
# What `renumber_citations` writes behind a space, with which a search would take twice as long.
_PART = re.compile(r"(\w+) \((-?\d+(?:, -?\d+)*(?:, \+more)?)\)")
_WRITTEN = re.compile(rf"\[Data: ({_PART.pattern}(?:; {_PART.pattern})*)\]")
_LISTS = read_lists("text/data/citations")
_SECTIONS = {name: tuple(text.split()) for name, text in _LISTS["sections"].items()}
_NO_SECTION = word_set(_LISTS["no_section"])
# A longer range is taken for its ends.
_LONGEST_RANGE = 50


def cited(text: str) -> dict[str, set[int]]:
    """Return the numbers that a text cites, by section."""
    found: dict[str, set[int]] = {}
    for _, _, rows in find_citations(text):
        for section, number in rows:
            found.setdefault(section, set()).add(number)
    return found


def find_citations(
    text: str, shown: Shown | None = None
) -> Iterator[tuple[int, int, list[tuple[str, int]]]]:
    """Give each citation of a text: where it starts and ends, and the rows that it names.

    "(Source: 1914)" is prose unless it is among what was `shown`.
    """
    for citation in citations_in(text):
        rows = [(section, n) for section, numbers, _ in _parts(citation) for n in numbers]
        is_shown = any(number in (shown or {}).get(section, ()) for section, number in rows)
        if is_shown or not may_be_prose(citation, [number for _, number in rows]):
            yield *citation.span(), list(dict.fromkeys(rows))


def check_citations(text: str, shown: Shown) -> tuple[str, int]:
    """Remove from a text's citations what was not shown; tell how many numbers that were."""
    return renumber_citations(
        text, lambda section, number: number if number in shown.get(section, ()) else None
    )


def renumber_citations(text: str, number_of: NumberOf) -> tuple[str, int]:
    """Put other numbers into a text's citations; tell how many had none and were removed."""
    n_removed = 0

    checked, start = [], 0
    for citation in citations_in(text):
        parts, cites, n_unknown = [], [], 0
        for section, numbers, has_more in _parts(citation):
            cites += numbers
            found = [number_of(section, number) for number in numbers]
            kept = [str(number) for number in found if number is not None]
            n_unknown += len(numbers) - len(kept)
            if kept:
                more = ["+more"] if has_more else []
                parts.append(f"{section} ({', '.join([*kept, *more])})")
        if not parts and may_be_prose(citation, cites):
            continue
        n_removed += n_unknown
        checked.append(text[start : citation.start()])
        checked.append(f" [Data: {'; '.join(parts)}]" if parts else "")
        start = citation.end()
    return "".join([*checked, text[start:]]).strip(), n_removed


def renumber_written(text: str, number_of: NumberOf) -> str:
    """Put other numbers into the citations of a text that `renumber_citations` gave.

    They have one form, so that this takes a hundredth of the time.
    """
    if "[Data: " not in text:
        return text.strip()
    renumbered, start = [], 0
    for citation in _WRITTEN.finditer(text):
        parts = []
        for part in _PART.finditer(citation[1]):
            cells = part[2].split(", ")
            found = [number_of(part[1], int(cell)) for cell in cells if cell != "+more"]
            kept = [str(number) for number in found if number is not None]
            if kept:
                kept += ["+more"] * (cells[-1] == "+more")
                parts.append(f"{part[1]} ({', '.join(kept)})")
        renumbered.append(text[start : citation.start()].removesuffix(" "))
        renumbered.append(f" [Data: {'; '.join(parts)}]" if parts else "")
        start = citation.end()
    return "".join([*renumbered, text[start:]]).strip()


def _parts(citation: re.Match[str]) -> list[tuple[str, list[int], bool]]:
    """Each section that a citation names, its numbers, each once, and whether it has more.

    Numbers without a name are those of sources.
    """
    parts: list[tuple[str, dict[int, None], bool]] = []
    section = "Sources"
    for token in _TOKEN.finditer(rows_of(citation)):
        if token["name"]:
            if token["name"].lower() not in _NO_SECTION:
                section = _section(token["name"])
            continue
        if not parts or parts[-1][0] != section:
            parts.append((section, {}, False))
        numbers = parts[-1][1]
        if token["more"]:
            parts[-1] = (section, numbers, True)
        elif token["number"]:
            numbers[_number(token["number"])] = None
        else:
            first, last = _number(token["first"]), _number(token["last"])
            is_range = 0 <= last - first <= _LONGEST_RANGE
            numbers.update(dict.fromkeys(range(first, last + 1) if is_range else (first, last)))
    return [(name, list(numbers), has_more) for name, numbers, has_more in parts]


def _number(digits: str) -> int:
    """A number; a longer one is no row's."""
    return int(digits.replace("–", "-")[:18])


def _section(name: str) -> str:
    """The name of the section that a citation means: "entity" is Entities."""
    name = name.lower()
    for section, beginnings in _SECTIONS.items():
        if name.startswith(beginnings):
            return section
    return name
