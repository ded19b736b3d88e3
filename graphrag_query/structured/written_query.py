"""The query that a model writes for a question: asked for, checked, run, and asked for again."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_index.errors import QueryError
from graphrag_index.llm.request import Message, ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_index.schema.settings.searches import StructuredSearch
from graphrag_query.question.question import Question
from graphrag_query.structured.limits import limits_of
from graphrag_query.structured.result import Result
from graphrag_query.structured.sql import engine, run_sql

# What each engine knows, in words for a model.
_DIALECTS = {
    "engine_duckdb": "The SQL is that of DuckDB.",
    "engine_polars": "The SQL is that of polars: joins, subqueries, GROUP BY, window functions, "
    "array_contains, array_length, unnest in SELECT, LIKE, LOWER, SUBSTR. It has no JSON functions "
    "and no LATERAL.",
}
_FENCE = re.compile(r"^```\w*\n(.*?)\n?```$", re.DOTALL)
# A query in a text: in a fence, or all that there is.
_IN_TEXT = re.compile(
    r"```\w*\n(?P<fenced>.*?)\n?```|\A\s*(?P<bare>(?:SELECT|WITH)\b.*)", re.S | re.I
)
_LITERAL = re.compile(r"'((?:[^']|'')+)'")


@dataclass(frozen=True)
class Tried:
    """What came of the queries for one question: the last one, its rows, and what went wrong.

    `result` is None where none ran; `sql` is empty where the model says that none answers.
    """

    sql: str
    result: Result | None
    notes: tuple[str, ...]
    messages: tuple[Message, ...]

    @property
    def is_empty(self) -> bool:
        """Whether the rows tell nothing: there are none, or nothing but zeros and nulls."""
        rows = self.result.rows if self.result is not None else []
        return not any(value not in (None, 0, "", []) for row in rows for value in row)

    @property
    def texts(self) -> list[str]:
        """The texts with which the query compares."""
        found = (text.replace("''", "'").strip("%_ ") for text in _LITERAL.findall(self.sql))
        return [text for text in dict.fromkeys(found) if text]


def first_messages(question: Question, tables: str, names: Sequence[str]) -> tuple[Message, ...]:
    """Return what a model is asked: the tables, the names near the question, and the question."""
    assert question.chat is not None
    near = "\n".join(f"- {name}" for name in names)
    asked = f"Tables:\n{tables}\n\nNames that resemble the question:\n{near}\n\n"
    asked += f"Question: {question.text}"
    return tuple(question.chat.messages("structured_query", asked, dialect=_DIALECTS[engine()]))


def write_query(
    question: Question, messages: Sequence[Message], settings: StructuredSearch
) -> Tried:
    """Let a model write a query and run it; what is wrong with it is told to the model.

    Raises
    ------
    ModelError
        The model does not answer at all.
    """
    chat = question.chat
    assert chat is not None
    told, sql = list(messages), ""
    notes: list[str] = []
    for _ in range(settings.attempts):
        [outcome] = chat.replies([Request("write a query", tuple(told), FORMAT)])
        if outcome.failure:
            return Tried("", None, (*notes, f"No query was written: {outcome.failure}."), (*told,))
        sql = outcome.values[0]
        told.append(Message(role="assistant", content=json.dumps({"sql": sql})))
        if not sql:
            return Tried(
                "", None, (*notes, "The model found no query that answers this."), (*told,)
            )
        try:
            result = run_sql(question.model, sql, limits_of(settings))
        except QueryError as error:
            notes.append(f"Query that failed: {sql} ({error})")
            wrong = f"This query failed: {error} Write it so that it works."
            told.append(Message(role="user", content=wrong))
        else:
            return Tried(sql, result, tuple(notes), tuple(told))
    return Tried(sql, None, tuple(notes), tuple(told))


def read_query(reply: Any) -> ParsedReply:
    """Read the query from a reply, also from a list or a text that is nothing else."""
    while isinstance(reply, list) and reply:
        reply = reply[0]
    sql = reply.get("sql", reply.get("query")) if isinstance(reply, Mapping) else reply
    if sql is None:
        sql = ""
    if not isinstance(sql, str):
        raise ReplyError("it has no sql")
    fenced = _FENCE.match(sql.strip())
    return ParsedReply((fenced[1] if fenced else sql).strip())


def find_query(text: str) -> str | None:
    """Find the one query of a reply that is no JSON; None if there is none, or several."""
    found = [match["fenced"] or match["bare"] for match in _IN_TEXT.finditer(text)]
    return found[0] if len(found) == 1 else None


FORMAT = ReplyFormat(
    "query",
    {
        "type": "object",
        "properties": {"why": {"type": "string"}, "sql": {"type": "string"}},
        "required": ["why", "sql"],
        "additionalProperties": False,
    },
    read_query,
    'a JSON object like {"why": "it counts persons", "sql": "SELECT count(*) FROM entities WHERE '
    "type = 'person'\"}",
    find_query,
)
