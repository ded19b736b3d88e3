"""Update of communities after a change of the graph. Only nodes near a change may move.

A part is one set of nodes in a partition, and a label is the number of a part. If Leiden started
from the previous partition and all nodes could move, the result would drift away from that
partition. So most unchanged nodes are frozen: they stay in their part. The other nodes are free,
and move as in Louvain [1]_: first single nodes, then groups without a frozen node. A part with a
free node is split if its nodes are no longer connected.

The library leidenalg can freeze nodes too (`is_membership_fixed`), but its licence is the GPL.

References
----------
.. [1] Blondel et al., Fast unfolding of communities in large networks, J Stat Mech (2008).
"""

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.leiden import (
    choose_resolution,
    drop_edges_between_parts,
    partition_graph,
    select_large_parts,
    split_parts,
)
from graphrag_index.communities.simple_graph import (
    Floats,
    Graph,
    Integers,
    build_sparse_rows,
    contract_graph,
    find_components,
    select_subgraph,
    sum_edge_weights,
)
from graphrag_index.schema.settings.step_sections import CreateCommunities

Flags = npt.NDArray[np.bool_]

# Minimum gain in quality for which a node moves, as a share of the total weight of its edges.
# Smaller gains are rounding errors.
MIN_GAIN_OF_MOVE = 1e-9
# An edge counts as changed if its weight differs by more than this share from the previous one.
# Smaller differences are common: every new document slightly changes weights that are statistics.
MAX_WEIGHT_CHANGE = 0.1
# Additional gain that a node needs to leave its previous part, as a share of the total weight of
# its edges. It avoids small changes, since every changed community needs a new report.
MIN_GAIN_TO_LEAVE = 0.1


def find_changed_nodes(graph: Graph, before: Graph, is_new: Flags) -> Flags:
    """Flag nodes that are new, and nodes with a new, removed or changed edge."""
    keys, old_keys = (
        edges.sources.astype(np.int64) * graph.n_nodes + edges.targets for edges in (graph, before)
    )
    _, at, old_at = np.intersect1d(keys, old_keys, assume_unique=True, return_indices=True)
    weight, old_weight = graph.weights[at], before.weights[old_at]
    same = np.abs(weight - old_weight) <= MAX_WEIGHT_CHANGE * np.maximum(weight, old_weight)
    is_changed = is_new.copy()
    for edges, kept in ((graph, at[same]), (before, old_at[same])):
        changed = np.ones(len(edges.weights), dtype=bool)
        changed[kept] = False
        is_changed[edges.sources[changed]] = True
        is_changed[edges.targets[changed]] = True
    return is_changed


def update_hierarchy(
    graph: Graph, previous: Sequence[Integers], is_changed: Flags, settings: CreateCommunities
) -> list[Integers]:
    """Update the communities of an earlier graph to a changed graph, level by level.

    A part that is now too large, or no longer has sub-parts, is split again. Unchanged parts of
    an imported hierarchy are kept, even if they are not connected, or small but split.
    `previous` contains the previous part of each node (-1 for none), level by level. Nodes that
    `is_changed` flags may move; new nodes and their neighbours may move too. Returns labels by
    level as `leiden.build_hierarchy` does.
    """
    everything = np.zeros(graph.n_nodes, dtype=np.int64)
    start = _clear_changed_parts(previous[0], is_changed)
    is_free = _flag_movable_nodes(graph, start, is_changed)
    labels = _update_subparts(graph, everything, previous[0], start, is_free, settings, 0)
    levels = [labels]
    for level in range(1, settings.max_levels):
        before = previous[level] if level < len(previous) else np.full(graph.n_nodes, -1)
        is_touched = np.isin(labels, labels[is_changed])
        is_touched |= ~_flag_equal_parts(labels, previous[level - 1 : level])
        is_kept = _flag_divided_nodes(before, labels) & ~is_touched
        large = select_large_parts(labels, settings.max_cluster_size)
        above = np.where(is_kept, labels, large)
        graph = drop_edges_between_parts(graph, above)
        start = _clear_changed_parts(_clear_displaced_nodes(before, above), is_changed)
        is_split = _flag_divided_nodes(start, above)
        is_free = _flag_movable_nodes(graph, start, is_changed) & is_split
        above_split = np.where(is_split, above, -1)
        labels = _update_subparts(graph, above_split, before, start, is_free, settings, level)
        resplit = split_parts(graph, np.where(is_split, -1, above), settings, level)
        labels = np.where(resplit >= 0, resplit + labels.max(initial=-1) + 1, labels)
        labels = np.where(_flag_divided_nodes(labels, above), labels, -1)
        if labels.max(initial=-1) < 0:
            break
        levels.append(labels)
    return levels


