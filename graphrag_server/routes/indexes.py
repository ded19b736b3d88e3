"""The indexes of a server: names, sizes, versions, health, statistics, evaluations."""

import json
import logging
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from graphrag_evaluation.report.evaluation_page import find_reports, page_policy, render_page
from graphrag_evaluation.report.evaluation_record import EvaluationSummary, read_record
from graphrag_evaluation.summary import largest_cutoffs
from graphrag_index.errors import GraphRAGError
from graphrag_index.pipeline.changes import compare_rows
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Version as StoredVersion
from graphrag_query.store.filtered_index import FILTER_COLUMNS
from graphrag_query.store.index_store import IndexStore
from graphrag_server.access import Caller, CurrentCaller, ReadIndex
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.problems import RequestError, as_request_error
from graphrag_server.table_pages import AsOf, Page, Version, read_cursor
from graphrag_server.tracing import hide_roots

logger = logging.getLogger(__name__)
router = APIRouter(tags=["indexes"])


class IndexSummary(BaseModel):
    """One index. `version` is 0, and `tables` is empty, before the first run.

    `problem` says why an index cannot be opened; it is empty for the others.
    """

    name: str
    version: int
    workflow: str
    tables: dict[str, int]  # number of rows of each public table
    methods: list[str]
    problem: str = ""


class VisibleIndex(IndexSummary):
    """An index, and the scopes of the caller: read, ask, index, admin."""

    scopes: list[str]


@router.get("/v1/indexes")
def list_indexes(request: Request, caller: CurrentCaller) -> dict[str, list[VisibleIndex]]:
    """List the indexes that the caller may see."""
    visible = caller.visible(request.app.state.indexes)
    return {"indexes": [_add_scopes(list_index(index), caller) for index in visible]}


@router.get("/v1/indexes/{index}")
def read_index(index: ReadIndex, caller: CurrentCaller) -> VisibleIndex:
    """Return the name, version and sizes of an index."""
    return _add_scopes(summarize_index(index), caller)


def _add_scopes(summary: IndexSummary, caller: Caller) -> VisibleIndex:
    scopes = sorted(scope.value for scope in caller.scopes)
    return VisibleIndex(**summary.model_dump(), scopes=scopes)


def list_index(hosted: HostedIndex) -> IndexSummary:
    """Return an index as a list shows it: a damaged index with its problem, at version 0."""
    try:
        return summarize_index(hosted)
    except GraphRAGError as error:
        logger.error("%s", error)
        return _summarize_missing(hosted, as_request_error(error).detail)


def summarize_index(hosted: HostedIndex) -> IndexSummary:
    """Return the version and the sizes of an index. Raises GraphRAGError if it is damaged."""
    from graphrag_index.schema.tables import TABLES
    from graphrag_query.searches.router import METHODS

    try:
        version = hosted.open().store.version
    except RequestError:
        return _summarize_missing(hosted)
    public = {name for name, table in TABLES.items() if table.kind == "public"}
    tables = {name: table.rows for name, table in version.tables.items() if name in public}
    return IndexSummary(
        name=hosted.name,
        version=version.number,
        workflow=version.workflow,
        tables=tables,
        methods=list(METHODS),
    )


def _summarize_missing(hosted: HostedIndex, problem: str = "") -> IndexSummary:
    return IndexSummary(
        name=hosted.name,
        version=0,
        workflow=hosted.settings.workflow,
        tables={},
        methods=[],
        problem=problem,
    )


version_router = APIRouter(prefix="/v1/indexes/{index}", tags=["versions"])

# Documents whose metadata is looked at for the keys that filters can name.
_MAX_SEEN_DOCUMENTS = 1_000
# Maximum number of changed rows of a page. They are small, and a page colours a whole table.
MAX_CHANGED_ROWS = 10_000
MAX_COMPARISONS = 8


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


class ChangedRow(BaseModel):
    """A row that differs between two versions, with its number in each version that has it.

    The number is the `community` for communities and their reports.
    """

    kind: str  # added, removed, changed or renamed
    name: str
    before: int | None
    after: int | None


class ChangedRowPage(Page[ChangedRow]):
    """A page of changed rows; `counts` has the number of rows of each kind, without the filter."""

    counts: dict[str, int]


