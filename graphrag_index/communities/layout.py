"""Positions of nodes in a drawing, with communities as discs that do not overlap.

Nodes with many links lie near the centre of their disc. Discs of linked communities lie close to
each other. Discs without links lie on rings around all other discs.
"""

from collections.abc import Sequence

import numpy as np

from graphrag_index.communities.leiden import partition_graph
from graphrag_index.communities.simple_graph import (
    Floats,
    Graph,
    Integers,
    contract_graph,
    count_neighbours,
    select_subgraph,
)
from graphrag_index.schema.settings.step_sections import CreateCommunities

_RESERVED_RADIUS = 1.2  # radius that is reserved for a disc, as a multiple of the disc's own radius
_MAX_LAYOUT_POINTS = 256  # maximum number of points in one force-directed layout
MAX_ITERATIONS = 200  # maximum number of moves of each point
_MAX_PAIR_STEPS = 3_000_000  # maximum work of all layouts together: pairs of points × iterations


def layout_graph(graph: Graph, *, seed: int) -> Floats:
    """Return the position (x, y) of each node, from -1 to 1; `seed` makes it reproducible."""
    if graph.n_nodes == 0:
        return np.zeros((0, 2))
    community = partition_graph(graph, CreateCommunities(seed=seed))
    size = np.bincount(community)
    inner = fill_discs(graph, community)
    radii = np.sqrt(size)
    centres = _place_discs(contract_graph(graph, community), radii * _RESERVED_RADIUS, seed)
    return _fit_into_unit_disc(centres[community] + inner * radii[community, None])


def _fit_into_unit_disc(positions: Floats) -> Floats:
    reach: float = np.linalg.norm(positions, axis=1).max()
    return positions / max(reach, 1.0)


