"""SQL by DuckDB, which opens the tables of an index and no other file."""

import os
from collections.abc import Mapping
from typing import Any

from graphrag_index.errors import QueryError
from graphrag_query.structured.limits import Limits
from graphrag_query.structured.worker import Ready, Rows

MODULES = ("duckdb",)
# In this order: the last one forbids to change what stands above.
_HELD = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_progress_bar = false",
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def run(tables: Mapping[str, str], query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query over Parquet files, by the names of their tables.

    Raises
    ------
    QueryError
        It is no SQL, no query, or fails.
    """
    import duckdb

    # In a folder whose name holds * or [, paths from the root would be patterns.
    folder = os.path.commonpath([os.path.dirname(path) for path in tables.values()])
    os.chdir(folder)
    with duckdb.connect(":memory:") as connection:
        files = {name: _literal(os.path.relpath(path, folder)) for name, path in tables.items()}
        for name, file in files.items():
            connection.execute(f"CREATE VIEW {_name(name)} AS FROM read_parquet({file})")
        allowed = ", ".join(files.values())
        connection.execute(f"SET allowed_paths = [{allowed}]")
        connection.execute(f"SET memory_limit = '{limits.max_memory}MB'")
        for setting in _HELD:
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
            raise QueryError(_said(error)) from error


def _said(error: Any) -> str:
    """Return what DuckDB says, without its picture of the place."""
    return " ".join(line.strip() for line in str(error).split("\n\nLINE")[0].splitlines() if line)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
