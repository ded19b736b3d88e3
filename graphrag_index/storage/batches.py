"""Reading a table in batches, so that memory does not grow with it."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from graphrag_index.schema.list_columns import Integers, positions, spread_lists
from graphrag_index.storage.table_writer import ROW_GROUP

# Lists read at once: bounds memory, not results.
BATCH_LISTS = 200_000


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
