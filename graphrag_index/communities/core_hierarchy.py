"""The hierarchies of k-cores that Hossain & Sarıyüce propose [1]_: RkH, M2hC and MRC.

Level 0 has the connected components. Level by level, a part is divided into the components of a
denser core of it, and of the residual: the other nodes. Components of the residual of more than
`max_cluster_size` nodes are divided into connected pieces, as is the densest core at last. Pieces
that are too small are gathered if they share a neighbour, or join the part to which they have most
links. The three heuristics differ in what is too small.

In the paper a shared neighbour is in the gathered community too. Here it is not, since a level is
a partition. So gathered entities need not be linked to each other. If a graph has more core
numbers than there are levels, a level skips some of them.

References
----------
.. [1] Hossain & Sarıyüce, Core-based hierarchies for efficient GraphRAG, arXiv 2603.05207 (2026).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from graphrag_index.communities.cores import find_core_numbers
from graphrag_index.communities.simple_graph import Integers, SparseRows
from graphrag_index.schema.settings.step_sections import CreateCommunities

Pieces = list[list[int]]


class Heuristic(NamedTuple):
    """Minimum numbers of nodes: of a component of the residual, of nodes gathered by neighbour."""

    component: int
    gathered: int


HEURISTICS: Mapping[str, Heuristic] = {
    # Residual k-core hierarchy.
    "rkh": Heuristic(2, 2),
    # Merging two-hop components: pairs of gathered nodes are merged into other parts.
    "m2hc": Heuristic(2, 3),
    # Merging residual components: residual components of two nodes are merged too.
    "mrc": Heuristic(3, 3),
}


def partition_into_cores(rows: SparseRows, settings: CreateCommunities, level: int) -> Integers:
    """Partition a connected graph into its denser core and the residual, in pieces.

    At level 0 and for a graph without links, all nodes get one label. Equal candidates are
    ordered by the numbers of the nodes, which are in the order of their ids, and so of content.
    """
    if level == 0 or not len(rows.indices):
        return np.zeros(rows.n_nodes, dtype=np.int64)
    links = _Links(rows)
    core = find_core_numbers(rows)
    for threshold in _choose_thresholds(core, settings.max_levels - level):
        labels = _divide(links, core, threshold, settings)
        if labels.any():
            return labels
    pieces = links.cut(range(rows.n_nodes), settings.max_cluster_size)
    return links.place(
        [piece for piece in pieces if len(piece) > 1],
        [piece for piece in pieces if len(piece) == 1],
    )


def _choose_thresholds(core: Integers, n_levels: int) -> list[int]:
    """Return the core numbers that a denser core may have, in the order to try them.

    `n_levels` is the number of levels that remain, this one included. The last one has none.
    """
    numbers: list[int] = np.unique(core).tolist()
    if n_levels <= 1:
        return []
    step = -(-(len(numbers) - 1) // (n_levels - 1))
    # After the next step, try each, because all of a thin residual may join the core again.
    return numbers[max(1, step) :]


def _divide(
    links: "_Links", core: Integers, threshold: int, settings: CreateCommunities
) -> Integers:
    """Assign parts to the nodes with at least a core number, and to the residual."""
    smallest, size = HEURISTICS[settings.engine], settings.max_cluster_size
    kept = links.components(np.flatnonzero(core >= threshold).tolist())
    small: Pieces = []
    for component in links.components(np.flatnonzero(core < threshold).tolist()):
        for piece in [component] if len(component) <= size else links.cut(component, size):
            (kept if len(piece) >= smallest.component else small).append(piece)
    gathered = links.gather([node for piece in small for node in piece], size, smallest.gathered)
    done = {node for piece in gathered for node in piece}
    rest = [[node for node in piece if node not in done] for piece in small]
    return links.place(kept + gathered, [piece for piece in rest if piece])


class _Links:
    """The neighbours of each node, and the ways to group nodes by them."""

    def __init__(self, rows: SparseRows) -> None:
        starts, indices = rows.indptr.tolist(), rows.indices.tolist()
        self.of = [indices[starts[node] : starts[node + 1]] for node in range(rows.n_nodes)]

    def components(self, nodes: Iterable[int]) -> Pieces:
        """Return the connected components of some of the nodes, in the order of first nodes."""
        waiting = dict.fromkeys(nodes)
        found = []
        while waiting:
            first = next(iter(waiting))
            del waiting[first]
            component = [first]
            # The list grows while it is read.
            for node in component:
                for other in self.of[node]:
                    if other in waiting:
                        del waiting[other]
                        component.append(other)
            found.append(component)
        return found

    def cut(self, nodes: Iterable[int], size: int) -> Pieces:
        """Cut nodes into connected pieces of at most `size`, each around the best linked node.

        A piece grows by the node with most links to it.
        """
        free = set(nodes)
        degree = {node: sum(other in free for other in self.of[node]) for node in free}
        found = []
        for seed in sorted(free, key=lambda node: (-degree[node], node)):
            if seed not in free:
                continue
            piece: list[int] = []
            n_links: dict[int, int] = {}
            best = [(0, seed)]
            while best and len(piece) < size:
                negative, node = heappop(best)
                # An entry with an older count is obsolete.
                if node not in free or -negative != n_links.get(node, 0):
                    continue
                free.remove(node)
                piece.append(node)
                for other in self.of[node]:
                    if other in free:
                        n_links[other] = n_links.get(other, 0) + 1
                        heappush(best, (-n_links[other], other))
            found.append(piece)
        return found

    def gather(self, nodes: list[int], size: int, smallest: int) -> Pieces:
        """Group nodes by a neighbour that they share, the most shared one first.

        Groups of more than `size` nodes are divided evenly; those with fewer nodes than `smallest`
        are left out.
        """
        free = set(nodes)
        near: dict[int, list[int]] = {}
        for node in sorted(free):
            for other in self.of[node]:
                near.setdefault(other, []).append(node)
        waiting = [(-len(group), neighbour) for neighbour, group in near.items()]
        heapify(waiting)
        found = []
        while waiting:
            negative, neighbour = heappop(waiting)
            group = [node for node in near[neighbour] if node in free]
            if len(group) < smallest:
                continue
            if len(group) < -negative:
                heappush(waiting, (-len(group), neighbour))
                continue
            free.difference_update(group)
            # Never more pieces than leave each of them large enough.
            n_pieces = max(1, min(-(-len(group) // size), len(group) // smallest))
            found += [piece.tolist() for piece in np.array_split(group, n_pieces)]
        return found

    def place(self, kept: Pieces, small: Pieces) -> Integers:
        """Assign a part to each node; a small piece joins the kept one to which it has most links.

        A small piece without a kept neighbour waits until a neighbour has joined one. If none
        can, each becomes a part.
        """
        # A part is named by its lowest node.
        part: dict[int, int] = {}
        for piece in kept:
            part |= dict.fromkeys(piece, min(piece))
        while small:
            joined: dict[int, int] = {}
            for piece in small:
                counts = Counter(
                    part[other] for node in piece for other in self.of[node] if other in part
                )
                if counts:
                    best = min(counts, key=lambda name: (-counts[name], name))
                    joined |= dict.fromkeys(piece, best)
            if not joined:
                break
            part |= joined
            small = [piece for piece in small if piece[0] not in part]
        for piece in small:
            part |= dict.fromkeys(piece, min(piece))
        return np.unique([part[node] for node in range(len(self.of))], return_inverse=True)[1]
