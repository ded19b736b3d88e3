"""Our own index, opened at one version for looking over."""

from pathlib import Path

import polars as pl

from graphrag_index.errors import TableError, describe_error
from graphrag_index.health.finding import Finding
from graphrag_index.health.opened_index import Opened, damaged_table
from graphrag_index.microsoft.read_files import LanceVectors
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import TableStore, open_index
from graphrag_index.storage.vector_store import VectorTable


def open_own(output: Path, as_of: int | None = None) -> Opened:
    """Open the index in an output folder.

    A table whose file is gone or cut off is a finding, not an error.

    Raises
    ------
    TableError
        There is no index, or not that version of it.
    """
    store = TableStore(output)
    if as_of is None:
        store, version = open_index(output)
    else:
        version = store.read_version(as_of)
    tables: dict[str, dict[str, pl.LazyFrame]] = {"public": {}, "mapped": {}}
    vectors, damaged = {}, []
    for name, stored in version.tables.items():
        kind = TABLES[name].kind if name in TABLES else "other"
        try:
            if kind == "vectors":
                opened = VectorTable.open(store.lancedb, name, stored.lance_version)
                vectors[name] = LanceVectors(opened.table)
            elif kind in tables:
                tables[kind][name] = _readable(store.scan(name, stored))
        except TableError as error:
            damaged.append(Finding(name, 1, 1, (), str(error)))
        except (pl.exceptions.PolarsError, OSError) as error:
            damaged.append(damaged_table(name, describe_error(error), output / str(stored.file)))
    return Opened(
        store.output,
        f"graphrag-index {version.program}, workflow {version.workflow}, version {version.number}",
        version.number,
        tables["public"],
        dict(vectors),
        tables["mapped"],
        damaged,
        made_vectors={
            name: stored.vectors.identity
            for name, stored in version.tables.items()
            if stored.vectors is not None and stored.vectors.identity is not None
        },
        as_imported=any(record.name == "read_imported" for record in version.steps),
    )


def _readable(rows: pl.LazyFrame) -> pl.LazyFrame:
    rows.collect_schema()
    return rows
