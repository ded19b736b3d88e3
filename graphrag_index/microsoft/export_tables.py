"""The tables of Microsoft GraphRAG 3, and beside them what only ours have."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.errors import TableError, describe_error
from graphrag_index.schema.table import STRINGS, Table
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.batches import batches
from graphrag_index.storage.table_writer import ROW_GROUP, arrow_schema, to_arrow
from graphrag_index.storage.vector_store import (
    FRAGMENT_ROWS,
    VectorTable,
    connect,
    failures_of_the_disk,
)

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


def record_type(batches: "Iterable[list[str | None]]") -> "pa.DataType":
    """Find the one type of all records.

    Null if there is none; text if no struct can hold them all, as where a field is a number in
    one and a list in another, or where one is no JSON object.
    """
    import pyarrow as pa

    found = pa.null()
    for batch in batches:
        try:
            types = [found, pa.array(_values(batch)).type]
            fields = [pa.schema([("record", each)]) for each in types]
            found = pa.unify_schemas(fields, promote_options="permissive").field(0).type
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return pa.large_string()
    is_record = pa.types.is_null(found) or (pa.types.is_struct(found) and _can_be_written(found))
    return found if is_record else pa.large_string()


def records(texts: "list[str | None]", kind: "pa.DataType") -> "pa.Array":
    """Turn JSON texts into values of the type that `record_type` found."""
    import pyarrow as pa

    return pa.array(texts if pa.types.is_large_string(kind) else _values(texts), kind)


def _values(texts: "list[str | None]") -> list[Any]:
    return [None if text is None else json.loads(text) for text in texts]


def _can_be_written(kind: "pa.DataType") -> bool:
    """Parquet has no struct without fields."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_can_be_written(part.type) for part in kind)
    return not pa.types.is_list(kind) or _can_be_written(kind.value_type)


# Each has the same name there.
VECTOR_TABLES = ("text_unit_text", "entity_description", "community_full_content")
# Its drift search takes the vector of every report, and stops where one lacks.
_COMPLETE = "community_full_content"


def write_vectors(vectors: VectorTable, name: str, lancedb: Path, date: str | None) -> int:
    """Write ids and vectors; return how many rows were left out.

    A vector of zeros stands for one that could not be had. There the smallest distance wins,
    and zeros would lie nearer to most questions than what answers them.
    """
    schema, stamps, left_out = _schema(vectors.dimension), _stamps(date), 0
    with failures_of_the_disk(lancedb):
        written = connect(lancedb).create_table(name, schema=schema)
    for batch in _batches(vectors, name):
        is_there = _is_there(batch, vectors.dimension)
        if name != _COMPLETE and not is_there.all():
            left_out += int((~is_there).sum())
            batch = batch.filter(is_there)
        with failures_of_the_disk(lancedb):
            written.add(_complete(batch, schema, stamps))
    return left_out


def _batches(vectors: VectorTable, name: str) -> "Iterator[pa.RecordBatch]":
    """The rows in the order of our table, as many at once as a fragment has."""
    try:
        yield from vectors.table.search().select(["id", "vector"]).to_batches(FRAGMENT_ROWS)
    except (ValueError, RuntimeError, OSError) as error:
        raise TableError(
            f"The vectors {name} break off ({describe_error(error)[:120]}): run "
            "`graphrag-index run` to write them again."
        ) from error


def _is_there(batch: "pa.RecordBatch", width: int) -> Any:
    numbers = batch.column("vector").flatten().to_numpy(zero_copy_only=False)
    return numbers.reshape(-1, width).any(axis=1)


def _complete(batch: "pa.RecordBatch", schema: "pa.Schema", stamps: Mapping[str, Any]) -> Any:
    """Add the columns that are the same in every row."""
    import pyarrow as pa

    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.repeat(pa.scalar(stamps.get(field.name), field.type), batch.num_rows)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _schema(dimension: int) -> "pa.Schema":
    import pyarrow as pa

    fields = [("id", pa.string()), ("vector", pa.list_(pa.float32(), dimension))]
    fields += [("create_date", pa.string()), ("update_date", pa.string())]
    parts = _parts(datetime.min)
    for moment in ("create_date", "update_date"):
        fields += [
            (f"{moment}_{part}", pa.string() if isinstance(value, str) else pa.int64())
            for part, value in parts.items()
        ]
    return pa.schema(fields)


def _stamps(date: str | None) -> dict[str, Any]:
    """The columns that tell when a row was made; it has not been changed since."""
    if date is None:
        return {}
    parts = _parts(datetime.fromisoformat(date))
    return {"create_date": date, **{f"create_date_{part}": parts[part] for part in parts}}


def _parts(moment: datetime) -> dict[str, int | str]:
    return {
        "year": moment.year,
        "month": moment.month,
        "month_name": moment.strftime("%B"),
        "day": moment.day,
        "day_of_week": moment.strftime("%A"),
        "hour": moment.hour,
        "quarter": (moment.month - 1) // 3 + 1,
    }
