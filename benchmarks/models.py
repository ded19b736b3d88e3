"""Measure what the program adds to a model: its pace, its CPU and its memory.

    python benchmarks/models.py

A server of our own stands for the model (tests/model_server), in a process of its own. Three things
are printed: how long extraction of 2,000 text units takes against calls x latency / concurrency;
the requests, CPU seconds and peak memory of each step of a whole job (extraction, summaries,
claims, reports, embeddings, tables) with a server that answers at once; and by how much a
coroutine that only sleeps is late while calls wait for a limit. A bare client tells what of it is
the server and the machine. `--only job` prints one of the three. Linux and macOS.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import yaml
from index import REPOSITORY, describe_machine, markdown, run_measured, working_folder
from planted import make_corpus

sys.path.insert(0, str(REPOSITORY))
from tests.model_server.request_log import read_log

MIB = 2**20
EXTRACTION = ["load_documents", "create_text_units", "extract_graph"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text-units", type=int, default=2_000)
    parser.add_argument("--job-text-units", type=int, default=1_600)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--only", nargs="+", choices=("pace", "job", "lateness"))
    parser.add_argument("--folder", type=Path, help="keep corpora and indices in this folder")
    arguments = parser.parse_args()
    print(describe_machine())
    with working_folder(arguments.folder) as folder:
        for part in (pace, job, lateness):
            if not arguments.only or part.__name__ in arguments.only:
                print()
                print(part(folder / part.__name__, arguments))


def pace(project: Path, arguments: argparse.Namespace) -> str:
    """Extraction against a slow server."""
    latency, concurrency = arguments.latency, arguments.concurrency
    log = project / "server.log"
    project.mkdir(parents=True, exist_ok=True)
    with server("--latency", str(latency), "--log", str(log)) as url:
        write_project(project, arguments.text_units, EXTRACTION, url, concurrency)
        run(project)
        calls = [call for call in read_log(log) if "chat" in call["path"]]
        bare = bare_seconds(url, len(calls), concurrency)
    ideal = len(calls) * latency / concurrency
    took = max(call["answered"] for call in calls) - min(call["arrival"] for call in calls)
    stats = json.loads((project / "output/stats.json").read_text("utf-8"))["steps"]
    step = stats["extract_graph"]
    cpu = 1000 * step["cpu_seconds"] / len(calls)
    rows = [
        ["calls x latency / concurrency", f"{ideal:.2f}", "1.00"],
        ["a bare client that sends as many", f"{bare:.2f}", f"{bare / ideal:.2f}"],
        ["extract_graph, first request to last answer", f"{took:.2f}", f"{took / ideal:.2f}"],
        ["the whole step", f"{step['seconds']:.2f}", f"{step['seconds'] / ideal:.2f}"],
        [f"its CPU, {cpu:.2f} ms a call", f"{step['cpu_seconds']:.2f}", ""],
    ]
    title = f"{len(calls):,} calls, {latency * 1000:.0f} ms, {concurrency} at once"
    return markdown([title, "s", "ratio"], rows)


def job(project: Path, arguments: argparse.Namespace) -> str:
    """A whole job against a server that answers at once."""
    project.mkdir(parents=True, exist_ok=True)
    with server() as url:
        steps = yaml.safe_load((REPOSITORY / "workflows/standard.yaml").read_text("utf-8"))
        write_project(project, arguments.job_text_units, steps, url, arguments.concurrency)
        seconds, cpu, memory = run(project)
        calls = count_calls(project)
        again_seconds, again_cpu, _ = run(project)
    stats = json.loads((project / "output/stats.json").read_text("utf-8"))["steps"]

    def describe(name: str, cpu: float, seconds: float, memory: float, n: int) -> list[str]:
        numbers = f"{cpu:,.1f}", f"{seconds:,.1f}", f"{memory / MIB:,.0f}"
        return [name, f"{n:,}" if n else "", *numbers, f"{1000 * cpu / n:.2f}" if n else ""]

    rows = [
        describe(name, step["cpu_seconds"], step["seconds"], step["peak_memory_bytes"], calls[name])
        for name, step in stats.items()
    ]
    rows.append(describe("the whole process", cpu, seconds, memory, calls.total()))
    rows.append(["run again, unchanged", "", f"{again_cpu:.1f}", f"{again_seconds:.1f}", "", ""])
    units = stats["create_text_units"]["rows"]["base_text_units"]
    title = f"a whole job of {units:,} text units"
    return markdown([title, "calls", "CPU s", "s", "peak MiB", "CPU ms a call"], rows)


def count_calls(project: Path) -> "Counter[str]":
    """Count the calls of chat and embedding models of each step, from the ledger."""
    import sqlite3

    with sqlite3.connect(project / "output/ledger.sqlite") as ledger:
        return Counter(dict(ledger.execute("SELECT step, count(*) FROM calls GROUP BY step")))


def lateness(folder: Path, arguments: argparse.Namespace) -> str:
    """How late a coroutine wakes beside calls that wait: for nothing, and for a limit."""
    from graphrag_index.llm.chat_model import ChatModel, LoopThread
    from graphrag_index.llm.ledger import Ledger
    from graphrag_index.llm.request import Message, ParsedReply, ReplyFormat
    from graphrag_index.llm.request import Request as Asked
    from graphrag_index.schema.settings.models import ModelSettings

    late: list[float] = []

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.002)
            late.append(1000 * (time.perf_counter() - began - 0.002))

    words = ReplyFormat("any", {"type": "object"}, ParsedReply, "Reply with JSON.")
    rows = []
    with server("--latency", "0.05") as url:
        for limit, n_calls in ((None, 300), (1_200, 120)):
            loop, ledger = LoopThread(), Ledger(folder / str(limit))
            settings = ModelSettings(
                model="test-model", base_url=url, concurrency=16, requests_per_minute=limit
            )
            model = ChatModel("chat", settings, "step", ledger, loop)
            watching = loop.start_coroutine(watch())
            late.clear()
            for _ in model.replies(
                Asked(str(n), [Message(role="user", content=f"Call {n}.")], words)
                for n in range(n_calls)
            ):
                pass
            watching.cancel()
            model.close()
            loop.close()
            ledger.close()
            late.sort()
            middle, most = late[len(late) // 2], late[int(len(late) * 0.99)]
            rows.append([f"{limit or 'no'} requests a minute", f"{middle:.2f}", f"{most:.2f}"])
    return markdown(["lateness of a coroutine, ms", "median", "99th percentile"], rows)


@contextmanager
def server(*options: str) -> Iterator[str]:
    """Start the server; its address."""
    command = [sys.executable, "-m", "tests.model_server", "--port", "0", *options]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip().split()[-1]
    finally:
        process.terminate()
        process.wait()


def write_project(
    project: Path, text_units: int, steps: Sequence[str], url: str, concurrency: int
) -> None:
    """Write a corpus with its settings and workflow; a corpus that is there already is kept."""
    if not (project / "ground_truth.json").exists():
        make_corpus(text_units, project)
    known = {"base_url": url, "api_key": "none", "concurrency": concurrency}
    settings: dict[str, Any] = {
        "workflow": "benchmark",
        "models": {
            "chat": {"model": "test-model", **known},
            "embedding": {"model": "test-embedding", **known},
        },
        "generate_text_embeddings": {"model": "embedding"},
    }
    (project / "workflows").mkdir(exist_ok=True)
    for path, content in (("workflows/benchmark.yaml", list(steps)), ("settings.yaml", settings)):
        (project / path).write_text(yaml.safe_dump(content), encoding="utf-8")


def run(project: Path) -> tuple[float, float, int]:
    """Index a project in a process of its own: seconds, CPU seconds, peak memory in bytes."""
    command = [sys.executable, "-m", "graphrag_index", "run", "--quiet", "--root", str(project)]
    # What is installed is compiled once, not at each start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return run_measured(command)


def bare_seconds(url: str, n_calls: int, concurrency: int) -> float:
    """Send as many bodies of the usual size by threads that do nothing else; seconds."""
    texts = [{"role": "user", "content": f"Call {n}. " + "Some words of a text. " * 200}
             for n in range(n_calls)]  # fmt: skip

    def send(message: dict[str, str]) -> None:
        body = json.dumps({"model": "test-model", "messages": [message]}).encode()
        headers = {"content-type": "application/json"}
        with urlopen(Request(f"{url}/chat/completions", body, headers)) as answer:
            answer.read()

    started = time.perf_counter()
    with ThreadPoolExecutor(concurrency) as threads:
        list(threads.map(send, texts))
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
