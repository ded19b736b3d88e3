"""Tolerant parser of model replies: extracts the requested records from the text."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from graphrag_index.llm.broken_json import BrokenJSON
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, TextSink
from graphrag_index.llm.schema_fit import ReplyShape, read_lines

# Maximum number of characters of a reply that is not plain JSON. Longer replies are truncated.
MAX_CHARS = 300_000
# A reply that ends with this many equal parts, of at least this many characters together, is
# repetitive: the model would go on with the same part up to its limit of tokens.
MIN_REPEATS, MIN_REPEATED_CHARS = 4, 400
# The start of a JSON object whose quotation marks are not escaped.
_OBJECT = re.compile(r'\{\s*"')
_LIST_KEY = re.compile(r'"[^"\n]{1,60}+"\s{0,9}:\s{0,9}\[')


def read_reply(text: str, format: ReplyFormat) -> ParsedReply:
    """Parse a reply, skipping reasoning, prose and code fences.

    Invalid JSON is repaired if its meaning is clear. Delimited lines and Markdown tables are
    accepted too. A record that is truncated at the end of the reply is dropped and counted.
    Raises `ReplyError` if the reply contains no usable record.
    """
    if not format.schema:
        return format.read(strip_reasoning(text))
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
        return json.loads(text)
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
        text = strip_reasoning(text.strip("\ufeff \n\r\t"))[:MAX_CHARS]
        if not text:
            raise ReplyError("it contains no answer")
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
