"""Ask a server many local questions at once, without a model, over loopback.

    python benchmarks/server_load.py PROJECT

Measured are the CPU that the server adds to a local search, the times of 64 clients, the memory
of the server over many questions, and 200 streams at once. PROJECT has a built index, and
`settings.yaml` names no model. Progress is on standard error, the figures are on standard output.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import aiohttp
import yaml

import graphrag_query
from graphrag_index.schema.settings.project_settings import load_settings

N_CLIENTS = 64
N_STREAMS = 200
N_COMPARED = 300


@contextmanager
def running_server(project: Path) -> Iterator[tuple[int, str]]:
    """Run a server of a project; yields its process id and the address of the index."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "server.yaml"
        settings = {"indexes": {"asked": str(project.resolve())}, "max_waiting_questions": 256}
        config.write_text(yaml.safe_dump(settings), encoding="utf-8")
        command = [sys.executable, "-m", "graphrag_index", "serve", "--config", str(config)]
        with (
            open(os.devnull, "w", encoding="utf-8") as log,
            subprocess.Popen(
                [*command, "--port", "0"], stdout=subprocess.PIPE, stderr=log, text=True
            ) as server,
        ):
            try:
                assert server.stdout is not None
                line = next(line for line in server.stdout if "http://" in line)
                address = line[line.index("http://") :].split("/")[2]
                yield server.pid, f"http://{address}/v1/indexes/asked"
            finally:
                server.terminate()


def cpu_seconds(process: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(process: int) -> int:
    """Return the memory of a process in MiB."""
    fields = Path(f"/proc/{process}/statm").read_text(encoding="utf-8").split()
    return int(fields[1]) * os.sysconf("SC_PAGESIZE") // 2**20


def make_questions(project: Path) -> list[str]:
    """Return questions about the entities with the most relationships, all different."""
    with graphrag_query.open(project / "output", load_settings(project), project) as index:
        entities = index.sql("SELECT title FROM entities ORDER BY degree DESC, title LIMIT 300")
        return [f"Who or what is {title}?" for title, *_ in entities.rows]


async def ask(session: aiohttp.ClientSession, url: str, question: str) -> str:
    """Ask a question; returns the outcome of the answer, or the status of an error."""
    async with session.post(url, json={"question": question}) as reply:
        content = await reply.json()
        return str(content["outcome"] if reply.status == 200 else reply.status)


async def stream(session: aiohttp.ClientSession, url: str, question: str) -> str:
    """Ask a question with a streamed answer; returns the type of the last event."""
    async with session.post(url, json={"question": question, "stream": True}) as reply:
        text = (await reply.read()).decode()
    events = [line.removeprefix("event: ") for line in text.splitlines() if line[:6] == "event:"]
    return events[-1] if events else str(reply.status)


async def compare_cpu(project: Path, server: int, url: str, questions: list[str]) -> dict:
    """Ask the same questions in this process and of the server; returns ms of CPU of each."""
    compared = [questions[i % len(questions)] for i in range(N_COMPARED)]
    with graphrag_query.open(project / "output", load_settings(project), project) as index:
        for question in compared[:20]:
            index.local(question)
        before = time.process_time()
        for question in compared:
            json.dumps(index.local(question).to_dict(), default=str)
        alone = (time.process_time() - before) * 1000 / N_COMPARED
    async with aiohttp.ClientSession() as session:
        for question in compared[:20]:
            await ask(session, url, question)
        started = cpu_seconds(server)
        for question in compared:
            await ask(session, url, question)
        served = (cpu_seconds(server) - started) * 1000 / N_COMPARED
    return {"in process": round(alone, 2), "served": round(served, 2)}


async def load(
    server: int, url: str, questions: list[str], seconds: float, n_questions: int
) -> dict:
    """Ask with many clients for some seconds, and then until enough are asked."""
    numbers, outcomes, times = count(), Counter[str](), list[float]()
    memory = {0: resident_mib(server)}
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    started = time.perf_counter()

    async def run_client() -> None:
        while (number := next(numbers)) < n_questions or time.perf_counter() < started + seconds:
            began = time.perf_counter()
            outcomes[await ask(session, url, questions[number % len(questions)])] += 1
            if began < started + seconds:
                times.append(time.perf_counter() - began)
            if (number + 1) % 1_000 == 0 or number + 1 == 500:
                memory[number + 1] = resident_mib(server)
                print(number + 1, memory[number + 1], "MiB", file=sys.stderr, flush=True)

    async with session:
        await asyncio.gather(*(run_client() for _ in range(N_CLIENTS)))
    times.sort()
    return {
        "outcomes": dict(outcomes),
        "questions a second": round(len(times) / seconds, 1),
        "median ms": round(times[len(times) // 2] * 1000),
        "p99 ms": round(times[len(times) * 99 // 100] * 1000),
        "MiB by questions": memory,
    }


async def measure(project: Path, seconds: float, n_questions: int) -> None:
    questions = make_questions(project)
    with running_server(project) as (server, address):
        url = f"{address}/search/local"
        print("CPU ms a question:", await compare_cpu(project, server, url, questions))
        print(
            f"{N_CLIENTS} clients:",
            await load(server, url, questions, seconds, n_questions),
            flush=True,
        )
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            asked = (stream(session, url, questions[i % len(questions)]) for i in range(N_STREAMS))
            ends = await asyncio.gather(*asked)
        print(f"Last events of {N_STREAMS} streams at once:", dict(Counter(ends)))
        print("MiB at the end:", resident_mib(server), "load:", os.getloadavg())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("project", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--questions", type=int, default=10_000)
    arguments = parser.parse_args()
    asyncio.run(measure(arguments.project, arguments.seconds, arguments.questions))
