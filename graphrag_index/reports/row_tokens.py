"""How many tokens the rows have that reports are made of: counted once, in whatever run."""

import logging

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.core.errors import TableError
from graphrag_index.core.lists import Integers
from graphrag_index.core.rendered_rows import count_lines
from graphrag_index.core.table_store import Previous
from graphrag_index.core.tables import TABLES

logger = logging.getLogger(__name__)

TABLE = TABLES["row_tokens"]


class RowTokens:
    """Counts the tokens of lines; those that the last run had are looked up by hash.

    Hashes of polars are those of its version: with another one all are counted again.
    """

    def __init__(self, previous: Previous) -> None:
        self._known = TABLE.empty()
        try:
            rows = previous.scan(TABLE.name)
            if rows is not None and rows.collect_schema() == TABLE.schema:
                self._known = rows.collect()
        except (OSError, TableError, pl.exceptions.PolarsError) as error:
            logger.warning("Rows of reports are counted again (%s)", error)
        self._counted = [TABLE.empty()]

    def count(self, lines: pl.Series) -> Integers:
        """Return the tokens of each line."""
        hashes = lines.hash().to_numpy()
        known = self._known["hash"].to_numpy()
        at = np.minimum(np.searchsorted(known, hashes), max(len(known) - 1, 0))
        is_known: npt.NDArray[np.bool_] = np.zeros(len(hashes), bool)
        n_tokens = np.zeros(len(hashes), np.int64)
        if len(known):
            is_known = known[at] == hashes
            n_tokens[is_known] = self._known["n_tokens"].to_numpy()[at[is_known]]
        n_tokens[~is_known] = count_lines(lines.filter(pl.Series(~is_known)))
        counted = {"hash": hashes, "n_tokens": n_tokens.astype(np.int32)}
        self._counted.append(pl.DataFrame(counted, schema=TABLE.schema))
        return n_tokens

    def table(self) -> pl.DataFrame:
        """Return what was counted, for the next run."""
        return pl.concat(self._counted).unique("hash").sort("hash")
