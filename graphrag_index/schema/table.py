"""The definition of a table, and column types that several tables share."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

STRINGS = pl.List(pl.String)
INTEGERS = pl.List(pl.Int64)
# Passages of documents that support a row.
EVIDENCE = pl.List(
    pl.Struct({"document_id": pl.String, "start_char": pl.Int64, "end_char": pl.Int64})
)
# The same, with `human_readable_id` of the document.
PLACES = pl.List(pl.Struct({"document": pl.Int32, "start_char": pl.Int32, "end_char": pl.Int32}))
NUMBERS = pl.List(pl.Int32)
HASHES = pl.List(pl.UInt64)
FINDINGS = pl.List(pl.Struct({"explanation": pl.String, "summary": pl.String}))
# The embedding model decides the length.
VECTOR = pl.List(pl.Float32)


@dataclass(frozen=True)
class Table:
    """The definition of one table.

    A column `id` is unique.

    Parameters
    ----------
    row, order
        Descriptions of one row and of the row order, for the documentation.
    kind
        `public` and `internal` tables are Parquet files; public ones are linked into the output
        folder. `mapped` tables are memory-mapped Arrow files. `vectors` are LanceDB tables.
    nullable
        Columns that may contain nulls; None allows them everywhere.
    long
        Rows of a mapped table contain texts or vectors and are written in smaller batches.
    stemmed
        The full-text index of a vector table uses English stems.
    """

    name: str
    row: str
    order: str
    columns: Mapping[str, pl.DataType | type[pl.DataType]]
    kind: Literal["public", "internal", "mapped", "vectors"] = "public"
    nullable: Collection[str] | None = None
    long: bool = False
    stemmed: bool = False

    @property
    def schema(self) -> pl.Schema:
        return pl.Schema(self.columns)

    def empty(self) -> pl.DataFrame:
        return pl.DataFrame(schema=self.schema)
