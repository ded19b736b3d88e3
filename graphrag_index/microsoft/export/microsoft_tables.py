"""The tables of Microsoft GraphRAG 3, and beside them what only ours have."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.microsoft.export.raw_data import record_type, records
from graphrag_index.schema.table import STRINGS, Table
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.batches import batches
from graphrag_index.storage.table_writer import ROW_GROUP, arrow_schema, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

# The first column of each table that is only ours; None if there is none.
FIRST_OWN: Mapping[str, str | None] = {
    "documents": "path",
    "text_units": "start_char",
    "entities": "x",
    "relationships": "source_id",
    "communities": "island",
    "community_reports": None,
    "covariates": None,
}
# Columns of both whose values are others there: ours are kept beside.
DIFFERENT = {"documents": ["raw_data"], "communities": ["title", "text_unit_ids"]}
# Public tables that are only ours.
OWN_TABLES = tuple(
    name for name, table in TABLES.items() if table.kind == "public" and name not in FIRST_OWN
)
# Their ending is not .parquet, since `graphrag update` copies every such file from all folders
# below its output, and has no folder to copy these to.
OWN_SUFFIX = ".arrow"

Tables = Mapping[str, pl.LazyFrame]


def shared_columns(name: str) -> list[str]:
    """The columns that Microsoft's table has, in its order."""
    columns = list(TABLES[name].columns)
    first = FIRST_OWN[name]
    return columns if first is None else columns[: columns.index(first)]


def own_columns(name: str) -> list[str]:
    """The columns that are kept beside Microsoft's table."""
    shared = shared_columns(name)
    return DIFFERENT.get(name, []) + [c for c in TABLES[name].columns if c not in shared]


def write_tables(tables: Tables, folder: Path) -> None:
    """Write each of Microsoft's tables that is there as Parquet, row for row in its order."""
    import pyarrow.parquet as pq

    for name in (name for name in FIRST_OWN if name in tables):
        rows, change = tables[name].select(shared_columns(name)), _change(name, tables)
        raw_data = record_type(_texts(rows)) if name == "documents" else None
        schema = microsoft_schema(name, raw_data)
        with pq.ParquetWriter(folder / f"{name}.parquet", schema, compression="snappy") as writer:
            for batch in batches(rows, ROW_GROUP):
                writer.write_table(_as_microsoft(change(batch), schema), ROW_GROUP)


def write_own(tables: Tables, folder: Path) -> None:
    """Write what is only ours: columns row for row, and whole tables."""
    import pyarrow as pa

    folder.mkdir()
    parts = {name: own_columns(name) for name in FIRST_OWN}
    parts |= {name: list(TABLES[name].columns) for name in OWN_TABLES}
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    for name, columns in parts.items():
        if name not in tables or not columns:
            continue
        schema = arrow_schema(_part(TABLES[name], columns))
        path = folder / f"{name}{OWN_SUFFIX}"
        with pa.ipc.new_file(path, schema, options=options) as writer:
            for batch in batches(tables[name].select(columns), ROW_GROUP):
                writer.write_table(to_arrow(batch, schema))


def microsoft_schema(name: str, raw_data: "pa.DataType | None" = None) -> "pa.Schema":
    """The schema of Microsoft's file: large strings, but plain ones in lists."""
    import pyarrow as pa

    ours = arrow_schema(_part(TABLES[name], shared_columns(name)))
    return pa.schema(
        [
            pa.field(
                field.name,
                raw_data if field.name == "raw_data" else _plain_in_lists(field.type, within=False),
            )
            for field in ours
        ]
    )


def _plain_in_lists(kind: "pa.DataType", within: bool) -> "pa.DataType":
    import pyarrow as pa

    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _plain_in_lists(kind.value_type, within=True)))
    if pa.types.is_struct(kind):
        return pa.struct([(part.name, _plain_in_lists(part.type, within)) for part in kind])
    return pa.string() if within and pa.types.is_large_string(kind) else kind


def _as_microsoft(batch: pl.DataFrame, schema: "pa.Schema") -> "pa.Table":
    if "raw_data" not in schema.names:
        return to_arrow(batch, schema)
    import pyarrow as pa

    place = schema.get_field_index("raw_data")
    rest = to_arrow(batch.drop("raw_data"), schema.remove(place))
    raw_data = records(batch["raw_data"].to_list(), schema.field(place).type)
    return rest.add_column(place, schema.field(place), pa.chunked_array([raw_data]))


def _change(name: str, tables: Tables) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """What makes rows of ours those of Microsoft, where they differ."""
    if name != "communities":
        return lambda batch: batch
    shown = _shown_by_relationships(tables["communities"], tables["relationships"])

    def named_and_shown(batch: pl.DataFrame) -> pl.DataFrame:
        found = batch.select("community").join(
            shown, on="community", how="left", maintain_order="left"
        )
        # An island has a title of its own here; there every title is made of the number.
        title = pl.when(found["island"]).then("Community " + pl.col("community").cast(pl.String))
        return batch.with_columns(
            title.otherwise("title").alias("title"),
            found["text_unit_ids"].fill_null(batch["text_unit_ids"]).alias("text_unit_ids"),
        )

    return named_and_shown


def _shown_by_relationships(communities: pl.LazyFrame, relationships: pl.LazyFrame) -> pl.DataFrame:
    """The text units of the relationships alone, for communities that have others here."""
    others = communities.filter(
        pl.col("island") | (pl.col("relationship_ids").list.len() == 0)
    ).select("community", "island", "relationship_ids")
    texts = (
        others.select("community", id="relationship_ids")
        .explode("id")
        .join(relationships.select("id", "text_unit_ids"), on="id")
        .explode("text_unit_ids")
        .drop_nulls("text_unit_ids")
        .group_by("community")
        .agg(pl.col("text_unit_ids").unique().sort())
    )
    return (
        others.select("community", "island")
        .join(texts, on="community", how="left")
        .with_columns(pl.col("text_unit_ids").fill_null(pl.lit([], STRINGS)))
        .collect()
    )


def _texts(rows: pl.LazyFrame) -> "Iterator[list[str | None]]":
    for batch in batches(rows.select("raw_data"), ROW_GROUP):
        yield batch["raw_data"].to_list()


def _part(table: Table, columns: list[str]) -> Table:
    types: dict[str, Any] = {name: table.columns[name] for name in columns}
    return Table(table.name, table.row, table.order, types)
