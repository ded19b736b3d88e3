"""Hierarchical Leiden [1]_ with several engines.

A part is one set of nodes in a partition, and a label is the number of a part.

References
----------
.. [1] Traag, Waltman & van Eck, From Louvain to Leiden, Sci Rep 9 (2019).
.. [2] Fortunato & Barthélemy, Resolution limit in community detection, PNAS 104 (2007).
"""

import random
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from graphrag_index.communities.simple_graph import (
    Graph,
    Integers,
    SparseRows,
    build_sparse_rows,
    find_components,
    select_subgraph,
)
from graphrag_index.schema.settings.step_sections import CreateCommunities

# A graph with more nodes than this is split at a higher resolution than the settings say.
MAX_NODES_UNSCALED = 1_000
# Microsoft GraphRAG splits parts with at least this many nodes.
MICROSOFT_CLUSTER_SIZE = 10

# A way to partition a graph: a function of a graph with edges, the settings and the level, which
# returns the label of each node.
Engine = Callable[[SparseRows, CreateCommunities, int], Integers]


def partition_with_graspologic(
    rows: SparseRows, settings: CreateCommunities, level: int
) -> Integers:
    """Partition a graph with Leiden in the Rust library of graspologic."""
    from graspologic_native import leiden_csr

    _, found = leiden_csr(
        rows.indptr,
        rows.indices,
        rows.weights,
        rows.n_nodes,
        resolution=choose_resolution(settings, rows.n_nodes, level),
        iterations=settings.iterations,
        use_modularity=settings.quality == "modularity",
        seed=settings.seed,
    )
    labels = np.empty(rows.n_nodes, dtype=np.int64)
    nodes = np.fromiter(found.keys(), dtype=np.int64, count=len(found))
    labels[nodes] = np.fromiter(found.values(), dtype=np.int64, count=len(found))
    return labels


def partition_with_igraph(rows: SparseRows, settings: CreateCommunities, level: int) -> Integers:
    """Partition a graph with Leiden in the C library igraph, under the licence GPL."""
    import igraph

    graph, weights = _to_igraph(rows)
    # Seed the random generator of igraph for this call; the whole process shares it.
    igraph.set_random_number_generator(random.Random(settings.seed))
    try:
        found = graph.community_leiden(
            objective_function="CPM" if settings.quality == "cpm" else "modularity",
            weights=weights,
            resolution=choose_resolution(settings, rows.n_nodes, level),
            n_iterations=settings.iterations,
        )
    finally:
        igraph.set_random_number_generator(random)
    return np.array(found.membership, dtype=np.int64)


def partition_with_leidenalg(rows: SparseRows, settings: CreateCommunities, level: int) -> Integers:
    """Partition a graph with leidenalg by the first author of Leiden, under the licence GPL."""
    import leidenalg

    graph, weights = _to_igraph(rows)
    found = leidenalg.find_partition(
        graph,
        # For modularity, avoid ModularityVertexPartition, which supports the resolution 1 only.
        leidenalg.CPMVertexPartition
        if settings.quality == "cpm"
        else leidenalg.RBConfigurationVertexPartition,
        weights=weights,
        n_iterations=settings.iterations,
        seed=settings.seed,
        resolution_parameter=choose_resolution(settings, rows.n_nodes, level),
    )
    return np.array(found.membership, dtype=np.int64)


ENGINES: Mapping[str, Engine] = {
    "native": partition_with_graspologic,
    "igraph": partition_with_igraph,
    "leidenalg": partition_with_leidenalg,
}


def _to_igraph(rows: SparseRows) -> tuple[Any, list[float]]:
    """Convert a sparse matrix to a graph of igraph; return it and its edge weights."""
    import igraph

    sources = np.repeat(np.arange(rows.n_nodes), np.diff(rows.indptr))
    once = sources < rows.indices
    edges = zip(sources[once].tolist(), rows.indices[once].tolist(), strict=True)
    return igraph.Graph(n=rows.n_nodes, edges=list(edges)), rows.weights[once].tolist()


def choose_resolution(settings: CreateCommunities, n_nodes: int, level: int = 0) -> float:
    """Return the resolution that splits a graph, or a part of a graph, into parts of `level`.

    At a fixed resolution, modularity merges communities that are small compared with the graph,
    even if they are clearly separate [2]_. So the resolution is scaled by the number of nodes:
    communities of a large corpus are then as large as those of a small corpus. CPM does not have
    this problem. With CPM, the resolution of each level is four times the resolution of the level
    above, since the same resolution would not split a part again.
    """
    if settings.quality == "cpm":
        return settings.resolution * 4.0**level
    scale = max(1.0, n_nodes / MAX_NODES_UNSCALED) if settings.scale_resolution else 1
    return settings.resolution * scale


