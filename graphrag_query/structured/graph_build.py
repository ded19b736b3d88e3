"""Makes the graph database of a version; runs in the process of `worker`, which may fail alone."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphrag_index.errors import QueryError
from graphrag_query.structured.engine_cypher import BUFFER_BYTES, library
from graphrag_query.structured.graph_schema import LINKS, NODES, rows_of
from graphrag_query.structured.limits import Limits
from graphrag_query.structured.worker import Ready, Rows


def run(tables: Mapping[str, str], target: str, limits: Limits, ready: Ready) -> Rows:
    """Make a database of Parquet files, at a path where there is none.

    Raises
    ------
    QueryError
        The engine refuses the rows.
    """
    import polars as pl

    frames = {name: pl.scan_parquet(path, glob=False) for name, path in tables.items()}
    # The engine reads Parquet files; they lie beside the database until it has.
    folder = Path(f"{target}.rows")
    folder.mkdir()
    engine = library()
    database = engine.Database(target, buffer_pool_size=BUFFER_BYTES)
    connection = engine.Connection(database)
    try:
        for nodes in NODES:
            key = next(iter(nodes.properties))
            columns = f"{_columns(nodes.properties)}, PRIMARY KEY(`{key}`)"
            connection.execute(f"CREATE NODE TABLE {nodes.label}({columns})")
            _copy(connection, nodes.label, frames, folder)
        for links in LINKS:
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
    """Put the rows of a label into its table."""
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
    r"""Write a path as a text of Cypher in which no letter stands for several."""
    named = path.as_posix().replace("\\", "\\\\").replace("'", "\\'")
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in named)
