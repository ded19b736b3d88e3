"""Memory that the search for communities needs, and the memory that is free."""

from pathlib import Path

# Peak bytes for each edge, of graphs with 4.6 edges a node (`benchmarks/graph_memory.py`).
BYTES_PER_EDGE = {"native": 210, "igraph": 270, "leidenalg": 300}
# Engines of k-cores work on the arrays alone, and cugraph on a copy of them on the GPU.
OTHER_BYTES_PER_EDGE = 150
# What its developers estimate for graphs on several GPUs (github.com/rapidsai/cugraph/issues/4884).
GPU_BYTES_PER_EDGE = 300
# A graph of fewer edges fits anywhere.
MIN_STATED_BYTES = 500_000_000

_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def estimate_graph_memory(engine: str, n_edges: int) -> int:
    """Return the peak memory in bytes of an engine of communities on a graph."""
    return n_edges * BYTES_PER_EDGE.get(engine, OTHER_BYTES_PER_EDGE)


def read_free_memory() -> int | None:
    """Return the bytes that this process may still use; None if the system does not tell.

    The limit of a container counts too. Memory that files are cached in is free.
    """
    free = []
    try:
        free.append(int(_read("/proc/meminfo").partition("MemAvailable:")[2].split()[0]) * 1024)
    except (OSError, IndexError, ValueError):
        return None
    for limit, used in _LIMITS:
        try:
            free.append(int(_read(limit)) - int(_read(used)))
        except (OSError, ValueError):  # no container, or one without a limit ("max")
            continue
    return max(0, min(free))


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def describe_graph_memory(engine: str, n_nodes: int, n_edges: int) -> str:
    """Describe the memory for a graph; empty for a small graph."""
    needed = estimate_graph_memory(engine, n_edges)
    if needed < MIN_STATED_BYTES:
        return ""
    free = read_free_memory()
    text = (
        f"The graph of {n_nodes:,} entities and {n_edges:,} relationships needs about "
        f"{needed / 1e9:.1f} GB with the engine {engine}"
    )
    if engine == "cugraph":
        text += f", beside {n_edges * GPU_BYTES_PER_EDGE / 1e9:.1f} GB on the GPU"
    if free is None or needed <= free:
        return f"{text}."
    return (
        f"{text}, and {free / 1e9:.1f} GB are free: the run may be killed. Finished steps are "
        "kept, so that it can go on with more memory."
    )
