"""Citations of reports, in Microsoft's syntax: `[Data: Entities (1, 2); Reports (3, +more)]`."""

import re
from collections.abc import Iterator, Mapping, Set

# Numbers of the rows that stand in a context, by the name of the section.
Shown = Mapping[str, Set[int]]

_NAMES = "entit(?:y|ies)|relationships?|claims?|reports?|sources?"
# What is cited without "Data:" has at least a name and its numbers.
_CITATION = re.compile(
    rf"[^\S\n]*\[\s*(?:Data\s*[:：](?P<data>[^\[\]]*)|(?P<bare>(?:{_NAMES})\s*[(（][^\[\]]*))\]",
    re.IGNORECASE,
)
_PART = re.compile(r"(\w+)\s*[:：]?\s*[(（]([^()（）]*)[)）]")


def cited(text: str) -> dict[str, set[int]]:
    """Return the numbers that a text cites, by section."""
    found: dict[str, set[int]] = {}
    for citation in _CITATION.finditer(text):
        for name, numbers in _parts(citation):
            found.setdefault(_section(name), set()).update(_numbers(numbers))
    return found


def find_citations(text: str) -> Iterator[tuple[int, int, list[tuple[str, int]]]]:
    """Give each citation of a text: where it starts and ends, and the rows that it names."""
    for citation in _CITATION.finditer(text):
        parts = _parts(citation)
        rows = [(_section(name), number) for name, listed in parts for number in _numbers(listed)]
        yield *citation.span(), list(dict.fromkeys(rows))


def check_citations(text: str, shown: Shown) -> tuple[str, int]:
    """Remove from a text's citations what was not shown; tell how many numbers that were."""
    n_removed = 0

    def checked(citation: re.Match[str]) -> str:
        nonlocal n_removed
        parts = []
        for name, numbers in _parts(citation):
            section = _section(name)
            known = shown.get(section, frozenset())
            kept = [str(number) for number in _numbers(numbers) if number in known]
            n_removed += len(_numbers(numbers)) - len(kept)
            if kept:
                more = ["+more"] if "+" in numbers else []
                parts.append(f"{section} ({', '.join([*kept, *more])})")
        return f" [Data: {'; '.join(parts)}]" if parts else ""

    return _CITATION.sub(checked, text).strip(), n_removed


def _parts(citation: re.Match[str]) -> list[tuple[str, str]]:
    """Each section that a citation names, and its numbers; none in an empty one."""
    return _PART.findall(citation["data"] or citation["bare"] or "")


def _numbers(text: str) -> list[int]:
    """The numbers in a list of them, each once; a longer one is no row's."""
    return list(dict.fromkeys(int(digits[:18]) for digits in re.findall(r"\d+", text)))


def _section(name: str) -> str:
    """The name of the section that a citation means: "entity" is Entities."""
    known = {"e": "Entities", "re": "Relationships", "c": "Claims", "s": "Sources"}
    name = name.lower()
    if name.startswith("rep"):
        return "Reports"
    return next((known[start] for start in ("e", "re", "c", "s") if name.startswith(start)), name)
