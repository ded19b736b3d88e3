"""Writing a table as a Parquet file: its schema, batch by batch, in place when it is whole."""

import os
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.core.atomic import temporary_path
from graphrag_index.core.errors import TableError
from graphrag_index.core.tables import Table
from graphrag_index.core.versions import StoredTable

if TYPE_CHECKING:
    import pyarrow as pa

# Rows of one Parquet row group: what a reader holds in memory at once.
ROW_GROUP = 16_384


class TableWriter:
    """Writes one table batch by batch under a temporary name; leaving without error places it."""

    def __init__(self, output: Path, version: int, table: Table, file_stem: str) -> None:
        self.table = table
        self.file = f"versions/{version}/{file_stem}.parquet"
        self.path = output / self.file
        self.temporary = temporary_path(self.path)
        self.rows = 0

    def __enter__(self) -> "TableWriter":
        import pyarrow.parquet as pq

        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.schema = arrow_schema(self.table)
        self.writer = pq.ParquetWriter(self.temporary, self.schema, compression="zstd")
        return self

    def append(self, batch: pl.DataFrame) -> None:
        """Add rows; their columns are checked against the table's and put in its order."""
        self.writer.write_table(to_arrow(conform(batch, self.table), self.schema), ROW_GROUP)
        self.rows += batch.height

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.writer.close()
            if kind is None:
                self.stored = self._place()
        finally:
            self.temporary.unlink(missing_ok=True)

    def _place(self) -> StoredTable:
        with self.temporary.open("r+b") as file:
            digest = file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
            n_bytes = file.tell()
            # The pointer must not reach the disk before what it names.
            os.fsync(file.fileno())
        self.temporary.replace(self.path)
        return StoredTable(rows=self.rows, digest=digest, file=self.file, n_bytes=n_bytes)


def conform(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Put a frame's columns in the table's order and cast them to its types.

    Raises
    ------
    TableError
        A column is missing, is not the table's, or holds values of another kind.
    """
    check_columns(frame, table)
    try:
        return frame.select(pl.col(name).cast(dtype) for name, dtype in table.columns.items())
    except pl.exceptions.PolarsError as error:
        raise TableError(f"The table {table.name} has values of a wrong type: {error}.") from error


def check_columns(frame: pl.DataFrame, table: Table) -> None:
    """See that a frame has a table's columns, in any order.

    Raises
    ------
    TableError
        A column is missing, or is not the table's.
    """
    missing = [name for name in table.columns if name not in frame.columns]
    unknown = [name for name in frame.columns if name not in table.columns]
    if missing or unknown:
        raise TableError(
            f"The table {table.name} must have the columns {', '.join(table.columns)}"
            + (f"; missing: {', '.join(missing)}" if missing else "")
            + (f"; unknown: {', '.join(unknown)}" if unknown else "")
            + "."
        )


def arrow_schema(table: Table) -> "pa.Schema":
    """Return the schema of the table's file: large strings, lists whose child is `element`."""
    import pyarrow as pa

    return pa.schema([pa.field(name, _arrow_type(dtype)) for name, dtype in table.schema.items()])


def _arrow_type(dtype: pl.DataType) -> "pa.DataType":
    import pyarrow as pa

    if isinstance(dtype, pl.List):
        return pa.list_(pa.field("element", _arrow_type(_instance(dtype.inner))))
    if isinstance(dtype, pl.Struct):
        return pa.struct(
            [pa.field(part.name, _arrow_type(_instance(part.dtype))) for part in dtype.fields]
        )
    plain: dict[pl.DataType, pa.DataType] = {
        pl.String(): pa.large_string(),
        pl.Int64(): pa.int64(),
        pl.Int32(): pa.int32(),
        pl.Float64(): pa.float64(),
        pl.Float32(): pa.float32(),
        pl.Boolean(): pa.bool_(),
    }
    return plain[dtype]


def _instance(dtype: Any) -> pl.DataType:
    instance: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return instance


def to_arrow(frame: pl.DataFrame, schema: "pa.Schema") -> "pa.Table":
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)
