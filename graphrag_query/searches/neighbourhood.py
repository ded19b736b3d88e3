"""Neighbourhood: what surrounds an entity in the graph."""

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from graphrag_index.schema.settings.searches import NeighbourhoodSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.context import Section, pack
from graphrag_query.display.subgraph import subgraph_of
from graphrag_query.question.asked_entities import find_ends
from graphrag_query.question.question import Question
from graphrag_query.retrieval.links import Links
from graphrag_query.retrieval.relationship_evidence import CitedRelationships, passages_of

Relationship = tuple[int, int, int]  # its number, and those of two entities


def neighbourhood_search(
    question: Question, settings: NeighbourhoodSearch, names: Sequence[str] = ()
) -> Answer:
    """Give the sub-graph around entities: those with these names, or those the question names.

    The text lists its relationships, each with the passage that proves it, and `graph` holds
    them. No model is asked. The outcome is `no_evidence` if no entity is named, if a given
    name is that of none, or if there are no relationships.
    """
    model = question.model
    ends = find_ends(model, question.text, names)
    centres = [] if names and ends.unknown else ends.entities
    rings, found, n_read = gather(model.links, centres, settings.hops, settings.max_relationships)
    looked_at = {"entities": len(rings), "relationships": n_read}
    answer = partial(
        question.answer,
        method="neighbourhood",
        parameters=settings.model_dump(),
        looked_at=looked_at,
    )
    if not centres:
        said = " ".join(map(str, ends.unknown))
        nothing = "The question names no entity that the index knows."
        return answer(said or nothing, outcome=Outcome.NO_EVIDENCE)
    part = subgraph_of(model, rings, [number for number, _, _ in found])
    titles = dict(part.entities.select("human_readable_id", "title").iter_rows())
    notes = (*ends.notes, *map(str, ends.unknown))
    if not found:
        listed = ", ".join(titles.values())
        text = f"The index knows no relationships of {listed}."
        return answer(text, outcome=Outcome.NO_EVIDENCE, graph=part, notes=notes)
    relationships = model.relationships([number for number, _, _ in found])
    lines = CitedRelationships(relationships, passages_of(model, relationships))
    text = "\n".join(f"- {lines.line(number, titles[start])}" for number, start, _ in found)
    if n_read > len(found):
        notes += (
            f"{n_read - len(found):,} weaker relationships are left out (max_relationships).",
        )
    context = pack(
        [
            Section("Relationships", part.shown_relationships(), 0.7),
            Section("Entities", part.shown_entities(), 0.3),
        ],
        question.max_context_tokens(settings.max_context_tokens),
    )
    return answer(text, citations=tuple(lines.citations), notes=notes, context=context, graph=part)


def gather(
    links: Links, centres: Iterable[int], hops: int, max_relationships: int
) -> tuple[dict[int, int], list[Relationship], int]:
    """Gather the relationships around entities, hop by hop, each hop's strongest first.

    The last hop is followed by those among the entities that were reached.

    Returns
    -------
    rings
        How many hops each entity is from the centres, the nearest first.
    relationships
        Each with the entity from which it was reached, and the other.
    n_read
        How many relationships were there to choose from.
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
            rows += [
                (-weight, number, entity, other)
                for other, number, weight in zip(
                    near.entities[keep].tolist(),
                    near.relationships[keep].tolist(),
                    near.weights[keep].tolist(),
                    strict=True,
                )
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
