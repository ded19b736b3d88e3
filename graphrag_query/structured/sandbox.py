"""Execution of queries in a separate process, with limits of time, memory and output.

The parent process sends a task as JSON to the standard input of a worker process, and reads the
reply from its standard output. A signal ends a worker that exceeds its time, even in an engine.

The engines are DuckDB or polars for SQL, and LadybugDB or Kùzu for Cypher. They open only the
files of the task, and only for reading. They raise QueryError for a query that they do not
understand, that fails, or that changes something.
"""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_index.errors import QueryError

if TYPE_CHECKING:
    import polars as pl

    from graphrag_index.schema.settings.searches import StructuredSearch

# The program of the worker. It gets the module search path of the parent as its argument.
_WORKER_PROGRAM = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from graphrag_query.structured.sandbox import run_task; run_task()"
)
# Additional seconds after the time limit, because a worker needs time to start.
_START_SECONDS = 30.0
# LadybugDB is the maintained fork of Kùzu, with the same interface.
GRAPH_LIBRARIES = ("real_ladybug", "kuzu")
# SQL functions of polars that read files. DuckDB has a setting that forbids such functions.
_FILE_FUNCTION = re.compile(r"\b(?:read|scan)_(?:csv|parquet|ipc|n?d?json|delta|iceberg)\w*", re.I)


class DamagedError(QueryError):
    """A database that was built from the tables cannot be opened."""


class Limits(NamedTuple):
    """The limits of a query: rows of its result, seconds, and megabytes of memory."""

    max_rows: int = 1_000
    timeout: float = 30.0
    max_memory: int = 1_024

    @property
    def max_bytes(self) -> int:
        """The maximum length of the rows as JSON, in bytes: a quarter of the memory."""
        return self.max_memory << 18


# The paths of files by the names of their tables.
Files = Mapping[str, str]
# A function that an engine calls when its files are open; it applies the limits.
Ready = Callable[[], None]
# (column names, rows). If there are more than `max_rows` rows, there is one row beyond the limit.
Rows = tuple[Sequence[str], Iterable[Sequence[Any]]]
# A function that runs a query over files. Arguments: files, query, limits, ready.
Engine = Callable[[Files, str, Limits, Ready], Rows]


@dataclass(frozen=True)
class QueryResult:
    """The rows of a query. Column names are unique.

    Values are JSON values; dates are written as ISO 8601. `is_cut` is True if the query has more
    rows than `max_rows`.
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
        """The rows as a polars DataFrame."""
        import polars as pl

        values = zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns)
        columns = zip(self.columns, values, strict=True)
        return pl.DataFrame([pl.Series(name, column, strict=False) for name, column in columns])

    def to_dict(self) -> Mapping[str, Any]:
        """Return the result for JSON; a row is an object."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {**vars(self), "columns": list(self.columns), "rows": rows}

    def __len__(self) -> int:
        return len(self.rows)

    def _repr_html_(self) -> str:
        return str(self.frame._repr_html_())


def read_limits(settings: "StructuredSearch") -> Limits:
    """Return the limits in the settings."""
    return Limits(settings.max_rows, settings.timeout, settings.max_memory)


def run_query(
    engine: Engine, name: str, tables: Mapping[str, Path], query: str, limits: Limits
) -> QueryResult:
    """Run a query in a worker; raise QueryError if it is refused, wrong, or over its limits.

    `name` is the name of the engine, for the result.
    """
    started = time.perf_counter()
    reply = _run_worker(engine, {table: str(path) for table, path in tables.items()}, query, limits)
    rows = reply["rows"]
    return QueryResult(
        query=query,
        engine=name,
        columns=reply["columns"],
        rows=rows[: limits.max_rows],
        is_cut=len(rows) > limits.max_rows,
        seconds=round(time.perf_counter() - started, 3),
    )


