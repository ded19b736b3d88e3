"""An undirected, weighted graph as arrays, without loops and parallel edges.

Nodes are numbered from 0. Edges are sorted, so that results do not depend on the input order.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.storage.memo import read_batches
from graphrag_nlp.list_columns import find_rows

# Number of relationships per batch. It limits memory and does not change the results.
BATCH_EDGES = 1_048_576

Integers = npt.NDArray[np.int64]
Nodes = npt.NDArray[np.int32] | npt.NDArray[np.int64]
# Returns an array with this number of items of a type; the values are arbitrary.
Allocate = Callable[[int, Any], npt.NDArray[Any]]
Floats = npt.NDArray[np.float64]


class Graph(NamedTuple):
    """Edges between the nodes 0 to `n_nodes` - 1, without duplicates; `sources` < `targets`.

    `allocate` provides the arrays of the graph and of its sparse matrix. They may be memory maps
    of files, so that a large graph need not fit in memory.
    """

    n_nodes: int
    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    weights: Floats
    allocate: Allocate = np.empty


class SparseRows(NamedTuple):
    """A graph as a sparse matrix in CSR format; each edge is in the rows of both its nodes.

    The neighbours of node i are `indices[indptr[i] : indptr[i + 1]]`, ascending.
    """

    indptr: Integers
    indices: npt.NDArray[np.int32]
    weights: Floats

    @property
    def n_nodes(self) -> int:
        return len(self.indptr) - 1


def build_graph(
    n_nodes: int, sources: Nodes, targets: Nodes, weights: Floats, allocate: Allocate = np.empty
) -> Graph:
    """Build a graph; merge edges between the same two nodes, and drop loops at one node."""
    keys = np.minimum(sources, targets).astype(np.int64) * n_nodes + np.maximum(sources, targets)
    # Sort by weight too, since a sum of floats depends on the order of its terms.
    order = np.lexsort((weights, keys))
    order = order[sources[order] != targets[order]]
    keys, weights = keys[order], weights[order]
    is_first = np.ones(len(keys), dtype=bool)
    is_first[1:] = keys[1:] != keys[:-1]
    keys = keys[is_first]
    n = len(keys)
    graph = Graph(n_nodes, allocate(n, np.int32), allocate(n, np.int32), allocate(n, np.float64))
    np.floor_divide(keys, max(n_nodes, 1), out=graph.sources, casting="same_kind")
    np.remainder(keys, max(n_nodes, 1), out=graph.targets, casting="same_kind")
    graph.weights[:] = np.bincount(np.cumsum(is_first) - 1, weights=weights)
    return graph._replace(allocate=allocate)


def read_endpoints(relationships: pl.LazyFrame, ids: pl.Series) -> npt.NDArray[np.int32]:
    """Return the rows of both ends of each relationship in `ids`; -1 if unknown."""
    ends = [np.zeros((0, 2), np.int32)]
    for batch in read_batches(relationships.select("source_id", "target_id"), BATCH_EDGES):
        found = [find_rows(column, ids) for column in batch.iter_columns()]
        ends.append(np.stack(found, axis=1).astype(np.int32))
    return np.concatenate(ends)


def build_sparse_rows(graph: Graph) -> SparseRows:
    """Convert a graph to a sparse matrix in CSR format."""
    indptr = np.zeros(graph.n_nodes + 1, np.int64)
    np.cumsum(count_neighbours(graph), out=indptr[1:])
    n = 2 * len(graph.weights)
    rows = SparseRows(indptr, graph.allocate(n, np.int32), graph.allocate(n, np.float64))
    # The first place in the row of each node that is still free.
    free = indptr[:-1].copy()
    # Add lower neighbours first: since edges are sorted, every row is then in ascending order.
    for ends, others in ((graph.targets, graph.sources), (graph.sources, graph.targets)):
        for start in range(0, len(ends), BATCH_EDGES):
            batch = slice(start, start + BATCH_EDGES)
            order = np.argsort(ends[batch], kind="stable")
            node = ends[batch][order]
            first = np.flatnonzero(np.append(True, node[1:] != node[:-1]))
            counts = np.diff(first, append=len(node))
            place = np.arange(len(node)) + np.repeat(free[node[first]] - first, counts)
            rows.indices[place] = others[batch][order]
            rows.weights[place] = graph.weights[batch][order]
            free[node[first]] += counts
    return rows


def sum_edge_weights(graph: Graph) -> Floats:
    """Sum the weights of the edges of each node."""
    ends = np.append(graph.sources, graph.targets)
    return np.bincount(ends, np.tile(graph.weights, 2), graph.n_nodes).astype(np.float64)


def count_neighbours(graph: Graph) -> Integers:
    """Count the distinct neighbours of each node."""
    counts = np.bincount(graph.sources, minlength=graph.n_nodes)
    return counts + np.bincount(graph.targets, minlength=graph.n_nodes)


def select_subgraph(graph: Graph, nodes: Integers) -> Graph:
    """Return the graph of the given nodes and the edges between them; renumber from 0 on."""
    number = np.full(graph.n_nodes, -1, np.int32)
    number[nodes] = np.arange(len(nodes))
    sources, targets = number[graph.sources], number[graph.targets]
    kept = (sources >= 0) & (targets >= 0)
    return Graph(len(nodes), sources[kept], targets[kept], graph.weights[kept], graph.allocate)


def find_components(graph: Graph) -> Integers:
    """Return the number of each node's connected component, in the order of first nodes."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = graph.n_nodes
    # The edges are sorted, so their targets and weights are a sparse matrix already.
    indptr = np.searchsorted(graph.sources, np.arange(n + 1, dtype=np.int32)).astype(np.int32)
    links = csr_array((graph.weights, graph.targets, indptr), shape=(n, n))
    # SciPy numbers components in the order of their first nodes.
    return np.asarray(connected_components(links, directed=False)[1], np.int64)


def contract_graph(graph: Graph, labels: Integers) -> Graph:
    """Merge all nodes with the same label into one node; labels must be numbered from 0 on."""
    n_labels = int(labels.max(initial=-1)) + 1
    sources, targets = labels[graph.sources], labels[graph.targets]
    return build_graph(n_labels, sources, targets, graph.weights, graph.allocate)


def compute_modularity(graph: Graph, labels: Integers, resolution: float = 1.0) -> float:
    """Return the modularity of a partition [1]_; 0 for a graph without edges.

    References
    ----------
    .. [1] Newman, Modularity and community structure in networks, PNAS 103 (2006).
    """
    total = graph.weights.sum()
    if total == 0:
        return 0.0
    of_parts = np.bincount(labels, weights=sum_edge_weights(graph))
    inside = graph.weights[labels[graph.sources] == labels[graph.targets]].sum()
    return float(inside / total - resolution * np.square(of_parts / (2 * total)).sum())


def check_weights(table: str, relationships: pl.LazyFrame) -> None:
    """Raise TableError if a weight is not positive and finite; Leiden does not check weights."""
    weight = pl.col("weight")
    wrong = (
        relationships.select("source", "target", "weight")
        .with_row_index("row")
        .filter(~(weight.is_finite() & (weight > 0)).fill_null(False))
        .head(1)
        .collect()
    )
    for row, source, target, value in wrong.iter_rows():
        raise TableError(
            f"Table {table}: the relationship in row {row} ({source} – {target}) has the weight "
            f"{value}; a weight is a number greater than 0."
        )
