"""Peak memory of the graph step by engine and size, in a process for each.

    python benchmarks/graph_memory.py [--sizes 200000,1000000]

The graphs are planted: communities of 40 nodes with five edges a node, one of them across. A row
has the bytes that a process needed beyond those before the graph was built, and these divided by
the number of edges. `cli/run_commands.py` of the package has the constants.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

EDGES_PER_NODE = 5
COMMUNITY = 40


def plant_edges(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the edges of a planted graph."""
    random = np.random.default_rng(1)
    source = np.repeat(np.arange(n_nodes), EDGES_PER_NODE)
    inside = source // COMMUNITY * COMMUNITY + random.integers(0, COMMUNITY, len(source))
    anywhere = random.integers(0, n_nodes, len(source))
    is_across = np.arange(len(source)) % EDGES_PER_NODE == 0
    target = np.minimum(np.where(is_across, anywhere, inside), n_nodes - 1)
    edges = np.unique(np.sort(np.stack([source, target]), axis=0), axis=1)
    edges = edges[:, edges[0] != edges[1]]
    return edges[0], edges[1]


def measure(engine: str, n_nodes: int) -> dict[str, float]:
    """Find the communities of a planted graph in this process."""
    from graphrag_index.communities.leiden import build_hierarchy
    from graphrag_index.communities.simple_graph import build_graph
    from graphrag_index.schema.settings.step_sections import CreateCommunities

    settings = CreateCommunities(engine=engine)
    # Load what is imported with the first graph.
    sources, targets = plant_edges(400)
    build_hierarchy(build_graph(400, sources, targets, np.ones(len(sources)), np.empty), settings)
    sources, targets = plant_edges(n_nodes)
    before = reset_peak()
    cpu = time.process_time()
    graph = build_graph(n_nodes, sources, targets, np.ones(len(sources)), np.empty)
    build_hierarchy(graph, settings)
    return {
        "n_edges": len(sources),
        "n_bytes": peak_bytes() - before,
        "cpu": time.process_time() - cpu,
    }


def reset_peak() -> int:
    """Make the memory of now, in bytes, the peak of this process (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return peak_bytes()


def peak_bytes() -> int:
    """Return the peak of the resident memory since `reset_peak`."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", default="200000,1000000")
    parser.add_argument("--engines", default="native,igraph,leidenalg")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], int(options.measure[1]))))
        return
    print(f"{'engine':<12}{'nodes':>12}{'edges':>12}{'MB':>8}{'bytes an edge':>15}{'CPU s':>8}")
    for engine in options.engines.split(","):
        for size in map(int, options.sizes.split(",")):
            command = [sys.executable, __file__, "--measure", engine, str(size)]
            found = json.loads(subprocess.check_output(command))
            n_edges, n_bytes = int(found["n_edges"]), int(found["n_bytes"])
            row = f"{engine:<12}{size:>12,}{n_edges:>12,}{n_bytes / 1e6:>8,.0f}"
            print(f"{row}{n_bytes / n_edges:>15,.0f}{found['cpu']:>8.1f}")


if __name__ == "__main__":
    main()
