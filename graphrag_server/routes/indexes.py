"""The indexes of a server: their names and sizes."""

import logging

from fastapi import APIRouter, Request
from pydantic import BaseModel

from graphrag_index.errors import GraphRAGError
from graphrag_server.access import Caller, CurrentCaller, ReadIndex
from graphrag_server.hosted_index import HostedIndex, HostedIndexes
from graphrag_server.problems import RequestError, as_request_error

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
    indexes: HostedIndexes = request.app.state.indexes
    visible = [index for index in indexes if caller.may_see(index.name)]
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
