"""Indexes of a few rows, for tests of what reads a finished index."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StepRecord, StoredTable, Version


def write_index(output: Path, vectors_by: str | None = None, **tables: pl.DataFrame) -> Path:
    """Write tables as the first version of an index; `vectors_by` is the model of its vectors."""
    store = TableStore(output)
    stored: dict[str, StoredTable] = {}
    for name, frame in tables.items():
        with store.writer(1, TABLES[name], name) as writer:
            writer.append(frame)
        stored[name] = writer.stored
        if writer.stored.vectors is not None:
            vectors = replace(writer.stored.vectors, model=vectors_by)
            stored[name] = replace(writer.stored, vectors=vectors)
    step = StepRecord("all_steps", "key", stored)
    store.move_pointer(Version(number=1, workflow="small", program="0.1.0", steps=(step,)))
    return output


def table(name: str, *rows: dict[str, object]) -> pl.DataFrame:
    """Make a table; what a row does not say is 0, empty or false."""
    schema = TABLES[name].schema
    default = {column: _nothing(dtype) for column, dtype in schema.items()}
    return pl.DataFrame([{**default, **row} for row in rows], schema=schema)


def _nothing(dtype: pl.DataType) -> object:
    if isinstance(dtype, pl.List):
        return []
    if dtype == pl.String:
        return ""
    return False if dtype == pl.Boolean else 0
