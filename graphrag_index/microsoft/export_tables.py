"""The files of an export to Microsoft GraphRAG 3: tables, vectors, and our own columns."""

import json
from collections.abc import Callable, Iterator, Mapping
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
# Shared columns whose values differ: ours are kept beside.
DIFFERENT = {"documents": ["raw_data"], "communities": ["title", "text_unit_ids"]}
# Public tables that are only ours.
OWN_TABLES = tuple(
    name for name, table in TABLES.items() if table.kind == "public" and name not in FIRST_OWN
)
# Not .parquet: `graphrag update` tries to copy every such file below its output, and fails.
OWN_SUFFIX = ".arrow"
VECTOR_TABLES = ("text_unit_text", "entity_description", "community_full_content")
# Its drift search fails if a report has no vector.
_COMPLETE = "community_full_content"

Tables = Mapping[str, pl.LazyFrame]


def shared_columns(name: str) -> list[str]:
    """Return the columns of Microsoft's table, in its order."""
    columns = list(TABLES[name].columns)
    first = FIRST_OWN[name]
    return columns if first is None else columns[: columns.index(first)]


def own_columns(name: str) -> list[str]:
    """Return the columns that are kept beside Microsoft's table."""
    shared = shared_columns(name)
    return DIFFERENT.get(name, []) + [c for c in TABLES[name].columns if c not in shared]


def write_tables(tables: Tables, folder: Path) -> None:
    """Write Microsoft's tables as Parquet, row for row in our order."""
    import pyarrow.parquet as pq

    for name in (name for name in FIRST_OWN if name in tables):
        rows, convert = tables[name].select(shared_columns(name)), _conversion(name, tables)
        raw_data = None
        if name == "documents":
            texts = batches(rows.select("raw_data"), ROW_GROUP)
            raw_data = record_type(batch["raw_data"].to_list() for batch in texts)
        schema = _microsoft_schema(name, raw_data)
        with pq.ParquetWriter(folder / f"{name}.parquet", schema, compression="snappy") as writer:
            for batch in batches(rows, ROW_GROUP):
                writer.write_table(_to_microsoft(convert(batch), schema), ROW_GROUP)


def write_own(tables: Tables, folder: Path) -> None:
    """Write our own columns row for row, and our own tables."""
    import pyarrow as pa

    folder.mkdir()
    parts = {name: own_columns(name) for name in FIRST_OWN}
    parts |= {name: list(TABLES[name].columns) for name in OWN_TABLES}
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    for name, columns in parts.items():
        if name not in tables or not columns:
            continue
        schema = arrow_schema(_with_columns(TABLES[name], columns))
        path = folder / f"{name}{OWN_SUFFIX}"
        with pa.ipc.new_file(path, schema, options=options) as writer:
            for batch in batches(tables[name].select(columns), ROW_GROUP):
                writer.write_table(to_arrow(batch, schema))


def _with_columns(table: Table, columns: list[str]) -> Table:
    types: dict[str, Any] = {name: table.columns[name] for name in columns}
    return Table(table.name, table.row, table.order, types)


def _microsoft_schema(name: str, raw_data: "pa.DataType | None") -> "pa.Schema":
    """Return the schema of Microsoft's file: large strings, but plain ones in lists."""
    import pyarrow as pa

    fields = arrow_schema(_with_columns(TABLES[name], shared_columns(name)))
    kinds = {field.name: _plain_in_lists(field.type) for field in fields}
    if "raw_data" in kinds:
        kinds["raw_data"] = raw_data
    return pa.schema(list(kinds.items()))


def _plain_in_lists(kind: "pa.DataType", within: bool = False) -> "pa.DataType":
    import pyarrow as pa

    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _plain_in_lists(kind.value_type, within=True)))
    if pa.types.is_struct(kind):
        return pa.struct([(part.name, _plain_in_lists(part.type, within)) for part in kind])
    return pa.string() if within and pa.types.is_large_string(kind) else kind


def _to_microsoft(batch: pl.DataFrame, schema: "pa.Schema") -> "pa.Table":
    if "raw_data" not in schema.names:
        return to_arrow(batch, schema)
    import pyarrow as pa

    at = schema.get_field_index("raw_data")
    rest = to_arrow(batch.drop("raw_data"), schema.remove(at))
    raw_data = parse_records(batch["raw_data"].to_list(), schema.field(at).type)
    return rest.add_column(at, schema.field(at), pa.chunked_array([raw_data]))


