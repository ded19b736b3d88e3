"""Definition of a table, and the types of its columns."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

DataType = pl.DataType | type[pl.DataType]
Kind = Literal["public", "internal", "mapped", "vectors"]

STRINGS = pl.List(pl.String)
INTEGERS = pl.List(pl.Int64)
_TYPES: dict[str, DataType] = {
    "text": pl.String,
    "int32": pl.Int32,
    "int64": pl.Int64,
    "float32": pl.Float32,
    "float64": pl.Float64,
    "bool": pl.Boolean,
    "date": pl.Date,
    "strings": STRINGS,
    "integers": INTEGERS,
    "numbers": pl.List(pl.Int32),
    "hashes": pl.List(pl.UInt64),
    # The length of a vector depends on the embedding model.
    "vector": pl.List(pl.Float32),
}


def parse_columns(columns: str) -> dict[str, DataType]:
    """Parse columns such as "id, level: int64, metadata?"; a column without a type is text."""
    parts = (column.partition(": ") for column in columns.split(", "))
    return {name.removesuffix("?"): _TYPES[dtype or "text"] for name, _, dtype in parts}


def _struct_list(fields: str) -> pl.List:
    return pl.List(pl.Struct(parse_columns(fields)))


# Type of the passages of documents that support a row.
EVIDENCE = _struct_list("document_id, start_char: int64, end_char: int64")
# Type of passages in search tables, with the `human_readable_id` of the document.
PLACES = _struct_list("document: int32, start_char: int32, end_char: int32")
FINDINGS = _struct_list("explanation, summary")
_TYPES |= {
    "evidence": EVIDENCE,
    "places": PLACES,
    "findings": FINDINGS,
    "found_entities": _struct_list(
        "number: int32, name, type, description, start_char: int32, end_char: int32, forms: strings"
    ),
    "found_mentions": _struct_list("entity: int32, start_char: int32, end_char: int32"),
    "found_relationships": _struct_list(
        "source: int32, target: int32, type, description, strength: float64, start_char: int32, "
        "end_char: int32"
    ),
    "claims": _struct_list(
        "subject, object, type, status, start_date, end_date, description, source_text"
    ),
}


@dataclass(frozen=True)
class Table:
    """Definition of a table. The values of a column `id` are unique.

    `public` and `internal` tables are Parquet files; the output folder has a link to each public
    table. `mapped` tables are memory-mapped Arrow files. `vectors` tables are in LanceDB.
    """

    name: str
    row: str  # description of one row
    order: str  # description of the row order
    columns: Mapping[str, DataType]
    kind: Kind = "public"
    nullable: Collection[str] | None = None  # columns that allow nulls; None: all columns
    long: bool = False  # mapped tables: whether rows are long and written in smaller batches
    stemmed: bool = False  # vector tables: whether the full-text index uses English stems

    @property
    def schema(self) -> pl.Schema:
        return pl.Schema(self.columns)

    @property
    def cast_columns(self) -> list[pl.Expr]:
        """Expressions that select the columns of the table in order, and cast them to its types."""
        return [pl.col(name).cast(dtype) for name, dtype in self.columns.items()]

    def empty(self) -> pl.DataFrame:
        return pl.DataFrame(schema=self.schema)


def define(name: str, row: str, order: str, columns: str, kind: Kind, **options: bool) -> Table:
    """Define a table by its columns, such as "id, level: int64, metadata?".

    A column without a type is text. A question mark allows nulls.
    """
    nullable = [c.partition("?")[0] for c in columns.split(", ") if "?" in c]
    return Table(name, row, order, parse_columns(columns), kind, nullable, **options)
