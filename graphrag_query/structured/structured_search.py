"""Structured search: a model writes a query, and the answer from its rows."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from graphrag_index.errors import QueryError, SettingsError
from graphrag_index.llm.request import Message, ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_index.schema.settings.searches import StructuredSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.context import Context, Section, pack
from graphrag_query.answering.written_answer import write_answer
from graphrag_query.question.question import Question
from graphrag_query.retrieval.index_store import IndexStore
from graphrag_query.searches.local_search import local_search
from graphrag_query.structured.queries import run_sql, sql_engine
from graphrag_query.structured.sandbox import QueryResult, limits_of
from graphrag_query.structured.table_schema import identify_rows, names_near, sampled_schema

NO_MODEL = (
    "Structured search needs a chat model, which writes the query: name one in search.model, or "
    'write the query yourself with `graphrag-query sql "SELECT ..."`.'
)
NO_RECORD = "No record: no query found anything, and nothing in the documents is close to this."
# Names similar to the question or to a text of the query that a model is shown.
MAX_NAMES = 10
# The dialect of each engine, in words for a model.
_DIALECTS = {
    "duckdb": "The SQL is that of DuckDB.",
    "polars": "The SQL is that of polars: joins, subqueries, GROUP BY, window functions, "
    "array_contains, array_length, unnest in SELECT, LIKE, LOWER, SUBSTR. It has no JSON functions "
    "and no LATERAL.",
}
_FENCE = re.compile(r"^```\w*\n(.*?)\n?```$", re.DOTALL)
# A query in a reply: in a fence, or the whole text.
_IN_TEXT = re.compile(
    r"```\w*\n(?P<fenced>.*?)\n?```|\A\s*(?P<bare>(?:SELECT|WITH)\b.*)", re.S | re.I
)
_LITERAL = re.compile(r"'((?:[^']|'')+)'")


@dataclass(frozen=True)
class QueryAttempt:
    """The last query for a question, its result, and notes on those that failed.

    `result` is None if none ran; `sql` is empty if the model says that no query answers.
    """

    sql: str
    result: QueryResult | None
    notes: tuple[str, ...]
    messages: tuple[Message, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows, or nothing but zeros and nulls."""
        rows = self.result.rows if self.result is not None else []
        return not any(value not in (None, 0, "", []) for row in rows for value in row)

    @property
    def texts(self) -> list[str]:
        """The texts that the query compares with."""
        found = (text.replace("''", "'").strip("%_ ") for text in _LITERAL.findall(self.sql))
        return [text for text in dict.fromkeys(found) if text]


def first_messages(question: Question, tables: str, names: Sequence[str]) -> tuple[Message, ...]:
    """Build the request: the tables, the names near the question, and the question."""
    assert question.llm is not None
    near = "\n".join(f"- {name}" for name in names)
    asked = f"Tables:\n{tables}\n\nNames that resemble the question:\n{near}\n\n"
    asked += f"Question: {question.text}"
    return tuple(question.llm.messages("structured_query", asked, dialect=_DIALECTS[sql_engine()]))


def write_query(
    question: Question, messages: Sequence[Message], settings: StructuredSearch
) -> QueryAttempt:
    """Let a model write a query and run it; errors are sent back to the model.

    Raises
    ------
    ModelError
        The model does not answer at all.
    """
    llm = question.llm
    assert llm is not None
    told, sql = list(messages), ""
    notes: list[str] = []
    for _ in range(settings.attempts):
        [outcome] = llm.replies([Request("write a query", tuple(told), FORMAT)])
        if outcome.failure:
            return QueryAttempt(
                "", None, (*notes, f"No query was written: {outcome.failure}."), (*told,)
            )
        sql = outcome.values[0]
        told.append(Message(role="assistant", content=json.dumps({"sql": sql})))
        if not sql:
            notes.append("The model found no query that answers this.")
            return QueryAttempt("", None, tuple(notes), tuple(told))
        try:
            result = run_sql(question.index, sql, limits_of(settings))
        except QueryError as error:
            notes.append(f"Query that failed: {sql} ({error})")
            wrong = f"This query failed: {error} Write it so that it works."
            told.append(Message(role="user", content=wrong))
        else:
            return QueryAttempt(sql, result, tuple(notes), tuple(told))
    return QueryAttempt(sql, None, tuple(notes), tuple(told))


