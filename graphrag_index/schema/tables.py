"""All tables of an index, by name, and the types of columns. `tables.yaml` defines them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files
from typing import Any, Literal

import polars as pl
import yaml

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
    full_text: bool = False  # vector tables: whether the column text has a full-text index
    source: str = ""  # mapped and vector tables: the public table with the same rows, if any
    embedded: Sequence[str] = ()  # vector tables: the source columns, which are joined by a colon

    @property
    def schema(self) -> pl.Schema:
        return pl.Schema(self.columns)

    @property
    def cast_columns(self) -> list[pl.Expr]:
        """Expressions that select the columns of the table in order, and cast them to its types."""
        return [pl.col(name).cast(dtype) for name, dtype in self.columns.items()]

    def empty(self) -> pl.DataFrame:
        return pl.DataFrame(schema=self.schema)


def _define_table(name: str, columns: str, **fields: Any) -> Table:
    nullable = [column.partition("?")[0] for column in columns.split(", ") if "?" in column]
    return Table(name, columns=parse_columns(columns), nullable=nullable, **fields)


_DEFINITIONS = files(__package__).joinpath("tables.yaml").read_text(encoding="utf-8")
_RECORDS, _TABLES = yaml.load_all(_DEFINITIONS, yaml.CSafeLoader)
_TYPES |= {name: pl.List(pl.Struct(parse_columns(text))) for name, text in _RECORDS.items()}
EVIDENCE, PLACES, FINDINGS = (_TYPES[name] for name in ("evidence", "places", "findings"))
TABLES: Mapping[str, Table] = {
    name: _define_table(name, **fields) for name, fields in _TABLES.items()
}
# Mapped tables that have one row for each row of a public table, and the public table.
ROWS_OF = {name: t.source for name, t in TABLES.items() if t.source and t.kind == "mapped"}
# The mapped tables that the step create_search_tables makes from the public tables. Other steps
# write the vectors and the map.
SEARCH_TABLES = tuple(
    name
    for name, table in TABLES.items()
    if table.kind == "mapped"
    and name not in ("text_unit_vectors", "map_communities", "map_entities")
)
# For each vector table: the embedded table, and its columns, which are joined by a colon.
EMBEDDED_COLUMNS = {name: (t.source, tuple(t.embedded)) for name, t in TABLES.items() if t.embedded}

# The text of text units as models and searches read it: below the header row of its table, and
# with joined words. Their column `text` has the characters of the document.
READING = pl.coalesce("reading", "text")


def content_id(*parts: str) -> str:
    """Return a hash of the parts that identify a row: 32 hex digits.

    The length of each part is hashed before the part, so that ("ab", "c") and ("a", "bc") differ.
    `content_ids` does the same for many rows.
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def derive_document_id(text: str, n_earlier: Mapping[bytes, int]) -> tuple[bytes, str]:
    """Return (hash of the text, id) of a document without an id of its own.

    `n_earlier` has the number of earlier documents with the same text, by the hash of the text.
    """
    key = bytes.fromhex(content_id("document", text, "0"))
    n = n_earlier.get(key, 0)
    return key, content_id("document", text, str(n)) if n else key.hex()
