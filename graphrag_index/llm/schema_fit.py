"""Fitting of replies to a schema: misspelled keys, other nesting, delimited lines, tables."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from graphrag_index.llm.request import ReplyFormat
from graphrag_nlp.text.normalize import letters

# Maximum levels of nesting around the requested object.
MAX_NESTING = 4
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")

_LINE_ENDS = re.compile(r"(\n|\#\#|<\|COMPLETE\|>)")
_DELIMITER = r"<\|+>|\|+|\t+|;|::|¦"
_UNESCAPED_BAR = re.compile(r"(?<!\\)\|")
_TABLE_RULE = re.compile(r"[\s|:+-]*-[\s|:+-]*")
_QUOTES = "\"'“”„‘’`"


class ReplyShape:
    """The object that the schema of a reply describes."""

    def __init__(self, format: ReplyFormat) -> None:
        # Maps each key to the schema of its value.
        self.properties: dict[str, Any] = dict(format.schema.get("properties", {}))
        self.required = frozenset(format.schema.get("required", self.properties))
        self.lists = format.record_lists
        # Whether every property is a list of records: then lists may be missing in a reply.
        self.is_records = bool(self.lists) and len(self.lists) == len(self.properties)

    @cached_property
    def list_names(self) -> dict[str, str]:
        """Map the plural and the singular of each list's name, in lower case, to its key."""
        names: dict[str, str] = {}
        for name in self.lists:
            plural = name.lower()
            singular = re.sub("ies$", "y", plural).removesuffix("s")
            names |= {plural: name, singular: name}
        return names

    @cached_property
    def _names_by_letters(self) -> dict[str, str]:
        return {letters(name): name for name in self.properties}

    def has_any_key(self, value: Any) -> bool:
        """Tell whether a value is an object with a key of the schema, in any spelling."""
        return isinstance(value, dict) and any(
            key in self.properties or letters(str(key)) in self._names_by_letters for key in value
        )

    def find_objects(self, value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
        """Yield all objects that have a key of the schema, at any level of nesting."""
        if isinstance(value, str):
            value = _parse_json_string(value)
        if self.has_any_key(value):
            yield value
        elif isinstance(value, dict | list) and depth < MAX_NESTING:
            for inner in value.values() if isinstance(value, dict) else value:
                if isinstance(inner, dict | list | str):
                    yield from self.find_objects(inner, depth + 1)

    def fit_object(self, value: Any) -> Any:
        """Rename keys to the spelling of the schema, and move nested lists to the top."""
        fitted: dict[str, Any] = _rename_keys(value, self.properties)
        self._name_lists_by_position(fitted)
        for name, fields in self.lists.items():
            records = fitted.get(name)
            if isinstance(records, str):
                fitted[name] = records = _parse_json_string(records)
            if isinstance(records, dict) and records.keys() & fields:
                # The value is a single record instead of a list of records.
                fitted[name] = records = [records]
            if isinstance(records, list):
                fitted[name] = [_fit_record(record, fields) for record in records]
        for name, fields in self.lists.items():
            inner = [] if name in fitted else list(self._nested_records(fitted, name))
            if inner:
                fitted[name] = [_fit_record(record, fields) for record in inner]
        return fitted

    def assign_records(self, records: list[Any]) -> Any:
        """Assign records to the lists of the schema by their keys.

        Returns the records unchanged if a record could belong to several lists.
        """
        if len(self.lists) == 1:
            return self.fit_object({next(iter(self.lists)): records})
        assigned: dict[str, list[Any]] = {name: [] for name in self.lists}
        for record in records:
            if not isinstance(record, dict):
                return records
            name, _, is_unique = self.closest_list(record)
            if not is_unique:
                return records
            assigned[name].append(record)
        return self.fit_object(assigned)

    def closest_list(self, names: Iterable[Any]) -> tuple[str, int, bool]:
        """Find the list whose records have the most fields in common with `names`.

        Returns (key of the list, number of common fields, whether no other list has as many).
        """
        keys = {letters(str(name)) for name in names}
        n_common = {
            name: len(keys & set(map(letters, fields))) for name, fields in self.lists.items()
        }
        best = max(n_common, key=lambda name: n_common[name])
        return best, n_common[best], list(n_common.values()).count(n_common[best]) == 1

    def name_fields_by_position(self, value: dict[str, Any]) -> dict[str, Any]:
        """Rename unknown fields of records by their position, for keys in another language."""
        named = dict(value)
        for name, fields in self.lists.items():
            records = named.get(name)
            if isinstance(records, list):
                named[name] = [_name_by_position(record, list(fields)) for record in records]
        return named

    def _name_lists_by_position(self, value: dict[str, Any]) -> None:
        """Give lists with unknown keys the keys of the schema by position.

        A model may have translated the keys.
        """
        missing = [name for name in self.lists if name not in value]
        unknown = {key: value[key] for key in value if key not in self.properties}
        unknown_lists = [
            key
            for key, part in unknown.items()
            if isinstance(part, list) and part and all(isinstance(record, dict) for record in part)
        ]
        if len(missing) == len(unknown_lists):
            for name, key in zip(missing, unknown_lists, strict=True):
                value[name] = value.pop(key)

    def _nested_records(self, value: Mapping[str, Any], name: str) -> Iterator[Any]:
        """Yield the records of the list `name` where it is nested in records of another list."""
        for other in self.lists:
            records = value.get(other)
            for record in records if isinstance(records, list) else ():
                inner = record.get(name) if isinstance(record, dict) else None
                yield from inner if isinstance(inner, list) else ()


def _parse_json_string(text: str) -> Any:
    """Parse a string as JSON; return the string itself if it is not an object or a list."""
    with suppress(ValueError, RecursionError):
        if text.lstrip()[:1] in ("{", "["):
            # Line breaks in strings are allowed.
            return json.loads(text, strict=False)
    return text


def _rename_keys(value: Mapping[Any, Any], names: Iterable[str]) -> dict[str, Any]:
    """Rename keys that differ from one of these names only in case or punctuation."""
    if all(key in value for key in names):
        return dict(value)
    wanted = {letters(name): name for name in names if name not in value}
    spelled: dict[str, Any] = {}
    for key, part in value.items():
        spelled.setdefault(wanted.get(letters(str(key)), key), part)
    return spelled


def _fit_record(record: Any, fields: Mapping[str, Any]) -> Any:
    if isinstance(record, str):
        record = _parse_json_string(record)
    if not isinstance(record, dict) or all(key in record for key in fields):
        return record
    spelled = _rename_keys(record, fields)
    # Convert camel case to snake case: `entityType` becomes `entity_type`.
    return {_CAMEL.sub("_", key): value for key, value in spelled.items()}


def _name_by_position(record: Any, names: list[str]) -> Any:
    """Rename unknown fields of a record to the field at the same position in the schema."""
    if not isinstance(record, dict) or len(record) < len(names) - 1:
        return record
    named: dict[str, Any] = {}
    position = 0
    for key, value in record.items():
        if key in names:
            position = names.index(key) + 1
        elif position < len(names) and names[position] not in record:
            key = names[position]
            position += 1
        named[key] = value
    return named


def read_lines(text: str, shape: ReplyShape) -> tuple[dict[str, list[Any]], int]:
    """Parse lines such as ``entity | Tom Crean | person``, tuples and Markdown tables.

    Returns (records of each list, number of records that are truncated at the end of the text).
    A record with all fields of the schema is an object, any other is a list of its fields.
    """
    records: dict[str, list[Any]] = {}
    n_cut = 0
    lines = _parse_lines(text, shape) if shape.lists else []
    # Maps each list to the frequencies of the numbers of fields in its whole lines.
    counts: dict[str, Counter[int]] = {}
    for name, fields, whole in lines:
        if whole and isinstance(fields, list) and len(fields) > 1:
            counts.setdefault(name, Counter())[len(fields)] += 1
    usual = {name: max(count, key=lambda n: (count[n], n)) for name, count in counts.items()}
    for name, fields, whole in lines:
        names = list(shape.lists[name])
        if isinstance(fields, list):
            if not whole and len(fields) < usual.get(name, max(2, len(names) - 1)):
                n_cut += 1
                continue
            if len(fields) == len(names):
                fields = dict(zip(names, fields, strict=True))
        records.setdefault(name, []).append(fields)
    return records, n_cut


def _parse_lines(text: str, shape: ReplyShape) -> list[tuple[str, Any, bool]]:
    """Parse records from lines; returns (key of the list, fields, whether the line is whole)."""
    words = "|".join(sorted(map(re.escape, shape.list_names), key=len, reverse=True))
    head = re.compile(
        rf"[\s>*+•\d.)-]{{0,20}}(?P<open>[(\[|]{{0,3}})\s{{0,9}}(?P<quote>[*_`{_QUOTES}]{{0,4}})"
        rf"(?P<list>{words})[*_`{_QUOTES}]{{0,4}}(?P<colon>[:：]?)[*_`{_QUOTES}]{{0,4}}[ ]{{0,9}}"
        rf"(?P<delimiter>{_DELIMITER}|,)?",
        re.IGNORECASE,
    )
    found: list[tuple[str, Any, bool]] = []
    table = _MarkdownTable(shape)
    for piece, whole in _split_pieces(text, head):
        start = head.match(piece)
        fields = _split_fields(piece, start) if start else None
        if start is None or fields is None:
            found.extend((name, row, True) for name, row in table.parse_row(piece))
            continue
        if start["open"].endswith("("):
            whole = piece.rstrip().endswith(")")
        closed = "|" in start["open"] and piece.rstrip().endswith("|")
        found.append((shape.list_names[start["list"].lower()], fields, whole or closed))
    return found


def _split_pieces(text: str, head: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yield (line, whether it is whole); the lines of one tuple in brackets are joined."""
    parts = _LINE_ENDS.split(text)
    begun: list[str] = []
    for number in range(0, len(parts), 2):
        piece, whole = parts[number], number + 1 < len(parts)
        has_line_end = whole and parts[number + 1] == "\n"
        start = head.match(piece)
        if begun and (start or not piece.strip()):
            yield "\n".join(begun), True
            begun = []
        if begun or (start and start["open"].endswith("(") and has_line_end):
            begun.append(piece)
            if has_line_end and not piece.rstrip().endswith(")"):
                continue
            piece, begun = "\n".join(begun), []
        yield piece, whole
    if begun:
        yield "\n".join(begun), False


def _split_fields(piece: str, start: re.Match[str]) -> list[str] | None:
    """Split the text after the name of the record's list into fields; None if it is prose."""
    rest, delimiter = piece[start.end() :].rstrip(), start["delimiter"]
    if start["open"].endswith("(") and rest.endswith(")"):
        rest = rest[:-1]
    if delimiter is None:
        # The line has a colon after the name of the list: "Entity: Ada | person".
        first = re.search(_DELIMITER, rest) if start["colon"] else None
        if first is None:
            return None
        delimiter = first[0]
    if delimiter == ",":
        if not start["quote"]:
            return None
        fields = [quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|([^\s",][^",]*)', rest)]
    elif delimiter == "|":
        fields = _UNESCAPED_BAR.split(rest)
    else:
        fields = rest.split(delimiter)
    fields = [_strip_marks(field) for field in fields]
    while fields and not fields[-1]:
        fields.pop()
    return fields


def _strip_marks(field: str) -> str:
    """Strip white space, Markdown emphasis and quotation marks from a field."""
    field = field.replace("\\|", "|").strip().strip("*`").strip()
    if len(field) > 1 and field[0] in _QUOTES and field[-1] in _QUOTES:
        field = field[1:-1].strip()
    return field


class _MarkdownTable:
    """Parser of a Markdown table whose header names the fields."""

    def __init__(self, shape: ReplyShape) -> None:
        self.shape = shape
        self.last_cells: list[str] = []
        self.header: list[str] = []
        # The list whose fields match at least two columns of the table; None if there is none.
        self.list_name: str | None = None

    def parse_row(self, line: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Read the next line of a text; if it is a row of the table, yield (list, record)."""
        if "|" not in line:
            self.last_cells, self.header, self.list_name = [], [], None
            return
        cells = [_strip_marks(cell) for cell in _UNESCAPED_BAR.split(line.strip().strip("|"))]
        if _TABLE_RULE.fullmatch(line):
            best, n_common, _ = self.shape.closest_list(self.last_cells)
            known = {letters(name): name for name in self.shape.lists[best]}
            self.list_name = best if n_common > 1 else None
            self.header = [known.get(letters(name), name) for name in self.last_cells]
        elif self.list_name is not None and any(cells):
            yield self.list_name, dict(zip(self.header, cells, strict=False))
        self.last_cells = cells
