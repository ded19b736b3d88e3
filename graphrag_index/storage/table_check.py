"""What a step gives for a table: its columns, of its types, no nulls, and no id twice."""

from typing import Any

import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.schema.table import Table
from graphrag_index.storage.table_writer import check_columns


class TableCheck:
    """Checks the batches that a step gives for one table; `finish` looks at all of them."""

    def __init__(self, step_name: str, table: Table) -> None:
        self.table = table
        self.wrote = f"Step {step_name} wrote {table.name} with"
        self.rows = 0
        # A number for each id: 64 bits, of which two ids of a billion rows hardly share one.
        self.ids: list[pl.Series] = []

    def add(self, batch: pl.DataFrame) -> None:
        """Check a batch.

        Raises
        ------
        TableError
            A column is missing or unknown, has another type, or a null that may not be there.
        """
        try:
            check_columns(batch, self.table)
        except TableError as error:
            raise TableError(f"{self.wrote} the wrong columns. {error}") from None
        for name, dtype in self.table.schema.items():
            column = batch[name]
            if not fits(column.dtype, dtype):
                raise TableError(
                    f"{self.wrote} {column.dtype} in the column {name}, which is {dtype}."
                )
            # Steps of one's own need not say where their tables have nulls.
            if self.table.nullable is not None and name not in self.table.nullable:
                self._refuse_nulls(column)
        if "id" in batch.columns:
            self.ids.append(batch["id"].hash())
        self.rows += batch.height

    def _refuse_nulls(self, column: pl.Series) -> None:
        if column.null_count():
            row = self.rows + int(column.is_null().arg_max() or 0)
            raise TableError(f"{self.wrote} null in the column {column.name} (row {row}).")
        if column.dtype.is_nested() and _has_nulls(
            column.to_arrow(compat_level=pl.CompatLevel.newest())
        ):
            row = self.rows + next(
                number for number, value in enumerate(column) if _holds_null(value)
            )
            raise TableError(f"{self.wrote} null inside of the column {column.name} (row {row}).")

    def finish(self) -> None:
        """Check what only all batches together show.

        Raises
        ------
        TableError
            Two rows have the same id.
        """
        ids = pl.concat(self.ids) if self.ids else pl.Series(dtype=pl.UInt64)
        if ids.n_unique() == len(ids):
            return
        again = int(ids.is_first_distinct().not_().arg_max() or 0)
        first = int((ids == ids[again]).arg_max() or 0)
        raise TableError(f"{self.wrote} the same id in the rows {first} and {again}.")


def fits(given: pl.DataType, wanted: Any) -> bool:
    """Tell whether values of a type become those of another without changing their meaning.

    Integers may become wider or floats, and narrower ones if each fits, which the cast sees.
    """
    if isinstance(given, pl.Null) or given == wanted:
        return True
    if isinstance(wanted, pl.List) and isinstance(given, pl.List | pl.Array):
        return fits(_instance(given.inner), _instance(wanted.inner))
    if isinstance(wanted, pl.Struct) and isinstance(given, pl.Struct):
        parts = {part.name: _instance(part.dtype) for part in given.fields}
        return parts.keys() == {part.name for part in wanted.fields} and all(
            fits(parts[part.name], _instance(part.dtype)) for part in wanted.fields
        )
    if wanted.is_integer():
        return given.is_integer()
    if wanted.is_float():
        return given.is_integer() or (given.is_float() and wanted == pl.Float64)
    return wanted == pl.String and isinstance(given, pl.Categorical | pl.Enum)


def _instance(dtype: Any) -> pl.DataType:
    instance: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return instance


def _has_nulls(values: Any) -> bool:
    """Look for nulls in an Arrow array and in all that it holds; their counts cost nothing."""
    import pyarrow as pa

    if values.null_count:
        return True
    if pa.types.is_struct(values.type):
        return any(_has_nulls(values.field(i)) for i in range(values.type.num_fields))
    is_list = pa.types.is_list(values.type) or pa.types.is_large_list(values.type)
    return (is_list or pa.types.is_fixed_size_list(values.type)) and _has_nulls(values.flatten())


def _holds_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_null(part) for part in value.values())
    if isinstance(value, list | pl.Series):
        return any(_holds_null(part) for part in value)
    return value is None
