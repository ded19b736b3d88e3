"""Positions of nodes in a drawing, with communities as discs that do not overlap.

Nodes with many links lie near the middle of their disc. Discs of linked communities lie close to
each other; unlinked ones lie on rings around them.
"""

import numpy as np

from graphrag_index.communities.leiden import Leiden, partition
from graphrag_index.communities.simple_graph import (
    Floats,
    Graph,
    Integers,
    degrees,
    quotient,
    subgraph,
)

# Nodes of a disc are about 1 apart, so that a disc of n nodes has the radius √n / √π.
_GAP = 1.2  # radius reserved for a disc, in multiples of its own
_MAX_SPRINGS = 256  # points that move at once
_PAIR_STEPS = 3_000_000  # limit of all springs together, in pairs × iterations


def layout(graph: Graph, *, seed: int) -> Floats:
    """Return x and y of each node, -1 to 1; the same for the same graph and seed."""
    if graph.n_nodes == 0:
        return np.zeros((0, 2))
    community = partition(graph, Leiden(seed=seed))
    size = np.bincount(community)
    inner = _fill_discs(graph, community)
    radii = np.sqrt(size)
    centres = _place_discs(quotient(graph, community), radii * _GAP, seed)
    positions = centres[community] + inner * radii[community, None]
    reach: float = np.linalg.norm(positions, axis=1).max()
    return positions / max(reach, 1.0)


