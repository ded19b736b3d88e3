"""The map of an index: its communities as areas, opened part by part."""

from fastapi import APIRouter
from fastapi.responses import Response

from graphrag_server.access import ReadIndex
from graphrag_server.graph_map import ROOT
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.table_pages import VERSION_HEADER, AsOf, no_such_row

router = APIRouter(prefix="/v1/indexes/{index}", tags=["map"])


@router.get("/map", response_class=Response)
def read_map(index: ReadIndex, as_of: AsOf = None) -> Response:
    """Return the communities of the coarsest level as typed arrays; see graph_map.py."""
    return _read_part(index, as_of, ROOT)


@router.get("/map/{community}", response_class=Response)
def read_map_part(index: ReadIndex, community: int, as_of: AsOf = None) -> Response:
    """Return the children of a community, or its entities, as typed arrays."""
    return _read_part(index, as_of, community)


def _read_part(hosted: HostedIndex, as_of: int | None, community: int) -> Response:
    opened = hosted.open(as_of)
    part = hosted.map_of(opened).read_part(community)
    if part is None:
        raise no_such_row("community", community)
    headers = {VERSION_HEADER: str(opened.store.version.number)}
    return Response(part, media_type="application/octet-stream", headers=headers)
