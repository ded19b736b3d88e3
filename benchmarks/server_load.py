"""Measure the server under load: local questions of one index, without a model. Needs Linux.

    python benchmarks/server_load.py --root DIR [--seconds 60] [--clients 64] [--questions 10000]

The server is a process of its own on loopback; the clients share this process. Printed are the CPU
milliseconds of a question in Python and over HTTP, then what the clients got in some seconds, the
memory of the server until it has answered a number of questions, and many streams at once.
"""

import argparse
import asyncio
import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import yaml

import graphrag_query
from graphrag_index.schema.settings.project_settings import load_settings

N_SEQUENTIAL = 300
N_STREAMS = 200
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--questions", type=int, default=10_000)
    arguments = parser.parse_args()
    index = graphrag_query.open(
        arguments.root / "output", load_settings(arguments.root), arguments.root
    )
    titles = index.store.entities(range(min(200, index.store.n_rows("entity_rows"))))["title"]
    questions = [f"What is known about {title}?" for title in titles]
    index.local(questions[0])
    started = time.process_time()
    for question in questions[:N_SEQUENTIAL] * (1 + N_SEQUENTIAL // len(questions)):
        index.local(question)
    n_asked = len(questions[:N_SEQUENTIAL]) * (1 + N_SEQUENTIAL // len(questions))
    in_python = 1000 * (time.process_time() - started) / n_asked
    print(f"| CPU ms a question in Python, {n_asked} in turn | {in_python:.2f} |")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "server.yaml"
        content = {"indexes": {"load": str(arguments.root.resolve())}, "port": 0}
        content["max_waiting_questions"] = max(N_STREAMS, arguments.clients)
        config.write_text(yaml.safe_dump(content), encoding="utf-8")
        command = [sys.executable, "-m", "graphrag_index", "serve", "--config", str(config)]
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert server.stdout is not None
            found = re.search(r"http://[\d.:]+", server.stdout.readline())
            if found is None:
                sys.exit(f"The server did not start on {arguments.root}.")
            url = f"{found.group()}/v1/indexes/load/search/local"
            asyncio.run(measure(url, server.pid, questions, arguments, in_python, n_asked))
        finally:
            server.terminate()
            server.wait()


async def measure(
    url: str,
    pid: int,
    questions: list[str],
    arguments: argparse.Namespace,
    in_python: float,
    n_asked: int,
) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        endless = itertools.cycle(questions)
        await ask_first(session, url, questions[0])
        before = cpu_seconds(pid)
        for _ in range(n_asked):
            await ask(session, url, next(endless))
        over_http = 1000 * (cpu_seconds(pid) - before) / n_asked
        print(f"| the same over HTTP, CPU ms of the server | {over_http:.2f} |")
        print(f"| what the server adds, CPU ms | {over_http - in_python:.2f} |")
        times: list[float] = []
        failures: list[int] = []
        memory = {0: resident_mb(pid)}
        began, cpu = time.monotonic(), cpu_seconds(pid)
        end = began + arguments.seconds

        async def client() -> None:
            while time.monotonic() < end or len(times) < arguments.questions:
                asked = time.monotonic()
                status = await ask(session, url, next(endless))
                times.append(1000 * (time.monotonic() - asked))
                if status != 200:
                    failures.append(status)
                if len(times) % 1000 == 0:
                    memory[len(times)] = resident_mb(pid)

        await asyncio.gather(*(client() for _ in range(arguments.clients)))
        seconds = time.monotonic() - began
        print(f"| {arguments.clients} clients: questions in {seconds:.0f} s | {len(times)} |")
        print(f"| failures | {len(failures)} {sorted(set(failures)) or ''} |")
        print(f"| median and 99th percentile, ms | {quantiles(times)} |")
        each = 1000 * (cpu_seconds(pid) - cpu) / len(times)
        print(f"| CPU ms of the server a question | {each:.1f} |")
        shown = [f"{n}: {memory[n]:.0f}" for n in thin_out(sorted(memory))]
        print(f"| memory of the server in MB, by questions answered | {', '.join(shown)} |")
        await measure_streams(session, url, endless)


async def measure_streams(session: aiohttp.ClientSession, url: str, endless: Iterator[str]) -> None:
    """Open all streams before the first has to end, and read them to their answers."""
    began = time.monotonic()
    ended: list[str] = []

    async def stream() -> None:
        body = {"question": next(endless), "stream": True}
        async with session.post(url, json=body) as reply:
            text = (await reply.read()).decode()
            ended.append("answer" if "event: answer" in text else f"{reply.status} {text[:80]}")

    await asyncio.gather(*(stream() for _ in range(N_STREAMS)))
    failed = [kind for kind in ended if kind != "answer"]
    seconds = time.monotonic() - began
    print(f"| {N_STREAMS} streams at once: ended with an answer | {len(ended) - len(failed)} |")
    print(f"| their time in all, s | {seconds:.1f} |")
    for kind in sorted(set(failed)):
        print(f"| failed | {kind} |")


async def ask(session: aiohttp.ClientSession, url: str, question: str) -> int:
    async with session.post(url, json={"question": question}) as reply:
        await reply.read()
        return reply.status


async def ask_first(session: aiohttp.ClientSession, url: str, question: str) -> None:
    """Ask until the server accepts connections: its address is printed before it does."""
    for _ in range(100):
        try:
            if await ask(session, url, question) == 200:
                return
        except aiohttp.ClientError:
            await asyncio.sleep(0.1)
    sys.exit("The server did not answer.")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def quantiles(times: list[float]) -> str:
    ordered = sorted(times)
    return f"{statistics.median(ordered):.0f}, {ordered[int(0.99 * (len(ordered) - 1))]:.0f}"


def thin_out(numbers: list[int]) -> list[int]:
    step = max(1, len(numbers) // 6)
    return [*numbers[::step], numbers[-1]] if (len(numbers) - 1) % step else numbers[::step]


if __name__ == "__main__":
    main()
