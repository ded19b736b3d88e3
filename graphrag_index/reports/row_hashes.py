"""Hashes of rows that are the same in every run, unlike those of polars."""

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.known_rows import KnownRows
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.content_ids import content_ids
from graphrag_index.storage.table_store import Previous

Hashes = npt.NDArray[np.uint64]

# Rows that are hashed at once: bounds memory, not results.
BATCH_HASHED = 10_000


class RowHashes:
    """Hashes rows; those that the last run had are looked up, in a fifth of the time."""

    def __init__(self, previous: Previous) -> None:
        self._known = KnownRows(previous, TABLES["row_hashes"])

    def of(self, kind: str, rows: pl.DataFrame) -> Hashes:
        """Return what `row_hashes` returns."""
        by_polars = rows.select(pl.struct(pl.lit(kind).alias(""), pl.all()).hash()).to_series()
        return self._known.numbers(
            by_polars, lambda unknown: row_hashes(kind, rows.filter(unknown))
        )

    def table(self) -> pl.DataFrame:
        """Return the hashes, for the next run."""
        return self._known.table()


def row_hashes(kind: str, rows: pl.DataFrame) -> Hashes:
    """Hash each row, which is of this kind."""
    texts = rows.select(pl.all().cast(pl.String).fill_null(""))
    hashes = [np.zeros(0, np.uint64)]
    for part in texts.iter_slices(BATCH_HASHED):
        first_half = content_ids(kind, *part).str.head(16)
        hashes.append(first_half.str.to_integer(base=16, dtype=pl.UInt64).to_numpy())
    return np.concatenate(hashes)
