"""How many tokens the rows have that reports are made of: counted once, in whatever run."""

import numpy as np
import polars as pl

from graphrag_index.core.lists import Integers
from graphrag_index.core.rendered_rows import count_lines
from graphrag_index.core.table_store import Previous
from graphrag_index.core.tables import TABLES
from graphrag_index.reports.known_rows import KnownRows


class RowTokens:
    """Counts the tokens of lines; those that the last run had are looked up."""

    def __init__(self, previous: Previous) -> None:
        self._known = KnownRows(previous, TABLES["row_tokens"])

    def count(self, lines: pl.Series) -> Integers:
        """Return the tokens of each line."""
        n_tokens = self._known.numbers(
            lines.hash(), lambda unknown: count_lines(lines.filter(unknown))
        )
        return n_tokens.astype(np.int64)

    def table(self) -> pl.DataFrame:
        """Return what was counted, for the next run."""
        return self._known.table()
