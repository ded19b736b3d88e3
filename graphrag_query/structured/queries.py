"""Read-only queries: in SQL over the tables of an index, and in Cypher over its graph.

`sql_schema` describes the tables for the author of a query.

Every query is checked before it runs. The engines run in a sandbox with files opened for reading,
so they could not run most refused queries; the check gives a clear error message. It is needed for
Kùzu: in a read-only database, `COPY` and `LOAD FROM` still access files, and `CHECKPOINT` damages
the database.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from graphrag_index.errors import QueryError, SettingsError
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import TableStore
from graphrag_nlp.text.languages import read_lists
from graphrag_query.structured.cypher_graph import SCHEMA_VERSION, build_graph
from graphrag_query.structured.sandbox import (
    DamagedError,
    Engine,
    Limits,
    QueryResult,
    graph_library,
    run_duckdb,
    run_graph,
    run_polars,
    run_query,
)

if TYPE_CHECKING:
    from graphrag_query.store.index_store import IndexStore

MessageFunction = Callable[[str], None]
# SQL engines by the name of their library; the first one that is installed runs the queries.
SQL_ENGINES: Mapping[str, Engine] = {"duckdb": run_duckdb, "polars": run_polars}
# Limits for building a database: one week, so in practice none.
_UNLIMITED = Limits(timeout=604_800.0)
# The first words of queries that only read.
_SQL_FIRST_WORDS = frozenset({"select", "with", "values", "from", "show", "describe", "summarize"})
_CYPHER_FIRST_WORDS = frozenset({"match", "optional", "unwind", "with", "return"})
# Cypher clauses that change something or access data outside the database.
_REFUSED_CYPHER_WORDS = frozenset(
    "create merge set delete detach remove drop alter copy load export import install uninstall "
    "attach use call begin commit rollback checkpoint macro explain profile comment".split()
)
# Notes on the columns of the tables, and descriptions of the SQL dialects of the engines.
SQL_TEXTS = read_lists("sql", Path(__file__).parent)
_SQL_TOKEN = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)|(?P<word>[^\W\d]\w*)|.", re.DOTALL)
_CYPHER_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|'(?:\\.|[^'\\])*(?:'|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z)|`[^`]*(?:`|\Z)"
    # The name of a property or a label follows a dot or a colon.
    r"|[.:]\s*[^\W\d]\w*|(?P<word>[^\W\d]\w*)|(?P<end>;)|(?P<parameter>\$\w+)|\s+|.",
    re.DOTALL,
)


def sql_engine() -> str:
    """Return the name of the installed engine that runs queries in SQL."""
    return next(filter(find_spec, SQL_ENGINES))


def run_sql(index: "IndexStore", query: str, limits: Limits) -> QueryResult:
    """Run a query in SQL over the public tables of an index, with DuckDB or else polars.

    Raises QueryError if the query is refused, wrong, or exceeds its limits.
    """
    check_sql(query)
    name = sql_engine()
    found = run_query(SQL_ENGINES[name], name, table_files(index), query, limits)
    return replace(found, version=index.version.number)


def run_cypher(
    index: "IndexStore", query: str, limits: Limits, say: MessageFunction = lambda text: None
) -> QueryResult:
    """Run a query in Cypher over the graph of an index.

    The first query of a version builds its database in `output/cypher/`; `say` receives a message
    about this. Raises QueryError if the query is refused, wrong, or exceeds its limits, and if no
    engine is installed.
    """
    check_cypher(query)
    path, name = graph_database(index, say), graph_library()
    try:
        found = run_query(run_graph, name, {"graph": path}, query, limits)
    except DamagedError:
        # A full disk or a killed process has damaged the database: build it again.
        path = graph_database(index, say, is_damaged=True)
        found = run_query(run_graph, name, {"graph": path}, query, limits)
    return replace(found, version=index.version.number)


def graph_database(index: "IndexStore", say: MessageFunction, is_damaged: bool = False) -> Path:
    """Return the path of a version's graph database; build it if it is missing or damaged.

    If several processes need it, one builds it and the others wait. The file is moved to its path
    only when it is complete.
    """
    # The database depends on the tables, the engine and our code.
    library = graph_library()
    digests = sorted((name, stored.digest) for name, stored in index.version.tables.items())
    inputs = repr((SCHEMA_VERSION, library, version_of(library.replace("_", "-")), digests))
    digest = blake2b(inputs.encode(), digest_size=8).hexdigest()
    path = index.backend.graphs / f"{index.version.number}-{digest}.db"
    if path.exists() and not is_damaged:
        return path
    from filelock import FileLock

    tables = table_files(index)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.parent / ".lock"):
        if path.exists() and not is_damaged:
            return path
        for leftover in path.parent.glob(".*.tmp*"):
            # A worker may still write to the file if only the parent process was killed.
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)
        n_links = index.n_rows("relationships")
        say(
            f"Building the graph database of version {index.version.number} "
            f"({n_links:,} relationships; half a million take about a minute) ..."
        )
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        run_query(build_graph, library, tables, str(temporary), _UNLIMITED)
        os.replace(temporary, path)
    try:
        index.check_version()
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def check_sql(query: str) -> None:
    """Raise QueryError unless a query in SQL begins with a word that only reads."""
    words = (token["word"] for token in _SQL_TOKEN.finditer(query) if token["word"])
    first = next(words, "")
    if not first:
        raise QueryError("The query is empty.")
    if first.lower() not in _SQL_FIRST_WORDS:
        raise QueryError(f"{first.upper()} is refused: begin with SELECT or WITH.")


def check_cypher(query: str) -> None:
    """Raise QueryError unless a query in Cypher only reads the graph."""
    # The words outside literals and names, the parameters, and the semicolons inside the query.
    tokens = _CYPHER_TOKEN.finditer(query.strip().rstrip(";"))
    words = [token[0].lower() if token["word"] else token[0] for token in tokens if token.lastgroup]
    if not words:
        raise QueryError("The query is empty.")
    for word in words:
        if word.startswith("$"):
            # An engine replaces a missing parameter by null, which may match every row.
            raise QueryError(f"{word} has no value: write the value itself into the query.")
        if word == ";":
            raise QueryError("Write one query at a time: a semicolon may only end the query.")
        if word in _REFUSED_CYPHER_WORDS:
            raise QueryError(
                f"{word.upper()} is refused: a query can only read the graph. If the word is a "
                "name, write it between backticks."
            )
    if words[0] not in _CYPHER_FIRST_WORDS:
        raise QueryError(f"{words[0].upper()} is refused: begin with MATCH.")


def table_files(index: "IndexStore") -> Mapping[str, Path]:
    """Return the Parquet files of the public and user-defined tables by name.

    Raises TableError if a file is missing or damaged. Raises SettingsError if the index has
    filters, since queries cannot apply the filters.
    """
    if index.filters:
        raise SettingsError(
            "Queries cannot apply filters: use the index without filters, and write the "
            "conditions into the query."
        )
    index.check_version()
    if not isinstance(index.backend, TableStore):
        return index.backend.public_files()
    files = {}
    for name, stored in sorted(index.version.tables.items()):
        is_public = name not in TABLES or TABLES[name].kind == "public"
        if is_public and (stored.file or "").endswith(".parquet"):
            # `scan` raises TableError if the file is missing or damaged.
            index.backend.scan(name, stored)
            files[name] = index.backend.output / str(stored.file)
    return files


class QueryTable(NamedTuple):
    """A table, or a label of the graph, that queries can name."""

    name: str
    meaning: str
    columns: Mapping[str, str]  # types by name
    n_rows: int | None = None  # of a table


def sql_tables(index: "IndexStore") -> list[QueryTable]:
    """Return the tables of an index that queries in SQL can name."""
    tables = []
    for name in table_files(index):
        known = TABLES.get(name)
        meaning = f"one row is {known.row}" if known else "written by a step of one's own"
        types = index.scan(name).collect_schema().items()
        columns = {column: _sql_type(dtype) for column, dtype in types}
        tables.append(QueryTable(name, meaning, columns, index.n_rows(name)))
    return tables


def sql_schema(index: "IndexStore") -> str:
    """Describe each table: the meaning of a row, the number of rows, the columns."""
    parts, notes = [], SQL_TEXTS["notes"]
    for name, meaning, types, n_rows in sql_tables(index):
        columns = ", ".join(f"{column} {kind}" for column, kind in types.items())
        note = f"\n  {notes[name]}" if name in notes else ""
        parts.append(f"{name}: {meaning}; {n_rows:,} rows\n  {columns}{note}")
    return "\n".join(parts)


def find_numbers(
    index: "IndexStore", table: str, key: str, number: str, values: pl.Series
) -> dict[str, int]:
    """Return the numbers of the rows of a table by those values of a key that all have a row.

    Empty if a value has none. Of several rows with a value, the first is returned.
    """
    known = (
        index.scan(table)
        .select(pl.col(key).alias("key"), pl.col(number).cast(pl.Int64).alias("number"))
        .filter(pl.col("key").is_in(values.unique().implode()))
        .sort("number", descending=True)
        .collect()
    )
    is_known = known.height and values.is_in(known["key"].implode()).all()
    return dict(known.iter_rows()) if is_known else {}


def _sql_type(dtype: Any) -> str:
    if isinstance(dtype, pl.List):
        return f"{_sql_type(dtype.inner)}[]"
    if isinstance(dtype, pl.Struct):
        parts = ", ".join(f"{part.name} {_sql_type(part.dtype)}" for part in dtype.fields)
        return f"STRUCT({parts})"
    names = {pl.String: "VARCHAR", pl.Boolean: "BOOLEAN", pl.Float64: "DOUBLE", pl.Float32: "FLOAT"}
    if dtype in names:
        return names[dtype]
    if dtype.is_integer():
        return "BIGINT" if dtype in (pl.Int64, pl.UInt64) else "INTEGER"
    return str(dtype).upper()
