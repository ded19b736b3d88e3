"""A number that was found of each row, kept by the hash of the row: so it is found once."""

import logging
from collections.abc import Callable

import numpy as np
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.schema.table import Table
from graphrag_index.storage.table_store import Previous

logger = logging.getLogger(__name__)


class KnownRows:
    """The rows of the last run, with the number of each.

    Hashes of polars are those of its version: with another one no row is known.

    Parameters
    ----------
    table
        Its first column is the hash of a row, the second the number.
    """

    def __init__(self, previous: Previous, table: Table) -> None:
        self._table = table
        self._key, self._value = table.schema
        self._known = table.empty()
        try:
            rows = previous.scan(table.name)
            if rows is not None and rows.collect_schema() == table.schema:
                self._known = rows.collect()
        except (OSError, TableError, pl.exceptions.PolarsError) as error:
            logger.warning("Rows of reports are looked through again (%s)", error)
        self._used = [table.empty()]

    def numbers(self, hashes: pl.Series, find: Callable[[pl.Series], np.ndarray]) -> np.ndarray:
        """Return the number of each row.

        `find` is told which rows are not known, as booleans, and returns the numbers of these.
        """
        wanted, known = hashes.to_numpy(), self._known[self._key].to_numpy()
        is_known = np.zeros(len(wanted), bool)
        numbers = np.zeros(len(wanted), self._table.empty()[self._value].to_numpy().dtype)
        if len(known):
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            is_known = known[at] == wanted
            numbers[is_known] = self._known[self._value].to_numpy()[at[is_known]]
        numbers[~is_known] = find(pl.Series(~is_known))
        self._used.append(pl.DataFrame({self._key: wanted, self._value: numbers}))
        return numbers

    def table(self) -> pl.DataFrame:
        """Return the rows that were asked about, for the next run."""
        return pl.concat(self._used).unique(self._key).sort(self._key)
