"""Writing a table as a file, Parquet or Arrow: batch by batch, in place when it is whole."""

import os
from collections.abc import Iterator
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.schema.table import Table
from graphrag_index.storage.atomic import temporary_path
from graphrag_index.storage.versions import StoredTable

if TYPE_CHECKING:
    import pyarrow as pa

# Rows of one Parquet row group: what a reader holds in memory at once.
ROW_GROUP = 16_384
# Rows of one batch of a mapped table, and of one with long rows.
MAPPED_BATCH = 65_536
LONG_MAPPED_BATCH = 8_192

SUFFIX = ".parquet"
MAPPED_SUFFIX = ".arrow"


class TableWriter:
    """Writes one table batch by batch under a temporary name; leaving without error places it."""

    suffix = SUFFIX

    def __init__(self, output: Path, version: int, table: Table, file_stem: str) -> None:
        self.table = table
        self.file = f"versions/{version}/{file_stem}{self.suffix}"
        self.path = output / self.file
        self.temporary = temporary_path(self.path)
        self.rows = 0

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.schema = arrow_schema(self.table)
        self.writer: Any = self._open()
        return self

    def _open(self) -> Any:
        import pyarrow.parquet as pq

        # Numbers take more room with a dictionary, and more time.
        texts = list(_text_columns(self.schema))
        return pq.ParquetWriter(
            self.temporary, self.schema, compression="zstd", use_dictionary=texts or False
        )

    def append(self, batch: pl.DataFrame) -> None:
        """Add rows; their columns are checked against the table's and put in its order."""
        self._write(to_arrow(conform(batch, self.table), self.schema))
        self.rows += batch.height

    def _write(self, rows: "pa.Table") -> None:
        self.writer.write_table(rows, ROW_GROUP)

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


class MappedWriter(TableWriter):
    """Writes a mapped table: an Arrow file, not compressed, that is read where it lies.

    All batches but the last have one size, whatever batches it is given.
    """

    suffix = MAPPED_SUFFIX

    def _open(self) -> Any:
        import pyarrow as pa

        self.pending: list[pa.Table] = []
        self.batch = LONG_MAPPED_BATCH if self.table.long else MAPPED_BATCH
        return pa.ipc.new_file(self.temporary, self.schema)

    def _write(self, rows: "pa.Table") -> None:
        self.pending.append(rows)
        n_pending = sum(part.num_rows for part in self.pending)
        if n_pending >= self.batch:
            self._write_pending(n_pending - n_pending % self.batch)

    def _write_pending(self, n_rows: int) -> None:
        import pyarrow as pa

        rows = pa.concat_tables(self.pending).combine_chunks()
        for start in range(0, n_rows, self.batch):
            part = rows.slice(start, min(self.batch, n_rows - start)).to_batches()[0]
            # Copied by row: how a slice is written depends on what lies around it.
            self.writer.write_batch(part.take(pl.int_range(part.num_rows, eager=True).to_arrow()))
        rest = rows.slice(n_rows)
        self.pending = [rest] if rest.num_rows else []

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None and self.pending:
                self._write_pending(sum(part.num_rows for part in self.pending))
        except BaseException as error:
            super().__exit__(type(error), *rest)
            raise
        super().__exit__(kind, *rest)


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
        pl.UInt64(): pa.uint64(),
        pl.Int32(): pa.int32(),
        pl.Float64(): pa.float64(),
        pl.Float32(): pa.float32(),
        pl.Boolean(): pa.bool_(),
        pl.Date(): pa.date32(),
    }
    return plain[dtype]


def _text_columns(fields: Any, before: str = "") -> Iterator[str]:
    """Return the paths of columns of text in a Parquet file, those inside of others too."""
    import pyarrow as pa

    for field in fields:
        path, dtype = f"{before}{field.name}", field.type
        while pa.types.is_list(dtype):
            path, dtype = f"{path}.list.{dtype.value_field.name}", dtype.value_type
        if pa.types.is_struct(dtype):
            yield from _text_columns(dtype, f"{path}.")
        elif pa.types.is_large_string(dtype):
            yield path


def _instance(dtype: Any) -> pl.DataType:
    instance: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return instance


def to_arrow(frame: pl.DataFrame, schema: "pa.Schema") -> "pa.Table":
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)
