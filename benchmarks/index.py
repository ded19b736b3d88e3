"""Measure indexing on synthetic corpora whose entities, relationships and communities are known.

    python benchmarks/index.py --sizes 1000 10000 100000

For each size a corpus is made and indexed by `graphrag-index run`, in as many processes as there
are cores, or `--workers N`. Printed as Markdown: seconds, CPU seconds and peak memory per step,
what they grow by from size to size, and how much of the planted truth was found. Linux and macOS.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from graphrag_index.pipeline.shards import count_cores

REPOSITORY = Path(__file__).parent.parent
PLANTED, SCORE = (REPOSITORY / "benchmarks" / name for name in ("planted.py", "score.py"))
MIB = 2**20


@dataclass(frozen=True)
class Measured:
    """What one process took, and what it says about its steps."""

    text_units: int
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    steps: dict[str, Any]  # as in output/stats.json
    scores: dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--workers", type=int, default=count_cores(), help="passed to the run")
    parser.add_argument(
        "--generator",
        type=Path,
        help="another script to make the corpus, called with --chunks N --out FOLDER",
    )
    parser.add_argument("--folder", type=Path, help="keep corpora and indices in this folder")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="passed to the run"
    )
    arguments = parser.parse_args()

    runs = []
    with working_folder(arguments.folder) as folder:
        for size in arguments.sizes:
            print(f"{size:,} text units ...", file=sys.stderr, flush=True)
            project = folder / str(size)
            write_project(project, size, arguments.generator)
            runs.append(measure(project, arguments.workers, arguments.set))
    print(describe_machine())
    for run in runs:
        print()
        print(describe_run(run))
    if len(runs) > 1:
        print()
        print(describe_growth(runs))
    print()
    print(describe_scores(runs))


@contextmanager
def working_folder(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="graphrag-index-benchmark-") as temporary:
        yield Path(temporary)


def write_project(project: Path, text_units: int, generator: Path | None) -> None:
    """Write a corpus with its settings and workflow; a corpus that is there already is kept."""
    if not (project / "ground_truth.json").exists():
        # In a process of its own: Linux counts the peak memory of a parent as that of its children.
        command = [PLANTED, "--text-units"] if generator is None else [generator, "--chunks"]
        size = [*map(str, command), str(text_units), "--out", str(project)]
        subprocess.run([sys.executable, *size], check=True, stdout=sys.stderr)
    steps = yaml.safe_load((REPOSITORY / "workflows/embedded.yaml").read_text(encoding="utf-8"))
    settings = {
        "workflow": "benchmark",
        "create_text_units": {"max_tokens": 600, "overlap_tokens": 100},
    }
    (project / "workflows").mkdir(exist_ok=True)
    for path, content in (("workflows/benchmark.yaml", steps), ("settings.yaml", settings)):
        (project / path).write_text(yaml.safe_dump(content), encoding="utf-8")


def measure(project: Path, n_workers: int, overrides: Sequence[str]) -> Measured:
    """Index a project from nothing, in a process of its own."""
    output = f"output-{time.time_ns()}"
    command = [sys.executable, "-m", "graphrag_index", "run", "--quiet", "--root", str(project)]
    command += ["--workers", str(n_workers)]
    for override in (*overrides, f"output={output}"):
        command += ["--set", override]
    seconds, cpu_seconds, peak = run_measured(command)
    scored = [sys.executable, SCORE, project / output, project / "ground_truth.json"]
    scores = subprocess.run(scored, check=True, capture_output=True, text=True).stdout
    steps = json.loads((project / output / "stats.json").read_text(encoding="utf-8"))["steps"]
    return Measured(
        text_units=steps["create_text_units"]["rows"]["base_text_units"],
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        peak_memory_bytes=peak,
        steps=steps,
        scores=json.loads(scores),
    )


def run_measured(command: Sequence[str]) -> tuple[float, float, int]:
    """Run a command: seconds, CPU seconds, and peak memory in bytes."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    # Of this process alone, where getrusage() would tell the peak of all children so far.
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with exit code {process.returncode}.")
    # Linux counts in KiB, macOS in bytes.
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return seconds, used.ru_utime + used.ru_stime, peak


def describe_machine() -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} CPUs, {platform.system()} {platform.machine()}, {python}"


def describe_run(run: Measured) -> str:
    rows = []
    for name, step in run.steps.items():
        counts = ", ".join(f"{n:,} {table}" for table, n in step["rows"].items() if n)
        numbers = (step["cpu_seconds"], step["seconds"], (step["peak_memory_bytes"] or 0) / MIB)
        rows.append([name, *(f"{number:,.1f}" for number in numbers), counts])
    whole = (run.cpu_seconds, run.seconds, run.peak_memory_bytes / MIB)
    per_second = f"{run.text_units / run.cpu_seconds:,.0f} text units per CPU second"
    rows.append(["the whole process", *(f"{number:,.1f}" for number in whole), per_second])
    header = [f"{run.text_units:,} text units", "CPU s", "s", "peak MiB", "rows"]
    return markdown(header, rows)


def describe_growth(runs: Sequence[Measured]) -> str:
    """Say how many times as much CPU each larger run took, beside how many times it is larger."""
    pairs = list(pairwise(runs))
    rows = [["text units", *(f"× {b.text_units / a.text_units:.1f}" for a, b in pairs)]]
    for name in runs[0].steps:
        cells = []
        for small, large in pairs:
            before, after = (run.steps[name]["cpu_seconds"] for run in (small, large))
            # Below a tenth of a second a ratio says nothing.
            cells.append(f"× {after / before:.1f}" if before >= 0.1 else "")
        rows.append([name, *cells])
    rows.append(
        ["the whole process", *(f"× {b.cpu_seconds / a.cpu_seconds:.1f}" for a, b in pairs)]
    )
    header = ["CPU s", *(f"{a.text_units:,} to {b.text_units:,}" for a, b in pairs)]
    return markdown(header, rows)


def describe_scores(runs: Sequence[Measured]) -> str:
    names = list(dict.fromkeys(name for run in runs for name in run.scores))
    rows = [
        [name, *(f"{run.scores[name]:.3f}" if name in run.scores else "" for run in runs)]
        for name in names
    ]
    return markdown(["score", *(f"{run.text_units:,}" for run in runs)], rows)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    main()
