"""The map of a hierarchy: communities as discs inside the discs of their parents.

Positions are relative: a community lies in the unit disc of its parent, and a node lies in the
unit disc of its deepest community. So a change in one community moves nothing outside of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.layout import (
    MAX_ITERATIONS,
    fill_discs,
    pack_drawings,
    pull_together,
    spread_over_disc,
)
from graphrag_index.communities.simple_graph import (
    Floats,
    Graph,
    Integers,
    contract_graph,
    select_subgraph,
)
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import SerialShards, ShardFrames, Shards
from graphrag_index.storage.memo import open_previous, read_or_fallback
from graphrag_index.storage.table_store import Previous

# Radius that is reserved for a disc among its siblings, as a multiple of the disc's own radius.
RESERVED_RADIUS = 1.12
# Moves of the discs of one level, over all parents; many small parents get fewer moves each.
_MAX_MOVES = 15_000
_MIN_ITERATIONS = 30
# Number of parents whose communities are in one shard. It does not change the result.
_SHARD_PARENTS = 64
# Columns with the place of a community in the last version.
_PLACE_BEFORE = ("x", "y", "previous_radius")
# Number of directions in which a free place for a new disc is looked for.
_DIRECTIONS = 32
_ROWS_PER_BATCH = 131_072


@dataclass(frozen=True)
class PreviousMap:
    """The map of the last version, for the communities and nodes of the present version.

    `discs` has x, y and radius of each community, NaN for a new community or a new parent.
    `nodes` has x and y of each node, NaN if the node is new or was in another community.
    """

    discs: Floats  # (community, 3)
    nodes: Floats  # (node, 2)


class MapLayout(NamedTuple):
    """Positions relative to the disc of the parent, or of the deepest community of a node."""

    discs: Floats  # (community, 3): x, y, radius
    nodes: Floats  # (node, 2): x, y
    community_of_node: Integers  # row of the deepest community of each node; -1 if it has none


def layout_map(
    graph: Graph,
    levels: list[Integers],
    parent: Integers,
    size: Integers,
    before: PreviousMap | None = None,
    shards: Shards | None = None,
) -> MapLayout:
    """Place the communities of a hierarchy and the nodes of a graph.

    `levels` has for each level the row of each node's community, or -1. `parent` has the row of
    each community's parent, or -1, and `size` the number of its nodes. Discs and nodes of the
    last version keep their places, unless a disc that has grown needs the place of another.
    """
    community_of_node = np.full(graph.n_nodes, -1)
    for labels in levels:
        community_of_node[labels >= 0] = labels[labels >= 0]
    discs = np.zeros((len(size), 3))
    radii = np.sqrt(size)
    work = (
        shard
        for labels in levels
        for shard in _prepare_shards(graph, labels, parent, radii, before)
    )
    for members, part in (shards or SerialShards()).map(_place_communities, work):
        discs[members] = part["discs"].to_numpy()
    return MapLayout(discs, _place_nodes(graph, community_of_node, before), community_of_node)


def _prepare_shards(
    graph: Graph, labels: Integers, parent: Integers, radii: Floats, before: PreviousMap | None
) -> Iterator[tuple[Integers, ShardFrames]]:
    """Yield (rows of communities, shard) for the communities of one level, sorted by parent.

    A shard has the communities of some parents, and the links between those of one parent.
    """
    nodes = np.flatnonzero(labels >= 0)
    if not len(nodes):
        return
    rows, place = np.unique(labels[nodes], return_inverse=True)
    parts = contract_graph(select_subgraph(graph, nodes), place)
    # Sort by parent, so that each parent's children and their links are slices.
    order = np.argsort(parent[rows], kind="stable")
    number = np.argsort(order)
    sources, targets = number[parts.sources], number[parts.targets]
    above = parent[rows][order]
    inside = above[sources] == above[targets]
    ends = np.sort(np.stack([sources[inside], targets[inside]]), axis=0)
    # The edges of a graph are sorted.
    sorted_links = np.lexsort((ends[1], ends[0]))
    sources, targets = ends[:, sorted_links]
    weights = parts.weights[inside][sorted_links]
    starts = np.flatnonzero(np.append(True, above[1:] != above[:-1]))
    iterations = int(np.clip(_MAX_MOVES // len(starts), _MIN_ITERATIONS, MAX_ITERATIONS))
    bounds = np.append(starts[::_SHARD_PARENTS], len(above))
    for start, stop in pairwise(bounds.tolist()):
        members = rows[order[start:stop]]
        links = slice(*np.searchsorted(sources, (start, stop)))
        places = np.full((len(members), 3), np.nan) if before is None else before.discs[members]
        communities = pl.DataFrame(
            {
                "parent": above[start:stop],
                "radius": radii[members],
                **{name: places[:, at] for at, name in enumerate(_PLACE_BEFORE)},
            }
        ).with_columns(iterations=iterations)
        edges = {
            "source": sources[links] - start,
            "target": targets[links] - start,
            "weight": weights[links],
        }
        yield members, {"communities": communities, "links": pl.DataFrame(edges)}


def _place_communities(shard: ShardFrames) -> ShardFrames:
    """Place the communities of each parent of a shard; return x, y and radius."""
    communities, links = shard["communities"], shard["links"]
    above, radii = communities["parent"].to_numpy(), communities["radius"].to_numpy()
    before = communities.select(_PLACE_BEFORE).to_numpy()
    sources, targets, weights = (links[name].to_numpy() for name in ("source", "target", "weight"))
    discs = np.empty((len(radii), 3))
    starts = np.flatnonzero(np.append(True, above[1:] != above[:-1])).tolist()
    # Groups of siblings without a place in the last version, by the number of siblings.
    new: dict[int, list[tuple[slice, Graph]]] = {}
    for start, stop in pairwise([*starts, len(above)]):
        rows, own = slice(start, stop), slice(*np.searchsorted(sources, (start, stop)))
        one, other = ((end[own] - start).astype(np.int32) for end in (sources, targets))
        siblings = Graph(stop - start, one, other, weights[own])
        if np.isfinite(before[rows, 0]).any():
            centres = _keep_places(siblings, radii[rows], before[rows])
            discs[rows] = _fit_into_parent(centres, radii[rows], before[rows])
        else:
            new.setdefault(stop - start, []).append((rows, siblings))
    for families in new.values():
        slices, graphs = zip(*families, strict=True)
        own_radii = np.stack([radii[rows] for rows in slices])
        packed = _pack_families(graphs, own_radii, communities["iterations"][0])
        for rows, centres in zip(slices, packed, strict=True):
            discs[rows] = _fit_into_parent(centres, radii[rows], before[rows])
    return {"discs": pl.DataFrame(discs, schema=["x", "y", "radius"])}


def _pack_families(graphs: Sequence[Graph], radii: Floats, iterations: int) -> Iterable[Floats]:
    """Pack the siblings of each family, and return their centres.

    A family is the communities of one parent. All families here have the same size.
    """
    n = radii.shape[1]
    reserved = radii * RESERVED_RADIUS
    if n <= 2:
        # One disc in the middle, or two side by side.
        centres = np.zeros((*radii.shape, 2))
        centres[:, :, 0] = reserved[:, ::-1] * (-1, 1) if n == 2 else 0.0
        return centres
    packed = pack_drawings(graphs, reserved, 0, iterations)
    return (pull_together(*drawing) for drawing in zip(packed, reserved, strict=True))


def _fit_into_parent(centres: Floats, radii: Floats, before: Floats) -> Floats:
    """Return x, y and radius of each community of one parent, in the parent's unit disc."""
    reach = float((np.linalg.norm(centres, axis=1) + radii * RESERVED_RADIUS).max())
    return np.column_stack([centres, radii]) / max(reach, _previous_reach(radii, before))