def _run_worker(engine: Engine, tables: Files, query: str, limits: Limits) -> Mapping[str, Any]:
    # A worker imports this module too, and needs no model.
    from graphrag_index.llm.chat_model import current_cancellation

    cancellation = current_cancellation()
    name = (engine.__module__, engine.__name__)
    task = {"engine": name, "tables": tables, "query": query, "limits": limits}
    worker = subprocess.Popen(
        [sys.executable, "-c", _WORKER_PROGRAM, json.dumps([path for path in sys.path if path])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        with cancellation.ending(worker.kill):
            text = json.dumps(task).encode()
            out, errors = worker.communicate(text, limits.timeout + _START_SECONDS)
            cancellation.check()
    except subprocess.TimeoutExpired:
        raise _timeout_error(limits) from None
    finally:
        worker.kill()
        worker.wait()
    if worker.returncode == -getattr(signal, "SIGALRM", 0):
        raise _timeout_error(limits)
    reply: dict[str, Any] = json.loads(out) if out else {}
    # A worker without a reply most likely ran out of memory.
    has_failed = b"memory allocation of" in errors or b"Cannot allocate memory" in errors
    if reply.get("memory") or (not reply and has_failed):
        raise QueryError(
            f"The query needs more than {limits.max_memory:,} MB of memory: ask for less data, "
            "or raise structured_search.max_memory."
        )
    if not reply:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise QueryError(
            f"The engine failed (exit code {worker.returncode}). {' '.join(last)}".strip()
        )
    if "os" in reply:
        raise OSError(*reply["os"])
    if "error" in reply:
        raise (DamagedError if reply.get("damaged") else QueryError)(reply["error"])
    return reply


def _timeout_error(limits: Limits) -> QueryError:
    return QueryError(
        f"The query was stopped after {limits.timeout:g} s: ask for less data, or allow more "
        "time (--timeout, structured_search.timeout)."
    )


def run_task() -> None:
    """Read one task from standard input, run it, and write the reply to standard output."""
    # The parent process handles Ctrl-C and kills the worker.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries print too, such as progress bars: redirect their output to stderr.
    output = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    task = json.load(sys.stdin)
    limits = Limits(*task["limits"])
    module, function = task["engine"]
    engine: Engine = getattr(import_module(module), function)
    try:
        columns, found = engine(task["tables"], task["query"], limits, lambda: apply_limits(limits))
        rows = [[_to_json_value(value) for value in row] for row in found]
        text = json.dumps({"columns": _make_names_unique(columns), "rows": rows})
        if len(text) > limits.max_bytes:
            raise QueryError(
                f"The rows of the query are larger than {limits.max_bytes >> 20:,} MB: ask for "
                "fewer or shorter rows, or raise structured_search.max_memory."
            )
    except QueryError as error:
        text = json.dumps({"error": str(error), "damaged": isinstance(error, DamagedError)})
    except OSError as error:
        text = json.dumps({"os": [error.errno, error.strerror, error.filename]})
    except MemoryError:
        text = json.dumps({"memory": True})
    if hasattr(signal, "setitimer"):
        # Stop the timer: writing the rows does not count as query time.
        signal.setitimer(signal.ITIMER_REAL, 0)
    with output:
        output.write(text)


def apply_limits(limits: Limits) -> None:
    """Limit the time and memory of this process, and prevent it from writing files."""
    if hasattr(signal, "setitimer"):
        # The default action ends the process, even inside a library.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limits.timeout)
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        if sys.platform == "linux":
            # RLIMIT_DATA counts reserved memory, so add the memory that is reserved already.
            status = Path("/proc/self/status").read_text(encoding="ascii")
            n_reserved = int(status.partition("VmData:")[2].split()[0]) << 10
            n_bytes = n_reserved + (limits.max_memory << 20)
            resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, n_bytes))


