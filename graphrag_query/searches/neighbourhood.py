"""Neighbourhood search: the relationships around an entity."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from graphrag_index.schema.settings.searches import NeighbourhoodSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.written_answer import Section, pack_sections
from graphrag_query.question.question import Question
from graphrag_query.retrieval.relationship_evidence import CitedRelationships
from graphrag_query.store.index_store import IndexStore
from graphrag_query.store.links import Links
from graphrag_query.subgraph import ENTITY_TEXT_COLUMNS, Subgraph

Relationship = tuple[int, int, int]  # (number of the relationship, entity, other entity)
_RELATIONSHIP_COLUMNS = (
    "human_readable_id source target source_entity target_entity type description weight".split()
)


def neighbourhood_search(question: Question, settings: NeighbourhoodSearch) -> Answer:
    """Return the sub-graph around the named entities.

    The answer's `text` lists the relationships, each with the passage that supports it, and its
    `graph` is the sub-graph. No model is called. The outcome is `no_evidence` if no entity is
    named, if a name in `question.names` is unknown, or if there are no relationships.
    """
    index = question.index
    centres, misses, spellings = question.named_entities()
    centres = [] if question.names and misses else centres
    hops, most = settings.hops, settings.max_relationships
    rings, found, n_read = gather_relationships(index.links, centres, hops, most)
    question.counts.update(entities=len(rings), relationships=n_read)
    unknown = tuple(map(str, misses))
    if not centres:
        nothing = "The question names no entity that the index knows."
        return question.answer(" ".join(unknown) or nothing, Outcome.NO_EVIDENCE)
    numbers = [number for number, _, _ in found]
    part = read_subgraph(index, rings, numbers)
    titles = dict(part.entities.select("human_readable_id", "title").iter_rows())
    notes = (*spellings, *unknown)
    if not found:
        text = f"The index knows no relationships of {', '.join(titles.values())}."
        return question.answer(text, Outcome.NO_EVIDENCE, graph=part, notes=notes)
    lines = CitedRelationships(index, numbers)
    text = "\n".join(f"- {lines.write_line(number, titles[start])}" for number, start, _ in found)
    if n_read > len(found):
        n_weaker = f"{n_read - len(found):,}"
        notes += (f"{n_weaker} weaker relationships are left out (max_relationships).",)
    links = Section("Relationships", part.shown_relationships(), 0.7)
    entities = Section("Entities", part.shown_entities(), 0.3)
    limit = question.max_context_tokens(settings.max_context_tokens)
    context = pack_sections([links, entities], limit)
    citations = tuple(lines.citations)
    return question.answer(text, citations=citations, notes=notes, context=context, graph=part)


def gather_relationships(
    links: Links, centres: Iterable[int], hops: int, max_relationships: int
) -> tuple[dict[int, int], list[Relationship], int]:
    """Collect the relationships around entities, hop by hop, the strongest of a hop first.

    The relationships between entities of the last hop come last. Each relationship has first
    the entity where it was found, then the entity at its other end.

    Returns
    -------
    rings
        The number of hops to each entity, the nearest entity first.
    relationships
        At most `max_relationships` relationships.
    n_seen
        The number of relationships before this limit.
    """
    rings = dict.fromkeys(centres, 0)
    found: dict[int, Relationship] = {}
    seen: set[int] = set()
    frontier = list(rings)
    for hop in range(1, hops + 2):
        is_last = hop > hops
        rows: list[tuple[float, int, int, int]] = []
        for entity in frontier:
            near = links.relationships_of(entity, None if hop == 1 else max_relationships)
            keep = np.isin(near.entities, list(rings)) if is_last else slice(None)
            columns = [values[keep].tolist() for values in near]
            rows += [
                (-weight, number, entity, other)
                for other, number, weight in zip(*columns, strict=True)
                if number not in found
            ]
        seen.update(number for _, number, _, _ in rows)
        frontier = []
        for _, number, entity, other in sorted(rows):
            if len(found) == max_relationships:
                return rings, list(found.values()), len(seen)
            if number not in found:
                found[number] = (number, entity, other)
                if other not in rings:
                    rings[other] = hop
                    frontier.append(other)
    return rings, list(found.values()), len(seen)


def read_subgraph(
    index: IndexStore, rings: Mapping[int, int], relationships: Sequence[int]
) -> Subgraph:
    """Read some entities and relationships from the index, in the order of the arguments.

    `rings` maps the number of an entity to its number of hops from the requested entities.
    """
    entities = index.entities(rings).select("human_readable_id", *ENTITY_TEXT_COLUMNS)
    ring = pl.Series("ring", list(rings.values()), pl.Int64)
    found = index.relationships(relationships).select(_RELATIONSHIP_COLUMNS)
    return Subgraph(entities.with_columns(ring), found)