def read_query(reply: Any) -> ParsedReply:
    """Parse the query from a reply: an object, a list of them, or the query itself."""
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
    """Find the one query in a reply that is no JSON; None if there is none, or several."""
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


def structured_search(question: Question, settings: StructuredSearch) -> Answer:
    """Answer a question by a query in SQL that a model writes.

    The query runs under the limits of all queries, and is shown in the notes. Its errors are sent
    back to the model. If it finds nothing, the model may write it again with similar names from
    the index; if that finds nothing either, or no query works, local search answers. The outcome
    is `no_evidence` if nothing is similar to the question.

    Raises
    ------
    SettingsError
        There is no chat model.
    """
    if question.llm is None:
        raise SettingsError(NO_MODEL)
    index = question.index
    names = names_near(index, [question.text], MAX_NAMES)
    messages = first_messages(question, sampled_schema(index, settings.sample_values), names)
    tried = write_query(question, messages, settings)
    if tried.result is not None and tried.is_empty:
        tried = _with_similar_names(question, tried, settings)
    if tried.result is not None and not tried.is_empty:
        return _from_rows(question, tried, settings)
    return _from_passages(question, tried, settings)


def _with_similar_names(
    question: Question, tried: QueryAttempt, settings: StructuredSearch
) -> QueryAttempt:
    """Let the model write the query again, with names of the index similar to its own."""
    names = names_near(question.index, tried.texts, MAX_NAMES)
    if not names:
        return tried
    listed = ", ".join(names)
    asked = (
        "This query found nothing. Names in the index that resemble those in it: "
        f"{listed}. If one of them is what the question means, write the query with it; if not, "
        "give an empty query."
    )
    message = Message(role="user", content=asked)
    again = write_query(question, [*tried.messages, message], settings)
    if again.result is None:
        return replace(tried, notes=(*tried.notes, *again.notes))
    found = f"Query that found nothing: {tried.sql}"
    return replace(again, notes=(*tried.notes, found, *again.notes))


def _from_rows(question: Question, tried: QueryAttempt, settings: StructuredSearch) -> Answer:
    """Let the model write the answer from the rows of its query."""
    result = tried.result
    assert result is not None
    name, rows = identify_rows(question.index, result.frame)
    packed = pack(
        [Section(name, rows, 1.0)], question.max_context_tokens(settings.max_context_tokens)
    )
    notes = (*tried.notes, f"Query: {tried.sql}")
    if result.is_cut:
        notes += (f"The query has more rows than the {len(result):,} that were read (max_rows).",)
    left_out = sum(packed.n_left_out.values())
    if left_out:
        notes += (f"{left_out:,} rows had no room in what the model was shown.",)
    cut = "The rows were cut; there are more.\n" if result.is_cut or left_out else ""
    context = replace(packed, text=f"Query: {tried.sql}\n{cut}\n{packed.text}")
    return write_answer(
        question,
        "structured_answer",
        context,
        method="structured",
        parameters=settings.model_dump(),
        looked_at={"queries": 1, "rows": len(result)},
        notes=notes,
        shown=context.shown if name != "Rows" else {},
    )


def _from_passages(question: Question, tried: QueryAttempt, settings: StructuredSearch) -> Answer:
    """Answer by local search, if anything in the documents is similar to the question."""
    notes = tried.notes
    if tried.result is not None:
        notes += (f"Query that found nothing: {tried.sql}",)
    if not is_anything_close(question, settings.min_similarity):
        return question.answer(
            NO_RECORD,
            "structured",
            settings.model_dump(),
            {"queries": 1 if tried.sql else 0, "rows": 0},
            Outcome.NO_EVIDENCE,
            notes=notes,
            context=Context({}, "", 0, {}),
        )
    found = local_search(question, question.local)
    notes += ("Answered by local search from passages, since no query found anything.",)
    return replace(
        found,
        method="structured",
        parameters=settings.model_dump(),
        notes=(*notes, *found.notes),
    )


def is_anything_close(question: Question, min_similarity: float) -> bool:
    """Tell whether a passage or entity has at least this similarity to the question."""
    index = question.index
    return any(
        _best(index, table, question) >= min_similarity
        for table in ("text_unit_text", "entity_description")
        if index.has(table)
    )


def _best(index: IndexStore, table: str, question: Question) -> float:
    found = index.vectors(table).nearest(question.vector, 1, ["human_readable_id"])
    best: float = found.select(pl.col("similarity").max()).item()
    return best if best is not None else -1.0