def _previous_reach(radii: Floats, before: Floats) -> float:
    """Return the radius of the parent's disc in the last version, in the unit of `radii`."""
    kept = np.isfinite(before[:, 2])
    return float(np.median(radii[kept] / before[kept, 2])) if kept.any() else 0.0


def _keep_places(graph: Graph, radii: Floats, before: Floats) -> Floats:
    """Return the centres of discs: kept discs stay, and new discs go to free places near links."""
    kept = np.isfinite(before[:, 0])
    centres = np.where(kept[:, None], before[:, :2], 0.0) * _previous_reach(radii, before)
    pulls = np.zeros((len(radii), 2))
    total = np.zeros(len(radii))
    for one, other in ((graph.sources, graph.targets), (graph.targets, graph.sources)):
        linked = kept[other]
        np.add.at(pulls, one[linked], centres[other[linked]] * graph.weights[linked, None])
        np.add.at(total, one[linked], graph.weights[linked])
    wanted = pulls / np.maximum(total, 1e-12)[:, None]
    placed: list[int] = []
    moved: list[int] = []
    # A disc that has grown may overlap another: then the smaller of the two gets another place.
    for disc in sorted(np.flatnonzero(kept).tolist(), key=lambda disc: -radii[disc]):
        fits = _is_free(centres[disc], radii[disc], centres[placed], radii[placed])
        (placed if fits else moved).append(disc)
    new = np.flatnonzero(~kept)
    for disc in (*moved, *new[np.argsort(-radii[new], kind="stable")]):
        target = centres[disc] if kept[disc] else wanted[disc]
        centres[disc] = _find_free_place(target, radii[disc], centres[placed], radii[placed])
        placed.append(disc)
    return centres


def _is_free(centre: Floats, radius: float, centres: Floats, radii: Floats) -> bool:
    distance = np.linalg.norm(centres - centre, axis=1)
    return bool((distance >= (radii + radius) * 0.999).all())


def _find_free_place(target: Floats, radius: float, centres: Floats, radii: Floats) -> Floats:
    """Return a place near `target` where a disc overlaps no other disc."""
    angles = np.arange(_DIRECTIONS) * (2 * np.pi / _DIRECTIONS)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    distance = 0.0
    while True:
        place: Floats
        for place in target + distance * directions:
            if _is_free(place, radius * RESERVED_RADIUS, centres, radii):
                return place
        distance += radius / 2


