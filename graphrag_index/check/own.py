"""Our own index, opened at one version for looking over."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.check.finding import Finding
from graphrag_index.check.opened import Opened, damaged_table
from graphrag_index.core.errors import TableError, describe_error
from graphrag_index.core.table_store import TableStore
from graphrag_index.core.tables import TABLES
from graphrag_index.core.vector_store import VectorTable
from graphrag_index.show import open_index

# Vectors read at once.
_AT_ONCE = 8_192


class LanceVectors:
    """A LanceDB table, read batch by batch."""

    def __init__(self, table: Any) -> None:
        self.table = table

    @property
    def dimension(self) -> int:
        return int(self.table.schema.field("vector").type.list_size)

    def batches(self) -> Iterator[pl.DataFrame]:
        columns = [name for name in ("id", "vector", "text") if name in self.table.schema.names]
        try:
            for batch in self.table.search().select(columns).to_batches(_AT_ONCE):
                yield pl.DataFrame(batch)
        except (ValueError, RuntimeError, OSError) as error:
            raise TableError(
                f"The vectors {self.table.name} break off ({describe_error(error)[:120]}): make "
                "them again."
            ) from error


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
    )


def _readable(rows: pl.LazyFrame) -> pl.LazyFrame:
    rows.collect_schema()
    return rows
