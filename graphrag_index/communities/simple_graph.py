"""The graph as arrays: undirected, weighted, without loops and parallel edges.

Nodes are numbered from 0. Edges are sorted, and so every algorithm gives the
same result whatever the order in which they came.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Graph(NamedTuple):
    """Edges between the nodes 0 to `n_nodes` - 1: each once, `sources` < `targets`, ascending."""

    n_nodes: int
    sources: Integers
    targets: Integers
    weights: Floats


class Rows(NamedTuple):
    """The same graph as sparse rows, each edge from both of its ends.

    The neighbours of node i are `indices[indptr[i] : indptr[i + 1]]`, ascending.
    """

    indptr: Integers
    indices: npt.NDArray[np.int32]
    weights: Floats

    @property
    def n_nodes(self) -> int:
        return len(self.indptr) - 1


def simple_graph(n_nodes: int, sources: Integers, targets: Integers, weights: Floats) -> Graph:
    """Merge edges between the same two nodes, whatever their direction; drop loops."""
    low = np.minimum(sources, targets).astype(np.int64)
    high = np.maximum(sources, targets).astype(np.int64)
    keys = low * n_nodes + high
    # The weight is a key too, since a sum of floats depends on the order of its terms.
    order = np.lexsort((weights, keys))
    order = order[low[order] != high[order]]
    keys = keys[order]
    is_first = np.ones(len(keys), dtype=bool)
    is_first[1:] = keys[1:] != keys[:-1]
    sums = np.bincount(np.cumsum(is_first) - 1, weights=weights[order]).astype(np.float64)
    low, high = np.divmod(keys[is_first], max(n_nodes, 1))
    return Graph(n_nodes, low, high, sums)


def sparse_rows(graph: Graph) -> Rows:
    """Give every node its row of neighbours."""
    # Edges are sorted, and the lower neighbours of a node come first: so does every row.
    ends = np.concatenate([graph.targets, graph.sources])
    others = np.concatenate([graph.sources, graph.targets])
    weights = np.concatenate([graph.weights, graph.weights])
    order = np.argsort(ends, kind="stable")
    indptr = np.zeros(graph.n_nodes + 1, np.int64)
    np.cumsum(np.bincount(ends, minlength=graph.n_nodes), out=indptr[1:])
    return Rows(indptr, others[order].astype(np.int32), weights[order])


def degrees(graph: Graph) -> Integers:
    """Count the distinct neighbours of each node."""
    ends = np.concatenate([graph.sources, graph.targets])
    return np.bincount(ends, minlength=graph.n_nodes)


def components(graph: Graph) -> Integers:
    """Number the connected component of each node; an isolated node is one of its own.

    They are numbered in the order of their first nodes.
    """
    # A node points to a lower one of its component, at the end to the lowest.
    lowest = np.arange(graph.n_nodes)
    sources, targets = graph.sources, graph.targets
    while len(sources):
        np.minimum.at(lowest, np.maximum(sources, targets), np.minimum(sources, targets))
        while (lowest[lowest] != lowest).any():
            lowest = lowest[lowest]
        # What is joined by now is one node, and edges between others go on.
        sources, targets = lowest[sources], lowest[targets]
        is_open = sources != targets
        sources, targets = sources[is_open], targets[is_open]
    labels: Integers = np.unique(lowest, return_inverse=True)[1]
    return labels


def quotient(graph: Graph, labels: Integers) -> Graph:
    """Contract the nodes of equal label to one; labels are 0 to their number - 1."""
    n_labels = int(labels.max()) + 1 if len(labels) else 0
    return simple_graph(n_labels, labels[graph.sources], labels[graph.targets], graph.weights)


def modularity(graph: Graph, labels: Integers, resolution: float = 1.0) -> float:
    """How much more weight lies inside the parts than chance would put there [1]_.

    0 for a graph without edges.

    References
    ----------
    .. [1] Newman, Modularity and community structure in networks, PNAS 103 (2006).
    """
    total = graph.weights.sum()
    if total == 0:
        return 0.0
    ends = np.concatenate([labels[graph.sources], labels[graph.targets]])
    strengths = np.bincount(ends, weights=np.concatenate([graph.weights, graph.weights]))
    inside = graph.weights[labels[graph.sources] == labels[graph.targets]].sum()
    return float(inside / total - resolution * np.square(strengths / (2 * total)).sum())
