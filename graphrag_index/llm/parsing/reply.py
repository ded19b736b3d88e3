"""From the text of a reply to what was asked for, tolerantly."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from graphrag_index.llm.parsing.broken_json import BrokenJSON
from graphrag_index.llm.parsing.delimited import read_lines
from graphrag_index.llm.parsing.schema_fit import Shape, is_schema
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, TextSink

# What is over this, in characters, is cut off a reply that is not plain JSON.
LONGEST = 300_000
# How an object begins whose quotes are not escaped.
_OBJECT = re.compile(r'\{\s*"')
_KEY_OF_A_LIST = re.compile(r'"[^"\n]{1,60}+"\s{0,9}:\s{0,9}\[')


def read_reply(text: str, format: ReplyFormat) -> ParsedReply:
    """Read a reply: thoughts, prose and code fences around it are passed over.

    JSON in which something is wrong is read as far as its meaning is plain, and so are lines
    and tables in place of it. What was cut off at the end is dropped and counted, not completed.

    Raises
    ------
    ReplyError
        Nothing of it can be used.
    """
    if not format.schema:
        return format.read(strip_reasoning(text))
    shape = Shape(format.schema)
    data = _parsed(text)
    n_cut = 0
    if not shape.is_met(data):
        try:
            data, n_cut = _found(data, text, shape)
        except ReplyError:
            found = format.find(strip_reasoning(text)) if format.find is not None else None
            if found is None:
                raise
            return format.read(found)
    elif (reading := _try(data, format)) and not reading.dropped:
        return reading
    reading = _best(_interpretations(data, shape), format)
    return ParsedReply(reading.value, reading.dropped + n_cut)


def _parsed(text: str) -> Any:
    """Read plain JSON, or a string that holds some; None if it is something else."""
    try:
        data = json.loads(text)
        return json.loads(data) if isinstance(data, str) else data
    except (ValueError, RecursionError):
        return None


def _try(data: Any, format: ReplyFormat) -> ParsedReply | None:
    try:
        return format.read(data)
    except ReplyError:
        return None


def _interpretations(data: Any, shape: Shape) -> Iterator[Any]:
    """Give what a reply may mean: as it is, with the keys of the schema, in their order."""
    if not isinstance(data, dict) or shape.is_met(data):
        yield data
    if isinstance(data, dict):
        fitted = shape.fit(data)
        yield fitted
        yield shape.in_order(fitted)


def _best(interpretations: Iterable[Any], format: ReplyFormat) -> ParsedReply:
    """Read in the first way that loses the fewest records."""
    best: ParsedReply | None = None
    error: ReplyError | None = None
    for data in interpretations:
        try:
            reading = format.read(data)
        except ReplyError as failure:
            error = error or failure
            continue
        if best is None or reading.dropped < best.dropped:
            best = reading
        if not reading.dropped:
            break
    if best is None:
        raise error or ReplyError("it holds nothing that was asked for")
    return best


def _found(data: Any, text: str, shape: Shape) -> tuple[Any, int]:
    """Find what was asked for in a reply that is something else as it stands.

    Returns
    -------
    data
        What is handed on to be read.
    n_cut
        How many records were dropped: cut off at the end, or words in place of an object.

    Raises
    ------
    ReplyError
        There is nothing.
    """
    lines: dict[str, list[Any]] = {}
    n_cut = n_cut_lines = 0
    if isinstance(data, dict | list):
        values = [data]
    else:
        text = strip_reasoning(text.strip("\ufeff \n\r\t"))[:LONGEST]
        if not text:
            raise ReplyError("it holds no answer")
        if '{\\"' in text and not _OBJECT.search(text):
            text = text.replace('\\"', '"').replace("\\n", "\n")
        if _KEY_OF_A_LIST.match(text):
            # The brace that opens all of it was forgotten.
            text = "{" + text
        values, n_cut = _values(text, shape)
    answers = [value for value in values if not is_schema(value)]
    bodies = [body for value in answers for body in shape.find(value)]
    if bodies:
        body = _together(bodies, shape)
        if n_cut and shape.is_records and not any(body.values()):
            # Not the same as to have found nothing.
            raise ReplyError("none of its records is whole")
        return body, n_cut
    if not isinstance(data, dict | list):
        lines, n_cut_lines = read_lines(text, shape)
    if lines:
        return lines, n_cut_lines
    loose = _loose(answers, shape)
    if loose:
        return loose, n_cut
    keys = " and ".join(shape.properties)
    if len(answers) < len(values):
        raise ReplyError(f"it repeats the schema instead of giving {keys}")
    if n_cut:
        raise ReplyError("it was cut off before anything in it was whole")
    raise ReplyError(f"it holds no JSON object with {keys}" if keys else "it holds no JSON object")


def _values(text: str, shape: Shape) -> tuple[list[Any], int]:
    """Read all JSON in a text, without what was cut off at its end."""
    parser = BrokenJSON(text)
    values = list(parser.values())
    chain = parser.open[::-1]
    if not chain:
        return values, parser.n_skipped
    root = chain[0]
    body = next((n for n, part in enumerate(chain) if shape.has_some(part)), None)
    if body is None:
        if isinstance(root, list) or _has_records(root):
            inside = chain[1:] if isinstance(root, list) else chain[2:]
            return values, parser.n_skipped + _drop(inside, chain)
        if any(shape.find(root)):
            return values, parser.n_skipped
        return values[:-1], parser.n_skipped + 1
    inside = chain[body + 1 :]
    is_whole = not inside
    if inside and (isinstance(inside[0], list) or _is_by_name(inside)):
        inside = inside[1:]
    n_cut = _drop(inside, chain)
    missing = shape.required - shape.fit(chain[body]).keys()
    if missing and not shape.is_records:
        names = " and ".join(name for name in shape.properties if name in missing)
        raise ReplyError(f"it was cut off before {names}")
    if (missing or not is_whole) and not any(chain[body].values()):
        # A list that was begun and never ended is not an empty one.
        n_cut = max(n_cut, 1)
    return values, parser.n_skipped + n_cut


def _drop(inside: list[Any], chain: list[Any]) -> int:
    """Take the outermost of these open values out of the one around it."""
    if not inside:
        return 0
    around = next(outer for outer, inner in pairwise(chain) if inner is inside[0])
    if isinstance(around, list):
        around.pop()
    else:
        around.popitem()
    return 1


def _has_records(value: Any) -> bool:
    return isinstance(value, dict) and any(map(_is_records, value.values()))


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _is_by_name(inside: list[Any]) -> bool:
    """Tell whether an open object holds records by their names, and is no record itself."""
    return all(isinstance(part, dict) for part in inside[0].values())


def _together(bodies: list[dict[str, Any]], shape: Shape) -> dict[str, Any]:
    """Put together what a reply gives in several objects; of two answers take the fuller one."""
    if len(bodies) == 1:
        return bodies[0]
    bodies = [shape.fit(body) for body in bodies]
    # A later answer corrects an earlier one.
    best = max(reversed(bodies), key=lambda body: len(shape.properties.keys() & body.keys()))
    merged: dict[str, Any] = {}
    for body in [best, *bodies]:
        for key, value in body.items():
            merged.setdefault(key, value)
    if shape.is_records:
        for name in shape.lists:
            records = [body[name] for body in bodies if isinstance(body.get(name), list)]
            if records:
                merged[name] = _distinct(record for part in records for record in part)
    return merged


def _distinct(records: Iterable[Any]) -> list[Any]:
    return list({repr(record): record for record in records}.values())


def _loose(values: list[Any], shape: Shape) -> Any:
    """Return records without an object around them, or the last object."""
    objects = [value for value in values if isinstance(value, dict) and value]
    if not shape.is_records:
        lists = [value for value in values if isinstance(value, list) and value]
        if lists and not objects and len(shape.properties) == 1:
            return {next(iter(shape.properties)): lists[-1]}
        return objects[-1] if objects else None
    records: list[Any] = []
    for value in values:
        if _has_records(value):
            fitted = shape.fit(value)
            if shape.has_some(fitted):
                # Its keys are in another language.
                return value
            records += [record for part in value.values() if _is_records(part) for record in part]
        elif isinstance(value, dict) and value:
            records.append(value)
        elif isinstance(value, list):
            records += [part for part in value if isinstance(part, dict | list)]
    return shape.sort(records) if records else None


_TAGS = "think|thinking|thought|thoughts|reasoning|seed:think"
_REASONING = re.compile(
    rf"^[^\S\n]*[<\[◁]({_TAGS})[>\]▷].*?(?:[<\[◁]/\1[>\]▷]|(?P<open>\Z))",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
# Some servers cut the opening tag off.
_REASONING_END = re.compile(rf"[<\[◁]/(?:{_TAGS})[>\]▷]\s*(?=[\[{{(`\n]|\Z)|^</think>", re.I | re.M)
_FINAL = "<|channel|>final<|message|>"


def strip_reasoning(text: str) -> str:
    """Remove the reasoning of a model from its reply."""
    if _FINAL in text:
        text = text.rpartition(_FINAL)[2].removesuffix("<|return|>")
    for reasoning in _REASONING.finditer(text):
        if reasoning["open"] is not None:
            # Never closed: the reply ended within it, or the answer follows unmarked.
            before = _REASONING.sub("", text[: reasoning.start()])
            return (before + _answer_at_end(reasoning[0])).strip()
    stripped = _REASONING.sub("", text)
    if stripped == text:
        for end in _REASONING_END.finditer(text):
            stripped = text[end.end() :]
    return stripped.strip()


def _answer_at_end(reasoning: str) -> str:
    """Return the JSON object at the end of the reasoning, if it stands on lines of its own."""
    answer = reasoning[reasoning.rfind("\n{") + 1 :].rstrip("` \n\t")
    try:
        json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    return answer if answer.startswith("{") else ""


_OPENING = re.compile(rf"\s*[<\[◁]({_TAGS})[>\]▷]", re.IGNORECASE)
# Characters of the longest opening tag.
_MAX_OPENING = 16


class VisibleText:
    """Passes a streamed text on to a sink, without the reasoning that it begins with."""

    def __init__(self, sink: TextSink) -> None:
        self._sink = sink
        self._held, self._in_reasoning = "", True

    def write(self, piece: str) -> None:
        """Take the next piece."""
        self._held += piece
        if self._in_reasoning:
            opening = _OPENING.match(self._held)
            if opening is None:
                self._in_reasoning = len(self._held.lstrip()) < _MAX_OPENING and (
                    not self._held.strip() or self._held.lstrip()[0] in "<[◁"
                )
            elif end := re.search(rf"[<\[◁]/{opening[1]}[>\]▷]\s*", self._held, re.IGNORECASE):
                self._held, self._in_reasoning = self._held[end.end() :], False
        if not self._in_reasoning and self._held:
            self._sink.write(self._held)
            self._held = ""

    def end(self, broken: bool = False) -> None:
        """Pass on the rest, unless it is reasoning; or tell the sink that the text is void."""
        if broken:
            self._sink.restart()
        elif self._held and not _OPENING.match(self._held):
            self._sink.write(self._held)
