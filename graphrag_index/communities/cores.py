"""Communities by k-cores [1]_, which depend on the graph alone: they have no random start.

The k-core of a graph is its largest part in which each node has at least k neighbours. The core
number of a node is the largest such k. Communities grow from the densest cores outwards, up to a
size. The idea to use k-cores for the communities of a graph index is from [2]_.

References
----------
.. [1] Batagelj & Zaveršnik, An O(m) algorithm for cores decomposition of networks (2003).
.. [2] Hossain & Sarıyüce, Core-based hierarchies for efficient GraphRAG, arXiv 2603.05207 (2026).
"""

from collections.abc import Iterator

import numpy as np

from graphrag_index.communities.simple_graph import Integers, SparseRows
from graphrag_index.schema.settings.step_sections import CreateCommunities

# A community is split into parts of a size that is this many times smaller, level by level.
SIZE_RATIO = 4
# Levels between the coarsest communities and those of at most `max_cluster_size` nodes.
N_LEVELS_BELOW = 2
# A part with fewer nodes joins a neighbouring part, even if that part is full.
MIN_PART_SIZE = 3


def find_core_numbers(rows: SparseRows) -> Integers:
    """Return the core number of each node: remove the node with fewest neighbours, repeatedly."""
    degree = np.diff(rows.indptr).tolist()
    starts, neighbours = rows.indptr.tolist(), rows.indices.tolist()
    waiting: list[list[int]] = [[] for _ in range(max(degree, default=0) + 1)]
    for node, n in enumerate(degree):
        waiting[n].append(node)
    core = [-1] * len(degree)
    for k, nodes in enumerate(waiting):
        # The list grows while it is read: a node whose degree falls to k is appended to it.
        for node in nodes:
            if core[node] >= 0:
                continue
            core[node] = k
            for other in neighbours[starts[node] : starts[node + 1]]:
                if core[other] < 0 and degree[other] > k:
                    degree[other] -= 1
                    waiting[degree[other]].append(other)
    return np.array(core, dtype=np.int64)


def partition_by_cores(rows: SparseRows, settings: CreateCommunities, level: int) -> Integers:
    """Partition a graph into connected parts of a limited size, around the densest cores.

    First each node, the outermost first, joins the part of its leader: a neighbour in a denser
    core. Then the parts with the strongest links are joined, as far as the size allows. At last,
    parts of very few nodes join a neighbouring part, even if that part is full. What is equal in
    all of this is ordered by the numbers of the nodes, which are in the order of their ids.
    """
    core = find_core_numbers(rows)
    leaders = _find_leaders(rows, core)
    parts = _Parts(rows.n_nodes)
    for node in np.lexsort((leaders, core)).tolist():
        parts.join(node, int(leaders[node]), settings.max_cluster_size)
    limit = _limit_size(rows.n_nodes, settings.max_cluster_size, level)
    size = settings.max_cluster_size
    while size < limit:
        size *= SIZE_RATIO
        for part, other in _rank_links(rows, parts.label_nodes()):
            parts.join(part, other, size)
    for part, other in _rank_links(rows, parts.label_nodes()):
        if min(parts.count_nodes(part), parts.count_nodes(other)) < MIN_PART_SIZE:
            parts.join(part, other, rows.n_nodes)
    return np.unique(parts.label_nodes(), return_inverse=True)[1]


def _find_leaders(rows: SparseRows, core: Integers) -> Integers:
    """Return for each node the neighbour in a denser core to which the node is linked most.

    Of nodes with equal core numbers, the one whose edges weigh more counts as denser, then the one
    with the lower number. A node without a denser neighbour leads itself.
    """
    nodes = _repeat_nodes(rows)
    strength = np.bincount(nodes, weights=rows.weights, minlength=rows.n_nodes)
    rank = np.empty(rows.n_nodes, dtype=np.int64)
    rank[np.lexsort((-strength, -core))] = np.arange(rows.n_nodes)
    is_denser = rank[rows.indices] < rank[nodes]
    nodes, others, weights = nodes[is_denser], rows.indices[is_denser], rows.weights[is_denser]
    # Of the links of a node, write the strongest one last, so that this one stays.
    order = np.lexsort((-rank[others], weights, nodes))
    leaders = np.arange(rows.n_nodes)
    leaders[nodes[order]] = others[order]
    return leaders


def _limit_size(n_nodes: int, max_cluster_size: int, level: int) -> int:
    """Return the maximum size of the parts of a graph, or of the sub-parts of a part."""
    limit: int = max_cluster_size * SIZE_RATIO**N_LEVELS_BELOW
    while level and limit >= n_nodes and limit > max_cluster_size:
        limit //= SIZE_RATIO
    return limit


def _rank_links(rows: SparseRows, labels: Integers) -> Iterator[tuple[int, int]]:
    """Return the pairs of linked parts, those with the strongest links first.

    The strength of the links is their weight as a share of the weight of all edges of one of the
    parts: of that part for which the share is higher.
    """
    part = labels[_repeat_nodes(rows)]
    other = labels[rows.indices]
    total = np.bincount(part, weights=rows.weights)
    is_between = part < other
    keys = part[is_between] * len(labels) + other[is_between]
    keys, at = np.unique(keys, return_inverse=True)
    weight = np.bincount(at, weights=rows.weights[is_between])
    first, second = np.divmod(keys, len(labels))
    order = np.lexsort((keys, -weight / np.minimum(total[first], total[second])))
    return zip(first[order].tolist(), second[order].tolist(), strict=True)


def _repeat_nodes(rows: SparseRows) -> Integers:
    """Return the node of each entry of the matrix."""
    return np.repeat(np.arange(rows.n_nodes), np.diff(rows.indptr))


class _Parts:
    """Parts of the nodes 0 to n - 1, which can be joined; a part is named by its lowest node."""

    def __init__(self, n_nodes: int) -> None:
        self._above = list(range(n_nodes))
        self._sizes = [1] * n_nodes

    def find(self, node: int) -> int:
        """Return the name of the part of a node."""
        above = self._above
        while above[node] != node:
            above[node] = above[above[node]]
            node = above[node]
        return node

    def count_nodes(self, node: int) -> int:
        """Return the number of nodes in the part of a node."""
        return self._sizes[self.find(node)]

    def join(self, node: int, other: int, limit: int) -> None:
        """Join the parts of two nodes, unless the joined part has more than `limit` nodes."""
        first, second = sorted((self.find(node), self.find(other)))
        if first != second and self._sizes[first] + self._sizes[second] <= limit:
            self._above[second] = first
            self._sizes[first] += self._sizes[second]

    def label_nodes(self) -> Integers:
        """Return the part of each node."""
        return np.array([self.find(node) for node in range(len(self._above))], dtype=np.int64)
