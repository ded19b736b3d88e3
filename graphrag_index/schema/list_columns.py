"""Columns of lists, built and read without a loop over the rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Integers = npt.NDArray[np.int64]


def gather_lists(owners: Integers, values: pl.Series, n_lists: int) -> pl.Series:
    """Build a column of `n_lists` lists; list i has the values with owner i, in their order.

    `owners` is ascending. Owners without values get an empty list.
    """
    offsets = np.zeros(n_lists + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=n_lists), out=offsets[1:])
    # The newest form does not copy the strings.
    array = values.to_arrow(compat_level=pl.CompatLevel.newest())
    # pa.array would import pandas if it is installed.
    starts: Any = pl.Series(offsets).to_arrow()
    lists = pl.Series(pa.LargeListArray.from_arrays(starts, array))
    return lists.cast(pl.List(values.dtype))


def spread_lists(lists: pl.Series) -> tuple[Integers, pl.Series]:
    """Return the row of each value of a column of lists, and the values."""
    lengths = lists.list.len().fill_null(0).to_numpy()
    filled = lists.filter(pl.Series(lengths > 0))
    values = filled.explode() if len(filled) else pl.Series([], dtype=lists.dtype.inner)  # type: ignore[attr-defined]
    return np.repeat(np.arange(len(lists)), lengths), values


def _ranges(starts: Integers, lengths: Integers) -> tuple[Integers, Integers]:
    """Return the number of its range, and itself, for each integer of several ranges."""
    place = np.repeat(np.arange(len(starts)), lengths)
    before = np.cumsum(lengths) - lengths
    return place, np.arange(len(place)) + (starts - before)[place]


class Spread:
    """The values of a column of lists, to read those of some rows faster than by gathering."""

    def __init__(self, lists: pl.Series) -> None:
        row, self.values = spread_lists(lists)
        self.bounds = np.searchsorted(row, np.arange(len(lists) + 1))

    def of(self, rows: Integers) -> tuple[Integers, pl.Series]:
        """Return the position in `rows` of each value of these rows, and the values."""
        place, at = _ranges(self.bounds[rows], self.bounds[rows + 1] - self.bounds[rows])
        return place, self.values.gather(at)


def distinct_pairs(owners: Integers, values: Integers) -> tuple[Integers, Integers]:
    """Return pairs of numbers without duplicates, sorted by owner, then value."""
    base = int(values.max(initial=0)) + 1
    # np.unique hashes, which is slower for so many.
    keys = np.sort(owners.astype(np.int64) * base + values)
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = keys[1:] != keys[:-1]
    owners, values = np.divmod(keys[is_new], base)
    return owners, values


class Grouped:
    """Ascending rows of each owner, in two arrays."""

    def __init__(self, owners: Integers, rows: Integers, n_owners: int) -> None:
        self.owners, self.rows = distinct_pairs(owners, rows)
        self.bounds = np.searchsorted(self.owners, np.arange(n_owners + 1))

    @classmethod
    def of(cls, lists: pl.Series, ids: pl.Series) -> "Grouped":
        """Group by list the positions in `ids` of its values; unknown ids are left out."""
        owners, named = spread_lists(lists)
        rows = positions(named, ids)
        return cls(owners[rows >= 0], rows[rows >= 0], len(lists))

    def __getitem__(self, owner: int) -> Integers:
        return self.rows[self.bounds[owner] : self.bounds[owner + 1]]

    def take(self, owners: Integers) -> tuple[Integers, Integers]:
        """Return the position in `owners` of each row of these owners, and the rows."""
        starts = self.bounds[owners]
        place, at = _ranges(starts, self.bounds[owners + 1] - starts)
        return place, self.rows[at]

    def sums(self, values: Integers) -> Integers:
        """Return the sum of the values of the rows of each owner."""
        totals: Integers = np.append(0, np.cumsum(values[self.rows]))
        return totals[self.bounds[1:]] - totals[self.bounds[:-1]]


def positions(wanted: pl.Series, keys: pl.Series) -> Integers:
    """Return the position in `keys` of each wanted value, -1 for unknown ones."""
    places = pl.DataFrame({"key": keys, "place": np.arange(len(keys))})
    found = pl.DataFrame({"key": wanted.cast(keys.dtype)}).join(
        places, on="key", how="left", maintain_order="left"
    )
    places_found: Integers = found["place"].fill_null(-1).to_numpy()
    return places_found
