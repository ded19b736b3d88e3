"""Functions that build and read columns of lists without a loop over the rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Integers = npt.NDArray[np.int64]


def gather_lists(owners: Integers, values: pl.Series, n_lists: int) -> pl.Series:
    """Build a column of `n_lists` lists; list i has the values of owner i, in their order.

    `owners` has the owner of each value, ascending. An owner without values gets an empty list.
    """
    offsets = np.zeros(n_lists + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=n_lists), out=offsets[1:])
    # With the newest Arrow types, polars does not copy the strings.
    array = values.to_arrow(compat_level=pl.CompatLevel.newest())
    # The array is made by polars, since pa.array may import pandas.
    starts: Any = pl.Series(offsets).to_arrow()
    lists = pl.Series(pa.LargeListArray.from_arrays(starts, array))
    return lists.cast(pl.List(values.dtype))


def gather_by_owner(rows: pl.DataFrame, n_lists: int) -> pl.Series:
    """Build a column of lists with the values of each `owner`; several columns become structs.

    The column `owner` is ascending, as in `gather_lists`.
    """
    values = rows.drop("owner")
    items = values.to_struct() if values.width > 1 else values.to_series()
    return gather_lists(rows["owner"].to_numpy(), items, n_lists)


def pack_lists(lists: Sequence[Sequence[Any]], dtype: Any = pl.Int64) -> pl.Series:
    """Build a column of lists of a type from short lists, faster than polars does."""
    values = pl.Series([*chain.from_iterable(lists)], dtype=dtype)
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    return gather_lists(np.repeat(np.arange(len(lists)), lengths), values, len(lists))


def spread_lists(lists: pl.Series) -> tuple[Integers, pl.Series]:
    """Return (row of each value, values) for all values in a column of lists."""
    lengths = lists.list.len().fill_null(0).to_numpy()
    filled = lists.filter(pl.Series(lengths > 0))
    values = filled.explode() if len(filled) else pl.Series([], dtype=lists.dtype.inner)  # type: ignore[attr-defined]
    return np.repeat(np.arange(len(lists)), lengths), values


def expand_ranges(starts: Integers, lengths: Integers) -> tuple[Integers, Integers]:
    """List all integers of some ranges; return the range and the integer of each.

    Range i contains `lengths[i]` integers from `starts[i]` on.
    """
    position = np.repeat(np.arange(len(starts)), lengths)
    return position, np.arange(len(position)) + (starts - np.cumsum(lengths) + lengths)[position]


@dataclass(frozen=True)
class NumberLists:
    """Lists of numbers: list i is the slice of `values` of length `lengths[i]` at `starts[i]`."""

    starts: Integers
    lengths: Integers
    values: npt.NDArray[np.int32]

    def __getitem__(self, order: Integers) -> "NumberLists":
        """Return some of the lists, in this order; they share their values."""
        return NumberLists(self.starts[order], self.lengths[order], self.values)

    def take(self, lists: Integers) -> tuple[Integers, npt.NDArray[np.int32]]:
        """Return (position in `lists`, value) for each value of these lists, as two arrays."""
        position, at = expand_ranges(self.starts[lists], self.lengths[lists])
        return position, self.values[at]


def number_values(values: pl.Series) -> tuple[Integers, pl.Series]:
    """Return a number for each text of a column, and the distinct texts by number."""
    coded = values.cast(pl.Categorical(pl.Categories.random())).to_physical()
    numbers = coded.cast(pl.Int64).to_numpy()
    rows = np.zeros(numbers.max(initial=-1) + 1, np.int64)
    rows[numbers] = np.arange(len(numbers))
    return numbers, values.gather(rows)


def distinct_pairs(owners: Integers, values: Integers) -> tuple[Integers, Integers]:
    """Return pairs of numbers without duplicates, sorted by owner, then value."""
    base = int(values.max(initial=0)) + 1
    # Sorting is faster here than np.unique, which uses hashes.
    keys = np.sort(owners.astype(np.int64) * base + values)
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = keys[1:] != keys[:-1]
    owners, values = np.divmod(keys[is_new], base)
    return owners, values


class RowGroups:
    """Rows grouped by owner, ascending, stored in two arrays."""

    def __init__(self, owners: Integers, rows: Integers, n_owners: int) -> None:
        self.owners, self.rows = distinct_pairs(owners, rows)
        self.bounds = np.searchsorted(self.owners, np.arange(n_owners + 1))

    @classmethod
    def from_ids(cls, lists: pl.Series, ids: pl.Series) -> "RowGroups":
        """Make each list of ids an owner of the rows of these ids; leave out unknown ids.

        `ids` has the id of each row.
        """
        owners, named = spread_lists(lists)
        rows = find_rows(named, ids)
        return cls(owners[rows >= 0], rows[rows >= 0], len(lists))

    def __getitem__(self, owner: int) -> Integers:
        return self.rows[self.bounds[owner] : self.bounds[owner + 1]]

    def take(self, owners: Integers) -> tuple[Integers, Integers]:
        """Return (position in `owners`, row) for each row of these owners, as two arrays."""
        starts = self.bounds[owners]
        position, at = expand_ranges(starts, self.bounds[owners + 1] - starts)
        return position, self.rows[at]

    def sums(self, values: Integers) -> Integers:
        """Return the sum of `values` over the rows of each owner."""
        totals: Integers = np.append(0, np.cumsum(values[self.rows]))
        return totals[self.bounds[1:]] - totals[self.bounds[:-1]]


def find_rows(wanted: pl.Series, keys: pl.Series) -> Integers:
    """Return the row in `keys` of each wanted value; -1 for an unknown value."""
    known = pl.DataFrame({"key": keys, "at": np.arange(len(keys))})
    rows = pl.DataFrame({"key": wanted.cast(keys.dtype)})
    found = rows.join(known, on="key", how="left", maintain_order="left")["at"]
    return np.asarray(found.fill_null(-1))


def keep_first_keys(keys: pl.Series) -> pl.Series:
    """Replace keys that repeat an earlier one by null, so that `find_rows` finds the first."""
    return keys.set(~keys.is_first_distinct(), None)
