"""Path search: how two or more entities are connected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise

import polars as pl

from graphrag_index.schema.settings.searches import PathSearch
from graphrag_query.answer import Answer, Citation, Outcome
from graphrag_query.answering.context import Section, pack, source_rows
from graphrag_query.answering.written_answer import write_answer
from graphrag_query.display.subgraph import Subgraph, subgraph_of
from graphrag_query.question.mentions import UnknownName, named_entities
from graphrag_query.question.question import Question
from graphrag_query.retrieval.index_store import IndexStore
from graphrag_query.retrieval.relationship_evidence import CitedRelationships, Passage, passages_of
from graphrag_query.retrieval.shortest_paths import Path, VisitedGraph, find_paths

# Of at most so many entities all pairs are searched; of more, each and the next.
MAX_PAIRWISE = 6
# Share of the context for passages.
SOURCE_SHARE = 0.5


@dataclass(frozen=True)
class Connection:
    """The paths between two of the named entities, the best first."""

    source: int
    target: int
    paths: Sequence[Path]


def path_search(question: Question, settings: PathSearch) -> Answer:
    """Tell how the named entities are connected.

    Two are connected by the best paths, each hop with the passage that supports it, and more
    by a tree of the best paths. A model explains them; without one, they are listed. The
    outcome is `no_evidence` if there is no path, or if a name is unknown.
    """
    index = question.index
    named = named_entities(question.mentions, question.names)
    entities, unknown, notes = named.entities, named.unknown, named.notes
    if unknown and not question.names and len(entities) > 1:
        # These can be connected, whatever else the question names.
        notes, unknown = (*notes, *map(str, unknown)), []
    graph = VisitedGraph(index.links, settings.max_visited)
    connections = [] if unknown else connect(graph, entities, settings)
    paths = [path for connection in connections for path in connection.paths]
    looked_at = {
        "entities": len(graph.visited),
        "relationships": graph.n_relationships,
        "paths": len(paths),
    }
    answer = partial(
        question.answer, method="path", parameters=settings.model_dump(), looked_at=looked_at
    )
    if unknown or len(entities) < 2:
        text = _what_is_missing(index, entities, unknown)
        return answer(text, outcome=Outcome.NO_EVIDENCE, notes=notes)
    titles = dict(zip(entities, index.entities(entities)["title"], strict=True))
    if not paths:
        text = _no_path(titles, graph, settings)
        return answer(text, outcome=Outcome.NO_EVIDENCE, notes=notes)
    part = _subgraph(index, entities, paths)
    relationships = index.relationships(part.relationships["human_readable_id"])
    passages = passages_of(index, relationships)
    looked_at["text_units"] = len({unit["id"] for _, unit in passages.values()})
    notes += _notes(titles, connections, graph)
    context = pack(
        _sections(connections, passages, part),
        question.max_context_tokens(settings.max_context_tokens),
    )
    if question.llm is not None:
        written = write_answer(
            question,
            "path_search",
            context,
            method="path",
            parameters=settings.model_dump(),
            looked_at=looked_at,
            notes=notes,
        )
        return replace(written, graph=part)
    text, citations = _listed(titles, connections, relationships, passages, part)
    return answer(text, citations=citations, notes=notes, context=context, graph=part)


def connect(graph: VisitedGraph, entities: Sequence[int], settings: PathSearch) -> list[Connection]:
    """Find paths that connect entities: several for two, a tree of one path each for more.

    The tree has the smallest cost; of many entities, each is connected to the next.
    A pair without a path has no connection.
    """
    pairs = list(pairwise(entities))
    most = settings.max_paths if len(entities) == 2 else 1
    if len(entities) <= MAX_PAIRWISE:
        pairs = list(combinations(entities, 2))
    found = [Connection(*pair, find_paths(graph, *pair, most, settings.max_hops)) for pair in pairs]
    found = [connection for connection in found if connection.paths]
    # The entities that each is connected with so far.
    trees = {entity: {entity} for entity in entities}
    taken = []
    for connection in sorted(found, key=lambda c: (c.paths[0].cost, c.source, c.target)):
        here, there = trees[connection.source], trees[connection.target]
        if here is not there:
            here |= there
            trees.update(dict.fromkeys(there, here))
            taken.append(connection)
    return taken


def _what_is_missing(index: IndexStore, entities: list[int], unknown: list[UnknownName]) -> str:
    if unknown:
        return " ".join(map(str, unknown))
    if not entities:
        return "A path needs two entities, and this question names none that the index knows."
    [title] = index.entities(entities)["title"]
    return f"A path needs two entities, and this question names one that the index knows: {title}."


def _no_path(titles: Mapping[int, str], graph: VisitedGraph, settings: PathSearch) -> str:
    names = " and ".join(titles.values())
    what = f"{len(graph.visited):,} entities and {graph.n_relationships:,} relationships"
    if graph.is_cut:
        return (
            f"No path between {names} was found in the {what} that may be visited for one "
            "question (max_visited)."
        )
    return (
        f"No path of at most {settings.max_hops} hops connects {names}: {what} near them were "
        "visited."
    )


def _notes(
    titles: Mapping[int, str], connections: Sequence[Connection], graph: VisitedGraph
) -> tuple[str, ...]:
    notes = []
    connected = {end for c in connections for end in (c.source, c.target)}
    for entity, title in titles.items():
        if entity not in connected:
            notes.append(f"No path leads to {title}.")
    if len(connected) - len(connections) > 1:
        notes.append("Not all of them are connected with each other.")
    if graph.is_cut:
        notes.append("There may be better paths: not all that is near was visited (max_visited).")
    return tuple(notes)


def _subgraph(index: IndexStore, entities: Sequence[int], paths: Sequence[Path]) -> Subgraph:
    """Fetch the sub-graph of the paths; an entity's ring is its distance from the nearest end."""
    rings = dict.fromkeys(entities, 0)
    for path in paths:
        for at, entity in enumerate(path.entities):
            ring = min(at, len(path.relationships) - at)
            rings[entity] = min(ring, rings.get(entity, ring))
    hops = dict.fromkeys(number for path in paths for number in path.relationships)
    return subgraph_of(index, rings, list(hops))


