"""A process that runs one query under limits of time, memory and output, and writes no file.

This process sends a task as JSON to the standard input of a worker, and reads the reply from its
standard output. The system kills a worker that exceeds its time, even inside an engine.
"""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_index.errors import QueryError

if TYPE_CHECKING:
    import polars as pl

    from graphrag_index.schema.settings.searches import StructuredSearch

# The worker searches the same path for modules as this process.
_WORKER = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from graphrag_query.structured.sandbox import work; work()"
)
# Seconds for the start of the worker, where the system does not end it in time.
_GRACE = 30.0


class DamagedError(QueryError):
    """A database that was built from the tables cannot be opened."""


class Limits(NamedTuple):
    """The limits of a query: rows of its result, seconds, and megabytes of memory."""

    max_rows: int = 1_000
    timeout: float = 30.0
    max_memory: int = 1_024

    @property
    def max_bytes(self) -> int:
        """The length of the rows as text that their reader has memory for."""
        return self.max_memory << 18


# The paths of files by the names of their tables.
Files = Mapping[str, str]
# Called by an engine once its files are open: the limits apply from then on.
Ready = Callable[[], None]
# The names of the columns, and the rows: one more than `max_rows` if there are more.
Rows = tuple[Sequence[str], Iterable[Sequence[Any]]]
# An engine runs a query over files.
Engine = Callable[[Files, str, Limits, Ready], Rows]


@dataclass(frozen=True)
class QueryResult:
    """The rows of a query. Column names are unique.

    Values are JSON values; dates are written as ISO 8601. `is_cut`: there were more rows than
    `max_rows`.
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
        """The rows as a polars table."""
        import polars as pl

        columns = zip(*self.rows, strict=True) if self.rows else [[] for _ in self.columns]
        return pl.DataFrame(
            [
                pl.Series(name, values, strict=False)
                for name, values in zip(self.columns, columns, strict=True)
            ]
        )

    def to_dict(self) -> Mapping[str, Any]:
        """Return the result for JSON: a row is an object."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {**vars(self), "columns": list(self.columns), "rows": rows}

    def __len__(self) -> int:
        return len(self.rows)

    def _repr_html_(self) -> str:
        """Show the rows in a notebook."""
        return str(self.frame._repr_html_())


def limits_of(settings: "StructuredSearch") -> Limits:
    """Return the limits in the settings."""
    return Limits(settings.max_rows, settings.timeout, settings.max_memory)


def run_query(
    engine: Engine, name: str, tables: Mapping[str, Path], query: str, limits: Limits
) -> QueryResult:
    """Run a query in a worker; `name` is that of the engine in the result.

    Raises
    ------
    QueryError
        It is refused, wrong, or exceeds its limits.
    """
    started = time.perf_counter()
    files = {table: str(path) for table, path in tables.items()}
    reply = _reply(engine, files, query, limits)
    rows = reply["rows"]
    return QueryResult(
        query=query,
        engine=name,
        columns=reply["columns"],
        rows=rows[: limits.max_rows],
        is_cut=len(rows) > limits.max_rows,
        seconds=round(time.perf_counter() - started, 3),
    )


def _reply(engine: Engine, tables: Files, query: str, limits: Limits) -> Mapping[str, Any]:
    function = (engine.__module__, engine.__name__)
    task = {"engine": function, "tables": tables, "query": query, "limits": limits}
    worker = subprocess.Popen(
        [sys.executable, "-c", _WORKER, json.dumps([path for path in sys.path if path])],
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
    reply: dict[str, Any] = json.loads(out) if out else _without_reply(worker.returncode, errors)
    if reply.get("memory"):
        raise QueryError(
            f"The query needs more memory than it may have, {limits.max_memory:,} MB: ask for "
            "less at once, or raise structured_search.max_memory."
        )
    if "os" in reply:
        raise OSError(*reply["os"])
    if "error" in reply:
        raise (DamagedError if reply.get("damaged") else QueryError)(reply["error"])
    return reply


def _timed_out(limits: Limits) -> QueryError:
    return QueryError(
        f"The query was ended after {limits.timeout:g} s: ask for less at once, or give it more "
        "time (--timeout, structured_search.timeout)."
    )


def _without_reply(code: int, errors: bytes) -> dict[str, Any]:
    """Explain why a worker ended without a reply: most likely it ran out of memory."""
    if b"memory allocation of" in errors or b"Cannot allocate memory" in errors:
        return {"memory": True}
    last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
    return {"error": f"The engine failed (exit code {code}). {' '.join(last)}".strip()}


def work() -> None:
    """Run the one task of a worker."""
    # The parent process handles Ctrl-C and kills the worker.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries print too, such as progress bars: redirect that to stderr.
    output = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    task = json.load(sys.stdin)
    limits = Limits(*task["limits"])
    module, function = task["engine"]
    engine: Engine = getattr(import_module(module), function)
    try:
        columns, found = engine(task["tables"], task["query"], limits, lambda: apply_limits(limits))
        rows = [[_to_json(value) for value in row] for row in found]
        text = json.dumps({"columns": _unique(columns), "rows": rows})
        if len(text) > limits.max_bytes:
            raise QueryError(
                f"The rows of the query are larger than {limits.max_bytes >> 20:,} MB: ask for "
                "fewer or shorter ones, or raise structured_search.max_memory."
            )
    except QueryError as error:
        text = json.dumps({"error": str(error), "damaged": isinstance(error, DamagedError)})
    except OSError as error:
        text = json.dumps({"os": [error.errno, error.strerror, error.filename]})
    except MemoryError:
        text = json.dumps({"memory": True})
    if hasattr(signal, "setitimer"):
        # Writing the rows does not count as time of the query.
        signal.setitimer(signal.ITIMER_REAL, 0)
    with output:
        output.write(text)


def apply_limits(limits: Limits) -> None:
    """Limit the time, memory and files of this process from here on."""
    if hasattr(signal, "setitimer"):
        # The default action ends the process, even inside a library.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limits.timeout)
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        if sys.platform == "linux":
            n_bytes = _data_bytes() + (limits.max_memory << 20)
            resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, n_bytes))


def _data_bytes() -> int:
    """Return the memory that the process has reserved, as RLIMIT_DATA counts it."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmData")


def _to_json(value: Any) -> Any:
    """Convert a value to a JSON value."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {str(name): _to_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set):
        return [_to_json(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "to_list"):
        return _to_json(value.to_list())
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _unique(names: Sequence[str]) -> list[str]:
    """Append numbers to repeated names: name, name_2."""
    taken: list[str] = []
    for name in names:
        numbered = (f"{name}_{n}" if n > 1 else name for n in count(1))
        taken.append(next(new for new in numbered if new not in taken))
    return taken
