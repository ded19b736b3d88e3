"""The vector tables of Microsoft GraphRAG 3.0.3 and later."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import TableError, describe_error
from graphrag_index.storage.vector_store import (
    FRAGMENT_ROWS,
    VectorTable,
    connect,
    failures_of_the_disk,
)

if TYPE_CHECKING:
    import pyarrow as pa

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
