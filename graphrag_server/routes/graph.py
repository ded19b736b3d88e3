"""Parts of the graph: the neighbourhood of an entity, and paths between two."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from graphrag_index.schema.settings.searches import PathSearch
from graphrag_query.searches.neighbourhood import gather_relationships
from graphrag_query.searches.path_search import VisitedGraph, connect_entities
from graphrag_server.routes.entities import Entity, Relationship, read_entities, read_relationships
from graphrag_server.table_pages import Version

router = APIRouter(prefix="/v1/indexes/{index}", tags=["graph"])

MAX_RELATIONSHIPS = 3_000


class PlacedEntity(Entity):
    """An entity of a part of the graph. `ring` is its number of hops from the centre."""

    ring: int


class Neighbourhood(BaseModel):
    """The relationships around an entity, and the entities at their ends, the nearest first."""

    entities: list[PlacedEntity]
    relationships: list[Relationship]
    left_out: int  # number of weaker relationships beyond the limit


class EntityPath(BaseModel):
    """A path: entity, relationship, entity, and so on, by number. A lower cost is better."""

    entities: list[int]
    relationships: list[int]
    cost: float


class Paths(BaseModel):
    """The best paths between two entities, and the rows that they consist of."""

    paths: list[EntityPath]
    entities: list[Entity]
    relationships: list[Relationship]


@router.get("/neighbourhood")
def read_neighbourhood(
    opened: Version,
    entity: Annotated[int, Query(description="Number of the entity in the centre.")],
    hops: Annotated[int, Query(ge=1, le=4)] = 1,
    limit: Annotated[int, Query(ge=1, le=MAX_RELATIONSHIPS)] = 100,
) -> Neighbourhood:
    """Return the relationships around an entity, the strongest of each hop first."""
    opened.check_row("entity_rows", entity, "entity")
    rings, found, n_seen = gather_relationships(opened.store.links, [entity], hops, limit)
    entities = read_entities(opened.whole, list(rings))
    return Neighbourhood(
        entities=[
            PlacedEntity(**row.model_dump(), ring=ring)
            for row, ring in zip(entities, rings.values(), strict=True)
        ],
        relationships=read_relationships(opened.whole, [number for number, _, _ in found]),
        left_out=n_seen - len(found),
    )


@router.get("/path")
def read_path(
    opened: Version,
    from_: Annotated[int, Query(alias="from", description="Number of the first entity.")],
    to: Annotated[int, Query(description="Number of the last entity.")],
    max_paths: Annotated[int, Query(ge=1, le=20)] = 3,
    max_hops: Annotated[int, Query(ge=1, le=10)] = 6,
) -> Paths:
    """Return the best paths between two entities; no path if none was found."""
    for entity in (from_, to):
        opened.check_row("entity_rows", entity, "entity")
    settings = PathSearch(max_paths=max_paths, max_hops=max_hops)
    graph = VisitedGraph(opened.store.links, settings.max_visited)
    connections = connect_entities(graph, [from_, to], settings) if from_ != to else []
    paths = [path for connection in connections for path in connection.paths]
    entities = list(dict.fromkeys(n for path in paths for n in path.entities))
    relationships = list(dict.fromkeys(n for path in paths for n in path.relationships))
    return Paths(
        paths=[
            EntityPath(
                entities=list(path.entities), relationships=list(path.relationships), cost=path.cost
            )
            for path in paths
        ],
        entities=read_entities(opened.whole, entities),
        relationships=read_relationships(opened.whole, relationships),
    )
