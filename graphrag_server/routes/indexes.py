"""The indexes of a server: their names and sizes."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from graphrag_server.access import Caller, CurrentCaller, ReadIndex
from graphrag_server.hosted_index import HostedIndex, HostedIndexes
from graphrag_server.problems import RequestError

router = APIRouter(tags=["indexes"])


class IndexSummary(BaseModel):
    """One index. `version` is 0, and `tables` is empty, before the first run."""

    name: str
    version: int
    workflow: str
    tables: dict[str, int]  # number of rows of each public table
    methods: list[str]


class VisibleIndex(IndexSummary):
    """An index, and the scopes of the caller: read, ask, index, admin."""

    scopes: list[str]


@router.get("/v1/indexes")
def list_indexes(request: Request, caller: CurrentCaller) -> dict[str, list[VisibleIndex]]:
    """List the indexes that the caller may see."""
    indexes: HostedIndexes = request.app.state.indexes
    visible = [index for index in indexes if caller.may_see(index.name)]
    return {"indexes": [_describe_index(index, caller) for index in visible]}


@router.get("/v1/indexes/{index}")
def read_index(index: ReadIndex, caller: CurrentCaller) -> VisibleIndex:
    """Return the name, version and sizes of an index."""
    return _describe_index(index, caller)


def _describe_index(hosted: HostedIndex, caller: Caller) -> VisibleIndex:
    scopes = sorted(scope.value for scope in caller.scopes)
    return VisibleIndex(**summarize_index(hosted).model_dump(), scopes=scopes)


def summarize_index(hosted: HostedIndex) -> IndexSummary:
    from graphrag_index.schema.tables import TABLES
    from graphrag_query.searches.router import METHODS

    values: dict[str, Any] = {"version": 0, "workflow": hosted.settings.workflow, "tables": {}}
    try:
        version = hosted.open().store.version
    except RequestError:
        return IndexSummary(name=hosted.name, methods=[], **values)
    public = {name for name, table in TABLES.items() if table.kind == "public"}
    tables = {name: table.rows for name, table in version.tables.items() if name in public}
    return IndexSummary(
        name=hosted.name,
        version=version.number,
        workflow=version.workflow,
        tables=tables,
        methods=list(METHODS),
    )