def _to_json_value(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {str(name): _to_json_value(part) for name, part in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple | set) or hasattr(value, "to_list"):
        return [_to_json_value(part) for part in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _make_names_unique(names: Sequence[str]) -> list[str]:
    """Append numbers to repeated column names: name, name_2."""
    taken: list[str] = []
    for name in names:
        numbered = (f"{name}_{n}" if n > 1 else name for n in count(1))
        taken.append(next(new for new in numbered if new not in taken))
    return taken


def run_duckdb(tables: Files, query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query in SQL with DuckDB over Parquet files."""
    import duckdb

    settings = Path(__file__).with_name("duckdb_settings.sql").read_text(encoding="utf-8")
    # Use relative paths: in an absolute path, a folder with * or [ would be a file pattern.
    folder = os.path.commonpath([os.path.dirname(path) for path in tables.values()])
    os.chdir(folder)
    with duckdb.connect(":memory:") as connection:
        files = {
            name: _quote_text(os.path.relpath(path, folder), "'") for name, path in tables.items()
        }
        for name, file in files.items():
            view = _quote_text(name, '"')
            connection.execute(f"CREATE VIEW {view} AS FROM read_parquet({file})")
        allowed = ", ".join(files.values())
        connection.execute(f"SET allowed_paths = [{allowed}]")
        connection.execute(f"SET memory_limit = '{limits.max_memory}MB'")
        connection.execute(settings)
        ready()
        try:
            kinds = [statement.type.name for statement in connection.extract_statements(query)]
            if len(kinds) != 1:
                raise QueryError(f"Write one query at a time: this text has {len(kinds)}.")
            if kinds != ["SELECT"]:
                raise QueryError(f"{kinds[0]} is refused: a query can only read the index.")
            found = connection.execute(query)
            described = found.description or ()
            # DuckDB gives such times with pytz: refuse them also where it happens to be installed.
            if any("TIMESTAMP WITH TIME ZONE" in str(column[1]) for column in described):
                raise QueryError(
                    "A column has times with a time zone, which cannot be returned: cast them, as "
                    "in CAST(now() AS TIMESTAMP)."
                )
            columns = [column[0] for column in described]
            return columns, found.fetchmany(limits.max_rows + 1)
        except duckdb.OutOfMemoryException as error:
            raise MemoryError from error
        except duckdb.Error as error:
            # Remove DuckDB's multi-line picture of the error position.
            lines = str(error).split("\n\nLINE")[0].splitlines()
            raise QueryError(" ".join(line.strip() for line in lines if line)) from error


def _quote_text(text: str, mark: str) -> str:
    return mark + text.replace(mark, 2 * mark) + mark


def run_polars(tables: Files, query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query in SQL with polars over Parquet files; polars supports less SQL than DuckDB."""
    import polars as pl

    if found := _FILE_FUNCTION.search(query):
        raise QueryError(f"{found[0]} is refused: a query can only read tables of the index.")
    # Set glob=False, since brackets in a path are not a pattern.
    frames = {name: pl.scan_parquet(path, glob=False) for name, path in tables.items()}
    ready()
    try:
        rows = pl.SQLContext(frames, eager=False).execute(query.strip().rstrip(";"))
        read = rows.head(limits.max_rows + 1).collect()
    except pl.exceptions.PolarsError as error:
        unknown = re.match(r"relation '(.*)' was not found", str(error))
        if unknown is not None:
            names = ", ".join(sorted(tables))
            raise QueryError(f"There is no table {unknown[1]!r}; there are: {names}.") from error
        if isinstance(error, pl.exceptions.ColumnNotFoundError):
            raise QueryError(f"{str(error).splitlines()[0]}.") from error
        raise QueryError(
            f"{str(error).splitlines()[0]}. DuckDB supports more SQL and is used if it is "
            "installed: pip install 'graphrag-index[sql]'."
        ) from error
    return read.columns, read.rows()


def graph_library() -> str:
    """Return the name of the installed graph library; raise QueryError if there is none."""
    name = next(filter(find_spec, GRAPH_LIBRARIES), None)
    if name is None:
        raise QueryError("Cypher needs a graph engine: pip install 'graphrag-index[cypher]'.")
    return name


def run_graph(tables: Files, query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query in Cypher; raise DamagedError if the database `tables["graph"]` is damaged."""
    library = import_module(graph_library())
    try:
        database = library.Database(
            tables["graph"], read_only=True, buffer_pool_size=limits.max_memory << 20
        )
        connection = library.Connection(database)
    except RuntimeError as error:
        raise DamagedError(str(error)) from error
    ready()
    try:
        found = connection.execute(query)
        if isinstance(found, list):
            raise QueryError("Write one query at a time.")
        names: Sequence[str] = found.get_column_names()
        rows: list[Sequence[Any]] = []
        while found.has_next() and len(rows) <= limits.max_rows:
            rows.append([_without_internal_ids(value) for value in found.get_next()])
        found.close()
    except RuntimeError as error:
        message = " ".join(str(error).split())
        if "buffer manager" in message.lower() or "std::bad_alloc" in message:
            raise MemoryError from error
        raise QueryError(f"{message.rstrip('.')}.") from error
    connection.close()
    database.close()
    return names, rows


def _without_internal_ids(value: Any) -> Any:
    """Remove the internal ids of the database from nodes and relationships."""
    if isinstance(value, list):
        return [_without_internal_ids(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    # Kùzu writes the key "_label", LadybugDB writes "_LABEL".
    named = {name.lower() if name[:1] == "_" else name: part for name, part in value.items()}
    internal = ("_id", "_src", "_dst")
    return {n: _without_internal_ids(part) for n, part in named.items() if n not in internal}
