"""Versions of an index: their list, their differences, their health and their statistics."""

import json
import threading
from collections import OrderedDict
from dataclasses import asdict
from typing import Annotated, Any, Literal

import polars as pl
from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from graphrag_index.pipeline.changes import compare_rows, compare_versions
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Version as StoredVersion
from graphrag_query.store.filtered_index import FILTER_COLUMNS
from graphrag_query.store.index_store import IndexStore
from graphrag_query.structured.queries import run_sql
from graphrag_query.structured.sandbox import Limits
from graphrag_server.access import ReadIndex
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.problems import RequestError
from graphrag_server.table_pages import AsOf, Version, read_cursor

router = APIRouter(prefix="/v1/indexes/{index}", tags=["versions"])

# Maximum number of names of changed rows, for each table and kind of change.
MAX_NAMES = 1_000
# Maximum number of changed rows of a page. They are small, and a page colours a whole table.
MAX_CHANGED_ROWS = 10_000
MAX_COMPARISONS = 8
# Maximum length of a query.
MAX_QUERY_CHARS = 100_000


class VersionSummary(BaseModel):
    """One version. `cost` is in dollars; null if the price of a model is unknown."""

    number: int
    is_current: bool
    workflow: str
    program: str
    date: str
    tables: dict[str, int]  # number of rows
    calls: int
    cost: float | None


class Versions(BaseModel):
    """The versions that can be opened, the newest first."""

    versions: list[VersionSummary]


class TableDifference(BaseModel):
    """The changed rows of one table: how many of each kind of change, and their names."""

    counts: dict[str, int]
    names: dict[str, list[str]]  # at most 1,000 of each kind


class VersionDifference(BaseModel):
    """The differences between two versions, by table."""

    before: int
    after: int
    tables: dict[str, TableDifference]


class ChangedRow(BaseModel):
    """A row that differs between two versions, with its number in each version that has it.

    The number is the `community` for communities and their reports.
    """

    kind: str  # added, removed, changed or renamed
    name: str
    before: int | None
    after: int | None


class ChangedRowPage(BaseModel):
    """A page of changed rows; `counts` has the number of rows of each kind, without the filter."""

    items: list[ChangedRow]
    total: int
    next_cursor: str | None
    counts: dict[str, int]


class SQLBody(BaseModel):
    """A query over the public tables."""

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS)
    max_rows: int = Field(1_000, ge=1, description="At most structured_search.max_rows.")
    timeout: float = Field(30.0, gt=0, description="Seconds; at most structured_search.timeout.")


class SQLRows(BaseModel):
    """The rows of a query. `is_cut` is true if the query has more rows than `max_rows`."""

    columns: list[str]
    rows: list[list[Any]]
    is_cut: bool
    engine: str
    version: int
    seconds: float


@router.get("/versions")
def list_versions(index: ReadIndex) -> Versions:
    """List the versions that can be opened, the newest first."""
    current = index.open().store.version.number
    found = [index.store.read_version(number) for number in index.store.versions()]
    return Versions(versions=[_summarize(version, current) for version in reversed(found)])


@router.get("/diff")
def diff(
    index: ReadIndex,
    from_: Annotated[int, Query(alias="from", ge=1)],
    to: Annotated[int | None, Query(ge=1, description="Default: the current version.")] = None,
) -> VersionDifference:
    """Return the rows that were added, removed and changed between two versions."""
    current = index.open().store.version.number
    before, after = (_read_version(index, number) for number in (from_, to or current))
    found = compare_versions(index.store, before, after)
    return VersionDifference(
        before=before.number,
        after=after.number,
        tables={
            name: TableDifference(
                counts=dict(difference.counts),
                names={kind: list(rows[:MAX_NAMES]) for kind, rows in difference.names.items()},
            )
            for name, difference in found.items()
        },
    )


