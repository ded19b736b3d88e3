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


def distinct_pairs(owners: Integers, values: Integers) -> tuple[Integers, Integers]:
    """Each pair of numbers once, sorted by owner, then value."""
    base = int(values.max(initial=0)) + 1
    # np.unique would hash first, which takes several times as long for this many.
    keys = np.sort(owners.astype(np.int64) * base + values)
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = keys[1:] != keys[:-1]
    owners, values = np.divmod(keys[is_new], base)
    return owners, values
