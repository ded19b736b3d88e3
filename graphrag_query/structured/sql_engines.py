"""Engines for SQL: DuckDB, and polars, which knows less SQL and is always installed.

They run in the process of `worker`.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

from graphrag_index.errors import QueryError
from graphrag_query.structured.worker import Limits, Ready, Rows

# In this order: the last one forbids to change the others.
_RESTRICTIONS = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_progress_bar = false",
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
# Functions by which polars reads files. DuckDB refuses its own.
_READS_FILES = re.compile(r"\b(?:read|scan)_(?:csv|parquet|ipc|n?d?json|delta|iceberg)\w*", re.I)
_MORE = "DuckDB knows more SQL and is used once it is installed: pip install 'graphrag-index[sql]'."


def run_duckdb(tables: Mapping[str, str], query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query over Parquet files, by the names of their tables; no other file is opened.

    Raises
    ------
    QueryError
        It is no SQL, no query, or fails.
    """
    import duckdb

    # In a folder whose name holds * or [, absolute paths would be patterns.
    folder = os.path.commonpath([os.path.dirname(path) for path in tables.values()])
    os.chdir(folder)
    with duckdb.connect(":memory:") as connection:
        files = {name: _literal(os.path.relpath(path, folder)) for name, path in tables.items()}
        for name, file in files.items():
            connection.execute(f"CREATE VIEW {_identifier(name)} AS FROM read_parquet({file})")
        allowed = ", ".join(files.values())
        connection.execute(f"SET allowed_paths = [{allowed}]")
        connection.execute(f"SET memory_limit = '{limits.max_memory}MB'")
        for setting in _RESTRICTIONS:
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
            raise QueryError(_message(error)) from error


def _message(error: Any) -> str:
    """Return DuckDB's message without the excerpt of the query."""
    return " ".join(line.strip() for line in str(error).split("\n\nLINE")[0].splitlines() if line)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _identifier(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def run_polars(tables: Mapping[str, str], query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query over Parquet files, by the names of their tables.

    Raises
    ------
    QueryError
        It is no SQL that polars knows, no query, names a function that reads files, or fails.
    """
    import polars as pl

    if found := _READS_FILES.search(query):
        raise QueryError(f"{found[0]} is refused: a query reads the tables of the index alone.")
    # A path with brackets is no pattern.
    frames = {name: pl.scan_parquet(path, glob=False) for name, path in tables.items()}
    ready()
    try:
        result = pl.SQLContext(frames, eager=False).execute(query.strip().rstrip(";"))
        rows = result.head(limits.max_rows + 1).collect()
    except pl.exceptions.PolarsError as error:
        raise QueryError(f"{str(error).splitlines()[0]}. {_MORE}") from error
    return rows.columns, rows.rows()
