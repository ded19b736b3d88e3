"""Writing of tables as Parquet or Arrow files in batches, and checks of their rows."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.schema.tables import Table
from graphrag_index.storage.atomic import digest_file, flush_file, temporary_path
from graphrag_index.storage.versions import StoredTable

if TYPE_CHECKING:
    import pyarrow as pa

# Rows per Parquet row group. A row group is always read completely.
ROW_GROUP_SIZE = 16_384
# Rows per batch of a mapped table, and of a mapped table with long rows.
MAPPED_BATCH = 65_536  # rows
LONG_MAPPED_BATCH = 8_192  # rows

SUFFIX = ".parquet"
MAPPED_SUFFIX = ".arrow"


class TableWriter:
    """Writer of a Parquet file, which gets its final name if the `with` block succeeds."""

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
        self.writer: Any = self._open_writer()
        return self

    def _open_writer(self) -> Any:
        import pyarrow.parquet as pq

        # Encode only texts with a dictionary: it would make columns of numbers larger and slower.
        texts = list(_text_column_paths(self.schema))
        return pq.ParquetWriter(
            self.temporary, self.schema, compression="zstd", use_dictionary=texts or False
        )

    def append(self, batch: pl.DataFrame) -> None:
        """Check the columns of a batch of rows, and write the rows."""
        self._write_rows(to_arrow(cast_to_table(batch, self.table), self.schema))
        self.rows += batch.height

    def _write_rows(self, rows: "pa.Table") -> None:
        self.writer.write_table(rows, ROW_GROUP_SIZE)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.writer.close()
            if kind is None:
                flush_file(self.temporary)
                digest = digest_file(self.temporary)
                self.temporary.replace(self.path)
                n_bytes = self.path.stat().st_size
                self.stored = StoredTable(self.rows, digest, self.file, n_bytes)
        finally:
            self.temporary.unlink(missing_ok=True)


class MappedWriter(TableWriter):
    """Writer of an uncompressed Arrow file for memory mapping, in batches of equal size."""

    suffix = MAPPED_SUFFIX

    def _open_writer(self) -> Any:
        import pyarrow as pa

        self.regrouped = EqualBatches(LONG_MAPPED_BATCH if self.table.long else MAPPED_BATCH)
        return pa.ipc.new_file(self.temporary, self.schema)

    def _write_rows(self, rows: "pa.Table", is_last: bool = False) -> None:
        for part in self.regrouped.add(rows, is_last):
            [batch] = part.to_batches()
            # Copy the batch: the bytes of a slice would depend on the rows around the slice.
            self.writer.write_batch(batch.take(pl.int_range(batch.num_rows, eager=True).to_arrow()))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._write_rows(empty_table(self.schema), is_last=True)
        except BaseException as error:
            super().__exit__(type(error), *rest)
            raise
        super().__exit__(kind, *rest)


class EqualBatches:
    """Buffer that regroups the rows of appended tables to tables of equal size."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.pending: list[pa.Table] = []

    def add(self, rows: "pa.Table", is_last: bool = False) -> "Iterator[pa.Table]":
        """Add rows; yield each full table as one chunk, and the rest if `is_last`."""
        import pyarrow as pa

        self.pending.append(rows)
        n_rows = sum(part.num_rows for part in self.pending)
        if n_rows < self.size and not is_last:
            return
        n_full = n_rows if is_last else n_rows - n_rows % self.size
        pending = pa.concat_tables(self.pending)
        self.pending = [pending.slice(n_full)]
        for start in range(0, n_full, self.size):
            yield pending.slice(start, min(self.size, n_full - start)).combine_chunks()


