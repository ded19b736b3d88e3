"""How a run scales with its workers: measured costs, a model of the time, and a simulation.

    python benchmarks/scaling.py [--text-units 10000]

Measured here, on a planted corpus:
  1. `run --workers 1` against one worker of a run in a bucket: CPU seconds of the program.
  2. Two workers: requests to the bucket for each shard, by method.
  3. `estimate` with all documents: CPU seconds of each step with and without shards, and bytes.
Computed from these: the model of `graphrag_index/pipeline/scaling.py` for 1 to 1,000 processes
and 1 to 100 million text units, where every step grows with the text units, and what bounds it.
Simulated (seeded): the shards of the same steps with latencies of requests, waiting for the board,
shards of different length, and workers that die; it shows what the model leaves out.
The server of the protocol of S3 is moto; its own time is not that of a bucket, and is not counted.
"""

import argparse
import heapq
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import planted

from graphrag_index.pipeline.estimate import estimate
from graphrag_index.pipeline.scaling import NETWORK_BYTES_PER_SECOND, StepWork, WorkerPlan
from graphrag_index.pipeline.workflow import load_workflow
from graphrag_index.schema.settings.project_settings import load_settings

WORKFLOWS = Path(__file__).parents[1] / "workflows"
PROCESSES = (1, 2, 4, 16, 64, 256, 1_000)
TEXT_UNITS = (1_000_000, 10_000_000, 100_000_000)
# Assumed: seconds from a request to its response (median, of a lognormal distribution), requests
# of a worker one after the other for each shard, and seconds between two looks at the board.
REQUEST_SECONDS, REQUESTS_IN_A_ROW, BOARD_SECONDS = 0.03, 4, 0.25
# Assumed: deaths of each process in an hour, and seconds until its shard is taken over.
DEATHS_PER_HOUR, LEASE_SECONDS = 0.1, 60.0
MAX_SIMULATED_SHARDS = 20_000


