"""The map of an index: its communities as areas, opened part by part."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel

from graphrag_server.access import ReadIndex
from graphrag_server.graph_map import ROOT
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.routes.entities import Relationship, read_entities, read_relationships
from graphrag_server.table_pages import VERSION_HEADER, AsOf, no_such_row

router = APIRouter(prefix="/v1/indexes/{index}", tags=["map"])


class Place(BaseModel):
    """The place of an entity or a community in the unit disc of the map."""

    number: int
    title: str
    type: str
    x: float
    y: float
    radius: float


class Places(BaseModel):
    """The places of some entities and communities, and some relationships between entities."""

    entities: list[Place]
    communities: list[Place]
    relationships: list[Relationship]


@router.get("/map", response_class=Response)
def read_map(index: ReadIndex, as_of: AsOf = None) -> Response:
    """Return the communities of the coarsest level as typed arrays; see graph_map.py."""
    return _read_part(index, as_of, ROOT)


@router.get("/map/places")
def read_places(
    index: ReadIndex,
    entity: Annotated[list[int], Query(max_length=500)] = [],  # noqa: B006 - never changed
    community: Annotated[list[int], Query(max_length=500)] = [],  # noqa: B006 - never changed
    relationship: Annotated[list[int], Query(max_length=500)] = [],  # noqa: B006 - never changed
    as_of: AsOf = None,
) -> Places:
    """Return the places of some entities and communities; unknown numbers are left out.

    The entities at the ends of the relationships are added to the entities.
    """
    opened = index.open(as_of)
    graph_map = index.map_of(opened)
    known = range(opened.store.n_rows("relationship_rows"))
    relationships = read_relationships(opened.store, [n for n in relationship if n in known])
    ends = [end for one in relationships for end in (one.source, one.target)]
    entities = graph_map.place_entities(list(dict.fromkeys([*entity, *ends])))
    rows = read_entities(opened.store, [disc.number for disc in entities])
    return Places(
        entities=[
            Place(number=row.number, title=row.title, type=row.type, x=disc.x, y=disc.y, radius=0)
            for row, disc in zip(rows, entities, strict=True)
        ],
        communities=[
            Place(title="", type="", **disc._asdict())
            for disc in graph_map.place_communities(community)
        ],
        relationships=relationships,
    )


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
