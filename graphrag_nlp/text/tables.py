"""Tables in texts: rows of cells with bars or tabs between them, or below rules.

Tables of reStructuredText: https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#tables
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from operator import itemgetter
from typing import NamedTuple

# The groups are atomic (no backtracking), since a line may have thousands of bars. A simple table
# has rules of "=" over its columns: above its header, below it, and at its end. In a grid, "+" are
# the corners of cells.
_TABLE = re.compile(
    r"^[ ]*(?P<columns>=+(?:[ ]+=+)+)[ ]*\n"
    r"(?:(?>^(?![ ]*(?:==|$))[^\n]+(?:\n|\Z))+(?:[ ]*(?P=columns)[ ]*(?:\n|\Z))?){1,2}"
    r"|(?>^(?:[^\n|]*\|[^\n|]*\||[^\n\t]*\t|[^\n]*? \| |[ ]*\+[-=]+\+)[^\n]*(?:\n|\Z)){2,}",
    re.MULTILINE,
)
_RULE = re.compile(r"[\s|:+=-]+")
_RULE_ABOVE = re.compile(r" *[+=]+[-+= ]*")
_CELL_BOUND = re.compile(r"(?<!\\)\||\t")
_CELL = re.compile(r"(?:\\\||[^\s|])(?:(?:\\\||[^|\t])*[^\s|])?")
# Maximum number of words of a cell. Rows with a longer cell are text in columns, not a table.
MAX_WORDS_OF_CELL = 15
# Maximum number of characters of the beginning of a row that the text after it repeats.
MAX_CHARS_OF_CUT_ROW = 300
MAX_CHARS_OF_TITLE = 160


class Row(NamedTuple):
    """A row of a table: its offset in the text, its line, and its cells without space around."""

    start: int
    line: str
    cells: list[str]
    is_rule: bool


class Table(NamedTuple):
    """The rows of a table, and the number of the row that names its columns; -1 if none does.

    `title` is a short line of its own above the table, such as a caption; empty if there is none.
    """

    start: int
    end: int
    rows: list[Row]
    header: int
    title: str


def find_tables(text: str) -> Iterator[Table]:
    """Find the tables of a text. The first row is a header if a rule or two more rows follow it.

    Without a rule below it, a header has no digits. Converters of office files write an empty
    header above the first row. A row between rules may have several lines.
    """
    for found in _TABLE.finditer(text) if re.search(r"[|\t]|== +==", text) else ():
        rule = found[0].split("\n", 1)[0] if found["columns"] else ""
        columns = [column.start() for column in re.finditer("=+", rule)]
        rows = [
            Row(
                found.start() + row.start(),
                row[0],
                _split_row(row[0], columns),
                bool(_RULE.fullmatch(row[0])),
            )
            for row in re.finditer(r"[^\n]+", found[0])
        ]
        has_rule_above = bool(_RULE_ABOVE.fullmatch(rows[0].line))
        rows = _join_lines(rows) if has_rule_above else rows
        if has_rule_above and len(rows) > 2:
            # In a grid without a header, rules alike are between all rows.
            is_last = len(rows) < 5 or rows[4].is_rule
            is_header = rows[2].is_rule and ("=" in rows[2].line or not is_last)
            first = 1
        else:
            has_rule = len(rows) > 1 and rows[1].is_rule
            first = 2 if has_rule and not any(rows[0].cells) else 0
            is_bare = len(rows) > first + 2 and not any(c.isdigit() for c in rows[first].line)
            is_header = is_bare or (has_rule and not first)
        header = first if is_header else -1
        yield Table(*found.span(), rows, header, _find_title(text, found.start()))


def _find_title(text: str, start: int) -> str:
    above, _, line = text[max(0, start - MAX_CHARS_OF_TITLE) : start].rstrip().rpartition("\n")
    is_alone = above.endswith("\n") or (not above and start <= MAX_CHARS_OF_TITLE)
    # A sentence may be about anything.
    is_short = len(line.split()) <= MAX_WORDS_OF_CELL and not line.rstrip().endswith(
        (".", "!", "?")
    )
    # Passages have their headings anyway.
    return line.strip() if is_alone and is_short and not line.startswith("#") else ""


def _join_lines(lines: Sequence[Row]) -> list[Row]:
    """Join the lines of each row: the first cell is empty in all but the first of them."""
    groups = list[list[Row]]()
    for line in lines:
        if groups and not (line.is_rule or groups[-1][0].is_rule or line.cells[0]):
            groups[-1].append(line)
        else:
            groups.append([line])
    return [
        Row(
            group[0].start,
            "\n".join(line.line for line in group),
            [
                " ".join(filter(None, cell))
                for cell in zip_longest(*(line.cells for line in group), fillvalue="")
            ],
            group[0].is_rule,
        )
        for group in groups
    ]


def _split_row(row: str, columns: Sequence[int]) -> list[str]:
    if columns:
        return [row[start:end].strip() for start, end in pairwise([*columns, len(row)])]
    cells = [cell.strip() for cell in _CELL_BOUND.split(row.strip())]
    return cells[1:-1] if row.lstrip().startswith("|") and len(cells) > 2 else cells


def repeat_header(tables: Sequence[Table], position: int) -> str:
    """Return title, header and rule for a text that begins inside a table; "" elsewhere.

    Behind them is the beginning of a row that the text goes on with. `tables` are in the order of
    the document.
    """
    at = bisect_left(tables, position, key=itemgetter(0)) - 1
    if at < 0 or position >= tables[at].end or tables[at].header < 0:
        return ""
    rows, header = tables[at].rows, tables[at].rows[tables[at].header]
    own = rows[max(0, bisect_right(rows, position, key=itemgetter(0)) - 1)]
    cut_row = own.line[: position - own.start]
    is_text = any(len(cell.split()) > MAX_WORDS_OF_CELL for cell in header.cells)
    is_header = own.start > header.start and sum(map(bool, header.cells)) > 1
    if is_text or not is_header or len(cut_row) > MAX_CHARS_OF_CUT_ROW:
        return ""
    rule = rows[1].line if rows[1].is_rule else _CELL.sub("---", header.line)
    title = f"{tables[at].title}\n\n" if tables[at].title else ""
    is_ruled = tables[at].header == 1
    lines = [row.line for row in rows[:3]] if is_ruled else [header.line, rule]
    return title + "\n".join([*lines, cut_row])
