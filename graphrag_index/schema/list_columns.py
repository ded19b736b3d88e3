"""Lists in columns, built and unbuilt without a loop over the rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Integers = npt.NDArray[np.int64]


def gather_lists(owners: Integers, values: pl.Series, n_lists: int) -> pl.Series:
    """Make `n_lists` lists, of which list i holds the values whose owner is i.

    `owners` is ascending; the order of the values is kept. A number that owns
    nothing gets an empty list.
    """
    offsets = np.zeros(n_lists + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=n_lists), out=offsets[1:])
    # The newest form shares the strings instead of copying them.
    array = values.to_arrow(compat_level=pl.CompatLevel.newest())
    # Not by pa.array, which would load pandas where there is one.
    starts: Any = pl.Series(offsets).to_arrow()
    lists = pl.Series(pa.LargeListArray.from_arrays(starts, array))
    return lists.cast(pl.List(values.dtype))


def spread_lists(lists: pl.Series) -> tuple[Integers, pl.Series]:
    """Undo `gather_lists`: the number of the owning row of each value, and the values."""
    lengths = lists.list.len().fill_null(0).to_numpy()
    filled = lists.filter(pl.Series(lengths > 0))
    values = filled.explode() if len(filled) else pl.Series([], dtype=lists.dtype.inner)  # type: ignore[attr-defined]
    return np.repeat(np.arange(len(lists)), lengths), values


class Spread:
    """The values of a column of lists, for those of any of its rows.

    To gather the lists themselves takes many times as long where they hold structs.
    """

    def __init__(self, lists: pl.Series) -> None:
        row, self.values = spread_lists(lists)
        self.bounds = np.searchsorted(row, np.arange(len(lists) + 1))

    def of(self, rows: Integers) -> tuple[Integers, pl.Series]:
        """Return what `spread_lists` returns for these rows, in their order."""
        starts = self.bounds[rows]
        lengths = self.bounds[rows + 1] - starts
        place = np.repeat(np.arange(len(rows)), lengths)
        before = np.cumsum(lengths) - lengths
        return place, self.values.gather(np.arange(len(place)) + (starts - before)[place])


def distinct_pairs(owners: Integers, values: Integers) -> tuple[Integers, Integers]:
    """Each pair of numbers once, sorted by owner, then value."""
    base = int(values.max(initial=0)) + 1
    # np.unique would hash first, which takes several times as long for this many.
    keys = np.sort(owners.astype(np.int64) * base + values)
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = keys[1:] != keys[:-1]
    owners, values = np.divmod(keys[is_new], base)
    return owners, values


class Grouped:
    """The rows of each owner, ascending, in two arrays."""

    def __init__(self, owners: Integers, rows: Integers, n_owners: int) -> None:
        self.owners, self.rows = distinct_pairs(owners, rows)
        self.bounds = np.searchsorted(self.owners, np.arange(n_owners + 1))

    @classmethod
    def of(cls, lists: pl.Series, ids: pl.Series) -> "Grouped":
        """Find the rows of the ids in each of the lists; ids that no row has are passed over."""
        owners, named = spread_lists(lists)
        rows = positions(named, ids)
        return cls(owners[rows >= 0], rows[rows >= 0], len(lists))

    def __getitem__(self, owner: int) -> Integers:
        return self.rows[self.bounds[owner] : self.bounds[owner + 1]]

    def sums(self, values: Integers) -> Integers:
        """Add up the values of the rows of each owner."""
        totals: Integers = np.append(0, np.cumsum(values[self.rows]))
        return totals[self.bounds[1:]] - totals[self.bounds[:-1]]


def positions(wanted: pl.Series, keys: pl.Series) -> Integers:
    """Where in `keys` each wanted one stands, -1 if nowhere."""
    places = pl.DataFrame({"key": keys, "place": np.arange(len(keys))})
    found = pl.DataFrame({"key": wanted.cast(keys.dtype)}).join(
        places, on="key", how="left", maintain_order="left"
    )
    places_found: Integers = found["place"].fill_null(-1).to_numpy()
    return places_found
