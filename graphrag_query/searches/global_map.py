"""What reports say on a question: points with a score, as a model finds them in batches."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from graphrag_index.errors import ModelError
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_index.text.citations import Shown, check_citations, cited
from graphrag_query.answering.chat import Chat
from graphrag_query.answering.context import Context
from graphrag_query.answering.scores import read_score
from graphrag_query.answering.sentence_ranking import content_words
from graphrag_query.question.question import Question

HIGHEST = 100
# Of a point whose reply has none.
NO_SCORE = 50.0
SCHEMA = {
    "type": "object",
    "properties": {
        "points": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"description": {"type": "string"}, "score": {"type": "integer"}},
                "required": ["description", "score"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["points"],
    "additionalProperties": False,
}
IN_WORDS = (
    'Reply with one JSON object and nothing else: {"points": [{"description": "text [Data: '
    'Reports (ids)]", "score": number from 0 to 100}, ...]}'
)
# In characters: a point is one or two sentences.
LONGEST_POINT = 1_000
# Other names that models give to the parts of a point.
_DESCRIPTIONS = ("description", "point", "text", "answer", "summary", "content")
_SCORES = ("score", "importance", "rating", "importance_score", "relevance")


@dataclass(frozen=True)
class Point:
    """What some reports say on the question; `description` cites them."""

    description: str
    score: float  # 0 to 100
    reports: frozenset[int]


@dataclass(frozen=True)
class Mapped:
    """The points of all calls, best first, and what became of the calls."""

    points: list[Point]
    n_failed: int
    notes: tuple[str, ...]


def map_reports(question: Question, chat: Chat, batches: Sequence[Context]) -> Mapped:
    """Ask what each batch of reports says on the question.

    A call that fails costs its batch; a note tells which reports that were.

    Raises
    ------
    ModelError
        All calls failed.
    """
    outcomes = chat.replies(_request(question, chat, batch) for batch in batches)
    points: list[Point] = []
    notes = []
    for batch, outcome in zip(batches, outcomes, strict=True):
        if outcome.failure:
            numbers = ", ".join(map(str, batch.tables["Reports"]["id"]))
            notes.append(f"A call failed ({outcome.failure}): reports {numbers} were not read.")
        else:
            points += outcome.values[0]
    if len(notes) == len(batches):
        raise ModelError(f"The model read none of the reports: {outcomes[0].failure}.")
    # Python sorts stably: points of equal score stay in the order of their reports.
    points.sort(key=lambda point: -point.score)
    return Mapped(points, len(notes), tuple(notes))


def _request(question: Question, chat: Chat, batch: Context) -> Request:
    asked = f"{batch.text}\nQuestion: {question.text}"
    numbers = batch.tables["Reports"]["id"]
    return Request(
        f"reports {numbers[0]} and {len(numbers) - 1} more",
        chat.messages("global_map", asked),
        points_format(batch.tables["Reports"]),
    )


def points_format(reports: pl.DataFrame) -> ReplyFormat:
    """Return the format of the points of some reports, of which alone they may cite."""
    return ReplyFormat("points", SCHEMA, partial(_read, reports), IN_WORDS)


def _read(reports: pl.DataFrame, data: Any) -> ParsedReply:
    """Make points of a reply; those that say nothing, or of no report, are dropped."""
    shown = {"Reports": set(reports["id"].to_list())}
    points = []
    records = _records(data)
    for record in records:
        point = _point(record, reports, shown)
        if point is not None:
            points.append(point)
    return ParsedReply(points, len(records) - len(points))


def _records(data: Any) -> Sequence[Any]:
    if isinstance(data, Mapping):
        if "points" not in data:
            if any(key in data for key in _DESCRIPTIONS):
                return [data]
            if not data:
                return []
            raise ReplyError("it has no points")
        data = data["points"]
    if data is None:
        return []
    if isinstance(data, Mapping):
        if any(key in data for key in _DESCRIPTIONS):
            return [data]
        # {"what was found": score, ...}
        return [{"description": key, "score": value} for key, value in data.items()]
    if isinstance(data, str):
        return [data] if data.strip() else []
    if isinstance(data, Sequence):
        return data
    raise ReplyError("its points are no list")


def _point(record: Any, reports: pl.DataFrame, shown: Shown) -> Point | None:
    if isinstance(record, str):
        record = {"description": record}
    if not isinstance(record, Mapping):
        return None
    text = next((t for key in _DESCRIPTIONS if isinstance(t := record.get(key), str)), "")
    text = text.encode("utf-8", "replace").decode()
    description, _ = check_citations(text, shown)
    if not check_citations(description, {})[0]:
        return None
    score = next((s for key in _SCORES if (s := record.get(key)) is not None), None)
    value = read_score(score, HIGHEST)
    numbers = cited(description).get("Reports", set())
    if not numbers:
        number = _says_most(description, reports)
        if number is None:
            return None
        numbers = {number}
        description = f"{description} [Data: Reports ({number})]"
    description = _shortened(description, numbers)
    return Point(description, NO_SCORE if value is None else value, frozenset(numbers))


def _shortened(description: str, numbers: Collection[int]) -> str:
    """Cut what is no point but an essay; what it cites stays."""
    if len(description) <= LONGEST_POINT:
        return description
    text = check_citations(description, {})[0][:LONGEST_POINT].rstrip()
    return f"{text}… [Data: Reports ({', '.join(map(str, sorted(numbers)))})]"


def _says_most(description: str, reports: pl.DataFrame) -> int | None:
    """Return the report that holds most words of a point which cites none; None if none does."""
    words = set(content_words(description))
    best = max(
        ((len(words & set(content_words(text))), -number) for number, text in reports.iter_rows()),
        default=(0, 0),
    )
    return -best[1] if best[0] else None