def make_project(folder: Path, n_text_units: int) -> Path:
    planted.make_corpus(n_text_units, folder)
    shutil.copytree(WORKFLOWS, folder / "workflows")
    (folder / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    return folder


def run_program(root: Path, *arguments: str, n: int = 1) -> float:
    """Run a command n times at once; return the CPU seconds of all."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "graphrag_index", *arguments, "--root", str(root), "--quiet"]
    processes = []
    for number in range(n):
        cache = str(root / "caches" / f"{len(arguments)}-{arguments[-1][-8:]}-{number}")
        environment = {**os.environ, "GRAPHRAG_INDEX_CACHE": cache.replace(":", "-")}
        processes.append(subprocess.Popen(command, env=environment))
    codes = [process.wait() for process in processes]
    assert not any(codes), codes
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_runs(root: Path, n_repeats: int) -> Counter[str]:
    """Compare a run with one and two workers; return the requests of two workers."""
    from tests.fixtures.object_server import FaultyProxy, new_bucket, serve_objects

    os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret")
    with serve_objects() as server:
        ratios = []
        for number in range(n_repeats):
            alone = run_program(root, "run", "--workers", "1", "--set", f"output=out-{number}")
            address = new_bucket(server)
            one = run_program(root, "worker", "--workers", "1", "--set", f"output={address}")
            ratios.append(one / alone)
            print(f"run {alone:6.1f} CPU s, one worker {one:6.1f} CPU s, x {one / alone:.3f}")
        print(f"one worker against run, median: x {sorted(ratios)[n_repeats // 2]:.3f}")
        proxy = FaultyProxy(server)
        address = new_bucket(server).replace(server, proxy.address)
        two = run_program(root, "worker", "--workers", "1", "--set", f"output={address}", n=2)
        print(f"two workers {two:6.1f} CPU s together")
        proxy.close()
        return Counter(
            f"{method} {path.partition('/work/')[2].partition('/')[0].partition('?')[0]}"
            for method, path in proxy.requests
            if "/work/" in path or "?delete" in path
        )


def measure_plan(root: Path) -> WorkerPlan:
    """Return the plan of the project, with every document in the sample."""
    settings = load_settings(root)
    found = estimate(load_workflow(root, settings.workflow), settings, root, 10**9, n_planned=2)
    assert found.plan is not None
    return found.plan


def grow(plan: WorkerPlan, factor: float) -> WorkerPlan:
    """Return the plan for this many times as many text units."""
    steps = tuple(
        StepWork(
            work.step,
            work.leader_seconds * factor,
            work.shard_seconds * factor,
            round(work.n_bytes * factor),
            round(work.n_shards * factor),
        )
        for work in plan.steps
    )
    return replace(plan, steps=steps)


def simulate_step(work: StepWork, n_processes: int, chance: random.Random) -> float:
    """Return the seconds of a step: a leader that prepares shards, and processes that make them.

    The leader sends at most two shards for each process before it takes the first part back.
    """
    if not work.n_shards:
        return work.leader_seconds
    n = min(work.n_shards, MAX_SIMULATED_SHARDS)
    scale = work.n_shards / n
    sent = work.n_bytes / NETWORK_BYTES_PER_SECOND if n_processes > 1 else 0.0
    prepare = (work.leader_seconds + sent) / scale / n
    length = work.shard_seconds / scale / n
    free = [0.0] * n_processes  # when each process is free
    heapq.heapify(free)
    parts: list[float] = []  # when each part is there
    clock = 0.0
    for number in range(n):
        if number >= 2 * n_processes:
            clock = max(clock, parts[number - 2 * n_processes])
        clock += prepare
        # Only a process that has nothing to do waits for the next look at the board.
        idle_since = heapq.heappop(free)
        wait = chance.uniform(0, BOARD_SECONDS) if idle_since < clock and n_processes > 1 else 0.0
        begin = max(idle_since, clock + wait)
        seconds = length * chance.lognormvariate(0, 0.5) / 1.133  # the mean stays
        # A single process stores its results, and sends nothing else.
        for _ in range(REQUESTS_IN_A_ROW if n_processes > 1 else 1):
            seconds += REQUEST_SECONDS * chance.lognormvariate(0, 0.5)
        if chance.random() < seconds * DEATHS_PER_HOUR / 3_600:
            seconds += LEASE_SECONDS + seconds
        heapq.heappush(free, begin + seconds)
        parts.append(begin + seconds)
    return max(clock, max(parts)) * scale


def bound_of(plan: WorkerPlan, n: int) -> str:
    """Name the step that takes longest, and what it waits for."""
    work = max(plan.steps, key=lambda one: one.seconds(n))
    sent = work.n_bytes / NETWORK_BYTES_PER_SECOND
    parts = {
        "the leader": work.leader_seconds,
        "shards": work.shard_seconds / n,
        "the network": sent,
    }
    return f"{work.step}: {max(parts, key=lambda name: parts[name])}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--text-units", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3, help="0: no runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = make_project(Path(name), options.text_units)
        requests = measure_runs(root, options.repeats) if options.repeats else Counter()
        plan = measure_plan(root)
    n_shards = max(1, requests["PUT tasks"])
    print(f"\nRequests of two workers for each of {n_shards} shards that were sent:")
    print(", ".join(f"{name} {n / n_shards:.1f}" for name, n in requests.most_common()))
    print(f"\nMeasured, {options.text_units:,} text units:")
    print(f"{'step':<30}{'leader CPU s':>14}{'shards CPU s':>14}{'MB sent':>10}")
    for work in plan.steps:
        numbers = f"{work.leader_seconds:>14.1f}{work.shard_seconds:>14.1f}"
        print(f"{work.step:<30}{numbers}{work.n_bytes / 1e6:>10.1f}")
    print("\nHours, computed / simulated, by processes:")
    print(f"{'text units':>12}" + "".join(f"{n:>16,}" for n in PROCESSES))
    for n_text_units in TEXT_UNITS:
        large = grow(plan, n_text_units / options.text_units)
        cells = []
        for n in PROCESSES:
            chance = random.Random(1)
            simulated = sum(simulate_step(work, n, chance) for work in large.steps)
            cells.append(f"{large.seconds(n) / 3_600:.2f} / {simulated / 3_600:.2f}")
        print(f"{n_text_units:>12,}" + "".join(f"{cell:>16}" for cell in cells))
    print("\nWhat is waited for longest:")
    for n in PROCESSES:
        print(f"{n:>6,} processes  {bound_of(plan, n)}")
    print(f"Twice as many save less than 5 % beyond {plan.max_useful_workers:,} processes.")


if __name__ == "__main__":
    main()
