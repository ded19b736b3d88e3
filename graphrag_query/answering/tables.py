"""Tables in texts: their headers and the cells of their rows."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_TABLE_ROWS = re.compile(
    r"(?:^[^\S\n]*\|[^\n]*(?:\n|\Z)|^[^\n\t]+\t[^\n]*(?:\n|\Z))+", re.MULTILINE
)
_TABLE_RULE = re.compile(r"[\s|:+=-]+")
_CELL = re.compile(r"[^|\t\n]+")


class Cell(NamedTuple):
    """A cell of a table, and where it starts in the text."""

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
            at = table.start() + line.start()
            cells = [(at + cell.start(), cell[0]) for cell in _CELL.finditer(line[0].rstrip())]
            rows.append(
                [
                    Cell(start + len(cell) - len(cell.lstrip()), cell.strip())
                    for start, cell in cells
                    if cell.strip() or start > cells[0][0]
                ]
            )
        if len(rows) + bool(header) < 2:
            continue
        if not header and "|" not in table[0]:
            header = [cell.text for cell in rows.pop(0)]
        yield Table(header, rows)
