"""Reuse of rows of the last version if their input is unchanged; batches and ids of rows."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Protocol, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.schema.tables import Table, content_id
from graphrag_index.storage.table_store import Previous
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE
from graphrag_nlp.list_columns import (
    Integers,
    NumberLists,
    find_rows,
    gather_lists,
    spread_lists,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")
Flags = npt.NDArray[np.bool_]
# Number of lists that are read at once. It limits memory and does not change results.
LISTS_PER_BATCH = 200_000
DOCUMENTS_PER_READ = 256


def read_batches(
    rows: pl.LazyFrame, size: int, *, at_least_one: bool = False, has_long_texts: bool = False
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table in order, in batches of `size` rows; the last may be smaller.

    Whole row groups are read, since polars would decode a row group again for each batch in it.
    With `has_long_texts`, such as texts of documents, only one batch is in memory. An empty table
    yields nothing; with `at_least_one` it yields an empty batch.
    """
    n_read = size if has_long_texts else size * max(1, ROW_GROUP_SIZE // size)
    offset = 0
    while True:
        read = rows.slice(offset, n_read).collect()
        if read.height or (at_least_one and not offset):
            yield from read.iter_slices(size) if read.height else (read,)
        if read.height < n_read:
            return
        offset += n_read


def regroup_batches(batches: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield the same rows in batches of full row groups; only the last may have other rows.

    So the file of a table does not depend on the sizes of the batches. Only batches without rows
    yield a batch without rows.
    """
    rest: list[pl.DataFrame] = []
    n_yielded = 0
    for batch in batches:
        # The writer of a table begins a page at each chunk of memory, so join the chunks.
        rows = pl.concat([*rest, batch], rechunk=True)
        n_full = rows.height - rows.height % ROW_GROUP_SIZE
        if n_full:
            yield rows[:n_full]
            n_yielded += n_full
        rest = [rows[n_full:]]
    if rest and (rest[0].height or not n_yielded):
        yield rest[0]


def join_batches(
    batches: Iterable[Mapping[str, pl.DataFrame]], tables: Iterable[Table] = ()
) -> dict[str, pl.DataFrame]:
    """Join the batches that a step yields to whole tables; `tables` without a batch are empty."""
    parts = {table.name: [table.empty()] for table in tables}
    for batch in batches:
        for name, frame in batch.items():
            parts.setdefault(name, []).append(frame)
    return {name: pl.concat(frames) for name, frames in parts.items()}


def split_by_size(rows: pl.DataFrame, max_bytes: int) -> Iterator[pl.DataFrame]:
    """Split rows so that the texts of a part have at most `max_bytes`, or are a single text."""
    ends = rows["text"].str.len_bytes().cum_sum().to_numpy()
    start = 0
    while start < rows.height:
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + max_bytes, "right")))
        yield rows.slice(start, end - start)
        start = end


def read_stable_batches(documents: pl.LazyFrame, mean_bytes: int) -> Iterator[pl.DataFrame]:
    """Yield documents in order, in batches that an update elsewhere does not change.

    A batch ends after a document whose hashed id says so. Hence an added, changed or removed
    document changes its own batch, and at most the batch after it. The texts of a batch have
    `mean_bytes` on average. `documents` have the columns `id` and `text`.
    """
    pending: list[pl.DataFrame] = []
    for rows in read_batches(documents, DOCUMENTS_PER_READ, has_long_texts=True):
        hashes = np.array([crc32(document_id.encode()) for document_id in rows["id"]])
        # A longer text ends a batch more often, so that batches have equal sizes on average.
        ends = hashes * (mean_bytes / 2**32) < rows["text"].str.len_bytes().to_numpy()
        start = 0
        for end in (np.flatnonzero(ends) + 1).tolist():
            yield pl.concat([*pending, rows[start:end]])
            pending, start = [], end
        pending.append(rows[start:])
    if any(map(len, pending)):
        yield pl.concat(pending)


def locate_list_values(lists: pl.LazyFrame, ids: pl.Series) -> tuple[Integers, Integers]:
    """Return (row, position in `ids`) of each value of a column of lists of ids, as two arrays.

    Values that are not in `ids` are left out.
    """
    rows, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    offset = 0
    for batch in read_batches(lists, LISTS_PER_BATCH):
        row, values = spread_lists(batch.to_series())
        at = find_rows(values, ids)
        rows.append(offset + row[at >= 0])
        found.append(at[at >= 0])
        offset += batch.height
    return np.concatenate(rows), np.concatenate(found)


def read_number_lists(lists: pl.LazyFrame, ids: pl.Series) -> NumberLists:
    """Read a column of lists of ids as lists of 32-bit positions in `ids`.

    Values that are not in `ids` are left out.
    """
    lengths, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for batch in read_batches(lists, LISTS_PER_BATCH):
        row, named = spread_lists(batch.to_series())
        at = find_rows(named, ids)
        lengths.append(np.bincount(row[at >= 0], minlength=batch.height))
        values.append(at[at >= 0].astype(np.int32))
    n = np.concatenate(lengths)
    return NumberLists(np.cumsum(n) - n, n, np.concatenate(values))


def content_ids(*parts: str | pl.Series) -> pl.Series:
    """Return the `content_id` of each row; at least one part must be a column.

    A string is a part of every row. A column gives each row one part: its value. A column of
    lists gives each row one part per value of its list.
    """
    columns: list[Iterable[Iterable[str]]] = []
    for part in parts:
        if isinstance(part, str):
            columns.append(repeat((part,)))
        else:
            columns.append(part.to_list() if part.dtype == pl.List else zip(part, strict=True))
    rows = map(chain.from_iterable, zip(*columns, strict=False))
    return pl.Series([content_id(*row) for row in rows], dtype=pl.String)


class StoredReplies(Protocol):
    """Store of model replies: the ledger, the cache of replies, or a chat model that uses it."""

    def reply_hashes(self, keys: Iterable[str]) -> list[str]: ...

    def mark_used(self, keys: Iterable[str]) -> None: ...


def reuse_rows(
    previous: Previous,
    table: Table,
    key: pl.Series,
    *,
    column: str = "input_hash",
    where: pl.Expr | None = None,
    replies: StoredReplies | None = None,
) -> tuple[pl.DataFrame, Flags]:
    """Return reusable rows of the last version, and a flag for each key without such a row.

    `key` has the value of `column` for each wanted row; an empty string matches nothing. `where`
    is a condition on the rows of the last version. `replies` is for a table with the columns
    `request_keys` and `reply_hashes`: a row is reused only if all its replies are still stored
    and unchanged, and its requests are marked as used. The result has the columns of the table
    and `at`, the position in `key`, ascending.
    """
    kept = table.empty().with_columns(pl.lit(None, pl.Int64).alias("at"))
    tables = open_previous(previous, [table])
    if tables is not None:
        rows = tables[0] if where is None else tables[0].filter(where)
        kept = read_or_fallback(
            kept, table.name, lambda: _join_rows(rows, key, column, replies).select(kept.columns)
        )
    if replies is not None:
        replies.mark_used(spread_lists(kept["request_keys"])[1].to_list())
    todo = np.ones(len(key), bool)
    todo[kept["at"].to_numpy()] = False
    return kept, todo


def open_previous(previous: Previous, tables: Sequence[Table]) -> list[pl.LazyFrame] | None:
    """Open tables of the last version; None if a table is missing or has other columns."""

    def open_one(table: Table) -> pl.LazyFrame | None:
        rows = previous.scan(table.name)
        return rows if rows is not None and rows.collect_schema() == table.schema else None

    opened = (read_or_fallback(None, table.name, partial(open_one, table)) for table in tables)
    found = [rows for rows in opened if rows is not None]
    return found if len(found) == len(tables) else None


def read_or_fallback(fallback: T, name: str, read: Callable[[], T]) -> T:
    """Read a table of the last version; if it is damaged, log this and return the fallback."""
    try:
        return read()
    except (OSError, TableError, pl.exceptions.PolarsError) as error:
        logger.warning(
            "The table %s of the last run cannot be read: its rows are computed again (%s)",
            name,
            error,
        )
        return fallback


def make_reply_rows(
    table: Table, rows: Sequence[tuple[object, ...]], replies: StoredReplies
) -> pl.DataFrame:
    """Return rows of a table with their reply hashes; an item `at` precedes the values of a row."""
    schema = {"at": pl.Int64, **table.columns}
    del schema["reply_hashes"]
    return add_reply_hashes(pl.DataFrame(rows, schema, orient="row"), replies)


def add_reply_hashes(rows: pl.DataFrame, replies: StoredReplies) -> pl.DataFrame:
    """Add the column `reply_hashes`: for each request key a hash, or "" if no reply is stored."""
    owners, keys = spread_lists(rows["request_keys"])
    hashes = pl.Series(replies.reply_hashes(keys), dtype=pl.String)
    return rows.with_columns(reply_hashes=gather_lists(owners, hashes, rows.height))


def _join_rows(
    rows: pl.LazyFrame, key: pl.Series, column: str, replies: StoredReplies | None
) -> pl.DataFrame:
    """Join one row to each key: the first, since rows with the same key are equal."""
    wanted = pl.DataFrame({column: key, "at": np.arange(len(key))})
    if key.dtype == pl.String:
        wanted = wanted.filter(pl.col(column) != "")
    checked = [] if replies is None else ["request_keys", "reply_hashes"]
    numbered = rows.with_row_index("row")
    found = (
        numbered.select("row", column, *checked)
        .unique(column, keep="first")
        .join(wanted.lazy(), on=column)
        .collect()
    )
    if replies is not None:
        # Drop rows with an empty hash: without a stored reply there is nothing to compare.
        found = found.filter(~pl.col("reply_hashes").list.contains(""))
        now = add_reply_hashes(found.select("request_keys"), replies)["reply_hashes"]
        found = found.filter(found["reply_hashes"] == now)
    return numbered.join(found.lazy().select("row", "at"), on="row").sort("at").collect()


def read_owned_rows(rows: pl.LazyFrame, starts: Integers, owners: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of some owners, joined to `owners` on its column `number`.

    `rows` are in the order of their owners, such as documents. `starts` has the position of the
    first row of each owner; its last item is the number of rows. All rows from the first owner to
    the last owner are read.
    """
    wanted = owners["number"].to_numpy()
    first, last = int(wanted.min()), int(wanted.max())
    starts = starts[first : last + 2]
    found = rows.slice(int(starts[0]), int(starts[-1] - starts[0])).collect()
    numbers = np.repeat(np.arange(first, last + 1), np.diff(starts))
    return found.with_columns(number=numbers).join(owners, on="number", maintain_order="left")
