"""What the definition of a table is, and the types of columns that several have."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

STRINGS = pl.List(pl.String)
INTEGERS = pl.List(pl.Int64)
# A passage of a document that proves what a row says.
EVIDENCE = pl.List(
    pl.Struct({"document_id": pl.String, "start_char": pl.Int64, "end_char": pl.Int64})
)
# The same, with the number of the document.
PLACES = pl.List(pl.Struct({"document": pl.Int32, "start_char": pl.Int32, "end_char": pl.Int32}))
NUMBERS = pl.List(pl.Int32)
HASHES = pl.List(pl.UInt64)
FINDINGS = pl.List(pl.Struct({"explanation": pl.String, "summary": pl.String}))
# MiniLM and most others give 32-bit floats; the width is the embedding model's.
VECTOR = pl.List(pl.Float32)


@dataclass(frozen=True)
class Table:
    """The definition of one table.

    `kind` tells where it lies: `public` and `internal` tables are Parquet files,
    public ones are linked into the output folder; `mapped` tables are Arrow files that
    searches read row by row without loading them; `vectors` are LanceDB tables.
    `nullable` names the columns that may hold nulls; without it any may. Rows that are
    `long`, with texts or vectors, are written in smaller batches where a table is mapped.
    Words of tables of vectors are searched as they stand, where `stemmed` by their English stems.
    A column `id` is different in every row.
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