def _fill_discs(graph: Graph, community: Integers) -> Floats:
    """Place the nodes within the unit discs of their communities."""
    size = np.bincount(community)
    rank = _ranks(community, -degrees(graph))
    positions = sunflower(rank, size[community])

    small = (size > 2) & (size <= _MAX_SPRINGS)
    iterations = _PAIR_STEPS // max(1, int(np.square(size[small], dtype=np.int64).sum()))
    if iterations < 20:
        # Too many to move in reasonable time, and too small to be seen in the drawing.
        return positions
    positions *= np.sqrt(size)[community, None]
    # Communities of similar size are moved together: up to 4 nodes, 8, 16, ...
    width = 4
    while width <= _MAX_SPRINGS:
        stack = np.flatnonzero(small & (size > width // 2) & (size <= width))
        _relax(graph, positions, community, rank, stack, width, min(iterations, 150))
        width *= 2
    return _into_unit_discs(positions, community)


def _ranks(community: Integers, key: Integers | Floats) -> Integers:
    """Rank the nodes of each community by a key, from 0 on."""
    size = np.bincount(community)
    order = np.lexsort((key, community))
    rank = np.empty(len(community), dtype=np.int64)
    rank[order] = np.arange(len(community)) - (np.cumsum(size) - size)[community[order]]
    return rank


def _relax(
    graph: Graph,
    positions: Floats,
    community: Integers,
    rank: Integers,
    stack: Integers,
    width: int,
    iterations: int,
) -> None:
    """Move the nodes of communities with at most `width` nodes by springs."""
    layer_of = np.full(int(community.max()) + 1, -1)
    layer_of[stack] = np.arange(len(stack))
    layer = layer_of[community]
    members = np.flatnonzero(layer >= 0)
    place = layer[members], rank[members]
    begin = np.zeros((len(stack), width, 2))
    begin[place] = positions[members]
    radii = np.zeros((len(stack), width))
    radii[place] = 0.5
    inside = (layer[graph.sources] >= 0) & (community[graph.sources] == community[graph.targets])
    sources, targets = graph.sources[inside], graph.targets[inside]
    pulls = np.zeros((len(stack), width, width))
    pulls[layer[sources], rank[sources], rank[targets]] = graph.weights[inside]
    pulls[layer[sources], rank[targets], rank[sources]] = graph.weights[inside]
    positions[members] = springs(begin, pulls, radii, iterations)[place]


def _into_unit_discs(positions: Floats, community: Integers) -> Floats:
    """Centre each community at 0, and spread its nodes over a unit disc."""
    size = np.bincount(community)
    middle = [np.bincount(community, weights=axis) / size for axis in positions.T]
    positions = positions - np.stack(middle, axis=1)[community]
    distance = np.linalg.norm(positions, axis=1)
    reach = np.zeros(len(size))
    np.maximum.at(reach, community, distance)
    # Half way to an even density: one remote node would otherwise crowd the others.
    even = np.sqrt((_ranks(community, distance) + 0.5) / size[community])
    wanted = (distance / np.maximum(reach[community], 1e-9) + even) / 2
    spread: Floats = positions * (wanted / np.maximum(distance, 1e-9))[:, None]
    return spread


def sunflower(rank: Integers, n: Integers) -> Floats:
    """Spread n points evenly over the unit disc, with rank 0 in the middle [1]_.

    References
    ----------
    .. [1] Vogel, A better way to construct the sunflower head, Math. Biosci. 44 (1979).
    """
    angle = rank * (np.pi * (3 - np.sqrt(5)))
    radius = np.sqrt(rank / np.maximum(n, 1))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def springs(positions: Floats, pulls: Floats, radii: Floats, iterations: int) -> Floats:
    """Move points by forces, attracting linked ones and repelling all, in several drawings [1]_.

    `positions` is drawing × point × 2; `pulls` drawing × point × point, symmetric, with the
    weight of each link; `radii` drawing × point. Touching points are at rest; the radius 0 marks
    an empty place.

    References
    ----------
    .. [1] Fruchterman & Reingold, Graph drawing by force-directed placement, SPE 21 (1991).
    """
    there = radii > 0
    rest = radii[:, :, None] + radii[:, None, :]
    rest *= there[:, :, None] & there[:, None, :]
    strongest = pulls.max(axis=2, initial=0)
    scale = np.sqrt(strongest[:, :, None] * strongest[:, None, :])
    pull = np.sqrt(np.divide(pulls, scale, out=np.zeros_like(pulls), where=scale > 0))
    pull = np.divide(pull, rest, out=np.zeros_like(pull), where=rest > 0)
    push = np.square(rest)
    extent = np.sqrt(np.square(radii).sum(axis=1))[:, None]
    # x and y are separate arrays, since sums over an axis of two are slow.
    x, y = positions[..., 0].copy(), positions[..., 1].copy()
    for iteration in range(iterations):
        away_x = x[:, :, None] - x[:, None, :]
        away_y = y[:, :, None] - y[:, None, :]
        square = away_x * away_x
        square += away_y * away_y
        square += 1e-9
        force = push / square
        force -= pull * np.sqrt(square)
        # The last term keeps unlinked points together.
        move_x = np.einsum("dij,dij->di", force, away_x) - 0.5 * x
        move_y = np.einsum("dij,dij->di", force, away_y) - 0.5 * y
        length = np.hypot(move_x, move_y) + 1e-9
        step = 0.3 * extent * (1 - iteration / iterations) ** 2 + 0.01 * extent
        share = np.minimum(step / length, 0.5)
        x += move_x * share
        y += move_y * share
    return np.stack([x, y], axis=-1)


def _place_discs(graph: Graph, radii: Floats, seed: int) -> Floats:
    """Place linked discs by their links, and the others on rings around them."""
    degree = degrees(graph)
    linked, alone = np.flatnonzero(degree), np.flatnonzero(degree == 0)
    centres = np.zeros((graph.n_nodes, 2))
    work = len(linked) * min(len(linked), _MAX_SPRINGS)
    iterations = int(np.clip(_PAIR_STEPS // max(work, 1), 30, 200))
    centres[linked] = _pack(subgraph(graph, linked), radii[linked], seed, iterations)
    reach = (np.linalg.norm(centres[linked], axis=1) + radii[linked]).max(initial=0)
    alone = alone[np.argsort(-radii[alone], kind="stable")]
    centres[alone] = rings(radii[alone], float(reach))
    return centres


def _pack(graph: Graph, radii: Floats, seed: int, iterations: int) -> Floats:
    """Place linked discs around 0, without overlap.

    Many discs are packed in groups, each group in its own disc.
    """
    n = graph.n_nodes
    if n <= _MAX_SPRINGS:
        rank = _ranks(np.zeros(n, dtype=np.int64), -radii)
        begin = sunflower(rank, np.full(n, n)) * np.sqrt(np.square(radii).sum())
        pulls = np.zeros((1, n, n))
        pulls[0, graph.sources, graph.targets] = graph.weights
        pulls[0, graph.targets, graph.sources] = graph.weights
        moved = springs(begin[None], pulls, radii[None], iterations)[0]
        return separate(moved, radii, iterations)
    labels = partition(graph, Leiden(seed=seed))
    # Parts with more members are cut.
    piece = _ranks(labels, np.arange(n)) // _MAX_SPRINGS
    group = np.unique(labels * (int(piece.max()) + 1) + piece, return_inverse=True)[1]
    centres = np.zeros((n, 2))
    outer = np.zeros(int(group.max()) + 1)
    for part in range(len(outer)):
        members = np.flatnonzero(group == part)
        inner = subgraph(graph, members)
        centres[members] = _pack(inner, radii[members], seed, iterations)
        outer[part] = (np.linalg.norm(centres[members], axis=1) + radii[members]).max()
    return _pack(quotient(graph, group), outer, seed, iterations)[group] + centres


def separate(centres: Floats, radii: Floats, iterations: int) -> Floats:
    """Push overlapping discs apart, keep them close, and centre them at 0."""
    if len(radii) < 2:
        return np.zeros_like(centres)
    touching = radii[:, None] + radii[None, :]
    np.fill_diagonal(touching, 0)
    # Shrink to the area of the discs, then push apart where they overlap.
    extent = np.linalg.norm(centres - centres.mean(axis=0), axis=1).max()
    centres = centres * min(1.0, np.sqrt(np.square(radii).sum()) / max(extent, 1e-9))
    # The smaller of two discs moves more.
    share = np.square(radii[None, :]) / (np.square(radii[:, None]) + np.square(radii[None, :]))
    for _ in range(iterations):
        away, square = _between(centres)
        # Most discs do not overlap.
        one, other = np.nonzero(square < np.square(touching))
        distance = np.sqrt(square[one, other]) + 1e-9
        overlap = np.maximum(touching[one, other] - distance, 0)
        if overlap.max(initial=0) < 0.01 * radii.min():
            break
        push = overlap * share[one, other] / distance
        moves = [np.bincount(one, push * axis[one, other], len(radii)) for axis in away]
        centres = centres + 0.6 * np.stack(moves, axis=1)
    distance = np.sqrt(_between(centres)[1])
    np.fill_diagonal(distance, 1)
    centres = centres * max(1.0, (touching / np.maximum(distance, 1e-9)).max())
    low = (centres - radii[:, None]).min(axis=0)
    high = (centres + radii[:, None]).max(axis=0)
    middle: Floats = (low + high) / 2
    return centres - middle


def _between(points: Floats) -> tuple[list[Floats], Floats]:
    """Return the distances of all pairs along x and y, and their squared distances."""
    x, y = (axis[:, None] - axis[None, :] for axis in points.T)
    square: Floats = x * x
    square += y * y
    return [x, y], square


def rings(radii: Floats, reach: float) -> Floats:
    """Place discs of descending radii on rings around a disc of radius `reach`."""
    centres = np.zeros((len(radii), 2))
    first = 0
    while first < len(radii):
        thickness = radii[first]
        middle = reach + thickness if reach > 0 else 0.0
        if middle == 0:
            last = first + 1
            angles = np.zeros(1)
        else:
            # Two neighbours touch if the angle between them is the sum of these halves.
            max_discs = 1 + int(np.pi * middle / radii[-1])
            halves = np.arcsin(np.minimum(radii[first : first + max_discs] / middle, 1))
            widths = np.cumsum(2 * halves)
            n = max(1, int(np.searchsorted(widths, 2 * np.pi, side="right")))
            last = first + n
            angles = (widths - halves)[:n] * (2 * np.pi / widths[n - 1])
        centres[first:last, 0] = middle * np.cos(angles)
        centres[first:last, 1] = middle * np.sin(angles)
        reach = middle + thickness
        first = last
    return centres
