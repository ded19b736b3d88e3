"""Compare Leiden on a GPU with Leiden on the CPU, on graphs with planted communities.

    python benchmarks/gpu_communities.py [--edges 10000 100000 1000000 10000000]

It needs a GPU of NVIDIA and pylibcugraph. A graph has eight times as many edges as nodes; half of
them join two nodes of one community of 40. The seconds are those of a second call; the modularity
is that at the resolution of level 0; the adjusted Rand index compares the parts with the planted
communities (1: equal, 0: by chance).
"""

import argparse
import subprocess
import sys
import time

import numpy as np
from communities import adjusted_rand

from graphrag_index.communities.cugraph_leiden import load_cugraph, partition_on_gpu
from graphrag_index.communities.leiden import choose_resolution, partition_with_graspologic
from graphrag_index.communities.simple_graph import (
    Graph,
    Integers,
    build_graph,
    build_sparse_rows,
    compute_modularity,
)
from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.step_sections import CreateCommunities

EDGES_PER_NODE = 8
COMMUNITY_NODES = 40
SHARE_INSIDE = 0.5
SETTINGS = CreateCommunities(engine="cugraph")
COLUMNS = ("edges", "engine", "s", "parts", "modularity", "Rand index", "equal to the first call")


def plant_graph(n_edges: int) -> tuple[Graph, Integers]:
    """Return a random graph, and the planted community of each node."""
    random = np.random.default_rng(1)
    n_nodes = n_edges // EDGES_PER_NODE
    planted = random.permutation(n_nodes) // COMMUNITY_NODES
    members = np.argsort(planted, kind="stable")
    sources = random.integers(n_nodes, size=n_edges)
    near = planted[sources] * COMMUNITY_NODES + random.integers(COMMUNITY_NODES, size=n_edges)
    far = random.integers(n_nodes, size=n_edges)
    inside = random.random(n_edges) < SHARE_INSIDE
    targets = np.where(inside, members[np.minimum(near, n_nodes - 1)], far)
    weights = random.uniform(1, 3, n_edges)
    return build_graph(n_nodes, sources, targets, weights), planted


def compare_engines(n_edges: int) -> None:
    graph, planted = plant_graph(n_edges)
    rows = build_sparse_rows(graph)
    resolution = choose_resolution(SETTINGS, rows.n_nodes)
    first = partition_on_gpu(rows, resolution, SETTINGS.seed)
    engines = {
        "native": lambda: partition_with_graspologic(rows, SETTINGS, 0),
        "cugraph": lambda: partition_on_gpu(rows, resolution, SETTINGS.seed),
    }
    for name, partition in engines.items():
        started = time.perf_counter()
        labels = partition()
        seconds = time.perf_counter() - started
        parts, numbers = np.unique(labels, return_inverse=True)
        cells = (
            f"{len(graph.weights):,}",
            name,
            f"{seconds:.3f}",
            f"{len(parts):,}",
            f"{compute_modularity(graph, numbers, resolution):.4f}",
            f"{adjusted_rand(tuple(planted.tolist()), tuple(labels.tolist())):.3f}",
            "" if name == "native" else str(np.array_equal(first, labels)),
        )
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = [10_000, 100_000, 1_000_000, 10_000_000]
    parser.add_argument("--edges", type=int, nargs="+", default=sizes)
    arguments = parser.parse_args()
    try:
        load_cugraph()
    except SettingsError as error:
        sys.exit(str(error))
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    print(subprocess.run(query, check=True, capture_output=True, text=True).stdout)
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|{'---|' * len(COLUMNS)}")
    for size in arguments.edges:
        compare_engines(size)
