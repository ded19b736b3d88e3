"""Engine for Cypher: LadybugDB or Kùzu, which share one interface.

It makes the graph database of a version and runs queries over it, in the process of `worker`.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graphrag_index.errors import QueryError
from graphrag_query.structured.graph_schema import EDGES, NODES, rows_of
from graphrag_query.structured.worker import DamagedError, Limits, Ready, Rows

# LadybugDB is the maintained fork of Kùzu.
MODULES = ("real_ladybug", "kuzu")
# Memory for pages while the database is made.
BUFFER_BYTES = 1 << 28


def library_name() -> str:
    """Return the name of the first of these libraries that is installed.

    Raises
    ------
    QueryError
        None is.
    """
    name = next(filter(find_spec, MODULES), None)
    if name is None:
        raise QueryError("Cypher needs a graph engine: pip install 'graphrag-index[cypher]'.")
    return name


def run_cypher(tables: Mapping[str, str], query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query over the database at `tables["graph"]`.

    Raises
    ------
    QueryError
        It is no Cypher, or fails.
    DamagedError
        The database cannot be opened.
    """
    engine = import_module(library_name())
    try:
        database = engine.Database(
            tables["graph"], read_only=True, buffer_pool_size=limits.max_memory << 20
        )
        connection = engine.Connection(database)
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


def _rows(found: Any, most: int) -> Iterator[Sequence[Any]]:
    while found.has_next() and most:
        yield [_without_addresses(value) for value in found.get_next()]
        most -= 1


def _without_addresses(value: Any) -> Any:
    """Remove the addresses of nodes and relationships inside of the database."""
    if isinstance(value, list):
        return [_without_addresses(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    # Kùzu writes _label, LadybugDB _LABEL.
    named = {name.lower() if name[:1] == "_" else name: part for name, part in value.items()}
    addresses = ("_id", "_src", "_dst")
    return {n: _without_addresses(part) for n, part in named.items() if n not in addresses}


def build_graph(tables: Mapping[str, str], target: str, limits: Limits, ready: Ready) -> Rows:
    """Make a database from Parquet files, at a new path.

    Raises
    ------
    QueryError
        The engine refuses the rows.
    """
    import polars as pl

    frames = {name: pl.scan_parquet(path, glob=False) for name, path in tables.items()}
    # The engine imports Parquet files; they lie beside the database until then.
    folder = Path(f"{target}.rows")
    folder.mkdir()
    engine = import_module(library_name())
    database = engine.Database(target, buffer_pool_size=BUFFER_BYTES)
    connection = engine.Connection(database)
    try:
        for nodes in NODES:
            key = next(iter(nodes.properties))
            columns = f"{_columns(nodes.properties)}, PRIMARY KEY(`{key}`)"
            connection.execute(f"CREATE NODE TABLE {nodes.label}({columns})")
            _copy(connection, nodes.label, frames, folder)
        for links in EDGES:
            columns = ", ".join(
                filter(None, [f"FROM {links.source} TO {links.target}", _columns(links.properties)])
            )
            connection.execute(f"CREATE REL TABLE {links.label}({columns})")
            _copy(connection, links.label, frames, folder)
        connection.execute("CHECKPOINT")
    except RuntimeError as error:
        raise QueryError(f"The graph database cannot be made: {error}") from error
    finally:
        connection.close()
        database.close()
        shutil.rmtree(folder)
    return [], []


def _copy(connection: Any, label: str, tables: Mapping[str, Any], folder: Path) -> None:
    """Import the rows of a label."""
    rows = rows_of(label, tables)
    if rows is None:
        return
    path = folder / f"{label}.parquet"
    rows.sink_parquet(path)
    connection.execute(f"COPY {label} FROM '{_escaped(path)}'")
    path.unlink()


def _columns(properties: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in properties.items())


def _escaped(path: Path) -> str:
    r"""Write a path as a Cypher string in which no character is a wildcard."""
    named = path.as_posix().replace("\\", "\\\\").replace("'", "\\'")
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in named)
