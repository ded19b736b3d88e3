"""Run a query in a separate process, which can be ended at any moment, and return its rows."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import QueryError
from graphrag_query.structured.worker import DamagedError, Limits

if TYPE_CHECKING:
    import polars as pl

    from graphrag_index.schema.settings.searches import StructuredSearch

# With the module path of this process, so that the worker imports the same code.
_BEGIN = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from graphrag_query.structured.worker import main; main()"
)
# Seconds beyond the time limit until a worker that did not end itself is killed.
_GRACE = 30.0


@dataclass(frozen=True)
class QueryResult:
    """The result of a query: its columns, each name once, and its rows.

    Values have JSON types; dates are written as ISO 8601. `is_cut` tells that there were more
    rows than the limit.
    """

    query: str
    engine: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    is_cut: bool = False
    version: int = 0
    seconds: float = 0.0

    @property
    def frame(self) -> "pl.DataFrame":
        """The rows as a polars frame."""
        import polars as pl

        columns = zip(*self.rows, strict=True) if self.rows else [[] for _ in self.columns]
        return pl.DataFrame(
            [
                pl.Series(name, values, strict=False)
                for name, values in zip(self.columns, columns, strict=True)
            ]
        )

    def to_dict(self) -> Mapping[str, Any]:
        """Return the result for JSON: each row is an object."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {**vars(self), "columns": list(self.columns), "rows": rows}

    def __len__(self) -> int:
        return len(self.rows)

    def _repr_html_(self) -> str:
        """Show the rows in a notebook."""
        return str(self.frame._repr_html_())


def limits_of(settings: "StructuredSearch") -> Limits:
    """Return the limits that the settings set."""
    return Limits(settings.max_rows, settings.timeout, settings.max_memory)


def run_query(engine: str, tables: Mapping[str, Path], query: str, limits: Limits) -> QueryResult:
    """Run a query by an engine, ``module.function``, over files by the names of tables.

    Raises
    ------
    QueryError
        It is refused, wrong, or exceeds its limits.
    """
    started = time.perf_counter()
    files = {name: str(path) for name, path in tables.items()}
    reply = _reply(engine, files, query, limits)
    rows = reply["rows"]
    return QueryResult(
        query=query,
        engine=engine,
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
        out, errors = worker.communicate(json.dumps(task).encode(), limits.timeout + _GRACE)
    except subprocess.TimeoutExpired:
        raise _timed_out(limits) from None
    finally:
        worker.kill()
        worker.wait()
    if worker.returncode == -getattr(signal, "SIGALRM", 0):
        raise _timed_out(limits)
    reply: dict[str, Any] = json.loads(out) if out else _failure(worker.returncode, errors)
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


def _timed_out(limits: Limits) -> QueryError:
    return QueryError(
        f"The query was ended after {limits.timeout:g} s: ask for less at once, or give it more "
        "time (--timeout, structured_search.timeout)."
    )


def _failure(code: int, errors: bytes) -> dict[str, Any]:
    """Say why a worker ended without a reply: most likely it ran out of memory."""
    if b"memory allocation of" in errors or b"Cannot allocate memory" in errors:
        return {"memory": True}
    last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
    return {"error": f"The engine failed (exit code {code}). {' '.join(last)}".strip()}