def _flag_equal_parts(labels: Integers, previous: Sequence[Integers]) -> Flags:
    """Flag the nodes whose part has the same nodes as in the previous labels, if there are any."""
    if not previous:
        return np.ones(len(labels), dtype=bool)
    (before,) = previous
    both = labels.astype(np.int64) * (int(before.max(initial=-1)) + 2) + before
    sizes = []
    for values in (labels, before, both):
        _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
        sizes.append(counts[group])
    now, then, common = sizes
    return np.asarray((now == common) & (then == common))


def _clear_changed_parts(labels: Integers, is_changed: Flags) -> Integers:
    """Replace the label of a part by -1 if more than half of the part's nodes have changed."""
    n_parts = int(labels.max(initial=-1)) + 2
    size = np.bincount(labels + 1, minlength=n_parts)
    changed = np.bincount(labels[is_changed] + 1, minlength=n_parts)
    return np.where((2 * changed > size)[labels + 1], -1, labels)


def _flag_movable_nodes(graph: Graph, start: Integers, is_changed: Flags) -> Flags:
    """Flag the nodes that may move: changed nodes, new nodes, and neighbours of new nodes."""
    is_new = start < 0
    is_free = is_changed | is_new
    is_free[graph.sources[is_new[graph.targets]]] = True
    is_free[graph.targets[is_new[graph.sources]]] = True
    return is_free


def _partition_new_nodes(graph: Graph, start: Integers, settings: CreateCommunities) -> Integers:
    """Use Leiden to form parts of the new nodes, at the resolution of the whole graph."""
    nodes = np.flatnonzero(start < 0)
    among = select_subgraph(graph, nodes)
    resolution = choose_resolution(settings, graph.n_nodes)
    if settings.quality == "modularity" and len(among.weights):
        resolution *= float(among.weights.sum() / graph.weights.sum())
    same = settings.model_copy(update={"resolution": resolution, "scale_resolution": False})
    placed = start.copy()
    placed[nodes] = int(start.max(initial=-1)) + 1 + partition_graph(among, same)
    return placed


def _clear_displaced_nodes(start: Integers, above: Integers) -> Integers:
    """Replace a node's label by -1 if most nodes of its part are in another parent part."""
    known = np.flatnonzero((start >= 0) & (above >= 0))
    places = pl.DataFrame({"part": start[known], "above": above[known]})
    most_frequent = places.group_by("part").agg(pl.col("above").mode().min())
    parent_of_part = np.full(int(start.max(initial=-1)) + 2, -1)
    parent_of_part[most_frequent["part"].to_numpy()] = most_frequent["above"].to_numpy()
    return np.where((start >= 0) & (above >= 0) & (parent_of_part[start] == above), start, -1)


def _flag_divided_nodes(labels: Integers, above: Integers) -> Flags:
    """Flag the nodes whose part in `above` has at least two sub-parts in `labels`."""
    n_parts = int(above.max(initial=-1)) + 2
    low, high = np.full(n_parts, np.iinfo(np.int64).max), np.full(n_parts, -1)
    known = (labels >= 0) & (above >= 0)
    np.minimum.at(low, above[known], labels[known])
    np.maximum.at(high, above[known], labels[known])
    return np.logical_and(above >= 0, high[above] > low[above])


def _update_subparts(
    graph: Graph,
    above: Integers,
    before: Integers,
    start: Integers,
    is_free: Flags,
    settings: CreateCommunities,
    level: int,
) -> Integers:
    """Move free nodes between the sub-parts of each part in `above`.

    `above` has each node's label one level up, or -1; no edge connects two of these parts.
    `before` contains the previous labels. `start` contains them too, but -1 for nodes that must
    leave their part. Returns labels from 0 on; -1 where `above` is -1.
    """
    is_touched = np.isin(before, before[start < 0])
    strength = sum_edge_weights(graph)
    inertia = np.where(start < 0, 0.0, MIN_GAIN_TO_LEAVE * strength)
    if level == 0:
        start = _partition_new_nodes(graph, start, settings)
    # Give each node without a part a new part of its own.
    alone = int(start.max(initial=-1)) + 1 + np.arange(graph.n_nodes)
    labels = np.unique(np.where(start >= 0, start, alone), return_inverse=True)[1]
    size, pull = _compute_quality_factors(strength, above, settings, level)
    while True:
        is_touched |= np.isin(labels, labels[is_free])
        labels = _move_nodes_and_groups(graph, labels, is_free, size, pull, inertia)
        # Split each part that has, or had before the moves, a free node into connected components.
        is_touched |= np.isin(labels, labels[is_free])
        cut = find_components(drop_edges_between_parts(graph, labels))
        cut[~is_touched] = cut.max(initial=-1) + 1 + labels[~is_touched]
        cut = np.unique(cut, return_inverse=True)[1]
        is_cut_off = _flag_cut_off_nodes(labels, cut) & ~is_free & (above >= 0)
        inertia[is_cut_off] = 0.0
        labels = cut
        if not is_cut_off.any():
            break
        # In the next round, nodes that lost the connection to their part may move too.
        is_free = is_free | is_cut_off
    labels = np.where(above >= 0, labels, -1)
    labels[above >= 0] = np.unique(labels[above >= 0], return_inverse=True)[1]
    return labels


