"""Parts of the graph: around an entity, between two, by typed words, and as a map."""

from typing import Annotated

import polars as pl
from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel

from graphrag_index.schema.settings.searches import PathSearch
from graphrag_nlp.text.normalize import fold_name
from graphrag_query.question.entity_linking import find_entities_like
from graphrag_query.searches.neighbourhood import gather_relationships
from graphrag_query.searches.path_search import VisitedGraph, connect_entities
from graphrag_query.store.index_store import IndexStore
from graphrag_server.access import ReadIndex
from graphrag_server.graph_map import ROOT
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.routes.documents import TextUnit, build_text_unit
from graphrag_server.routes.entities import (
    Community,
    Entity,
    Relationship,
    read_communities,
    read_entities,
    read_relationships,
)
from graphrag_server.table_pages import VERSION_HEADER, AsOf, Version, no_such_row

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


class Suggestions(BaseModel):
    """The rows that match what is typed, the best of each kind first."""

    entities: list[Entity]
    communities: list[Community]
    text_units: list[TextUnit]


@router.get("/suggest")
def suggest(
    opened: Version,
    q: Annotated[str, Query(max_length=200, description="The text that is typed.")] = "",
    limit: Annotated[int, Query(ge=1, le=50, description="Maximum rows of each kind.")] = 8,
) -> Suggestions:
    """Find entities, communities and passages by the words that a user types.

    Each word is the beginning of a word of a name or a title, without regard to case and accents.
    A word that no name begins with may be spelt otherwise, as in a question. Entities of this name
    come first, then those with the most relationships.
    """
    words = fold_name(q).split()
    if not words:
        return Suggestions(entities=[], communities=[], text_units=[])
    store = opened.store
    return Suggestions(
        entities=read_entities(store, find_entities_like(store, words, limit)),
        communities=read_communities(store, _find_communities(store, words, limit)),
        text_units=_find_text_units(store, q, limit),
    )


def _find_communities(store: IndexStore, words: list[str], limit: int) -> list[int]:
    """Return the communities whose reports have all words in the title, the largest first."""
    if not store.has_table("report_rows"):
        return []
    reports = store.report_list.select("community", "title", "size")
    folded = pl.concat_str(
        pl.lit(" "), reports["title"].map_elements(fold_name, return_dtype=pl.String)
    )
    conditions = [folded.str.contains(f" {word}", literal=True) for word in words]
    found = reports.filter(pl.all_horizontal(conditions)).sort(
        "size", "community", descending=[True, False]
    )
    return found["community"].head(limit).to_list()


def _find_text_units(store: IndexStore, text: str, limit: int) -> list[TextUnit]:
    """Return the passages that match the words best, by full-text search."""
    if not store.has_table("text_unit_text"):
        return []
    found = store.vectors("text_unit_text").find_matching_rows(text, limit, ["human_readable_id"])
    numbers = found["human_readable_id"].to_list()
    rows = store.text_units(numbers)
    return [build_text_unit(rows[number]) for number in numbers if number in rows]


map_router = APIRouter(prefix="/v1/indexes/{index}", tags=["map"])


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


@map_router.get("/map", response_class=Response)
def read_map(index: ReadIndex, as_of: AsOf = None) -> Response:
    """Return the communities of the coarsest level as typed arrays; see graph_map.py."""
    return _read_part(index, as_of, ROOT)


@map_router.get("/map/places")
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


@map_router.get("/map/{community}", response_class=Response)
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