@router.get("/diff/{table}")
def list_changed_rows(
    index: ReadIndex,
    table: Literal["documents", "entities", "relationships", "communities", "reports"],
    from_: Annotated[int, Query(alias="from", ge=1)],
    to: Annotated[int | None, Query(ge=1, description="Default: the current version.")] = None,
    kind: Annotated[
        Literal["added", "removed", "changed", "renamed"] | None, Query(description="Default: all.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_CHANGED_ROWS)] = 50,
    cursor: Annotated[str, Query(description="`next_cursor` of the page before.")] = "",
) -> ChangedRowPage:
    """List the rows of a table that differ between two versions, in the order of the rows."""
    after, offset = read_cursor(cursor) if cursor else (to, 0)
    after = after or index.open().store.version.number
    name = "community_reports" if table == "reports" else table
    versions = _read_version(index, from_), _read_version(index, after)
    rows = _compare_rows(index.store, *versions, name)
    counts = dict(rows.group_by("kind").len().sort("kind").iter_rows())
    kept = rows if kind is None else rows.filter(kind=kind)
    stop = min(offset + limit, kept.height)
    return ChangedRowPage.model_validate(
        {
            "items": kept[offset:stop].to_dicts() if offset < kept.height else [],
            "total": kept.height,
            "next_cursor": f"{after}.{stop}" if stop < kept.height else None,
            "counts": counts,
        }
    )


@router.get("/check")
async def check(index: ReadIndex, as_of: AsOf = None) -> dict[str, Any]:
    """Check an index for inconsistencies and missing parts; the reply has its statistics too.

    Each version is checked once while the server runs.
    """
    opened = await run_in_threadpool(index.open, as_of)
    return await index.checks.result(opened.store.version.number)


@router.get("/stats")
def read_statistics(opened: Version) -> dict[str, Any]:
    """Return the number of rows of each table, the steps of the last run, and their times.

    `entity_types` and `document_columns` are the values that filters can have.
    """
    version = opened.index.store.version
    return {
        "version": version.number,
        "workflow": version.workflow,
        "program": version.program,
        "origin": asdict(version.made) if version.made else None,
        "tables": {name: table.rows for name, table in version.tables.items()},
        "entity_types": _count_entity_types(opened.whole),
        "document_columns": _list_document_columns(opened.whole),
        "steps": [{"name": step.name, "quarantined": step.quarantined} for step in version.steps],
    }


def _count_entity_types(store: IndexStore) -> dict[str, int]:
    """Return the number of entities of each type, the most frequent type first."""
    counts = store.scan("entities").group_by("type").len().drop_nulls("type")
    return dict(counts.sort("len", "type", descending=[True, False]).collect().iter_rows())


def _list_document_columns(store: IndexStore) -> list[str]:
    """Return the columns and keys of metadata by which documents can be filtered."""
    rows = store.scan("documents").select("metadata").drop_nulls().head(MAX_NAMES).collect()
    keys = {key for (metadata,) in rows.iter_rows() for key in json.loads(metadata)}
    return [*FILTER_COLUMNS, *sorted(keys - set(FILTER_COLUMNS))]


@router.post("/sql")
def sql(body: SQLBody, opened: Version) -> SQLRows:
    """Run a read-only SQL query over the public tables."""
    settings = opened.hosted.settings.structured_search
    limits = Limits(
        min(body.max_rows, settings.max_rows),
        min(body.timeout, settings.timeout),
        settings.max_memory,
    )
    found = run_sql(opened.whole, body.query, limits)
    return SQLRows(
        columns=list(found.columns),
        rows=[list(row) for row in found.rows],
        is_cut=found.is_cut,
        engine=found.engine,
        version=opened.whole.version.number,
        seconds=found.seconds,
    )


# The comparisons of the last requests, for their next pages.
_comparisons: OrderedDict[tuple[object, ...], pl.DataFrame] = OrderedDict()
_comparisons_lock = threading.Lock()


def _compare_rows(
    store: TableStore, before: StoredVersion, after: StoredVersion, table: str
) -> pl.DataFrame:
    """Compare a table of two versions, or return the comparison of an earlier request."""
    compared = (table, "loaded_documents") if table == "documents" else (table,)
    stored = [version.tables.get(name) for version in (before, after) for name in compared]
    key = (store.output, table, *(one and one.digest for one in stored))
    with _comparisons_lock:
        rows = _comparisons.get(key)
    if rows is None:
        rows = compare_rows(store, before, after, table)
    with _comparisons_lock:
        _comparisons[key] = rows
        _comparisons.move_to_end(key)
        if len(_comparisons) > MAX_COMPARISONS:
            _comparisons.popitem(last=False)
    return rows


def _read_version(index: HostedIndex, number: int) -> StoredVersion:
    if number not in index.store.versions():
        raise RequestError(404, "no_such_version", f"{index.name} has no version {number}.")
    return index.store.read_version(number)


def _summarize(version: StoredVersion, current: int) -> VersionSummary:
    made = version.made
    return VersionSummary(
        number=version.number,
        is_current=version.number == current,
        workflow=version.workflow,
        program=version.program,
        date=made.date if made else "",
        tables={name: table.rows for name, table in version.tables.items()},
        calls=made.calls if made else 0,
        cost=made.cost if made else None,
    )