def _sections(
    connections: Sequence[Connection], passages: Mapping[int, Passage], part: Subgraph
) -> list[Section]:
    """Return the sections of a context: hops in the order of the paths, passages, entities."""
    places: dict[int, list[str]] = {}
    paths = [path for connection in connections for path in connection.paths]
    for n, path in enumerate(paths, 1):
        for hop, number in enumerate(path.relationships, 1):
            places.setdefault(number, []).append(f"path {n} hop {hop}")
    hops = part.shown_relationships()
    hops.insert_column(1, pl.Series("place", ["; ".join(listed) for listed in places.values()]))
    units = {unit["human_readable_id"]: unit for _, unit in passages.values()}
    return [
        Section("Relationships", hops, 1 - SOURCE_SHARE),
        Section("Sources", source_rows(units), SOURCE_SHARE),
        Section("Entities", part.shown_entities(), (1 - SOURCE_SHARE) / 2),
    ]


def _listed(
    titles: Mapping[int, str],
    connections: Sequence[Connection],
    relationships: pl.DataFrame,
    passages: Mapping[int, Passage],
    part: Subgraph,
) -> tuple[str, tuple[Citation, ...]]:
    """Write the paths as a list, one line a hop."""
    lines = CitedRelationships(relationships, passages)
    title_of = dict(part.entities.select("human_readable_id", "title").iter_rows())
    paths = [path for connection in connections for path in connection.paths]
    *names, last = titles.values()
    if len(titles) > 2:
        how = f"a tree of {len(paths)} paths" if len(paths) > 1 else "one path"
    else:
        how = f"{len(paths)} paths, the best first" if len(paths) > 1 else "one path"
    text = [f"{', '.join(names)} and {last} are connected by {how}:"]
    for n, path in enumerate(paths, 1):
        on_path = [title_of[entity] for entity in path.entities]
        hops = "1 hop" if len(path.relationships) == 1 else f"{len(path.relationships)} hops"
        text.append(f"\n{n}. {' – '.join(on_path)} ({hops})")
        for title, number in zip(on_path, path.relationships, strict=False):
            text.append(f"   - {lines.line(number, title)}")
    return "\n".join(text), tuple(lines.citations)
