"""Tables in texts: rows of cells with bars around or between them, or with tabs."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

# The group is atomic (no backtracking), since a line may have thousands of bars.
_TABLE = re.compile(
    r"(?>^(?:[^\n|]*\|[^\n|]*\||[^\n\t]*\t|[^\n]*? \| )[^\n]*(?:\n|\Z)){2,}", re.MULTILINE
)
_RULE = re.compile(r"[\s|:+=-]+")
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
    header above the first row.
    """
    for found in _TABLE.finditer(text) if "|" in text or "\t" in text else ():
        rows = [
            Row(
                found.start() + row.start(),
                row[0],
                _split_row(row[0]),
                bool(_RULE.fullmatch(row[0])),
            )
            for row in re.finditer(r"[^\n]+", found[0])
        ]
        has_rule = len(rows) > 1 and rows[1].is_rule
        first = 2 if has_rule and not any(rows[0].cells) else 0
        is_bare = len(rows) > first + 2 and not any(c.isdigit() for c in rows[first].line)
        is_header = is_bare or (has_rule and not first)
        header = first if is_header else -1
        yield Table(*found.span(), rows, header, _find_title(text, found.start()))


def _find_title(text: str, start: int) -> str:
    above, _, line = text[max(0, start - MAX_CHARS_OF_TITLE) : start].rstrip().rpartition("\n")
    is_alone = above.endswith("\n") or (not above and start <= MAX_CHARS_OF_TITLE)
    is_short = len(line.split()) <= MAX_WORDS_OF_CELL
    # Passages have their headings anyway.
    return line.strip() if is_alone and is_short and not line.startswith("#") else ""


def _split_row(row: str) -> list[str]:
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
    return f"{title}{header.line}\n{rule}\n{cut_row}"
