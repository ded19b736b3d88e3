"""Reading a table in batches, so that memory does not grow with it, and the ids of its rows."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_index.schema.list_columns import Integers, positions, spread_lists
from graphrag_index.storage.table_writer import ROW_GROUP

# Lists read at once: bounds memory, not results.
BATCH_LISTS = 200_000
# Separator of parts. pa.scalar would import pandas if it is installed.
_NOTHING: Any = pl.Series([b""]).to_arrow(compat_level=pl.CompatLevel.oldest())[0]


def batches(rows: pl.LazyFrame, size: int, *, at_least_one: bool = False) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table in order, in batches of `size` and one of the rest.

    Whole row groups are read at once, since a part of one cannot be decoded alone. So the rows
    should be short, unlike texts of documents. An empty table yields nothing, or with
    `at_least_one` an empty batch.
    """
    n_read = size * max(1, ROW_GROUP // size)
    offset = 0
    while True:
        read = rows.slice(offset, n_read).collect()
        if read.height or (at_least_one and not offset):
            yield from read.iter_slices(size) if read.height else (read,)
        if read.height < n_read:
            return
        offset += n_read


def list_pairs(lists: pl.LazyFrame, ids: pl.Series) -> tuple[Integers, Integers]:
    """Return the rows of a column of lists of ids, and the position in `ids` of each value.

    Values that `ids` lacks are left out.
    """
    rows, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    offset = 0
    for batch in batches(lists, BATCH_LISTS):
        row, values = spread_lists(batch.to_series())
        at = positions(values, ids)
        rows.append(offset + row[at >= 0])
        found.append(at[at >= 0])
        offset += batch.height
    return np.concatenate(rows), np.concatenate(found)


def content_ids(*parts: str | pl.Series) -> pl.Series:
    """Return the `content_id` of each row.

    A string is a part of every row; of a column each value, and of a column of lists each value
    of the list, is a part. The rows are joined in memory, so pass long ones in batches.
    """
    rows = pc.binary_join_element_wise(*map(_measured, parts), _NOTHING)
    hashes = [blake2b(row, digest_size=16).hexdigest() for row in pl.Series(rows)]
    return pl.Series(hashes, dtype=pl.String)


def _measured(part: str | pl.Series) -> Any:
    """Prefix each text by its length in eight bytes, as `content_id` does."""
    if isinstance(part, str):
        return _measured(pl.Series([part]))[0]
    if isinstance(part.dtype, pl.List):
        lists: Any = part.to_arrow(compat_level=pl.CompatLevel.oldest())
        # The values of a slice only.
        values = _measured(pl.Series(lists.flatten(), dtype=pl.String))
        starts = pc.subtract(lists.offsets, lists.offsets[0])
        return pc.binary_join(pa.LargeListArray.from_arrays(starts, values), _NOTHING)
    texts: Any = part.cast(pl.Binary).to_arrow(compat_level=pl.CompatLevel.oldest())
    sizes = np.ascontiguousarray(part.str.len_bytes().cast(pl.UInt64).to_numpy(), "<u8")
    buffers = [None, pa.py_buffer(sizes)]
    lengths = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(sizes), buffers)
    return pc.binary_join_element_wise(lengths.cast(pa.large_binary()), texts, _NOTHING)
