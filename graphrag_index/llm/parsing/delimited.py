"""Parser of records in other forms than JSON: delimited lines, tuples, Markdown tables."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from graphrag_index.llm.parsing.schema_fit import Shape
from graphrag_index.text.normalize import letters

_ENDS = re.compile(r"(\n|\#\#|<\|COMPLETE\|>)")
_DELIMITER = r"<\|+>|\|+|\t+|;|::|¦"
_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[\s|:+-]*-[\s|:+-]*")
_QUOTES = "\"'“”„‘’`"


def read_lines(text: str, shape: Shape) -> tuple[dict[str, list[Any]], int]:
    """Parse lines such as ``entity | Tom Crean | person``, tuples and Markdown tables.

    Returns
    -------
    records
        The records of each list of the shape: objects if they have all fields of the schema,
        else lists of fields. Empty if there are none.
    n_cut
        The number of records that the end of the text truncates.
    """
    records: dict[str, list[Any]] = {}
    n_cut = 0
    lines = _lines(text, shape)
    n_fields = _usual_counts(lines)
    for property, fields, whole in lines:
        names = shape.fields(property)
        if isinstance(fields, list) and not whole:
            usual = n_fields.get(property, max(2, len(names) - 1))
            if len(fields) < usual:
                n_cut += 1
                continue
        if isinstance(fields, list) and len(fields) == len(names):
            fields = dict(zip(names, fields, strict=True))
        records.setdefault(property, []).append(fields)
    return records, n_cut


def _usual_counts(lines: list[tuple[str, Any, bool]]) -> dict[str, int]:
    """Return the most frequent number of fields in whole lines, for each list."""
    counts: dict[str, Counter[int]] = {}
    for property, fields, whole in lines:
        if whole and isinstance(fields, list) and len(fields) > 1:
            counts.setdefault(property, Counter())[len(fields)] += 1
    return {property: max(count, key=lambda n: (count[n], n)) for property, count in counts.items()}


def _lines(text: str, shape: Shape) -> list[tuple[str, Any, bool]]:
    """Return for each record its list, its fields, and whether the line is whole."""
    if not shape.list_names:
        return []
    kinds = "|".join(sorted(map(re.escape, shape.list_names), key=len, reverse=True))
    head = re.compile(
        rf"[\s>*+•\d.)-]{{0,20}}(?P<open>[(\[|]{{0,3}})\s{{0,9}}(?P<quote>[*_`{_QUOTES}]{{0,4}})"
        rf"(?P<kind>{kinds})[*_`{_QUOTES}]{{0,4}}(?P<colon>[:：]?)[*_`{_QUOTES}]{{0,4}}[ ]{{0,9}}"
        rf"(?P<delimiter>{_DELIMITER}|,)?",
        re.IGNORECASE,
    )
    found: list[tuple[str, Any, bool]] = []
    table = _Table(shape)
    for piece, whole in _pieces(text, head):
        start = head.match(piece)
        fields = _fields(piece, start) if start else None
        if start is None or fields is None:
            found.extend((property, row, True) for property, row in table.row(piece))
            continue
        property = shape.list_names[start["kind"].lower()]
        if start["open"].endswith("("):
            whole = piece.rstrip().endswith(")")
        closed = "|" in start["open"] and piece.rstrip().endswith("|")
        found.append((property, fields, whole or closed))
    return found


def _pieces(text: str, head: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is whole; a tuple extends to its closing bracket."""
    parts = _ENDS.split(text)
    begun: list[str] = []
    for number in range(0, len(parts), 2):
        piece, whole = parts[number], number + 1 < len(parts)
        if begun and (not piece.strip() or head.match(piece)):
            yield "\n".join(begun), True
            begun = []
        if begun or (_is_tuple(piece, head) and whole and parts[number + 1] == "\n"):
            begun.append(piece)
            if not piece.rstrip().endswith(")") and whole and parts[number + 1] == "\n":
                continue
            piece, begun = "\n".join(begun), []
        yield piece, whole
    if begun:
        yield "\n".join(begun), False


def _is_tuple(piece: str, head: re.Pattern[str]) -> bool:
    start = head.match(piece)
    return bool(start and start["open"].endswith("("))


def _fields(piece: str, start: re.Match[str]) -> list[str] | None:
    """Split the text after the kind of a record into fields; None if it is prose."""
    rest, delimiter = piece[start.end() :].rstrip(), start["delimiter"]
    if start["open"].endswith("(") and rest.endswith(")"):
        rest = rest[:-1]
    if delimiter is None:
        # "Entity: Ada | person".
        first = re.search(_DELIMITER, rest) if start["colon"] else None
        if first is None:
            return None
        delimiter = first[0]
    if delimiter == ",":
        if not start["quote"]:
            return None
        fields = [quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|([^\s",][^",]*)', rest)]
    elif delimiter == "|":
        fields = _BAR.split(rest)
    else:
        fields = rest.split(delimiter)
    fields = [_bare(field) for field in fields]
    while fields and not fields[-1]:
        fields.pop()
    return fields


def _bare(field: str) -> str:
    """Strip white space, bold marks and quotation marks from a field."""
    field = field.replace("\\|", "|").strip().strip("*`").strip()
    if len(field) > 1 and field[0] in _QUOTES and field[-1] in _QUOTES:
        field = field[1:-1].strip()
    return field


class _Table:
    """Parser of a Markdown table whose header names the fields."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.last: list[str] = []
        self.header: list[str] = []
        self.property: str | None = None

    def row(self, line: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Read the next line; yield its record if it is a row with known fields."""
        if "|" not in line:
            self.last, self.header, self.property = [], [], None
            return
        cells = [_bare(cell) for cell in _BAR.split(line.strip().strip("|"))]
        if _RULE.fullmatch(line):
            self._begin(self.last)
        elif self.property is not None and any(cells):
            yield self.property, dict(zip(self.header, cells, strict=False))
        self.last = cells

    def _begin(self, header: list[str]) -> None:
        """Find the list whose fields match the columns of a table, at least two of them."""
        names = {letters(name) for name in header}
        fits = {
            property: len(names & {letters(name) for name in self.shape.fields(property)})
            for property in self.shape.lists
        }
        best = max(fits, key=lambda property: fits[property])
        known = {letters(name): name for name in self.shape.fields(best)}
        self.property = best if fits[best] > 1 else None
        self.header = [known.get(letters(name), name) for name in header]
