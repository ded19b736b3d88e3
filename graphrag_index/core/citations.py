"""Citations of reports, in Microsoft's syntax: `[Data: Entities (1, 2); Reports (3, +more)]`."""

import re
from collections.abc import Callable, Iterator, Mapping, Set

# Numbers of the rows that stand in a context, by the name of the section.
Shown = Mapping[str, Set[int]]
# Which number stands for that of a section; None if the row may not be cited.
NumberOf = Callable[[str, int], int | None]

_OPEN, _CLOSE, _INSIDE = r"[\[［【]", r"[\]］】]", r"[^\[\]［］【】]"
_DATA = "data|daten|données|datos|dati|dane|数据|資料|データ"
_NAMES = r"(?:entit(?:y|ies)|relationships?|claims?|reports?|sources?)(?!\w)"
_NUMBERS = r"(?=[:：\s]*\d)(?:[-–—:：,;、，；&\s\d]|and\b|und\b)*"
# What is cited without "Data:" has at least a name and its numbers.
_CITATION = re.compile(
    rf"(?:(?<![^\S\n])[^\S\n]+)?{_OPEN}\s*(?:(?:{_DATA})\s*[:：](?P<data>{_INSIDE}*)"
    rf"|(?P<bare>{_NAMES}\s*[(（]{_INSIDE}*|(?:{_NAMES}{_NUMBERS})+)){_CLOSE}",
    re.IGNORECASE,
)
# A name is what stands before a number; "(3-5)" are 3, 4 and 5, but "(-1)" is no row's number.
_TOKEN = re.compile(
    r"(?P<name>[^\W\d_]+)[\s:：(（#]+(?=[-–]?\d)"
    r"|(?<![^\W_])(?P<first>\d+)\s*[-–—]\s*(?P<last>\d+)(?!\w)"
    r"|(?<![^\W_])(?P<number>[-–]?\d+)(?!\w)|(?P<more>\+)"
)
# How the names of sections begin, also where a model translates them.
_BEGINNINGS = {
    "Entities": ("ent", "encj", "实体", "實體"),
    "Relationships": ("rel", "bezieh", "关系", "關係"),
    "Claims": ("claim", "covar"),
    "Reports": ("report", "commun", "bericht", "rapport", "inform", "raport", "报告", "報告"),
    "Sources": (
        *("source", "text", "unit", "passage", "chunk", "quelle", "fuente", "font", "źród"),
        *("来源", "來源"),
    ),
}
# These stand before numbers too, and name no section.
_JOINING = frozenset("and und et y e i oraz more id ids no nr row rows 和".split())
# A longer range is taken for its ends.
_LONGEST_RANGE = 50


def cited(text: str) -> dict[str, set[int]]:
    """Return the numbers that a text cites, by section."""
    found: dict[str, set[int]] = {}
    for citation in _CITATION.finditer(text):
        for section, numbers, _ in _parts(citation):
            found.setdefault(section, set()).update(numbers)
    return found


def find_citations(text: str) -> Iterator[tuple[int, int, list[tuple[str, int]]]]:
    """Give each citation of a text: where it starts and ends, and the rows that it names."""
    for citation in _CITATION.finditer(text):
        rows = [(section, n) for section, numbers, _ in _parts(citation) for n in numbers]
        yield *citation.span(), list(dict.fromkeys(rows))


def check_citations(text: str, shown: Shown) -> tuple[str, int]:
    """Remove from a text's citations what was not shown; tell how many numbers that were."""
    return renumber_citations(
        text, lambda section, number: number if number in shown.get(section, ()) else None
    )


def renumber_citations(text: str, number_of: NumberOf) -> tuple[str, int]:
    """Put other numbers into a text's citations; tell how many had none and were removed."""
    n_removed = 0

    def rewritten(citation: re.Match[str]) -> str:
        nonlocal n_removed
        parts = []
        for section, numbers, has_more in _parts(citation):
            found = [number_of(section, number) for number in numbers]
            kept = [str(number) for number in found if number is not None]
            n_removed += len(numbers) - len(kept)
            if kept:
                more = ["+more"] if has_more else []
                parts.append(f"{section} ({', '.join([*kept, *more])})")
        return f" [Data: {'; '.join(parts)}]" if parts else ""

    return _CITATION.sub(rewritten, text).strip(), n_removed


def _parts(citation: re.Match[str]) -> list[tuple[str, list[int], bool]]:
    """Each section that a citation names, its numbers, each once, and whether it has more.

    Numbers without a name are those of sources.
    """
    parts: list[tuple[str, dict[int, None], bool]] = []
    section = "Sources"
    for token in _TOKEN.finditer(citation["data"] or citation["bare"] or ""):
        if token["name"]:
            if token["name"].lower() not in _JOINING:
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
    for section, beginnings in _BEGINNINGS.items():
        if name.startswith(beginnings):
            return section
    return name