def _place_nodes(graph: Graph, community_of_node: Integers, before: PreviousMap | None) -> Floats:
    """Return the position of each node in the unit disc of its deepest community."""
    positions: Floats = np.zeros((graph.n_nodes, 2))
    nodes = np.flatnonzero(community_of_node >= 0)
    labels = np.unique(community_of_node[nodes], return_inverse=True)[1]
    if not len(nodes):
        return positions
    positions[nodes] = fill_discs(select_subgraph(graph, nodes), labels)
    if before is None:
        return positions
    kept = np.isfinite(before.nodes[:, 0]) & (community_of_node >= 0)
    is_kept_community = np.zeros(int(labels.max()) + 1, bool)
    is_kept_community[labels[kept[nodes]]] = True
    positions[kept] = before.nodes[kept]
    # New nodes of a community that has kept nodes go to the widest gaps.
    new = nodes[~kept[nodes] & is_kept_community[labels]]
    for community in np.unique(community_of_node[new]):
        members = np.flatnonzero(community_of_node == community)
        _fill_gaps(positions, members, kept)
    return positions


def _fill_gaps(positions: Floats, members: Integers, kept: npt.NDArray[np.bool_]) -> None:
    """Place the new members of a community where the distance to the others is largest."""
    n_places = 2 * len(members)
    places = spread_over_disc(np.arange(n_places), np.full(n_places, n_places))
    taken = positions[members[kept[members]]]
    nearest = np.linalg.norm(places[:, None] - taken[None], axis=2).min(axis=1)
    for node in members[~kept[members]]:
        best = int(nearest.argmax())
        positions[node] = places[best]
        nearest = np.minimum(nearest, np.linalg.norm(places - places[best], axis=1))


def create_map(
    graph: Graph,
    communities: pl.DataFrame,
    levels: Sequence[Integers],
    ids: pl.Series,
    order: Integers,
    previous: Previous | None = None,
    shards: Shards | None = None,
) -> Iterator[dict[str, pl.DataFrame]]:
    """Yield the batches of `map_communities` and `map_entities`.

    `communities` and `levels` are those of `renumber_communities`. `ids` has the entity of each
    node, and `order` its row in the table of entities. With `previous`, communities and entities
    of the last version keep their places.
    """
    numbers = communities["community"]
    before = None
    if previous is not None:
        before = read_or_fallback(
            None, "map_communities", lambda: _read_previous(previous, communities, levels, ids)
        )
    above, size = communities["above"].to_numpy(), communities["size"].to_numpy()
    layout = layout_map(graph, list(levels), above, size, before, shards)
    discs = pl.DataFrame(
        {
            "community": numbers,
            "parent": communities["parent"],
            **{name: layout.discs[:, at] for at, name in enumerate(("x", "y", "radius"))},
        }
    )
    yield from _split("map_communities", discs.sort("community"))
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    community = np.append(numbers.to_numpy(), -1)[layout.community_of_node]
    places = pl.DataFrame(
        {
            "entity": np.arange(len(order)),
            "community": community[row],
            "x": layout.nodes[row, 0],
            "y": layout.nodes[row, 1],
        }
    )
    yield from _split("map_entities", places)


def _split(name: str, rows: pl.DataFrame) -> Iterator[dict[str, pl.DataFrame]]:
    rows = rows.select(TABLES[name].cast_columns)
    for start in range(0, max(1, len(rows)), _ROWS_PER_BATCH):
        yield {name: rows.slice(start, _ROWS_PER_BATCH)}


def _read_previous(
    previous: Previous, communities: pl.DataFrame, levels: Sequence[Integers], ids: pl.Series
) -> PreviousMap | None:
    """Read the map of the last version; None if it has none."""
    tables = open_previous(previous, [TABLES["map_communities"], TABLES["map_entities"]])
    entities = previous.scan("entities")
    if tables is None or entities is None:
        return None
    discs, places = tables
    keys = ["community", "parent"]
    found = communities.select(pl.col(keys).cast(pl.Int32)).join(
        discs.collect(), on=keys, how="left", maintain_order="left"
    )
    community_of_node = np.full(len(ids), -1)
    for labels in levels:
        community_of_node[labels >= 0] = labels[labels >= 0]
    community = np.append(communities["community"].to_numpy(), -1)[community_of_node]
    known = entities.select("id", entity=pl.col("human_readable_id").cast(pl.Int32))
    nodes = pl.DataFrame({"id": ids, "community": pl.Series(community, dtype=pl.Int32)}).join(
        places.join(known, on="entity").drop("entity").collect(),
        on=["id", "community"],
        how="left",
        maintain_order="left",
    )
    columns = ("x", "y", "radius")
    return PreviousMap(
        np.column_stack([found[name].cast(pl.Float64).fill_null(np.nan) for name in columns]),
        np.column_stack([nodes[name].cast(pl.Float64).fill_null(np.nan) for name in ("x", "y")]),
    )
