"""Requests of lazy search and their replies: sub-queries, ratings, claims."""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any

from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_index.text.citations import check_citations, cited
from graphrag_query.answering.context import Context
from graphrag_query.answering.llm import LLM, read_score

MAX_RATING = 5
MAX_SCORE = 100
# Score of a claim whose reply has none.
DEFAULT_SCORE = 50.0
# A longer sub-query is no question, in characters.
MAX_QUERY_CHARS = 400
_TEXT = {"type": "string"}
_QUESTIONS = ("question", "query", "sub_query", "sub_question", "text")
_RATINGS = ("rating", "score", "relevance", "relevance_score", "relevant", "value")
_CLAIMS = ("claim", "description", "statement", "text", "point", "fact")
_SCORES = ("score", "importance", "rating", "relevance")
_SOURCES = ("sources", "source_ids", "source", "ids", "id")
_NUMBERED = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


@dataclass(frozen=True)
class Claim:
    """A statement of some text units on the question, scored from 0 to 100."""

    text: str
    score: float
    sources: tuple[int, ...]  # numbers of text units


def sub_query_request(llm: LLM, question: str, most: int) -> Request:
    """Build the request for the questions that together answer one."""
    messages = llm.messages("lazy_sub_queries", f"Question: {question}", most=str(most))
    schema = _object({"questions": {"type": "array", "items": _TEXT}})
    instructions = 'Reply with one JSON object and nothing else: {"questions": ["...", ...]}'
    read = partial(_read_queries, question, most)
    return Request("sub-queries", messages, ReplyFormat("questions", schema, read, instructions))


def relevance_request(llm: LLM, question: str, text_unit: Mapping[str, Any]) -> Request:
    """Build the request for the relevance of a text unit, from 0 to 5."""
    place = " > ".join(filter(None, (text_unit["title"], text_unit["headings"])))
    asked = f"Passage of {place}:\n{text_unit['text']}\n\nQuestion: {question}"
    messages = llm.messages("lazy_relevance", asked)
    schema = _object({"rating": {"type": "integer"}})
    instructions = 'Reply with one JSON object and nothing else: {"rating": number from 0 to 5}'
    unit = f"relevance of text unit {text_unit['human_readable_id']}"
    return Request(unit, messages, ReplyFormat("rating", schema, _read_rating, instructions))


def claims_request(llm: LLM, question: str, context: Context) -> Request:
    """Build the request for the claims of a context's Sources on the question."""
    numbers = context.shown["Sources"]
    messages = llm.messages("lazy_claims", f"{context.text}\nQuestion: {question}")
    claim = {"claim": _TEXT, "sources": {"type": "array", "items": {"type": "integer"}}}
    record = _object({**claim, "score": {"type": "integer"}})
    schema = _object({"claims": {"type": "array", "items": record}})
    instructions = (
        'Reply with one JSON object and nothing else: {"claims": [{"claim": text, "sources": '
        '[ids], "score": number from 0 to 100}, ...]}'
    )
    unit = f"claims of {len(numbers)} text units, {min(numbers)} first"
    read = partial(_read_claims, numbers)
    return Request(unit, messages, ReplyFormat("claims", schema, read, instructions))


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _read_queries(question: str, most: int, data: Any) -> ParsedReply:
    """Parse the sub-queries, each once and without the question itself."""
    queries: dict[str, str] = {}
    records = _records(data, "questions", _QUESTIONS)
    for record in records:
        text = _whole(_first(record, _QUESTIONS) if isinstance(record, Mapping) else record)
        text = " ".join(_NUMBERED.sub("", text).split())
        if 0 < len(text) <= MAX_QUERY_CHARS and text.casefold() != question.strip().casefold():
            queries.setdefault(text.casefold(), text)
    found = list(queries.values())[:most]
    return ParsedReply(found, len(records) - len(found))


def _read_rating(data: Any) -> ParsedReply:
    """Parse a rating: a number, yes or no, or the first one in an object or a list."""
    while isinstance(data, list) and data:
        data = data[0]
    if isinstance(data, Mapping):
        named = (value for key in _RATINGS if (value := data.get(key)) is not None)
        data = next(named, next(iter(data.values()), None))
    if isinstance(data, bool):
        return ParsedReply(float(MAX_RATING if data else 0))
    rating = read_score(data, MAX_RATING)
    if rating is None:
        raise ReplyError("it has no rating")
    return ParsedReply(rating)


def _read_claims(shown: AbstractSet[int], data: Any) -> ParsedReply:
    """Parse claims; those without a text or a source of the context are dropped."""
    records = _records(data, "claims", _CLAIMS)
    claims = []
    for record in records:
        if not isinstance(record, Mapping):
            record = {"claim": record}
        written = _whole(_first(record, _CLAIMS))
        text, _ = check_citations(written, {})
        numbers = [n for n in _numbers(_first(record, _SOURCES)) if n in shown]
        # Some models write citations into the text.
        numbers += sorted(cited(written).get("Sources", set()) & shown)
        if text and not numbers and len(shown) == 1:
            numbers = list(shown)
        if text and numbers:
            score = read_score(_first(record, _SCORES), MAX_SCORE)
            sources = tuple(dict.fromkeys(numbers))
            claims.append(Claim(text, DEFAULT_SCORE if score is None else score, sources))
    return ParsedReply(claims, len(records) - len(claims))


def _records(data: Any, name: str, keys: Sequence[str]) -> Sequence[Any]:
    """Return the records of a reply: the list of this name, or its substitute."""
    if isinstance(data, Mapping):
        if name in data:
            data = data[name]
        elif any(key in data for key in keys):
            return [data]
        elif len(data) == 1:
            data = next(iter(data.values()))
        elif data:
            raise ReplyError(f"it has no {name}")
    if isinstance(data, Mapping):
        return [data] if any(key in data for key in keys) else list(data.values())
    if isinstance(data, str):
        return [line for line in data.splitlines() if line.strip()]
    if data is None:
        return []
    if isinstance(data, Sequence):
        return data
    raise ReplyError(f"its {name} are no list")


def _first(record: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((value for key in keys if (value := record.get(key)) is not None), None)


def _whole(value: Any) -> str:
    # Invalid JSON may hold half of a surrogate pair.
    return value.encode("utf-8", "replace").decode().strip() if isinstance(value, str) else ""


def _numbers(value: Any) -> list[int]:
    """Parse numbers of text units, however they are written."""
    if isinstance(value, list | tuple):
        return [number for part in value for number in _numbers(part)]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return []
    if not isinstance(value, str) and value < 0:
        return []
    return [int(digits[:18]) for digits in re.findall(r"\d+", str(value)[:1_000])]