def partition_graph(graph: Graph, settings: CreateCommunities) -> Integers:
    """Partition a graph with Leiden once; return the label of each node, from 0 on.

    A part never spans two connected components. A node without edges is a part of its own.
    """
    labels = find_components(graph)
    if len(graph.weights):
        found = ENGINES[settings.engine](build_sparse_rows(graph), settings, 0)
        labels = labels * (int(found.max()) + 1) + found
    return np.unique(labels, return_inverse=True)[1]


def build_hierarchy(graph: Graph, settings: CreateCommunities) -> list[Integers]:
    """Partition a graph, then split large parts again, level by level.

    A part is large if it has more than `max_cluster_size` nodes. If Leiden does not split it, the
    part is kept. Returns the label of each node, level by level, the coarsest first. Labels are
    unique in a level; -1 means that the node's part was not split again. Level 0 has all nodes.
    """
    labels = partition_graph(graph, settings)
    levels = [labels]
    for level in range(1, settings.max_levels):
        large = select_large_parts(labels, settings.max_cluster_size)
        labels = split_parts(graph, large, settings, level)
        if labels.max(initial=-1) < 0:
            break
        levels.append(labels)
    return levels


def select_large_parts(labels: Integers, max_cluster_size: int) -> Integers:
    """Replace the labels of parts with at most `max_cluster_size` nodes by -1."""
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    return np.where((labels >= 0) & (sizes[labels] > max_cluster_size), labels, -1)


def drop_edges_between_parts(graph: Graph, labels: Integers) -> Graph:
    """Return the graph without edges between different parts."""
    kept = (labels[graph.sources] >= 0) & (labels[graph.sources] == labels[graph.targets])
    sources, targets, weights = (edges[kept] for edges in graph[1:4])
    return graph._replace(sources=sources, targets=targets, weights=weights)


def split_parts(
    graph: Graph, labels: Integers, settings: CreateCommunities, level: int
) -> Integers:
    """Split each part (the nodes with one label) with Leiden, at the resolution of `level`.

    Returns labels from 0 on, unique over all parts; -1 for nodes whose part was not split.
    """
    # Sort the nodes by label, so that the rows of a part are one slice of the sparse matrix.
    nodes = np.flatnonzero(labels >= 0)
    nodes = nodes[np.argsort(labels[nodes], kind="stable")]
    sizes = np.bincount(labels[nodes], minlength=1)
    starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
    rows = build_sparse_rows(select_subgraph(drop_edges_between_parts(graph, labels), nodes))
    labels = np.full(len(labels), -1)
    n_parts = 0
    for start, end in pairwise(starts.tolist()):
        first, last = rows.indptr[start], rows.indptr[end]
        if first == last:
            continue
        part = SparseRows(
            rows.indptr[start : end + 1] - first,
            rows.indices[first:last] - np.int32(start),
            rows.weights[first:last],
        )
        found = ENGINES[settings.engine](part, settings, level)
        if found.min() != found.max():
            labels[nodes[start:end]] = n_parts + found
            n_parts += int(found.max()) + 1
    return labels


def build_microsoft_hierarchy(graph: Graph) -> list[Integers]:
    """Split each connected component as Microsoft GraphRAG 3 splits the largest one.

    Microsoft GraphRAG drops the other components. The result depends on the order of edges, and
    Microsoft GraphRAG sorts edges by title. So the nodes of `graph` must be numbered in the order
    of their titles in upper case. Returns labels by level as `build_hierarchy` does.
    """
    from graspologic_native import hierarchical_leiden

    component = find_components(graph)
    # Use numbers padded with zeros as names of nodes, so that names sort like numbers.
    width = len(str(graph.n_nodes))
    edges_of: dict[int, list[tuple[str, str, float]]] = {}
    parts = component[graph.sources]
    columns = (column.tolist() for column in (parts, graph.sources, graph.targets, graph.weights))
    for part, source, target, weight in zip(*columns, strict=True):
        edge = f"{source:0{width}}", f"{target:0{width}}", weight
        edges_of.setdefault(part, []).append(edge)
    levels = [component.copy()]
    n_parts = int(component.max(initial=-1)) + 1
    for _, edges in sorted(edges_of.items()):
        found = hierarchical_leiden(
            edges,
            resolution=1.0,
            randomness=0.001,
            iterations=1,
            use_modularity=True,
            max_cluster_size=MICROSOFT_CLUSTER_SIZE,
            seed=0xDEADBEEF,
        )
        for part in found:
            while len(levels) <= part.level:
                levels.append(np.full(graph.n_nodes, -1))
            levels[part.level][int(part.node)] = n_parts + part.cluster
        n_parts += 1 + max(part.cluster for part in found)
    for labels in levels:
        # Renumber the parts of each level from 0 on; keep -1.
        labels[labels >= 0] = np.unique(labels[labels >= 0], return_inverse=True)[1]
    return levels
