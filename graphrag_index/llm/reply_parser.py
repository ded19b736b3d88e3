"""Tolerant parser of model replies: finds the requested records, whatever their form."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import Any

from graphrag_index.llm.broken_json import BrokenJSON
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, TextSink
from graphrag_nlp.text.normalize import letters, replace_escaped_surrogates

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
            return json.loads(replace_escaped_surrogates(text), strict=False)
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


# Maximum number of characters of a reply that is not plain JSON. Longer replies are truncated.
MAX_CHARS = 300_000
# A reply that ends with this many equal parts, of at least this many characters together, is
# repetitive: the model would go on with the same part up to its limit of tokens.
MIN_REPEATS, MIN_REPEATED_CHARS = 4, 400
# The start of a JSON object whose quotation marks are not escaped.
_OBJECT = re.compile(r'\{\s*"')
ONLY_REASONING = "it contains reasoning and no answer"
_LIST_KEY = re.compile(r'"[^"\n]{1,60}+"\s{0,9}:\s{0,9}\[')


def read_reply(text: str, format: ReplyFormat) -> ParsedReply:
    """Parse a reply, skipping reasoning, prose and code fences.

    Invalid JSON is repaired if its meaning is clear. Delimited lines and Markdown tables are
    accepted too. A record that is truncated at the end of the reply is dropped and counted.
    Raises `ReplyError` if the reply contains no usable record.
    """
    if not format.schema:
        answer = strip_reasoning(text)
        if text and not answer:
            raise ReplyError(ONLY_REASONING)
        return format.read(answer)
    text = replace_escaped_surrogates(text)
    data = _parse_json(text)
    if isinstance(data, str):
        # The reply is JSON in a JSON string.
        data = _parse_json(data)
    n_cut, is_match = 0, format.matches(data)
    if not is_match:
        try:
            data, n_cut = _extract_answer(data, text, ReplyShape(format))
        except ReplyError:
            found = format.find(strip_reasoning(text)) if format.find is not None else None
            if found is None:
                raise
            return format.read(found)
        is_match = format.matches(data)
    best: ParsedReply | None = None
    errors = []
    for interpretation in _list_interpretations(data, format, is_match):
        try:
            parsed = format.read(interpretation)
        except ReplyError as error:
            errors.append(error)
            continue
        if best is None or parsed.dropped < best.dropped:
            best = parsed
        if not parsed.dropped:
            break
    if best is None:
        raise errors[0]
    return ParsedReply(best.value, best.dropped + n_cut)


def _parse_json(text: str) -> Any:
    """Parse a text as JSON; None if it is not valid."""
    try:
        return json.loads(replace_escaped_surrogates(text))
    except (ValueError, RecursionError):
        return None


def _list_interpretations(data: Any, format: ReplyFormat, is_match: bool) -> Iterator[Any]:
    """Yield possible readings of parsed JSON, the most likely one first.

    The readings are the unchanged data, the data with keys renamed to those of the schema, and
    the data with fields of records named by their position.
    """
    if is_match or not isinstance(data, dict):
        yield data
    if isinstance(data, dict):
        shape = ReplyShape(format)
        fitted = shape.fit_object(data)
        yield fitted
        yield shape.name_fields_by_position(fitted)


def _extract_answer(data: Any, text: str, shape: ReplyShape) -> tuple[Any, int]:
    """Extract the requested object or its records from a reply that does not match the schema.

    Returns (data, number of dropped records). A record is dropped if it is truncated at the end
    of the text, or if it is prose instead of an object.
    """
    n_cut = 0
    if isinstance(data, dict | list):
        values = [data]
    else:
        whole = text.strip("\ufeff \n\r\t")
        text = strip_reasoning(whole)[:MAX_CHARS]
        if not text:
            raise ReplyError(ONLY_REASONING if whole else "it contains no answer")
        if '{\\"' in text and not _OBJECT.search(text):
            text = text.replace('\\"', '"').replace("\\n", "\n")
        if _LIST_KEY.match(text):
            # The opening brace of the reply is missing.
            text = "{" + text
        values, n_cut = _parse_values(text, shape)
    # Some models return the schema instead of an answer.
    answers = [
        value
        for value in values
        if not (isinstance(value, dict) and isinstance(value.get("properties"), dict))
    ]
    bodies = [body for value in answers for body in shape.find_objects(value)]
    if bodies:
        body = _merge_objects(bodies, shape)
        if n_cut and shape.is_records and not any(body.values()):
            # A reply whose records are all truncated is invalid; one with empty lists is valid.
            raise ReplyError("it contains no complete record")
        return body, n_cut
    if not isinstance(data, dict | list):
        lines, n_cut_lines = read_lines(text, shape)
        if lines:
            return lines, n_cut_lines
    bare = _collect_bare_records(answers, shape)
    if bare:
        return bare, n_cut
    keys = " and ".join(shape.properties)
    if len(answers) < len(values):
        raise ReplyError(f"it repeats the schema instead of giving {keys}")
    if n_cut:
        raise ReplyError("it was cut off before its first complete value")
    raise ReplyError("it contains no JSON object" + (f" with {keys}" if keys else ""))


def _parse_values(text: str, shape: ReplyShape) -> tuple[list[Any], int]:
    """Parse all JSON values in a text, and drop the value that is truncated at its end.

    Returns (values, number of dropped values).
    """
    parser = BrokenJSON(text)
    values = list(parser.parse_values())
    chain = parser.open_values[::-1]
    if not chain:
        return values, parser.n_skipped
    root = chain[0]
    body = next((n for n, part in enumerate(chain) if shape.has_any_key(part)), None)
    if body is None:
        if isinstance(root, list) or _has_records(root):
            inside = chain[1:] if isinstance(root, list) else chain[2:]
            return values, parser.n_skipped + _drop_outermost(inside, chain)
        if any(shape.find_objects(root)):
            return values, parser.n_skipped
        return values[:-1], parser.n_skipped + 1
    inside = chain[body + 1 :]
    is_whole = not inside
    # Keep an open list, and an open object that is not a record but maps names to records.
    if inside and (
        isinstance(inside[0], list) or all(isinstance(part, dict) for part in inside[0].values())
    ):
        inside = inside[1:]
    n_cut = _drop_outermost(inside, chain)
    missing = shape.required - shape.fit_object(chain[body]).keys()
    if missing and not shape.is_records:
        names = " and ".join(name for name in shape.properties if name in missing)
        raise ReplyError(f"it was cut off before {names}")
    if (missing or not is_whole) and not any(chain[body].values()):
        # An empty list that is not closed was truncated: count a record as dropped.
        n_cut = max(n_cut, 1)
    return values, parser.n_skipped + n_cut


def _drop_outermost(inside: list[Any], chain: list[Any]) -> int:
    """Remove the outermost of the open values `inside` from its parent in `chain`.

    Returns the number of removed values: 0 or 1.
    """
    if not inside:
        return 0
    around = next(outer for outer, inner in pairwise(chain) if inner is inside[0])
    if isinstance(around, list):
        around.pop()
    else:
        around.popitem()
    return 1


def _has_records(value: Any) -> bool:
    return isinstance(value, dict) and any(map(_is_list_of_records, value.values()))


def _is_list_of_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _merge_objects(bodies: list[dict[str, Any]], shape: ReplyShape) -> dict[str, Any]:
    """Merge the objects of a reply; values of the most complete object have precedence."""
    if len(bodies) == 1:
        return bodies[0]
    bodies = [shape.fit_object(body) for body in bodies]
    # Of equally complete objects take the last, which may correct an earlier object.
    best = max(reversed(bodies), key=lambda body: len(shape.properties.keys() & body.keys()))
    merged: dict[str, Any] = {}
    for body in [best, *bodies]:
        for key, value in body.items():
            merged.setdefault(key, value)
    for name in shape.lists if shape.is_records else ():
        records = [body[name] for body in bodies if isinstance(body.get(name), list)]
        if records:
            distinct = {repr(record): record for part in records for record in part}
            merged[name] = list(distinct.values())
    return merged


def _collect_bare_records(values: list[Any], shape: ReplyShape) -> Any:
    """Return records that have no enclosing object, or else the last object; None if none."""
    objects = [value for value in values if isinstance(value, dict) and value]
    if not shape.is_records:
        lists = [value for value in values if isinstance(value, list) and value]
        if lists and not objects and len(shape.properties) == 1:
            return {next(iter(shape.properties)): lists[-1]}
        return objects[-1] if objects else None
    records: list[Any] = []
    for value in values:
        if _has_records(value):
            fitted = shape.fit_object(value)
            if shape.has_any_key(fitted):
                # The keys of this object are in another language, but its records fit a list.
                return value
            records += [
                record for part in value.values() if _is_list_of_records(part) for record in part
            ]
        elif isinstance(value, dict) and value:
            records.append(value)
        elif isinstance(value, list):
            records += [part for part in value if isinstance(part, dict | list)]
    return shape.assign_records(records) if records else None


_TAGS = "think|thinking|thought|thoughts|reasoning|seed:think"
_REASONING = re.compile(
    rf"^[^\S\n]*[<\[◁]({_TAGS})[>\]▷].*?(?:[<\[◁]/\1[>\]▷]|(?P<open>\Z))",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
# Some servers remove the opening tag.
_REASONING_END = re.compile(rf"[<\[◁]/(?:{_TAGS})[>\]▷]\s*(?=[\[{{(`\n]|\Z)|^</think>", re.I | re.M)
_FINAL = "<|channel|>final<|message|>"


def strip_reasoning(text: str) -> str:
    """Remove the reasoning of a model from its reply."""
    if _FINAL in text:
        text = text.rpartition(_FINAL)[2].removesuffix("<|return|>")
    for reasoning in _REASONING.finditer(text):
        if reasoning["open"] is not None:
            # The tag is not closed. The reply may be truncated, or the answer follows unmarked.
            # An answer is a JSON object that begins on a new line.
            before = _REASONING.sub("", text[: reasoning.start()])
            answer = reasoning[0][reasoning[0].rfind("\n{") + 1 :].rstrip("` \n\t")
            return (before + (answer if isinstance(_parse_json(answer), dict) else "")).strip()
    stripped = _REASONING.sub("", text)
    if stripped == text:
        for end in _REASONING_END.finditer(text):
            stripped = text[end.end() :]
    return stripped.strip()


_OPENING = re.compile(rf"\s*[<\[◁]({_TAGS})[>\]▷]", re.IGNORECASE)
# Maximum number of characters of an opening tag.
_MAX_OPENING = 16


class VisibleText:
    """Filter that removes the reasoning from the beginning of a streamed text."""

    def __init__(self, sink: TextSink) -> None:
        self._sink = sink
        self._buffer, self._in_reasoning, self._has_written = "", True, False

    def write(self, piece: str) -> None:
        """Write the next piece of the stream."""
        self._buffer += piece
        if self._in_reasoning:
            opening, start = _OPENING.match(self._buffer), self._buffer.lstrip()
            if opening is None:
                self._in_reasoning = len(start) < _MAX_OPENING and start[:1] in "<[◁"
            elif end := re.search(rf"[<\[◁]/{opening[1]}[>\]▷]\s*", self._buffer, re.IGNORECASE):
                self._buffer, self._in_reasoning = self._buffer[end.end() :], False
        if not self._in_reasoning and self._buffer:
            self._has_written = True
            self._sink.write(self._buffer)
            self._buffer = ""

    def end(self, broken: bool = False) -> None:
        """Write the rest of the text unless it is reasoning; if `broken`, restart the sink."""
        if broken:
            if self._has_written:
                self._sink.restart()
        elif self._buffer and not _OPENING.match(self._buffer):
            self._sink.write(self._buffer)


def is_repetitive(text: str) -> bool:
    """Return whether a text ends with the same part again and again."""
    if len(text) < MIN_REPEATED_CHARS:
        return False
    end = text[-MIN_REPEATED_CHARS // 10 :]
    before = text.rfind(end, 0, len(text) - 1)
    if before < 0:
        return False
    period = len(text) - len(end) - before
    times = max(MIN_REPEATS, -(-MIN_REPEATED_CHARS // period))
    return text.endswith(text[-period:] * times)


_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")
_SCALE = re.compile(r"\s*(?:/|out of|of|von|sur|z)\s*(\d+(?:[.,]\d+)?)")
# Maximum number of characters that are searched for a score: a faulty reply may have a number with
# thousands of digits.
MAX_SEARCHED_CHARS = 200
# A larger number is no score on any scale.
MAX_NUMBER = 1e9


def parse_score(value: object, highest: float) -> float | None:
    """Parse a score from 0 to `highest`; None if there is none.

    Scores on another scale are converted, and the result is clipped. In a list, the first value
    counts.
    """
    if isinstance(value, list | tuple):
        return parse_score(value[0], highest) if value else None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        score = float(value) if abs(value) < MAX_NUMBER else math.nan
    else:
        score = _parse_text(str(value), highest)
    return None if math.isnan(score) else min(float(highest), max(0.0, score))


def _parse_text(text: str, highest: float) -> float:
    """Parse the first score in a text; NaN if there is none."""
    number = _NUMBER.search(text[:MAX_SEARCHED_CHARS])
    if number is None:
        return math.nan
    score = _parse_decimal(number[0])
    scale = _SCALE.match(text, number.end())
    if scale and _parse_decimal(scale[1]) > 0:
        return score * (highest / _parse_decimal(scale[1]))
    return score * (highest / 100) if text[number.end() :].lstrip().startswith("%") else score


def _parse_decimal(text: str) -> float:
    return float(text.replace(",", "."))