def _flag_cut_off_nodes(labels: Integers, components: Integers) -> Flags:
    """Flag the nodes that are not in the largest component of their part."""
    sizes = np.bincount(components)
    # Sort the largest component of each part last; of components of equal size, the first one.
    order = np.lexsort((-components, sizes[components], labels))
    is_last = np.append(labels[order][1:] != labels[order][:-1], [True])[: len(order)]
    largest = np.full(int(labels.max(initial=-1)) + 1, -1)
    largest[labels[order[is_last]]] = components[order[is_last]]
    fragments: Flags = largest[labels] != components
    return fragments


def _compute_quality_factors(
    strength: Floats, above: Integers, settings: CreateCommunities, level: int
) -> tuple[Floats, Floats]:
    """Return two factors of the quality function for each node: size and pull.

    The expected weight of an edge between two nodes is size × size × pull. With modularity, size
    is the total weight of the node's edges, and pull is resolution / (2 m), where m is the total
    weight of all edges in the parent part. With CPM, size is 1, and pull is the resolution.
    """
    n_parts = int(above.max(initial=-1)) + 1
    sizes = np.bincount(above[above >= 0], minlength=n_parts)
    resolution = np.array([choose_resolution(settings, n, level) for n in sizes.tolist()])
    if settings.quality == "cpm":
        return np.ones(len(above)), np.append(resolution, 0.0)[above]
    total = np.bincount(above[above >= 0], weights=strength[above >= 0], minlength=n_parts)
    pull = np.where(total > 0, resolution / np.where(total > 0, total, 1), 0)
    return strength, np.append(pull, 0.0)[above]


def _move_nodes_and_groups(
    graph: Graph, labels: Integers, is_free: Flags, size: Floats, pull: Floats, inertia: Floats
) -> Integers:
    """Move free nodes, then groups of free nodes, until no move increases the quality.

    The first move of a node must gain more quality than its `inertia`; later moves need not.
    """
    if not is_free.any():
        return labels
    while True:
        labels = _move_nodes(graph, labels, is_free, size, pull, inertia)
        n_parts = int(labels.max()) + 1
        has_frozen = np.zeros(n_parts, dtype=bool)
        has_frozen[labels[~is_free]] = True
        pull_of = np.zeros(n_parts)
        pull_of[labels] = pull
        moved = _move_nodes(
            contract_graph(graph, labels),
            np.arange(n_parts),
            ~has_frozen,
            np.bincount(labels, weights=size, minlength=n_parts).astype(np.float64),
            pull_of,
            np.zeros(n_parts),
        )
        if np.array_equal(moved, np.arange(n_parts)):
            return labels
        labels = np.unique(moved[labels], return_inverse=True)[1]


def _move_nodes(
    graph: Graph, labels: Integers, is_free: Flags, size: Floats, pull: Floats, inertia: Floats
) -> Integers:
    """Move each free node to the part with the highest gain in quality, until no gain is left."""
    rows = build_sparse_rows(graph)
    labels = labels.copy()
    n_parts = int(labels.max()) + 1
    total = np.bincount(labels, weights=size, minlength=n_parts).tolist()
    waiting = deque(np.flatnonzero(is_free).tolist())
    is_waiting = is_free.copy()
    # Use a loop instead of arrays: each move depends on earlier moves, and few nodes move.
    while waiting:
        node = waiting.popleft()
        is_waiting[node] = False
        span = slice(int(rows.indptr[node]), int(rows.indptr[node + 1]))
        neighbours, weights = rows.indices[span], rows.weights[span]
        least = MIN_GAIN_OF_MOVE * float(weights.sum())
        own, own_size = int(labels[node]), float(size[node])
        charge = float(pull[node]) * own_size
        links: dict[int, float] = {}
        for part, weight in zip(labels[neighbours].tolist(), weights.tolist(), strict=True):
            links[part] = links.get(part, 0.0) + weight
        best, best_gain = own, links.get(own, 0.0) - charge * (total[own] - own_size)
        best_gain += float(inertia[node])
        # If the gain of staying in `own` is negative, let the node form a new part (gain 0).
        if best_gain < -least:
            best, best_gain = len(total), 0.0
        for part in sorted(links):
            gain = links[part] - charge * total[part]
            if part != own and gain > best_gain + least:
                best, best_gain = part, gain
        if best == own:
            continue
        if best == len(total):
            total.append(0.0)
        total[own] -= own_size
        total[best] += own_size
        labels[node] = best
        inertia[node] = 0.0
        for other in neighbours[is_free[neighbours] & ~is_waiting[neighbours]].tolist():
            if labels[other] != best:
                waiting.append(other)
                is_waiting[other] = True
    return np.unique(labels, return_inverse=True)[1]
