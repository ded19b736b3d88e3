"""Reading a table in parts, so that memory does not grow with it."""

from collections.abc import Iterator

import polars as pl

from graphrag_index.storage.table_writer import ROW_GROUP


def batches(rows: pl.LazyFrame, size: int, *, at_least_one: bool = False) -> Iterator[pl.DataFrame]:
    """Give the rows of a table in order, `size` at once, and at the end those that are left.

    As many are read at once as stand in one group of a file, since a group of which a part is
    wanted is decoded whole: the rows are to be short, which texts of documents are not. A table
    without rows gives nothing, or with `at_least_one` a batch of none.
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
