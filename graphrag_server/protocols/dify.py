"""Dify's external knowledge: passages with scores, filtered by metadata."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from graphrag_query.answer import Passage
from graphrag_query.index import Index
from graphrag_server.access import CurrentCaller, visible_index
from graphrag_server.asking import AskedQuestion, Asker
from graphrag_server.keys import Scope

router = APIRouter(prefix="/dify", tags=["Dify"])

# With conditions, this many times `top_k` passages are read, because some are dropped.
_READ_FACTOR = 5


class RetrievalSetting(BaseModel):
    """Number of the wanted passages, and the lowest score."""

    top_k: int = Field(ge=1, le=200)
    score_threshold: float | None = Field(None, ge=0, le=1)


class MetadataRule(BaseModel):
    """A condition on one or more fields of the metadata; one field has to meet it."""

    name: str | list[str]
    comparison_operator: str
    value: str | float | list[str] | None = None


class MetadataCondition(BaseModel):
    """Conditions that are joined by and, or by or."""

    logical_operator: Literal["and", "or"] = "and"
    conditions: list[MetadataRule] = []


class RetrievalBody(BaseModel):
    """A question to a knowledge base; `knowledge_id` is the name of an index."""

    knowledge_id: str
    query: str = Field(min_length=1, max_length=20_000)
    retrieval_setting: RetrievalSetting
    metadata_condition: MetadataCondition | None = None


class Record(BaseModel):
    """A passage. `metadata` has the path and the position, and the metadata of the document."""

    content: str
    score: float
    title: str
    metadata: dict[str, Any]


class Records(BaseModel):
    """The passages that fit best, the best first."""

    records: list[Record]


def dify_error(error: Any) -> dict[str, Any]:
    """Return an error in the shape of Dify: 1001 to 1002 for keys, 2001 for a missing index."""
    codes = {"missing_key": 1001, "invalid_key": 1002, "no_such_index": 2001}
    return {"error_code": codes.get(error.code, error.status), "error_msg": error.detail}


@router.post("/retrieval")
async def retrieve(body: RetrievalBody, request: Request, caller: CurrentCaller) -> Records:
    """Return the passages that fit a question best."""
    hosted = visible_index(request, caller, body.knowledge_id, Scope.READ)
    asker: Asker = request.app.state.asker
    asked = AskedQuestion(hosted, caller, body.query, "local")
    return await asker.read(asked, request, lambda index: _retrieve(index, body))


def _retrieve(index: Index, body: RetrievalBody) -> Records:
    wanted = body.retrieval_setting
    condition = body.metadata_condition
    rules = condition.conditions if condition else []
    limit = wanted.top_k * (_READ_FACTOR if rules else 1)
    records = []
    for passage in index.passages(body.query, limit):
        metadata = _read_metadata(index, passage)
        matches = [_matches(rule, metadata) for rule in rules]
        join = any if condition and condition.logical_operator == "or" else all
        if passage.score >= (wanted.score_threshold or 0.0) and (not rules or join(matches)):
            records.append(
                Record(
                    content=passage.text,
                    score=passage.score,
                    title=passage.title,
                    metadata=metadata,
                )
            )
    return Records(records=records[: wanted.top_k])


def _read_metadata(index: Index, passage: Passage) -> dict[str, Any]:
    [document] = index.store.documents([passage.document]).iter_rows(named=True)
    own = json.loads(document["metadata"]) if document["metadata"] else {}
    return {
        **own,
        "path": passage.path,
        "title": passage.title,
        "language": document["language"] or "",
        "creation_date": document["creation_date"] or "",
        "text_unit": passage.number,
        "start_char": passage.start_char,
        "end_char": passage.end_char,
    }


def _matches(rule: MetadataRule, metadata: Mapping[str, Any]) -> bool:
    names = [rule.name] if isinstance(rule.name, str) else rule.name
    return any(_compare(rule.comparison_operator, metadata.get(name), rule.value) for name in names)


def _compare(operator: str, value: Any, wanted: Any) -> bool:
    """Return whether a value meets a condition; an unknown operator is met by nothing."""
    if operator in ("empty", "not empty"):
        return (value in (None, "")) == (operator == "empty")
    if operator in _NEGATIONS:
        return not _compare(_NEGATIONS[operator], value, wanted)
    if value is None or wanted is None:
        return False
    if operator == "in":
        listed = wanted if isinstance(wanted, list) else str(wanted).split(",")
        return any(_compare("is", value, one.strip()) for one in listed)
    if operator in _TEXT_TESTS:
        return _TEXT_TESTS[operator](str(value).casefold(), str(wanted).casefold())
    if operator in _ORDER_TESTS:
        one, other = _comparable(value, wanted)
        return _ORDER_TESTS[operator](one, other)
    return False


_NEGATIONS = {"not contains": "contains", "not in": "in", "is not": "is", "≠": "="}
_TEXT_TESTS: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda value, wanted: wanted in value,
    "start with": lambda value, wanted: value.startswith(wanted),
    "end with": lambda value, wanted: value.endswith(wanted),
    "is": lambda value, wanted: value == wanted,
}
_ORDER_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda value, wanted: value == wanted,
    ">": lambda value, wanted: value > wanted,
    "<": lambda value, wanted: value < wanted,
    "≥": lambda value, wanted: value >= wanted,
    "≤": lambda value, wanted: value <= wanted,
    # Dates in ISO 8601 can be compared as text.
    "before": lambda value, wanted: value < wanted,
    "after": lambda value, wanted: value > wanted,
}


def _comparable(value: Any, wanted: Any) -> tuple[Any, Any]:
    """Return both values as numbers if both are numbers, or else as texts."""
    try:
        return float(value), float(wanted)
    except (TypeError, ValueError):
        return str(value), str(wanted)
