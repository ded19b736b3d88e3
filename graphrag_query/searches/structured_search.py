"""Structured search: a model writes a query in SQL, then an answer from the rows."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.errors import QueryError, SettingsError
from graphrag_index.llm.request import Message, ParsedReply, ReplyError, Request
from graphrag_index.schema.settings.searches import StructuredSearch
from graphrag_query.answer import Answer, Context, Outcome
from graphrag_query.answering.written_answer import Section, pack_sections, write_answer
from graphrag_query.llm import first_item, reply_format
from graphrag_query.question.question import Mentions, Question
from graphrag_query.searches.local_search import local_search
from graphrag_query.structured.queries import (
    SQL_TEXTS,
    find_numbers,
    run_sql,
    sql_engine,
    sql_schema,
    table_files,
)
from graphrag_query.structured.sandbox import QueryResult, read_limits

if TYPE_CHECKING:
    from graphrag_query.store.index_store import IndexStore

NO_MODEL_TEXT = (
    "Structured search needs a chat model, which writes the query: name one in search.model, or "
    'write the query yourself with `graphrag-query sql "SELECT ..."`.'
)
NO_RECORD = "No record: no query found anything, and nothing in the documents is close to this."
# Maximum number of entity names in a prompt; they are similar to the question or the query.
MAX_SIMILAR_NAMES = 10
# Maximum number of rows of a table that are sampled for frequent values.
MAX_SAMPLED_ROWS = 5_000
# Maximum number of characters of a sampled value in a prompt.
MAX_VALUE_CHARS = 60
# Columns that are not sampled: ids, and long texts.
_SKIPPED = frozenset({"id", "text", "raw_data", "full_content", "full_content_json", "summary"})
_SKIPPED_ENDINGS = ("_id", "_ids", "description", "explanation")
# (section name in citations, column with the row number, key columns), by table.
_CITED_TABLES = {
    "entities": ("Entities", "human_readable_id", ("id", "title")),
    "text_units": ("Sources", "human_readable_id", ("id",)),
    "relationships": ("Relationships", "human_readable_id", ("id",)),
    "community_reports": ("Reports", "community", ("id",)),
    "covariates": ("Claims", "human_readable_id", ("id",)),
}
_CODE_FENCE = re.compile(r"^```\w*\n(.*?)\n?```$", re.DOTALL)
# A query in a text that is not JSON: in a Markdown code fence, or the whole text.
_QUERY_IN_TEXT = re.compile(
    r"```\w*\n(?P<fenced>.*?)\n?```|\A\s*(?P<bare>(?:SELECT|WITH)\b.*)", re.S | re.I
)
_STRING_LITERAL = re.compile(r"'((?:[^']|'')+)'")


@dataclass(frozen=True)
class Attempt:
    """The last query for a question, its rows, and notes on failed queries.

    `result` is None if no query ran. `sql` is empty if the model found no query for the question.
    `messages` are the conversation with the model so far.
    """

    sql: str
    result: QueryResult | None
    notes: tuple[str, ...]
    messages: tuple[Message, ...]

    @property
    def has_found(self) -> bool:
        """True if a query ran and at least one value is not zero, empty or null."""
        rows = self.result.rows if self.result is not None else []
        return any(value not in (None, 0, "", []) for row in rows for value in row)

    @property
    def literals(self) -> list[str]:
        """The string literals in the query, without duplicates."""
        found = (text.replace("''", "'").strip("%_ ") for text in _STRING_LITERAL.findall(self.sql))
        return [text for text in dict.fromkeys(found) if text]


def structured_search(question: Question, settings: StructuredSearch) -> Answer:
    """Answer a question with a query in SQL that a model writes.

    If the query fails, the model gets the error message and writes a new query. If the query finds
    no rows, the model writes a new one once, and gets entity names that are similar to the string
    literals. If this finds no rows either, local search answers the question. The outcome is
    `no_evidence` if nothing in the index is similar to the question. The notes contain the query.
    Raises SettingsError if there is no chat model.
    """
    if question.llm is None:
        raise SettingsError(NO_MODEL_TEXT)
    index = question.index
    names = "\n".join(f"- {name}" for name in _find_similar_names(index, [question.text]))
    request = (
        f"Tables:\n{_schema_with_sample_values(index, settings.sample_values)}\n\n"
        f"Names that resemble the question:\n{names}\n\nQuestion: {question.text}"
    )
    dialect = SQL_TEXTS["dialects"][sql_engine()]
    messages = question.llm.messages("structured_query", request, dialect=dialect)
    attempt = _write_query(question, messages, settings)
    if attempt.result is not None and not attempt.has_found:
        attempt = _retry_with_similar_names(question, attempt, settings)
    if attempt.has_found:
        return _answer_from_rows(question, attempt, settings)
    return _answer_from_passages(question, attempt, settings)


def _write_query(
    question: Question, messages: Sequence[Message], settings: StructuredSearch
) -> Attempt:
    """Ask the model for a query and run it; if it fails, ask again, up to `attempts` times."""
    assert question.llm is not None
    sent, sql = list(messages), ""
    notes: list[str] = []
    for _ in range(settings.attempts):
        [outcome] = question.llm.replies([Request("write a query", tuple(sent), QUERY_FORMAT)])
        if outcome.failure:
            notes.append(f"No query was written: {outcome.failure}.")
            return Attempt("", None, tuple(notes), tuple(sent))
        sql = outcome.values[0]
        sent.append(Message(role="assistant", content=json.dumps({"sql": sql})))
        if not sql:
            notes.append("The model found no query that answers this.")
            break
        try:
            result = run_sql(question.index, sql, read_limits(settings))
        except QueryError as error:
            notes.append(f"Query that failed: {sql} ({error})")
            retry = f"This query failed: {error} Write it so that it works."
            sent.append(Message(role="user", content=retry))
        else:
            return Attempt(sql, result, tuple(notes), tuple(sent))
    return Attempt(sql, None, tuple(notes), tuple(sent))


def _retry_with_similar_names(
    question: Question, attempt: Attempt, settings: StructuredSearch
) -> Attempt:
    """Ask the model for another query, with entity names similar to the string literals."""
    names = _find_similar_names(question.index, attempt.literals)
    if not names:
        return attempt
    listed = ", ".join(names)
    request = (
        "This query found nothing. Names in the index that resemble those in it: "
        f"{listed}. If one of them is what the question means, write the query with it; if not, "
        "give an empty query."
    )
    messages = [*attempt.messages, Message(role="user", content=request)]
    again = _write_query(question, messages, settings)
    if again.result is None:
        return replace(attempt, notes=(*attempt.notes, *again.notes))
    note = f"Query that found nothing: {attempt.sql}"
    return replace(again, notes=(*attempt.notes, note, *again.notes))


def _answer_from_rows(question: Question, attempt: Attempt, settings: StructuredSearch) -> Answer:
    """Ask the model for an answer from the rows of its query."""
    result = attempt.result
    assert result is not None
    name, rows = _identify_rows(question.index, result.frame)
    packed = pack_sections(
        [Section(name, rows, 1.0)], question.max_context_tokens(settings.max_context_tokens)
    )
    notes = (*attempt.notes, f"Query: {attempt.sql}")
    if result.is_cut:
        notes += (f"The query has more rows than the {len(result):,} that were read (max_rows).",)
    left_out = sum(packed.n_left_out.values())
    if left_out:
        notes += (f"{left_out:,} rows did not fit into the context of the model.",)
    cut = "The rows were cut; there are more.\n" if result.is_cut or left_out else ""
    context = replace(packed, text=f"Query: {attempt.sql}\n{cut}\n{packed.text}")
    question.counts.update(queries=1, rows=len(result))
    citable = context.shown if name != "Rows" else {}
    return write_answer(question, "structured_answer", context, notes, citable)


def _answer_from_passages(
    question: Question, attempt: Attempt, settings: StructuredSearch
) -> Answer:
    """Answer with local search if anything in the documents is similar to the question."""
    notes = attempt.notes
    if attempt.result is not None:
        notes += (f"Query that found nothing: {attempt.sql}",)
    similarities: list[float] = []
    for table in filter(question.index.has_table, ("text_unit_text", "entity_description")):
        nearest = question.index.vectors(table).nearest(question.vector, 1, ["human_readable_id"])
        similarities += nearest["similarity"].drop_nulls().to_list()
    if similarities and max(similarities) < settings.min_similarity:
        question.counts.update(queries=1 if attempt.sql else 0, rows=0)
        nothing = Context({}, "", 0, {})
        return question.answer(NO_RECORD, Outcome.NO_EVIDENCE, notes=notes, context=nothing)
    found = local_search(question, question.local)
    notes += ("Answered by local search from passages, since no query found anything.",)
    return replace(found, notes=(*notes, *found.notes))


def _schema_with_sample_values(index: "IndexStore", n_values: int) -> str:
    """Describe the tables, with the most frequent values of each column with short texts."""
    lines = [sql_schema(index)]
    if not n_values:
        return lines[0]
    lines.append("\nValues, the most frequent first:")
    for table in table_files(index):
        names = [
            name
            for name, dtype in index.scan(table).collect_schema().items()
            if dtype == pl.String and name not in _SKIPPED and not name.endswith(_SKIPPED_ENDINGS)
        ]
        for values in index.scan(table).select(names).head(MAX_SAMPLED_ROWS).collect():
            known = values.drop_nulls().filter(values.drop_nulls() != "")
            shown = known.value_counts(sort=True, name="n").head(n_values)[values.name]
            if len(shown):
                texts = ", ".join(repr(value[:MAX_VALUE_CHARS]) for value in shown)
                lines.append(f"{table}.{values.name}: {texts}")
    return "\n".join(lines)


def _find_similar_names(index: "IndexStore", texts: Sequence[str]) -> list[str]:
    """Return titles of entities that texts mention, then of entities with similar vectors."""
    if not texts:
        return []
    found: dict[str, None] = {}
    named = [m.entity for text in texts for m in Mentions(index, text).entities]
    if named:
        found |= dict.fromkeys(index.entities(dict.fromkeys(named))["title"])
    if index.has_table("entity_description"):
        table = index.vectors("entity_description")
        for vector in index.embedder.embed(list(texts)):
            found |= dict.fromkeys(table.nearest(vector, MAX_SIMILAR_NAMES, ["title"])["title"])
    return list(found)[:MAX_SIMILAR_NAMES]


def _identify_rows(index: "IndexStore", rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    """Find the table that the rows of a query come from; return (section name, numbered rows).

    The rows come from a table if all values of one column are ids of that table, or titles of
    entities. Otherwise the section name is Rows, numbers begin at 1, and rows cannot be cited.
    """
    files = table_files(index)
    texts = [
        rows[name]
        for name, dtype in rows.schema.items()
        if dtype == pl.String and rows.height and not rows[name].null_count()
    ]
    for table, (name, number, keys) in _CITED_TABLES.items():
        if table not in files:
            continue
        for key in keys:
            for values in texts:
                numbers = find_numbers(index, table, key, number, values)
                if numbers:
                    return name, _insert_numbers(rows, [numbers[value] for value in values])
    return "Rows", _insert_numbers(rows, range(1, rows.height + 1))


def _insert_numbers(rows: pl.DataFrame, numbers: Sequence[int]) -> pl.DataFrame:
    """Insert the numbers as the first column; convert lists and objects to text."""
    texts = [
        pl.Series(column.name, list(map(str, column.to_list())), pl.String)
        for column in rows
        if column.dtype.is_nested()
    ]
    return rows.with_columns(texts).insert_column(0, pl.Series("_number", numbers, pl.Int64))


def read_query(reply: Any) -> ParsedReply:
    """Parse the query in a reply: an object, a list with an object, or the query as text."""
    reply = first_item(reply)
    sql = reply.get("sql", reply.get("query")) if isinstance(reply, Mapping) else reply
    if not isinstance(sql, str | None):
        raise ReplyError("it has no sql")
    return ParsedReply(_CODE_FENCE.sub(r"\1", (sql or "").strip()).strip())


def find_query(text: str) -> str | None:
    """Find the query in a reply that is not JSON; None if there is no query or several."""
    found = [match["fenced"] or match["bare"] for match in _QUERY_IN_TEXT.finditer(text)]
    return found[0] if len(found) == 1 else None


QUERY_FORMAT = reply_format("query", read_query, find_query)
