"""Entities and relationships: lists, single rows, and their evidence."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from graphrag_query.store.index_store import IndexStore
from graphrag_server.table_pages import (
    MAX_LIMIT,
    Page,
    Paging,
    Span,
    Version,
    make_page,
    no_such_row,
    number_in,
    read_page,
    read_spans,
    scan_kept,
)

router = APIRouter(prefix="/v1/indexes/{index}", tags=["graph"])

_MENTION_FIELDS = ("document", "title", "start_char", "end_char", "text")
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]


class Entity(BaseModel):
    """One entity. `frequency` is its number of text units, `degree` that of its relationships."""

    number: int
    title: str
    type: str
    description: str
    degree: int
    frequency: int
    aliases: list[str]


class Relationship(BaseModel):
    """One relationship. `stated` is false if the two are only named in the same text units.

    A relationship is stated if it has evidence (a sentence that names both entities), a
    description (that sentence, or what a model read in the texts) or a type (from a model).
    Relationships that a workflow without a model counted in text units, but for which no sentence
    names both entities, have none of the three.
    """

    number: int
    source: int  # number of an entity; -1 if the entity is unknown
    target: int
    source_title: str
    target_title: str
    type: str
    description: str
    weight: float
    stated: bool


class Community(BaseModel):
    """One community. `parent` is -1 at level 0, the coarsest; `title` is that of its report."""

    community: int
    level: int
    parent: int
    children: list[int]
    title: str
    size: int  # number of entities


class EntityDetails(Entity):
    """An entity with its communities, the coarsest first, and the sentences that describe it."""

    communities: list[Community]
    evidence: list[Span]


class RelationshipDetails(Relationship):
    """A relationship with the sentences that state it, and its text units."""

    evidence: list[Span]
    text_units: list[int]


@router.get("/entities")
def list_entities(
    opened: Version,
    page: Paging,
    document: Annotated[int | None, Query(description="Number of a document.")] = None,
    community: Annotated[int | None, Query(description="Number of a community.")] = None,
) -> Page[Entity]:
    """List entities, those with the most relationships first.

    Sort by degree, frequency, title or number.
    """
    store = opened.store
    rows = scan_kept(store, "entities")
    if document is not None:
        opened.check_row("document_rows", document, "document")
        rows = rows.filter(number_in(_entities_of_document(store, document)))
    if community is not None:
        found = opened.whole.communities([community])
        if found.is_empty():
            raise no_such_row("community", community)
        rows = rows.filter(number_in(found["entities"][0].to_numpy()))
    sorts = {"degree": "degree", "frequency": "frequency", "title": "title"}
    return read_page(
        *(opened, rows, page, read_entities),
        sorts=sorts | {"number": "human_readable_id"},
        default_sort="-degree",
        searched=("title", "description"),
    )


@router.get("/entities/{number}")
def read_entity(opened: Version, number: int) -> EntityDetails:
    """Return an entity with its communities and the sentences that describe it."""
    store = opened.whole
    opened.check_row("entity_rows", number, "entity")
    row = store.entities([number]).row(0, named=True)
    _, communities = store.links.communities_of(number)
    return EntityDetails(
        **_entity_fields(row),
        communities=read_communities(store, communities.tolist()),
        evidence=read_spans(store, row["evidence"]),
    )


@router.get("/entities/{number}/relationships")
def list_relationships_of_entity(
    opened: Version, number: int, limit: Limit = 50, offset: Annotated[int, Query(ge=0)] = 0
) -> Page[Relationship]:
    """List the relationships of an entity, those with the highest weights first."""
    opened.check_row("entity_rows", number, "entity")
    numbers = opened.store.links.relationships_of(number).relationships.tolist()
    first = offset or opened.offset
    items = read_relationships(opened.whole, numbers[first : first + limit])
    return make_page(opened, items, first + len(items), len(numbers))


@router.get("/entities/{number}/mentions")
def list_mentions(
    opened: Version, number: int, limit: Limit = 50, offset: Annotated[int, Query(ge=0)] = 0
) -> Page[Span]:
    """List the text units that name an entity, those that describe it first."""
    opened.check_row("entity_rows", number, "entity")
    linked = opened.store.links.text_units_of(number)
    pairs = sorted(
        zip(linked.numbers.tolist(), linked.is_subject.tolist(), strict=True),
        key=lambda pair: not pair[1],
    )
    first = offset or opened.offset
    taken = [text_unit for text_unit, _ in pairs[first : first + limit]]
    rows = opened.whole.text_units(taken)
    items = [
        Span(text_unit=text_unit, **{name: rows[text_unit][name] for name in _MENTION_FIELDS})
        for text_unit in taken
    ]
    return make_page(opened, items, first + len(items), len(pairs))


@router.get("/relationships")
def list_relationships(opened: Version, page: Paging) -> Page[Relationship]:
    """List relationships, those with the highest weights first. Sort by weight or number."""
    return read_page(
        *(opened, scan_kept(opened.store, "relationships"), page, read_relationships),
        sorts={"weight": "weight", "number": "human_readable_id"},
        default_sort="-weight",
        searched=("source", "target", "type", "description"),
    )


@router.get("/relationships/{number}")
def read_relationship(opened: Version, number: int) -> RelationshipDetails:
    """Return a relationship with the sentences that state it, and its text units."""
    store = opened.whole
    opened.check_row("relationship_rows", number, "relationship")
    [relationship] = read_relationships(store, [number])
    row = store.relationships([number]).row(0, named=True)
    return RelationshipDetails(
        **relationship.model_dump(),
        evidence=read_spans(store, row["evidence"]),
        text_units=store.text_units_behind("Relationships", number),
    )


def read_relationships(store: IndexStore, numbers: list[int]) -> list[Relationship]:
    """Read relationships by number, in this order."""
    rows = store.relationships(numbers)
    return [
        Relationship(
            number=row["human_readable_id"],
            source=row["source_entity"],
            target=row["target_entity"],
            source_title=row["source"],
            target_title=row["target"],
            type=row["type"] or "",
            description=row["description"] or "",
            weight=row["weight"],
            stated=bool(row["type"] or row["description"] or row["evidence"]),
        )
        for row in rows.iter_rows(named=True)
    ]


def read_entities(store: IndexStore, numbers: list[int]) -> list[Entity]:
    """Read entities by number, in this order."""
    rows = store.entities(numbers).iter_rows(named=True)
    return [Entity(**_entity_fields(row)) for row in rows]


def _entity_fields(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "number": row["human_readable_id"],
        "title": row["title"] or "",
        "type": row["type"] or "",
        "description": row["description"] or "",
        "degree": row["degree"],
        "frequency": row["frequency"],
        "aliases": row["aliases"] or [],
    }


def _entities_of_document(store: IndexStore, document: int) -> list[int]:
    """Return the numbers of the entities that the text units of a document name."""
    text_units = store.open_mapped("text_unit_rows").find_rows("document", document)
    found: set[int] = set()
    for text_unit in text_units:
        found.update(store.links.entities_of(text_unit).numbers.tolist())
    return sorted(found)


def read_communities(store: IndexStore, numbers: list[int]) -> list[Community]:
    """Read communities by number; unknown numbers are left out."""
    rows = store.communities(numbers)
    titles: dict[int, str] = {}
    if store.has_table("report_rows"):
        titles = dict(store.reports(numbers).select("community", "title").iter_rows())
    return [
        Community(
            title=titles.get(row["community"]) or row["title"],
            **{name: row[name] for name in ("community", "level", "parent", "children", "size")},
        )
        for row in rows.iter_rows(named=True)
    ]
