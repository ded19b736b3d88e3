"""Runs a query in a process of its own, which can be ended at any moment."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphrag_index.errors import QueryError
from graphrag_query.structured.limits import Limits
from graphrag_query.structured.result import Result
from graphrag_query.structured.worker import DamagedError

# The path is handed on, so that the process finds what this one has found.
_BEGIN = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from graphrag_query.structured.worker import main; main()"
)
# Beyond the time of the query, for the start of the process: where it does not end itself.
_GRACE = 30.0


def run_query(engine: str, tables: Mapping[str, Path], query: str, limits: Limits) -> Result:
    """Run a query by an engine, the name of its module, over files by the names of tables.

    Raises
    ------
    QueryError
        It is refused, wrong, or takes more than it may.
    """
    started = time.perf_counter()
    files = {name: str(path) for name, path in tables.items()}
    reply = _reply(engine, files, query, limits)
    rows = reply["rows"]
    return Result(
        query=query,
        engine=engine.removeprefix("engine_"),
        columns=reply["columns"],
        rows=rows[: limits.max_rows],
        is_cut=len(rows) > limits.max_rows,
        seconds=round(time.perf_counter() - started, 3),
    )


def _reply(engine: str, tables: Mapping[str, str], query: str, limits: Limits) -> Mapping[str, Any]:
    task = {"engine": engine, "tables": tables, "query": query, "limits": limits}
    worker = subprocess.Popen(
        [sys.executable, "-c", _BEGIN, json.dumps([path for path in sys.path if path])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, said = worker.communicate(json.dumps(task).encode(), limits.timeout + _GRACE)
    except subprocess.TimeoutExpired:
        raise _too_long(limits) from None
    finally:
        worker.kill()
        worker.wait()
    if worker.returncode == -getattr(signal, "SIGALRM", 0):
        raise _too_long(limits)
    reply: dict[str, Any] = json.loads(out) if out else _ended(worker.returncode, said)
    if reply.get("memory"):
        raise QueryError(
            f"The query needs more memory than it may have, {limits.max_memory:,} MB: ask for "
            "less at once, or raise structured_search.max_memory."
        )
    if "os" in reply:
        raise OSError(*reply["os"])
    if "error" in reply:
        raise DamagedError(reply["error"]) if reply.get("damaged") else QueryError(reply["error"])
    return reply


def _too_long(limits: Limits) -> QueryError:
    return QueryError(
        f"The query was ended after {limits.timeout:g} s: ask for less at once, or give it more "
        "time (--timeout, structured_search.timeout)."
    )


def _ended(code: int, said: bytes) -> dict[str, Any]:
    """Say why a process ended without a reply: short of memory, most likely."""
    if b"memory allocation of" in said or b"Cannot allocate memory" in said:
        return {"memory": True}
    last = said.decode("utf-8", "replace").strip().splitlines()[-1:]
    return {"error": f"The engine failed (exit code {code}). {' '.join(last)}".strip()}
