"""Sentences of the text units that a theme has: those that are about it.

An entity of a theme may be named in many texts on other subjects. A report on the theme quotes
none of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.storage.memo import locate_list_values
from graphrag_nlp.list_columns import Integers, find_rows


class OwnSentences(NamedTuple):
    """The text unit of each sentence, and the reports on themes that have each text unit."""

    text_unit: Integers
    # For each level of themes, the reports on them, and the report of each text unit, or -1.
    levels: Sequence[tuple[Integers, Integers]]

    def select(self, report: Integers, sentence: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Flag the sentences that a report may quote; a report on no theme may quote all.

        A theme may quote all sentences too if none is of its own text units.
        """
        is_own = np.ones(len(report), dtype=bool)
        for themes, owner in self.levels:
            rows = np.flatnonzero(np.isin(report, themes))
            found = owner[self.text_unit[sentence[rows]]] == report[rows]
            is_own[rows] = found | ~np.isin(report[rows], report[rows[found]])
        return is_own


def read_text_units(base_text_units: pl.LazyFrame, documents: pl.LazyFrame) -> pl.DataFrame:
    """Return `number`, `document` and `start_char` of text units, sorted by position."""
    units = base_text_units.select("document_id", "start_char").collect()
    document = find_rows(units["document_id"], documents.select("id").collect()["id"])
    return (
        units.select(
            pl.int_range(pl.len(), dtype=pl.Int32).alias("number"),
            pl.Series("document", document, dtype=pl.Int32),
            pl.col("start_char").cast(pl.Int32),
        )
        # Imported text units may be in any order, so sort them.
        .sort("document", "start_char", maintain_order=True)
    )


def read_own_sentences(
    communities: pl.LazyFrame, reported: pl.Series, unit_ids: pl.Series, text_unit: Integers
) -> OwnSentences:
    """Read which text units the themes have.

    `reported` are the numbers of communities in the order of reports, `text_unit` has the row in
    `unit_ids` of each sentence's text unit.
    """
    themes = communities.filter("theme").select("community", "level", "text_unit_ids")
    numbers = themes.select("community", "level").collect()
    row, unit = locate_list_values(themes.select("text_unit_ids"), unit_ids)
    report, level_of = find_rows(numbers["community"], reported), numbers["level"].to_numpy()
    levels = []
    for level in np.unique(level_of):
        owner = np.full(len(unit_ids), -1)
        is_here = level_of[row] == level
        owner[unit[is_here]] = report[row[is_here]]
        levels.append((report[level_of == level], owner))
    return OwnSentences(text_unit, levels)