def cast_to_table(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Order and cast the columns of a frame like its table; raise TableError if they do not fit."""
    check_columns(frame, table)
    try:
        return frame.select(table.cast_columns)
    except pl.exceptions.PolarsError as error:
        raise TableError(f"The table {table.name} has values of a wrong type: {error}.") from error


def check_columns(frame: pl.DataFrame, table: Table) -> None:
    """Raise TableError unless a frame has exactly the columns of a table, in any order."""
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
    """Return the Arrow schema of a table; texts are large strings, list items are `element`."""
    import pyarrow as pa

    return pa.schema([pa.field(name, _arrow_type(dtype)) for name, dtype in table.schema.items()])


def _arrow_type(dtype: Any) -> "pa.DataType":
    import pyarrow as pa

    if dtype == pl.List:
        return pa.list_(pa.field("element", _arrow_type(dtype.inner)))
    if dtype == pl.Struct:
        return pa.struct([pa.field(part.name, _arrow_type(part.dtype)) for part in dtype.fields])
    return pl.Series(dtype=dtype).to_arrow(compat_level=pl.CompatLevel.oldest()).type


def _text_column_paths(fields: Any, before: str = "") -> Iterator[str]:
    """Yield the paths of the text columns of a Parquet file, including nested columns."""
    import pyarrow as pa

    for field in fields:
        path, dtype = f"{before}{field.name}", field.type
        while pa.types.is_list(dtype):
            path, dtype = f"{path}.list.{dtype.value_field.name}", dtype.value_type
        if pa.types.is_struct(dtype):
            yield from _text_column_paths(dtype, f"{path}.")
        elif pa.types.is_large_string(dtype):
            yield path


def empty_table(schema: "pa.Schema") -> "pa.Table":
    """Return a table without rows; `schema.empty_table()` imports pandas if it is installed."""
    import pyarrow as pa

    return pa.Table.from_batches([], schema)


def to_arrow(frame: pl.DataFrame, schema: "pa.Schema") -> "pa.Table":
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)


def write_parquet(
    path: Path, schema: Mapping[str, pl.DataType], batches: Iterable[pl.DataFrame]
) -> None:
    """Write batches of rows to a Parquet file outside an index; `schema` has the columns."""
    import pyarrow.parquet as pq

    columns = pl.DataFrame(schema=schema).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    with path.open("wb") as file, pq.ParquetWriter(file, columns, compression="zstd") as writer:
        for batch in batches:
            rows = batch.select(pl.col(name).cast(dtype) for name, dtype in schema.items())
            writer.write_table(to_arrow(rows, columns))


class TableCheck:
    """Checker of the batches that a step writes to one table."""

    def __init__(self, step_name: str, table: Table) -> None:
        self.table = table
        self.step_wrote = f"Step {step_name} wrote {table.name} with"
        self.rows = 0
        # 64-bit hashes of the ids; collisions are unlikely even with a billion rows.
        self.ids: list[pl.Series] = []

    def add(self, batch: pl.DataFrame) -> None:
        """Check a batch; raise TableError for wrong columns, wrong types or forbidden nulls."""
        try:
            check_columns(batch, self.table)
        except TableError as error:
            raise TableError(f"{self.step_wrote} the wrong columns. {error}") from None
        for name, dtype in self.table.schema.items():
            column = batch[name]
            if not can_cast(column.dtype, dtype):
                raise TableError(
                    f"{self.step_wrote} {column.dtype} in the column {name} of type {dtype}."
                )
            # `nullable` is None for a table of a step that the user wrote: nulls are allowed.
            if self.table.nullable is not None and name not in self.table.nullable:
                self._refuse_nulls(column)
        if "id" in batch.columns:
            self.ids.append(batch["id"].hash())
        self.rows += batch.height

    def _refuse_nulls(self, column: pl.Series) -> None:
        has_null = column.to_frame().select(_has_null(pl.first(), column.dtype)).to_series()
        if has_null.any():
            row = int(has_null.arg_max() or 0)
            where = "in" if column[row] is None else "inside of"
            raise TableError(
                f"{self.step_wrote} null {where} the column {column.name} (row {self.rows + row})."
            )

    def finish(self) -> None:
        """Raise TableError if two rows of all batches have the same id."""
        ids = pl.concat(self.ids) if self.ids else pl.Series(dtype=pl.UInt64)
        if ids.n_unique() == len(ids):
            return
        again = int(ids.is_first_distinct().not_().arg_max() or 0)
        first = int((ids == ids[again]).arg_max() or 0)
        raise TableError(f"{self.step_wrote} the same id in the rows {first} and {again}.")


def can_cast(given: Any, wanted: Any) -> bool:
    """Return whether values of a type can be cast to another type without changing the values.

    Integers may be cast to floats and to integers of other widths. The cast checks the range.
    """
    if given in (pl.Null, wanted):
        return True
    if wanted == pl.List and given in (pl.List, pl.Array):
        return can_cast(given.inner, wanted.inner)
    if wanted == pl.Struct and given == pl.Struct:
        parts = {part.name: part.dtype for part in given.fields}
        return parts.keys() == {part.name for part in wanted.fields} and all(
            can_cast(parts[part.name], part.dtype) for part in wanted.fields
        )
    if wanted.is_integer():
        return bool(given.is_integer())
    if wanted.is_float():
        return bool(given.is_integer() or (given.is_float() and wanted == pl.Float64))
    return wanted == pl.String and given in (pl.Categorical, pl.Enum)


def _has_null(values: pl.Expr, dtype: Any) -> pl.Expr:
    """Return an expression that is true for a value that is null, or has a null at any depth."""
    if dtype == pl.Array:
        return _has_null(values.arr.to_list(), pl.List(dtype.inner))
    if dtype == pl.List:
        return values.is_null() | values.list.eval(_has_null(pl.element(), dtype.inner)).list.any()
    if dtype == pl.Struct:
        parts = [_has_null(values.struct[part.name], part.dtype) for part in dtype.fields]
        return values.is_null() | pl.any_horizontal(parts)
    return values.is_null()
