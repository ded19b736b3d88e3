"""Tables in texts: their headers and the cells of their rows."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_TABLE_ROWS = re.compile(
    r"(?:^[^\S\n]*\|[^\n]*(?:\n|\Z)|^[^\n\t]+\t[^\n]*(?:\n|\Z))+", re.MULTILINE
)
_TABLE_RULE = re.compile(r"[\s|:+=-]+")
_BAR, _TAB = re.compile(r"(?<!\\)\|"), re.compile(r"\t")


class Cell(NamedTuple):
    """A cell of a table, which may be empty, and where it starts in the text."""

    start: int
    text: str


class Table(NamedTuple):
    """The header of a table, empty if unknown, and its other rows."""

    header: list[str]
    rows: list[list[Cell]]

    def column(self, i: int) -> str:
        """Return the name of a column; "" if unknown."""
        return self.header[i] if i < len(self.header) else ""


def find_tables(text: str) -> Iterator[Table]:
    """Find the tables of a text whose cells stand between bars or tabs."""
    if "|" not in text and "\t" not in text:
        return
    for table in _TABLE_ROWS.finditer(text):
        rows: list[list[Cell]] = []
        header: list[str] = []
        for line in re.finditer(r"[^\n]+", table[0]):
            if _TABLE_RULE.fullmatch(line[0]):
                header = [cell.text for cell in rows.pop()] if len(rows) == 1 else header
                continue
            rows.append(_split_row(line[0].rstrip(), table.start() + line.start()))
        if len(rows) + bool(header) < 2:
            continue
        if not header and "|" not in table[0]:
            header = [cell.text for cell in rows.pop(0)]
        yield Table(header, rows)


def _split_row(line: str, offset: int) -> list[Cell]:
    """Split a line at its bars, without the outer ones, or at its tabs; cells may be empty."""
    is_barred = line.lstrip().startswith("|")
    start = line.index("|") + 1 if is_barred else 0
    stop = len(line) - (is_barred and len(line) > start and bool(_BAR.match(line, len(line) - 1)))
    cells = []
    while start <= stop:
        bound = (_BAR if is_barred else _TAB).search(line, start, stop)
        cell = line[start : bound.start() if bound else stop]
        n_spaces = len(cell) - len(cell.lstrip())
        cells.append(Cell(offset + start + n_spaces, cell.strip()))
        start = bound.end() if bound else stop + 1
    return cells
