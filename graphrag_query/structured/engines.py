"""The engines of queries: DuckDB or polars for SQL, LadybugDB or Kùzu for Cypher.

They run in a worker of the sandbox. They open the given files for reading and no other file. An
engine raises QueryError for a query that it does not understand, that fails, or that changes
something.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from graphrag_index.errors import QueryError
from graphrag_query.structured.sandbox import DamagedError, Files, Limits, Ready, Rows

# LadybugDB is the maintained fork of Kùzu, with the same interface.
GRAPH_LIBRARIES = ("real_ladybug", "kuzu")
# In this order: the last one locks the settings above it.
_DUCKDB_SETTINGS = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_progress_bar = false",
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
# Functions by which polars reads files; DuckDB refuses them itself.
_READS_FILES = re.compile(r"\b(?:read|scan)_(?:csv|parquet|ipc|n?d?json|delta|iceberg)\w*", re.I)
_MORE_SQL = (
    "DuckDB knows more SQL and is used once it is installed: pip install 'graphrag-index[sql]'."
)


def run_duckdb(tables: Files, query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query in SQL over Parquet files."""
    import duckdb

    # Relative paths: if the name of the folder holds * or [, absolute ones would be patterns.
    folder = os.path.commonpath([os.path.dirname(path) for path in tables.values()])
    os.chdir(folder)
    with duckdb.connect(":memory:") as connection:
        files = {name: _quoted(os.path.relpath(path, folder), "'") for name, path in tables.items()}
        for name, file in files.items():
            view = _quoted(name, '"')
            connection.execute(f"CREATE VIEW {view} AS FROM read_parquet({file})")
        allowed = ", ".join(files.values())
        connection.execute(f"SET allowed_paths = [{allowed}]")
        connection.execute(f"SET memory_limit = '{limits.max_memory}MB'")
        for setting in _DUCKDB_SETTINGS:
            connection.execute(setting)
        ready()
        try:
            kinds = [statement.type.name for statement in connection.extract_statements(query)]
            if len(kinds) != 1:
                raise QueryError(f"One query at a time: this text has {len(kinds)}.")
            if kinds != ["SELECT"]:
                raise QueryError(f"{kinds[0]} is refused: the index is asked, never changed.")
            found = connection.execute(query)
            columns = [column[0] for column in found.description or ()]
            return columns, found.fetchmany(limits.max_rows + 1)
        except duckdb.OutOfMemoryException as error:
            raise MemoryError from error
        except duckdb.Error as error:
            if "pytz" in str(error):
                raise QueryError(
                    "A column holds times of a time zone, which are not returned: cast it, as in "
                    "CAST(now() AS TIMESTAMP)."
                ) from error
            # Without DuckDB's drawing of the position in the query.
            lines = str(error).split("\n\nLINE")[0].splitlines()
            raise QueryError(" ".join(line.strip() for line in lines if line)) from error


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, 2 * mark) + mark


def run_polars(tables: Files, query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query in SQL over Parquet files. Polars supports less SQL than DuckDB."""
    import polars as pl

    if found := _READS_FILES.search(query):
        raise QueryError(f"{found[0]} is refused: a query reads the tables of the index alone.")
    # A path may hold brackets, which are no pattern.
    frames = {name: pl.scan_parquet(path, glob=False) for name, path in tables.items()}
    ready()
    try:
        rows = pl.SQLContext(frames, eager=False).execute(query.strip().rstrip(";"))
        read = rows.head(limits.max_rows + 1).collect()
    except pl.exceptions.PolarsError as error:
        raise QueryError(f"{str(error).splitlines()[0]}. {_MORE_SQL}") from error
    return read.columns, read.rows()


def graph_library() -> str:
    """Return the first graph library that is installed; raise QueryError if none is."""
    name = next(filter(find_spec, GRAPH_LIBRARIES), None)
    if name is None:
        raise QueryError("Cypher needs a graph engine: pip install 'graphrag-index[cypher]'.")
    return name


def run_graph(tables: Files, query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query in Cypher; raise DamagedError if the database of `tables["graph"]` is damaged."""
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
            raise QueryError("One query at a time.")
        names: Sequence[str] = found.get_column_names()
        rows = list(_rows(found, limits.max_rows + 1))
        found.close()
    except RuntimeError as error:
        message = " ".join(str(error).split())
        if "buffer manager" in message.lower() or "std::bad_alloc" in message:
            raise MemoryError from error
        raise QueryError(f"{message.rstrip('.')}.") from error
    connection.close()
    database.close()
    return names, rows


def _rows(found: Any, max_rows: int) -> Iterator[Sequence[Any]]:
    while found.has_next() and max_rows:
        yield [_without_internal_ids(value) for value in found.get_next()]
        max_rows -= 1


def _without_internal_ids(value: Any) -> Any:
    """Remove the database's own ids from nodes and relationships."""
    if isinstance(value, list):
        return [_without_internal_ids(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    # Kùzu writes _label, LadybugDB _LABEL.
    named = {name.lower() if name[:1] == "_" else name: part for name, part in value.items()}
    internal = ("_id", "_src", "_dst")
    return {n: _without_internal_ids(part) for n, part in named.items() if n not in internal}
