"""Time, memory, storage and price of a run by many workers, computed from a sample.

What the sample tells is measured: CPU seconds of each step with and without its shards, and the
bytes of shards, parts and tables. The model of the time is computed: the leader does its own part
of each step, the shards are divided among the processes, and everything that is sent passes the
network of the leader. It assumes that none of these overlaps, so it is rather too long.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from graphrag_index.llm.local.local_models import EmbeddingModel
from graphrag_index.pipeline.pace import Pace, StepTime
from graphrag_index.pipeline.sample import EMBEDDING_STEP, SampleResult
from graphrag_index.schema.settings.project_settings import Settings

# Peak bytes for each edge, of graphs with 4.6 edges a node (`benchmarks/graph_memory.py`).
BYTES_PER_EDGE = {"native": 210, "igraph": 270, "leidenalg": 300}
# A graph of fewer edges fits anywhere.
MIN_STATED_BYTES = 500_000_000

_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
# Bytes a second between the leader and the bucket; assumed.
NETWORK_BYTES_PER_SECOND = 100_000_000
# Bytes of a shard as it is published; a larger shard of the sample is one shard.
SHARD_BYTES = 1_000_000
# Requests to the bucket for each shard: puts of task, lease, result and of a share of the board,
# and gets of the task, the result and a share of the boards that are read.
PUTS_PER_SHARD, GETS_PER_SHARD = 4, 6
# Memory of the merging of names for each entity, of the run of a million text units in
# benchmarks/RESULTS.md, and of a process that has loaded the libraries.
BYTES_PER_ENTITY, BYTES_PER_PROCESS = 1_800, 350_000_000
# More workers are of little use when twice as many save less than this share of the time.
MIN_SAVED_SHARE = 0.05
MAX_WORKERS = 1_024


def estimate_graph_memory(engine: str, n_edges: int) -> int:
    """Return the peak memory in bytes of an engine of communities on a graph."""
    # The engine microsoft is the same library as native.
    return n_edges * BYTES_PER_EDGE.get(engine, BYTES_PER_EDGE["native"])


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
    if free is None or needed <= free:
        return f"{text}."
    return (
        f"{text}, and {free / 1e9:.1f} GB are free: the run may be killed. Finished steps are "
        "kept, so that it can go on with more memory."
    )


class StoragePrice(NamedTuple):
    """List prices of S3 in dollars (us-east-1, November 2025)."""

    per_put: float = 0.005 / 1_000
    per_get: float = 0.0004 / 1_000
    per_byte_and_month: float = 0.023 / 1e9


@dataclass(frozen=True)
class StepWork:
    """The work of one step for all documents.

    `leader_seconds` stay with the worker that leads, and `shard_seconds` are divided among all
    processes. `n_bytes` are those of all shards and parts, and `n_shards` is their number.
    """

    step: str
    leader_seconds: float
    shard_seconds: float = 0.0
    n_bytes: int = 0
    n_shards: int = 0

    def seconds(self, n_workers: int) -> float:
        """Return the time of the step with this number of processes."""
        sent = self.n_bytes / NETWORK_BYTES_PER_SECOND if n_workers > 1 else 0.0
        return self.leader_seconds + self.shard_seconds / n_workers + sent


@dataclass(frozen=True)
class WorkerPlan:
    """The estimate of a run by `n_workers` processes; sizes are in bytes, costs in dollars."""

    n_workers: int
    steps: tuple[StepWork, ...]
    # Seconds of requests to models, which do not depend on the number of workers.
    model_seconds: float
    # Steps whose pace is not known.
    unknown: tuple[str, ...]
    memory: int  # of the leader in its largest step
    memory_step: str
    table_bytes: int
    part_bytes: int  # of the results that are kept until the commit
    n_puts: int
    n_gets: int
    request_cost: float
    cost_per_month: float  # of the tables

    def seconds(self, n_workers: int | None = None) -> float:
        """Return the time of the run with this number of processes; None: of the plan."""
        n = n_workers or self.n_workers
        return self.model_seconds + sum(work.seconds(n) for work in self.steps)

    @property
    def max_useful_workers(self) -> int:
        """The number of processes beyond which twice as many save less than 5 % of the time."""
        n = 1
        while n < MAX_WORKERS and self.seconds(2 * n) < (1 - MIN_SAVED_SHARE) * self.seconds(n):
            n *= 2
        return n


def plan_workers(
    n_workers: int,
    pace: Pace,
    times: Sequence[StepTime],
    settings: Settings,
    model: EmbeddingModel | None,
) -> WorkerPlan:
    """Plan a run by this number of processes, from the times of its steps and their sample."""
    sample = pace.sample
    steps = [_measure_work(time, pace, model) for time in times if time.cpu_seconds is not None]
    n_entities = _count_rows(sample, "entities") * pace.growth.names
    n_edges = _count_rows(sample, "relationships") * pace.growth.names
    engine = settings.create_communities.engine
    needs = {
        "extract_graph_nlp": int(n_entities * BYTES_PER_ENTITY),
        "create_communities": estimate_graph_memory(engine, round(n_edges)),
    }
    largest = max(needs, key=lambda name: needs[name])
    n_shards = sum(work.n_shards for work in steps) + sum(time.n_requests for time in times)
    n_puts, n_gets = n_shards * PUTS_PER_SHARD, n_shards * GETS_PER_SHARD
    table_bytes = _scale_files(sample, pace.growth.text_units)
    price = StoragePrice()
    return WorkerPlan(
        n_workers=n_workers,
        steps=tuple(steps),
        model_seconds=sum(time.seconds or 0.0 for time in times if time.n_requests),
        unknown=tuple(time.step for time in times if time.seconds is None),
        memory=BYTES_PER_PROCESS + needs[largest],
        memory_step=largest,
        table_bytes=table_bytes,
        part_bytes=sum(work.n_bytes for work in steps) // 2,
        n_puts=n_puts,
        n_gets=n_gets,
        request_cost=n_puts * price.per_put + n_gets * price.per_get,
        cost_per_month=table_bytes * price.per_byte_and_month,
    )


def _measure_work(time: StepTime, pace: Pace, model: EmbeddingModel | None) -> StepWork:
    """Divide the CPU seconds of a step into those of its shards and the others."""
    cpu = time.cpu_seconds or 0.0
    if time.step == EMBEDDING_STEP and pace.sample.embedded and model is not None:
        # The sample makes no vectors: their time was measured apart, and shards make them.
        _, shard_seconds = pace.estimate_embedding(model)
        n_texts = sum(map(len, pace.sample.embedded)) * pace.growth.text_units
        n_characters = sum(len(text) for texts in pace.sample.embedded for text in texts)
        n_bytes = round(n_characters * pace.growth.text_units + n_texts * model.dimension * 4)
    else:
        shards = pace.sample.shards.get(time.step)
        growth = pace.growth.text_units
        shard_seconds = min(cpu, shards.cpu_seconds * growth) if shards else 0.0
        n_bytes = round(shards.n_bytes * growth) if shards else 0
    return StepWork(
        time.step, max(0.0, cpu - shard_seconds), shard_seconds, n_bytes, -(-n_bytes // SHARD_BYTES)
    )


def _count_rows(sample: SampleResult, table: str) -> int:
    stored = sample.version.tables.get(table)
    return stored.rows if stored else 0


def _scale_files(sample: SampleResult, growth: float) -> int:
    """Return the bytes of all tables, from those of the sample."""
    return round(
        sum(path.stat().st_size for path in sample.store.output.rglob("*") if path.is_file())
        * growth
    )
