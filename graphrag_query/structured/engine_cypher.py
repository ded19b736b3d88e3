"""Cypher by LadybugDB or Kùzu, whose interfaces are one, over a database that is only read."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from graphrag_index.errors import QueryError
from graphrag_query.structured.limits import Limits
from graphrag_query.structured.worker import DamagedError, Ready, Rows

# LadybugDB is the living fork of Kùzu.
MODULES = ("real_ladybug", "kuzu")
# What it keeps of the database in memory.
BUFFER_BYTES = 1 << 28


def library() -> Any:
    """Import the first of these engines that is installed.

    Raises
    ------
    QueryError
        None is.
    """
    return import_module(library_name())


def library_name() -> str:
    """Name the first of these engines that is installed."""
    name = next(filter(find_spec, MODULES), None)
    if name is None:
        raise QueryError("Cypher needs a graph engine: pip install 'graphrag-index[cypher]'.")
    return name


def run(tables: Mapping[str, str], query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query over the database at `tables["graph"]`.

    Raises
    ------
    QueryError
        It is no Cypher, or fails.
    DamagedError
        The database cannot be opened.
    """
    engine = library()
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
        said = " ".join(str(error).split())
        if "buffer manager" in said.lower() or "std::bad_alloc" in said:
            raise MemoryError from error
        raise QueryError(f"{said.rstrip('.')}.") from error
    connection.close()
    database.close()
    return names, rows


def _rows(found: Any, most: int) -> Iterator[Sequence[Any]]:
    while found.has_next() and most:
        yield [_without_addresses(value) for value in found.get_next()]
        most -= 1


def _without_addresses(value: Any) -> Any:
    """Take out of nodes and relationships where they lie in the database."""
    if isinstance(value, list):
        return [_without_addresses(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    # Kùzu writes _label, LadybugDB _LABEL.
    named = {name.lower() if name[:1] == "_" else name: part for name, part in value.items()}
    addresses = ("_id", "_src", "_dst")
    return {n: _without_addresses(part) for n, part in named.items() if n not in addresses}