def fill_discs(graph: Graph, community: Integers) -> Floats:
    """Place the nodes within the unit discs of their communities."""
    size = np.bincount(community)
    rank = _rank_nodes(community, -count_neighbours(graph))
    positions = spread_over_disc(rank, size[community])

    small = (size > 2) & (size <= _MAX_LAYOUT_POINTS)
    iterations = _MAX_PAIR_STEPS // max(1, int(np.square(size[small], dtype=np.int64).sum()))
    if iterations < 20:
        # Keep the spirals: with so many communities, forces are slow and change little.
        return positions
    positions *= np.sqrt(size)[community, None]
    inside = community[graph.sources] == community[graph.targets]
    # Lay out communities of similar size in one call: up to 4 nodes, up to 8, up to 16, ...
    width = 4
    while width <= _MAX_LAYOUT_POINTS:
        stack = np.flatnonzero(small & (size > width // 2) & (size <= width))
        # The number of each node's drawing, or -1 if its community has another size.
        drawing = np.full(len(size), -1)
        drawing[stack] = np.arange(len(stack))
        drawing = drawing[community]
        members = np.flatnonzero(drawing >= 0)
        place = drawing[members], rank[members]
        begin = np.zeros((len(stack), width, 2))
        begin[place] = positions[members]
        radii = np.zeros((len(stack), width))
        radii[place] = 0.5
        linked = inside & (drawing[graph.sources] >= 0)
        sources, targets = graph.sources[linked], graph.targets[linked]
        pulls = np.zeros((len(stack), width, width))
        pulls[drawing[sources], rank[sources], rank[targets]] = graph.weights[linked]
        pulls[drawing[sources], rank[targets], rank[sources]] = graph.weights[linked]
        positions[members] = move_by_forces(begin, pulls, radii, min(iterations, 150))[place]
        width *= 2
    return _fit_into_unit_discs(positions, community)


def _rank_nodes(community: Integers, key: Integers | Floats) -> Integers:
    """Return the rank of each node in its community, from 0 on, by ascending `key`."""
    size = np.bincount(community)
    order = np.lexsort((key, community))
    rank = np.empty(len(community), dtype=np.int64)
    rank[order] = np.arange(len(community)) - (np.cumsum(size) - size)[community[order]]
    return rank


def _fit_into_unit_discs(positions: Floats, community: Integers) -> Floats:
    """Centre each community at (0, 0), and spread its nodes over the unit disc."""
    size = np.bincount(community)
    middle = [np.bincount(community, weights=axis) / size for axis in positions.T]
    positions = positions - np.stack(middle, axis=1)[community]
    distance = np.linalg.norm(positions, axis=1)
    reach = np.zeros(len(size))
    np.maximum.at(reach, community, distance)
    # Average each distance with an evenly spaced one; else one remote node crowds the others.
    even = np.sqrt((_rank_nodes(community, distance) + 0.5) / size[community])
    wanted = (distance / np.maximum(reach[community], 1e-9) + even) / 2
    spread: Floats = positions * (wanted / np.maximum(distance, 1e-9))[:, None]
    return spread


def spread_over_disc(rank: Integers, n: Integers) -> Floats:
    """Place n points evenly in the unit disc on a spiral; rank 0 is at the centre [1]_.

    References
    ----------
    .. [1] Vogel, A better way to construct the sunflower head, Math. Biosci. 44 (1979).
    """
    angle = rank * (np.pi * (3 - np.sqrt(5)))
    radius = np.sqrt(rank / np.maximum(n, 1))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def move_by_forces(positions: Floats, pulls: Floats, radii: Floats, iterations: int) -> Floats:
    """Lay out the points of several drawings by forces between the points [1]_.

    All points repel each other, and linked points attract each other. Linked points come to rest
    when their circles touch. A point with radius 0 does not exist. Shapes: `positions` (drawing,
    point, 2), `radii` (drawing, point); `pulls`, the weights of links, (drawing, point, point).

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
    # Keep x and y in separate arrays: sums over an axis of length 2 are slow.
    x, y = positions[..., 0].copy(), positions[..., 1].copy()
    for iteration in range(iterations):
        away_x = x[:, :, None] - x[:, None, :]
        away_y = y[:, :, None] - y[:, None, :]
        square = away_x * away_x
        square += away_y * away_y
        square += 1e-9
        force = push / square
        force -= pull * np.sqrt(square)
        # The term 0.5 * x attracts all points to the centre, so that unlinked points stay close.
        move_x = np.einsum("dij,dij->di", force, away_x) - 0.5 * x
        move_y = np.einsum("dij,dij->di", force, away_y) - 0.5 * y
        length = np.hypot(move_x, move_y) + 1e-9
        step = 0.3 * extent * (1 - iteration / iterations) ** 2 + 0.01 * extent
        share = np.minimum(step / length, 0.5)
        x += move_x * share
        y += move_y * share
    return np.stack([x, y], axis=-1)


def _place_discs(graph: Graph, radii: Floats, seed: int) -> Floats:
    """Place linked discs close to each other, and discs without links on rings around them."""
    degree = count_neighbours(graph)
    linked, alone = np.flatnonzero(degree), np.flatnonzero(degree == 0)
    centres = np.zeros((graph.n_nodes, 2))
    work = len(linked) * min(len(linked), _MAX_LAYOUT_POINTS)
    iterations = int(np.clip(_MAX_PAIR_STEPS // max(work, 1), 30, MAX_ITERATIONS))
    centres[linked] = pack_discs(select_subgraph(graph, linked), radii[linked], seed, iterations)
    reach = (np.linalg.norm(centres[linked], axis=1) + radii[linked]).max(initial=0)
    alone = alone[np.argsort(-radii[alone], kind="stable")]
    centres[alone] = place_on_rings(radii[alone], float(reach))
    return centres


def pack_discs(graph: Graph, radii: Floats, seed: int, iterations: int) -> Floats:
    """Place linked discs around (0, 0), without overlap."""
    centres: Floats = pack_drawings([graph], radii[None], seed, iterations)[0]
    return centres


def pack_drawings(graphs: Sequence[Graph], radii: Floats, seed: int, iterations: int) -> Floats:
    """Place the linked discs of each of several drawings around (0, 0), without overlap.

    The drawings have equally many discs and do not influence each other: `radii` has the shape
    (drawing, disc), the result (drawing, disc, 2). Many small drawings take little longer than one.
    """
    n = radii.shape[1]
    if n > _MAX_LAYOUT_POINTS:
        drawings = zip(graphs, radii, strict=True)
        return np.stack([_pack_in_groups(*drawing, seed, iterations) for drawing in drawings])
    begin = np.empty((*radii.shape, 2))
    pulls = np.zeros((len(graphs), n, n))
    for at, (graph, own) in enumerate(zip(graphs, radii, strict=True)):
        rank = _rank_nodes(np.zeros(n, dtype=np.int64), -own)
        begin[at] = spread_over_disc(rank, np.full(n, n)) * np.sqrt(np.square(own).sum())
        pulls[at, graph.sources, graph.targets] = graph.weights
        pulls[at, graph.targets, graph.sources] = graph.weights
    return separate_discs(move_by_forces(begin, pulls, radii, iterations), radii, iterations)


def _pack_in_groups(graph: Graph, radii: Floats, seed: int, iterations: int) -> Floats:
    """Place many linked discs in groups, each of which is then placed as one disc."""
    n = graph.n_nodes
    labels = partition_graph(graph, CreateCommunities(seed=seed))
    if labels.max() >= n // 2:
        # Hardly any disc is linked to another one: any group is as good.
        labels = np.zeros(n, dtype=np.int64)
    # Cut each part of the partition into groups of at most _MAX_LAYOUT_POINTS discs.
    piece = _rank_nodes(labels, np.arange(n)) // _MAX_LAYOUT_POINTS
    group = np.unique(labels * (int(piece.max()) + 1) + piece, return_inverse=True)[1]
    centres = np.zeros((n, 2))
    outer = np.zeros(int(group.max()) + 1)
    for part in range(len(outer)):
        members = np.flatnonzero(group == part)
        inner = select_subgraph(graph, members)
        centres[members] = pack_discs(inner, radii[members], seed, iterations)
        outer[part] = (np.linalg.norm(centres[members], axis=1) + radii[members]).max()
    return pack_discs(contract_graph(graph, group), outer, seed, iterations)[group] + centres


def separate_discs(centres: Floats, radii: Floats, iterations: int) -> Floats:
    """Move overlapping discs of each drawing apart, keep them close, and centre them at (0, 0).

    Shapes: `centres` (drawing, disc, 2), `radii` (drawing, disc). The drawings do not influence
    each other.
    """
    n = radii.shape[1]
    if n < 2:
        return np.zeros_like(centres)
    areas = np.square(radii)
    touching = radii[:, :, None] + radii[:, None, :]
    touching[:, np.arange(n), np.arange(n)] = 0
    # Shrink the drawing to the total area of the discs before the loop pushes discs apart.
    extent = np.linalg.norm(centres - centres.mean(axis=1, keepdims=True), axis=2).max(axis=1)
    shrunk = np.minimum(1.0, np.sqrt(areas.sum(axis=1)) / np.maximum(extent, 1e-9))
    centres = centres * shrunk[:, None, None]
    # Move the smaller of two overlapping discs more than the larger one.
    share = areas[:, None, :] / (areas[:, :, None] + areas[:, None, :])
    moving = np.arange(len(radii))
    for _ in range(iterations):
        away, square = _compute_pair_differences(centres[moving])
        # Compute forces for overlapping pairs only, since most pairs do not overlap.
        at, one, other = np.nonzero(square < np.square(touching[moving]))
        distance = np.sqrt(square[at, one, other]) + 1e-9
        overlap = np.maximum(touching[moving[at], one, other] - distance, 0)
        most = np.zeros(len(moving))
        np.maximum.at(most, at, overlap)
        push = overlap * share[moving[at], one, other] / distance
        moves = [
            np.bincount(at * n + one, push * axis[at, one, other], len(moving) * n) for axis in away
        ]
        is_moving = most >= 0.01 * radii[moving].min(axis=1)
        moved = 0.6 * np.stack(moves, axis=1).reshape(len(moving), n, 2)[is_moving]
        moving = moving[is_moving]
        if not len(moving):
            break
        centres[moving] += moved
    distance = np.sqrt(_compute_pair_differences(centres)[1])
    distance[:, np.arange(n), np.arange(n)] = 1
    widened = np.maximum(1.0, (touching / np.maximum(distance, 1e-9)).max(axis=(1, 2)))
    return _centre_discs(centres * widened[:, None, None], radii)


def _centre_discs(centres: Floats, radii: Floats) -> Floats:
    """Move the middle of the discs of each drawing to (0, 0)."""
    low = (centres - radii[..., None]).min(axis=-2, keepdims=True)
    high = (centres + radii[..., None]).max(axis=-2, keepdims=True)
    middle: Floats = (low + high) / 2
    return centres - middle


def pull_together(centres: Floats, radii: Floats) -> Floats:
    """Move discs straight towards their common centre, without overlap; centre them at (0, 0)."""
    centres = centres - np.average(centres, axis=0, weights=np.square(radii))
    order = np.argsort(np.linalg.norm(centres, axis=1), kind="stable")
    for at, disc in enumerate(order):
        distance = np.linalg.norm(centres[disc])
        if distance == 0:
            continue
        direction = centres[disc] / distance
        placed = order[:at]
        # The distances from the centre, along this direction, at which two discs overlap.
        along = centres[placed] @ direction
        touching = np.square(radii[placed] + radii[disc])
        half = np.sqrt(np.maximum(touching - np.square(centres[placed]).sum(axis=1) + along**2, 0))
        low, high = along - half, along + half
        free = np.append(0.0, high[(half > 0) & (high > 0)])
        tolerance = 1e-9 * distance
        overlaps = (low + tolerance < free[:, None]) & (free[:, None] < high - tolerance)
        free = free[~overlaps.any(axis=1)]
        # Beyond all others there is always a free place; it may lie farther out than before.
        centres[disc] = direction * free.min()
    return _centre_discs(centres, radii)


def _compute_pair_differences(points: Floats) -> tuple[list[Floats], Floats]:
    """Return x and y differences of all pairs of points of each drawing, and squared distances."""
    x, y = (axis[:, :, None] - axis[:, None, :] for axis in (points[..., 0], points[..., 1]))
    square: Floats = x * x
    square += y * y
    return [x, y], square


def place_on_rings(radii: Floats, reach: float) -> Floats:
    """Place discs on rings around a disc of radius `reach`; `radii` must be descending."""
    centres = np.zeros((len(radii), 2))
    first = 0
    if reach == 0 and len(radii):
        # Place the largest disc in the middle if the middle is empty.
        first, reach = 1, radii[0]
    while first < len(radii):
        middle = reach + radii[first]
        # `halves` is half of the angle that each disc takes on the ring.
        max_discs = 1 + int(np.pi * middle / radii[-1])
        halves = np.arcsin(np.minimum(radii[first : first + max_discs] / middle, 1))
        widths = np.cumsum(2 * halves)
        n = max(1, int(np.searchsorted(widths, 2 * np.pi, side="right")))
        angles = (widths - halves)[:n] * (2 * np.pi / widths[n - 1])
        ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        centres[first : first + n] = middle * ring
        reach = middle + radii[first]
        first += n
    return centres
