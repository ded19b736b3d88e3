"""Path search: find the best paths between entities, reading only a part of the graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import heappop, heappush
from itertools import combinations, pairwise
from math import inf
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.schema.settings.searches import PathSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.extractive import TextUnit
from graphrag_query.answering.written_answer import (
    Section,
    pack_sections,
    source_rows,
    write_answer,
)
from graphrag_query.question.question import Question
from graphrag_query.retrieval.relationship_evidence import CitedRelationships
from graphrag_query.searches.neighbourhood import read_subgraph
from graphrag_query.store.index_store import IndexStore
from graphrag_query.store.links import Links
from graphrag_query.subgraph import Subgraph

# Up to this many entities, search a path between every pair; with more, only between neighbours
# in the list.
MAX_PAIRED_ENTITIES = 6
# Share of the context's tokens that is reserved for passages, 0 to 1.
PASSAGE_TOKEN_SHARE = 0.5
# Base cost of a hop. A weak relationship adds up to 1.
HOP_COST = 0.5
# Cost of passing through an entity is this factor times the logarithm of the entity's degree.
# Without this cost, most paths would lead through a few very frequent entities (hubs).
HUB_COST = 0.1
# Extra cost of each entity and each pair that an earlier path used. The extra cost is multiplied
# by four whenever the search finds the same path again.
REUSE_PENALTY = 1.0
# Maximum number of times in a row that the search finds a path that it already has.
MAX_REPEATED_PATHS = 4
# Maximum number of hops by which a further path is longer than the best path.
MAX_EXTRA_HOPS = 2
# A further path costs at most twice the cost of the best path plus this value.
MAX_EXTRA_COST = 4 * REUSE_PENALTY
# Maximum number of relationships that are followed from one entity, the heaviest first. A
# relationship is missed only if it is beyond this limit for both of its entities.
MAX_RELATIONSHIPS_OF_ENTITY = 1_000


class Path(NamedTuple):
    """A path between two entities, as numbers of entities and relationships.

    A path with a lower `cost` is better.
    """

    entities: tuple[int, ...]
    relationships: tuple[int, ...]
    cost: float


class _PartialPath(NamedTuple):
    """A partial path from the source or the target to an entity.

    Partial paths are ordered by cost, then by hops and numbers.
    """

    cost: float
    hops: int
    entity: int
    relationship: int  # number of the last hop's relationship; -1 if the path has no hop
    before: "_PartialPath | None"


Hop = tuple[int, int, float]  # (number of the neighbour, number of the relationship, cost)


@dataclass(frozen=True)
class Connection:
    """The paths between two of the named entities, the best path first."""

    source: int
    target: int
    paths: Sequence[Path]


def path_search(question: Question, settings: PathSearch) -> Answer:
    """Explain how the named entities are connected.

    For two entities, the answer has the best paths, and for more entities a tree of the best
    paths. Each hop has the passage that supports it. A model explains the paths; without a
    model, the answer lists the paths. The outcome is `no_evidence` if there is no path, or if
    a name in `question.names` is unknown.
    """
    index = question.index
    entities, unknown, notes = question.named_entities()
    if unknown and not question.names and len(entities) > 1:
        # The known entities can be connected although another name in the question is unknown.
        notes, unknown = (*notes, *map(str, unknown)), []
    graph = VisitedGraph(index.links, settings.max_visited)
    connections = [] if unknown else connect_entities(graph, entities, settings)
    paths = [path for connection in connections for path in connection.paths]
    question.counts.update(
        entities=len(graph.visited), relationships=graph.n_relationships, paths=len(paths)
    )
    titles = dict(zip(entities, index.entities(entities)["title"], strict=True))
    if not paths:
        if unknown:
            text = " ".join(map(str, unknown))
        elif len(entities) < 2:
            known = ", ".join(f"one that the index knows: {title}" for title in titles.values())
            known = known or "none that the index knows"
            text = f"A path needs two entities, and this question names {known}."
        else:
            text = _explain_no_path(titles, graph, settings)
        return question.answer(text, Outcome.NO_EVIDENCE, notes=notes)
    part = _fetch_subgraph(index, entities, paths)
    lines = CitedRelationships(index, part.relationships["human_readable_id"])
    units = {unit["human_readable_id"]: unit for _, unit in lines.passages.values()}
    question.counts["text_units"] = len(units)
    notes += _describe_connections(titles, connections, graph)
    limit = question.max_context_tokens(settings.max_context_tokens)
    context = pack_sections(_build_sections(paths, units, part), limit)
    if question.llm is not None:
        return replace(write_answer(question, "path_search", context, notes), graph=part)
    text = _list_paths(titles, paths, lines, part)
    citations = tuple(lines.citations)
    return question.answer(text, citations=citations, notes=notes, context=context, graph=part)


def connect_entities(
    graph: "VisitedGraph", entities: Sequence[int], settings: PathSearch
) -> list[Connection]:
    """Find paths that connect entities: several for two, the cheapest tree of paths for more.

    With more than `MAX_PAIRED_ENTITIES` entities, each entity is connected only to the next entity.
    The result has no connection for a pair without a path.
    """
    pairs = list(pairwise(entities))
    most = settings.max_paths if len(entities) == 2 else 1
    if len(entities) <= MAX_PAIRED_ENTITIES:
        pairs = list(combinations(entities, 2))
    found = [Connection(*pair, find_paths(graph, *pair, most, settings.max_hops)) for pair in pairs]
    found = [connection for connection in found if connection.paths]
    # For each entity, the set of entities that it is connected with so far.
    trees = {entity: {entity} for entity in entities}
    taken = []
    for connection in sorted(found, key=lambda c: (c.paths[0].cost, c.source, c.target)):
        here, there = trees[connection.source], trees[connection.target]
        if here is not there:
            here |= there
            trees.update(dict.fromkeys(there, here))
            taken.append(connection)
    return taken


def _explain_no_path(titles: Mapping[int, str], graph: "VisitedGraph", settings: PathSearch) -> str:
    names = " and ".join(titles.values())
    visited = f"{len(graph.visited):,} entities and {graph.n_relationships:,} relationships"
    if graph.is_cut:
        limit = "that one search may visit (max_visited)"
        return f"No path between {names} was found in the {visited} {limit}."
    no_path = f"No path of at most {settings.max_hops} hops connects {names}"
    return f"{no_path}: {visited} near them were visited."


def _describe_connections(
    titles: Mapping[int, str], connections: Sequence[Connection], graph: "VisitedGraph"
) -> tuple[str, ...]:
    connected = {end for c in connections for end in (c.source, c.target)}
    notes = [f"No path leads to {t}." for entity, t in titles.items() if entity not in connected]
    if len(connected) - len(connections) > 1:
        notes.append("Not all of these entities are connected with each other.")
    if graph.is_cut:
        notes.append("There may be better paths: the search stopped after max_visited entities.")
    return tuple(notes)


def _fetch_subgraph(index: IndexStore, entities: Sequence[int], paths: Sequence[Path]) -> Subgraph:
    """Fetch the sub-graph of the paths.

    The ring of an entity is its number of hops to the nearer end of a path.
    """
    rings = dict.fromkeys(entities, 0)
    for path in paths:
        for at, entity in enumerate(path.entities):
            ring = min(at, len(path.relationships) - at)
            rings[entity] = min(ring, rings.get(entity, ring))
    hops = dict.fromkeys(number for path in paths for number in path.relationships)
    return read_subgraph(index, rings, list(hops))


def _build_sections(
    paths: Sequence[Path], units: Mapping[int, TextUnit], part: Subgraph
) -> list[Section]:
    """Return the sections of a context: relationships in path order, passages and entities."""
    places: dict[int, list[str]] = {}
    for n, path in enumerate(paths, 1):
        for hop, number in enumerate(path.relationships, 1):
            places.setdefault(number, []).append(f"path {n} hop {hop}")
    hops = part.shown_relationships()
    hops.insert_column(1, pl.Series("place", ["; ".join(listed) for listed in places.values()]))
    return [
        Section("Relationships", hops, 1 - PASSAGE_TOKEN_SHARE),
        Section("Sources", source_rows(units), PASSAGE_TOKEN_SHARE),
        Section("Entities", part.shown_entities(), (1 - PASSAGE_TOKEN_SHARE) / 2),
    ]


def _list_paths(
    titles: Mapping[int, str], paths: Sequence[Path], lines: CitedRelationships, part: Subgraph
) -> str:
    """Write the paths as a list with one line per hop."""
    title_of = dict(part.entities.select("human_readable_id", "title").iter_rows())
    *names, last = titles.values()
    how = "one path"
    if len(paths) > 1:
        how = f"{len(paths)} paths, the best first"
        if len(titles) > 2:
            how = f"a tree of {len(paths)} paths"
    text = [f"{', '.join(names)} and {last} are connected by {how}:"]
    for n, path in enumerate(paths, 1):
        on_path = [title_of[entity] for entity in path.entities]
        hops = "1 hop" if len(path.relationships) == 1 else f"{len(path.relationships)} hops"
        text.append(f"\n{n}. {' – '.join(on_path)} ({hops})")
        for title, number in zip(on_path, path.relationships, strict=False):
            text.append(f"   - {lines.write_line(number, title)}")
    return "\n".join(text)


class VisitedGraph:
    """The part of the graph that was read for a question, at most `max_visited` entities.

    `is_cut` is true if this limit was reached.
    """

    def __init__(self, links: Links, max_visited: int) -> None:
        self._links, self._max_visited = links, max_visited
        # Returns the hops from an entity with their costs; each entity is read once.
        self.hops_from = cache(self._read_hops)
        # Maps the visited entities to the cost of passing through each of them.
        self.passing_costs: dict[int, float] = {}
        self.visited: set[int] = set()
        self.n_relationships = 0
        self.is_cut = False

    def _read_hops(self, entity: int) -> list[Hop]:
        room = self._max_visited - len(self.visited)
        if room <= 0:
            self.is_cut = True
            return []
        # Read one row more than allowed, to know whether there are more rows.
        found = self._links.relationships_of(entity, min(room, MAX_RELATIONSHIPS_OF_ENTITY) + 1)
        self.is_cut = self.is_cut or len(found.entities) > room
        room = min(room, MAX_RELATIONSHIPS_OF_ENTITY)
        neighbours = found.entities[:room].tolist()
        self.n_relationships += len(neighbours)
        self.visited.update(neighbours)
        if new := [n for n in neighbours if n not in self.passing_costs]:
            bits = np.log2(1 + self._links.n_relationships_of(new))
            self.passing_costs.update(zip(new, (HUB_COST * bits).tolist(), strict=True))
        weights = np.maximum(found.weights[:room].astype(np.float64), 0)
        costs = (HOP_COST + 1 / np.log2(2 + weights)).tolist()
        return list(zip(neighbours, found.relationships[:room].tolist(), costs, strict=True))


def find_paths(
    graph: VisitedGraph, source: int, target: int, max_paths: int, max_hops: int
) -> list[Path]:
    """Return the best paths between two entities, the best first.

    A hop with a strong relationship costs less than a hop with a weak relationship. Passing
    through an entity with many relationships costs more. The first path is the cheapest path
    of at most `max_hops` hops. For each further path, the entities and pairs of the earlier
    paths have an extra cost.
    """
    graph.visited.update((source, target))
    paths: list[Path] = []
    extra: dict[tuple[int, ...], float] = {}
    repeats, limit = 0, inf
    # When the limit of visited entities is reached, a further search would find little.
    while len(paths) < max_paths and repeats < MAX_REPEATED_PATHS and not (paths and graph.is_cut):
        found = _find_cheapest_path(graph, source, target, max_hops, extra, limit)
        if found is None:
            break
        if any(path.entities == found.entities for path in paths):
            repeats += 1
        else:
            repeats = 0
            paths.append(found)
            max_hops = min(max_hops, len(paths[0].relationships) + MAX_EXTRA_HOPS)
            limit = 2 * paths[0].cost + MAX_EXTRA_COST
        between = [(entity,) for entity in found.entities[1:-1]]
        for used in (*between, *map(_ordered_pair, pairwise(found.entities))):
            extra[used] = extra.get(used, 0.0) + REUSE_PENALTY * 4**repeats
    return sorted(paths, key=lambda path: (path.cost, path.entities))


def _ordered_pair(endpoints: tuple[int, int]) -> tuple[int, int]:
    return min(endpoints), max(endpoints)


def _find_cheapest_path(
    graph: VisitedGraph,
    source: int,
    target: int,
    max_hops: int,
    extra: Mapping[tuple[int, ...], float],
    limit: float,
) -> Path | None:
    """Return the cheapest path by bidirectional Dijkstra search; None if there is no path.

    For each entity, a partial path that costs more is also kept if it has fewer hops. The cost
    of passing through an entity is split between the two hops at that entity.
    """
    endpoints = (source, target)

    def passing_cost(entity: int) -> float:
        if entity in endpoints:
            return 0.0
        return (graph.passing_costs[entity] + extra.get((entity,), 0.0)) / 2

    heaps = tuple([_PartialPath(0.0, 0, end, -1, None)] for end in endpoints)
    kept = tuple({end: [heap[0]]} for end, heap in zip(endpoints, heaps, strict=True))
    n_followed = [0, 0]
    best: tuple[_PartialPath, _PartialPath] | None = None
    while any(heaps):
        costs = [heap[0].cost if heap else 0.0 for heap in heaps]
        if sum(costs) >= limit:
            break
        # Continue on the side that has followed fewer hops, so that one hub does not take all time.
        side = min((0, 1), key=lambda side: (not heaps[side], n_followed[side]))
        label = heappop(heaps[side])
        is_kept = any(label is other for other in kept[side][label.entity])
        if not is_kept or label.hops == max_hops:
            continue
        here = label.cost + passing_cost(label.entity)
        hops_here = graph.hops_from(label.entity)
        n_followed[side] += len(hops_here)
        for neighbour, relationship, cost in hops_here:
            cost += here + passing_cost(neighbour)
            if extra:
                cost += extra.get(_ordered_pair((label.entity, neighbour)), 0.0)
            if cost >= limit:
                continue
            others = kept[side].get(neighbour, ())
            hops = label.hops + 1
            if any(other.cost <= cost and other.hops <= hops for other in others):
                continue
            new = _PartialPath(cost, hops, neighbour, relationship, label)
            for other in kept[1 - side].get(neighbour, ()):
                if cost + other.cost < limit and hops + other.hops <= max_hops:
                    limit = cost + other.cost
                    best = (new, other) if side == 0 else (other, new)
            # If the other side has not reached this entity, the rest of the path costs at least as
            # much as the next partial path of the other side.
            if cost + costs[1 - side] < limit:
                left = [other for other in others if other.cost < cost or other.hops < hops]
                kept[side][neighbour] = [*left, new]
                heappush(heaps[side], new)
    return None if best is None else _join_halves(graph, *best)


def _join_halves(graph: VisitedGraph, forward: _PartialPath, backward: _PartialPath) -> Path:
    """Join the two halves of a path. The path's cost does not include the extra costs."""
    there, back = _list_shorter_paths(forward), _list_shorter_paths(backward)
    entities = [label.entity for label in (*there[::-1], *back[1:])]
    hops = [*there[:-1][::-1], *back[:-1]]
    cost = sum(graph.passing_costs[entity] for entity in entities[1:-1])
    for label in hops:
        assert label.before is not None
        near = graph.hops_from(label.before.entity)
        cost += next(cost for _, number, cost in near if number == label.relationship)
    return Path(tuple(entities), tuple(label.relationship for label in hops), cost)


def _list_shorter_paths(label: _PartialPath) -> list[_PartialPath]:
    """Return a partial path and the shorter paths that it continues, the longest first."""
    labels = [label]
    while labels[-1].before is not None:
        labels.append(labels[-1].before)
    return labels