@version_router.get("/versions")
def list_versions(index: ReadIndex) -> Versions:
    """List the versions that can be opened, the newest first."""
    current = index.open().store.version.number
    found = [index.store.read_version(number) for number in index.store.versions()]
    return Versions(versions=[_summarize(version, current) for version in reversed(found)])


@version_router.get("/diff/{table}")
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


@version_router.get("/check")
async def check(index: ReadIndex, as_of: AsOf = None) -> dict[str, Any]:
    """Check an index for inconsistencies and missing parts; the reply has its statistics too.

    Each version is checked once while the server runs.
    """
    opened = await run_in_threadpool(index.open, as_of)
    return await index.check(opened.store.version.number)


@version_router.get("/stats")
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
    rows = (
        store.scan("documents").select("metadata").drop_nulls().head(_MAX_SEEN_DOCUMENTS).collect()
    )
    keys = {key for (metadata,) in rows.iter_rows() for key in json.loads(metadata)}
    return [*FILTER_COLUMNS, *sorted(keys - set(FILTER_COLUMNS))]


def _compare_rows(
    store: TableStore, before: StoredVersion, after: StoredVersion, table: str
) -> pl.DataFrame:
    """Compare a table of two versions, or return the comparison of an earlier request."""
    compared = (table, "loaded_documents") if table == "documents" else (table,)
    stored = [version.tables.get(name) for version in (before, after) for name in compared]
    digests = tuple(one and one.digest for one in stored)
    return _compare_numbers(store, before.number, after.number, table, digests)


# The comparisons of the last requests are kept for their next pages.
@lru_cache(MAX_COMPARISONS)
def _compare_numbers(
    store: TableStore, before: int, after: int, table: str, digests: tuple[str | None, ...]
) -> pl.DataFrame:
    return compare_rows(store, store.read_version(before), store.read_version(after), table)


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


evaluation_router = APIRouter(prefix="/v1/indexes/{index}/evaluations", tags=["evaluations"])

EvaluationName = Annotated[
    str, PathParameter(description="Name of an evaluation, as the list has it.")
]


class ListedEvaluation(BaseModel):
    """An evaluation; `problem` says why its file cannot be read, and `summary` is null then.

    The means of the summary are those of the main measures: of each cutoff, the largest one.
    """

    name: str
    summary: EvaluationSummary | None
    problem: str = ""


class EvaluationList(BaseModel):
    """The evaluations of a project, the newest first; files that cannot be read are last."""

    evaluations: list[ListedEvaluation]


@evaluation_router.get("")
def list_evaluations(index: ReadIndex) -> EvaluationList:
    """List the evaluations that the project of an index keeps."""
    found = [_list_evaluation(*report) for report in find_reports(index.root).items()]
    found.sort(key=lambda item: item.summary.date if item.summary else "", reverse=True)
    return EvaluationList(evaluations=found)


@evaluation_router.get("/{name}/page", response_class=HTMLResponse)
def read_evaluation_page(index: ReadIndex, name: EvaluationName) -> HTMLResponse:
    """Return an evaluation as one page of HTML, which needs no further request."""
    path = find_reports(index.root).get(name)
    if path is None:
        raise RequestError(
            404, "no_such_evaluation", f"The index {index.name} has no evaluation {name!r}."
        )
    try:
        page = "".join(render_page(read_record(path)))
    except GraphRAGError as error:
        raise RequestError(503, "unreadable_evaluation", str(error)) from None
    policy = f"{page_policy()}; frame-ancestors 'none'"
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


def _list_evaluation(name: str, path: Path) -> ListedEvaluation:
    try:
        summary = _read_summary(path, path.stat().st_mtime_ns)
    except (GraphRAGError, OSError) as error:
        return ListedEvaluation(name=name, summary=None, problem=hide_roots(str(error)))
    return ListedEvaluation(name=name, summary=summary)


@lru_cache(maxsize=256)
def _read_summary(path: Path, changed: int) -> EvaluationSummary:
    """Return the summary of a file; `changed` is the time of its last change."""
    record = read_record(path)
    kept = largest_cutoffs(record.measures)
    means = {
        system: {name: interval for name, interval in found.items() if name in kept}
        for system, found in record.means.items()
    }
    names = EvaluationSummary.model_fields
    return EvaluationSummary.model_validate(
        {name: getattr(record, name) for name in names} | {"means": means}
    )