def _conversion(name: str, tables: Tables) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Return the function that replaces the values which differ there."""
    if name != "communities":
        return lambda batch: batch
    replaced = _relationship_text_units(tables["communities"], tables["relationships"])

    def convert(batch: pl.DataFrame) -> pl.DataFrame:
        found = batch.select("community").join(
            replaced, on="community", how="left", maintain_order="left"
        )
        title = pl.when(found["island"]).then("Community " + pl.col("community").cast(pl.String))
        return batch.with_columns(
            title.otherwise("title").alias("title"),
            found["text_unit_ids"].fill_null(batch["text_unit_ids"]).alias("text_unit_ids"),
        )

    return convert


def _relationship_text_units(
    communities: pl.LazyFrame, relationships: pl.LazyFrame
) -> pl.DataFrame:
    """Return the text units of the relationships, for communities that have others here."""
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


def record_type(batches: Iterator[list[str | None]]) -> "pa.DataType":
    """Return the one Arrow type of all JSON records.

    Null if there are none; text if no struct holds them all, as where a field is a number in
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
    is_record = pa.types.is_null(found) or (pa.types.is_struct(found) and _is_writable(found))
    return found if is_record else pa.large_string()


def parse_records(texts: list[str | None], kind: "pa.DataType") -> "pa.Array":
    """Parse JSON records to the type that `record_type` found."""
    import pyarrow as pa

    return pa.array(texts if pa.types.is_large_string(kind) else _values(texts), kind)


def _values(texts: list[str | None]) -> list[Any]:
    return [None if text is None else json.loads(text) for text in texts]


def _is_writable(kind: "pa.DataType") -> bool:
    """Tell whether Parquet can hold a type: it has no struct without fields."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_writable(part.type) for part in kind)
    return not pa.types.is_list(kind) or _is_writable(kind.value_type)


def write_vectors(vectors: VectorTable, name: str, lancedb: Path, date: str | None) -> int:
    """Write a vector table as version 3.0.3 and later do; return how many rows were skipped.

    Vectors of zeros stand for missing ones. There the smallest distance wins, and zeros would
    be closer to most questions than the rows that answer them.
    """
    schema, stamps, n_skipped = _vector_schema(vectors.dimension), _stamps(date), 0
    with failures_of_the_disk(lancedb):
        written = connect(lancedb).create_table(name, schema=schema)
    for batch in _vector_batches(vectors, name):
        numbers = batch.column("vector").flatten().to_numpy(zero_copy_only=False)
        is_present = numbers.reshape(-1, vectors.dimension).any(axis=1)
        if name != _COMPLETE and not is_present.all():
            n_skipped += int((~is_present).sum())
            batch = batch.filter(is_present)
        with failures_of_the_disk(lancedb):
            written.add(_with_stamps(batch, schema, stamps))
    return n_skipped


def _vector_batches(vectors: VectorTable, name: str) -> "Iterator[pa.RecordBatch]":
    """Yield the rows in the order of our table, a fragment at a time."""
    try:
        yield from vectors.table.search().select(["id", "vector"]).to_batches(FRAGMENT_ROWS)
    except (ValueError, RuntimeError, OSError) as error:
        raise TableError(
            f"The vectors {name} break off ({describe_error(error)[:120]}): run "
            "`graphrag-index run` to write them again."
        ) from error


def _with_stamps(
    batch: "pa.RecordBatch", schema: "pa.Schema", stamps: Mapping[str, Any]
) -> "pa.Table":
    """Add the columns that are the same in every row."""
    import pyarrow as pa

    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.repeat(pa.scalar(stamps.get(field.name), field.type), batch.num_rows)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _vector_schema(dimension: int) -> "pa.Schema":
    import pyarrow as pa

    fields = [("id", pa.string()), ("vector", pa.list_(pa.float32(), dimension))]
    fields += [("create_date", pa.string()), ("update_date", pa.string())]
    parts = _date_parts(datetime.min)
    for moment in ("create_date", "update_date"):
        fields += [
            (f"{moment}_{part}", pa.string() if isinstance(value, str) else pa.int64())
            for part, value in parts.items()
        ]
    return pa.schema(fields)


def _stamps(date: str | None) -> dict[str, Any]:
    """Return the columns of the date of creation; those of an update stay null."""
    if date is None:
        return {}
    parts = _date_parts(datetime.fromisoformat(date))
    return {"create_date": date, **{f"create_date_{part}": parts[part] for part in parts}}


def _date_parts(moment: datetime) -> dict[str, int | str]:
    return {
        "year": moment.year,
        "month": moment.month,
        "month_name": moment.strftime("%B"),
        "day": moment.day,
        "day_of_week": moment.strftime("%A"),
        "hour": moment.hour,
        "quarter": (moment.month - 1) // 3 + 1,
    }
