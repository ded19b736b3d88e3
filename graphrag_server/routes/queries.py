"""Read-only queries in SQL and Cypher over HTTP, and the tables that they can name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import polars as pl
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from graphrag_index.errors import QueryError
from graphrag_query.index import Index
from graphrag_query.store.index_store import IndexStore
from graphrag_query.structured.cypher_graph import GRAPH_LABELS
from graphrag_query.structured.queries import find_numbers, sql_engine, sql_tables
from graphrag_query.structured.sandbox import QueryResult, graph_library
from graphrag_server.access import AskIndex, Caller, CurrentCaller
from graphrag_server.asking import AskedQuestion, Asker
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.problems import RequestError, reason_not_stored
from graphrag_server.table_pages import Version

router = APIRouter(prefix="/v1/indexes/{index}", tags=["queries"])

MAX_QUERY_CHARS = 20_000
Kind = Literal["entity", "relationship", "community", "text_unit", "document"]
# Columns of public tables that name their rows, with the label and the column of the row's number.
_KEYS: tuple[tuple[Kind, str, str, str, Sequence[str]], ...] = (
    ("entity", "entities", "Entity", "human_readable_id", ("title", "id")),
    ("document", "documents", "Document", "human_readable_id", ("id", "path", "title")),
    ("community", "communities", "Community", "community", ("id", "title")),
    ("community", "community_reports", "Community", "community", ("id", "title")),
    ("text_unit", "text_units", "TextUnit", "human_readable_id", ("id",)),
    ("relationship", "relationships", "RELATED", "human_readable_id", ("id",)),
)
# The number of a row by the label of its node in the graph.
_LABELS: Mapping[str, tuple[Kind, str]] = {
    "Entity": ("entity", "number"),
    "Document": ("document", "number"),
    "TextUnit": ("text_unit", "number"),
    "Community": ("community", "community"),
    "RELATED": ("relationship", "number"),
}
# Columns of numbers of rows, such as `text_unit` of the table `mentions`.
_NUMBERS: Mapping[str, Kind] = {kind: kind for kind, *_ in _KEYS}


class QueryBody(BaseModel, extra="forbid"):
    """A query that reads the index. Its limits are those of the settings `structured_search`."""

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS)
    as_of: int | None = Field(None, ge=1, description="Version of the index; default: current.")


class ColumnRows(BaseModel):
    """The rows of the index that the values of a column stand for, by number; null for no row."""

    column: int
    kind: Kind
    numbers: list[int | None]


class QueryReply(BaseModel):
    """The rows of a query; `is_cut` is true if there are more than `max_rows`."""

    engine: str
    columns: list[str]
    rows: list[list[Any]]
    links: list[ColumnRows]
    is_cut: bool
    max_rows: int
    version: int
    seconds: float


class NamedTable(BaseModel):
    """A table, or a label of the graph, with the types of its columns; `rows` only of a table."""

    name: str
    meaning: str
    rows: int | None
    columns: dict[str, str]


class QueryLanguage(BaseModel):
    """A language of queries: its engine, or why there is none, and what queries can name."""

    engine: str
    problem: str = ""
    tables: list[NamedTable]


class QueryLanguages(BaseModel):
    """The languages in which this index can be queried."""

    sql: QueryLanguage
    cypher: QueryLanguage


@router.post("/sql")
async def query_sql(
    body: QueryBody, index: AskIndex, caller: CurrentCaller, request: Request
) -> QueryReply:
    """Run a query in SQL over the public tables. What would change anything is refused."""
    return await _query(body, index, caller, request, lambda opened: opened.sql(body.query))


@router.post("/cypher")
async def query_cypher(
    body: QueryBody, index: AskIndex, caller: CurrentCaller, request: Request
) -> QueryReply:
    """Run a query in Cypher over the graph; the first one of a version builds its database."""
    return await _query(body, index, caller, request, lambda opened: opened.cypher(body.query))


async def _query(
    body: QueryBody,
    index: HostedIndex,
    caller: Caller,
    request: Request,
    run: Callable[[Index], QueryResult],
) -> QueryReply:
    asked = AskedQuestion(index, caller, body.query, "structured", as_of=body.as_of)

    def read(opened: Index) -> QueryReply:
        try:
            return _reply(opened, run(opened))
        except OSError as error:
            # The database for Cypher is written when it is first needed.
            text = f"The query did not run: {reason_not_stored(error)}."
            raise RequestError(507, "not_stored", text) from None

    asker: Asker = request.app.state.asker
    return await asker.read(asked, request, read)


@router.get("/schema")
def read_schema(opened: Version) -> QueryLanguages:
    """Return the tables and the labels of the graph that queries can name."""
    try:
        engine, problem = graph_library(), ""
    except QueryError as error:
        engine, problem = "", str(error)
    tables = [
        NamedTable(name=name, meaning=meaning, rows=n_rows, columns=dict(columns))
        for name, meaning, columns, n_rows in sql_tables(opened.whole)
    ]
    labels = [
        NamedTable(
            name=label.name,
            meaning=f"{label.meaning}{_describe_ends(label.endpoints)}",
            rows=None,
            columns=dict(label.properties),
        )
        for label in GRAPH_LABELS
    ]
    return QueryLanguages(
        sql=QueryLanguage(engine=sql_engine(), tables=tables),
        cypher=QueryLanguage(engine=engine, problem=problem, tables=labels),
    )


def _describe_ends(endpoints: Sequence[str]) -> str:
    return f"; from {endpoints[0]} to {endpoints[1]}" if endpoints else ""


def _reply(opened: Index, found: QueryResult) -> QueryReply:
    links = [
        ColumnRows(column=at, kind=kind, numbers=numbers)
        for at, name in enumerate(found.columns)
        if (named := _find_rows(opened.store, found.query, name, [row[at] for row in found.rows]))
        for kind, numbers in [named]
    ]
    return QueryReply(
        engine=found.engine,
        columns=list(found.columns),
        rows=[list(row) for row in found.rows],
        links=links,
        is_cut=found.is_cut,
        max_rows=opened.settings.structured_search.max_rows,
        version=found.version,
        seconds=found.seconds,
    )


def _find_rows(
    store: IndexStore, query: str, column: str, values: Sequence[Any]
) -> tuple[Kind, list[int | None]] | None:
    """Find the rows that the values of a column stand for; None if they stand for none.

    All of them have to: ids, titles or paths of one table that the query names, numbers in a
    column that is named by its kind, or nodes of one label.
    """
    present = [value for value in values if value is not None]
    if not present:
        return None
    if all(isinstance(value, str) for value in present):
        texts = pl.Series(present)
        for kind, table, label, number, keys in _KEYS:
            is_named = table in query.lower() or label in query
            for key in keys if is_named and store.has_table(table) else ():
                if known := find_numbers(store, table, key, number, texts):
                    return kind, [known.get(value) for value in values]
    elif all(isinstance(value, int) for value in present):
        named = _NUMBERS.get(column.rpartition(".")[2])
        return (named, [*values]) if named else None
    elif all(isinstance(value, Mapping) for value in present):
        labels = {str(value.get("_label")) for value in present}
        of_label = _LABELS.get(labels.pop()) if len(labels) == 1 else None
        if of_label:
            kind, number = of_label
            numbers = [value and value.get(number) for value in values]
            # A query can write such a map itself.
            if all(isinstance(one, int | None) for one in numbers):
                return kind, numbers
    return None
