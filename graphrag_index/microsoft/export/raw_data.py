"""Records that we keep as JSON text, as the structs that Microsoft GraphRAG keeps them as."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


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
