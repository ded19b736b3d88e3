"""What the rows take that reports are made of: counted once, in whatever run."""

import numpy as np
import polars as pl

from graphrag_index.llm.rendered_rows import Budget, RenderedRows
from graphrag_index.reports.known_rows import KnownRows
from graphrag_index.schema.list_columns import Integers
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import Previous


class RowCosts:
    """Counts what rows take of a budget; those that the last run had are looked up.

    Most rows of an update are not even written out: it shows few of them.
    """

    def __init__(self, previous: Previous) -> None:
        self._known = KnownRows(previous, TABLES["row_costs"])

    def of(self, rows: pl.DataFrame, budget: Budget) -> Integers:
        """Return what `row_costs` returns."""
        of_budget = (pl.lit(budget.limit).alias("limit"), pl.lit(budget.room).alias("room"))
        hashes = rows.select(pl.struct(*of_budget, pl.all()).hash()).to_series()
        costs = self._known.numbers(hashes, lambda unknown: row_costs(rows.filter(unknown), budget))
        return costs.astype(np.int64)

    def table(self) -> pl.DataFrame:
        """Return what was counted, for the next run."""
        return self._known.table()


def row_costs(rows: pl.DataFrame, budget: Budget) -> Integers:
    """Return what the line of each row takes; the first column is its number."""
    return RenderedRows.of(rows, budget).cost
