"""The text units of the last run, for documents that are as they were."""

import logging
from collections.abc import Mapping

import numpy as np
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import Previous

logger = logging.getLogger(__name__)

# What the text units of a document depend on beside the settings.
GIVEN = ("id", "text", "metadata")


def _cut_columns(name: str, *others: str) -> pl.Schema:
    columns = TABLES[name].schema
    kept = [(column, kind) for column, kind in columns.items() if column not in others]
    return pl.Schema([("at", pl.UInt32()), *kept])


# What cutting gives: the rows of each table by the place `at` of the document in a batch, without
# what only the whole table tells, or the document itself.
CUT = {
    "documents": pl.Schema(
        [("at", pl.UInt32()), ("text_unit_ids", pl.List(pl.String)), ("language", pl.String())]
    ),
    "base_text_units": _cut_columns("base_text_units", "human_readable_id"),
    "sentences": _cut_columns("sentences", "document"),
}
_NOTHING = {name: pl.DataFrame(schema=schema) for name, schema in CUT.items()}
# Rows are read from the first to the last that is wanted, if not more than so many times as many.
_MOST_READ = 4


class EarlierTextUnits:
    """Finds what the same step with the same settings wrote last time.

    All three tables are in the order of the documents, so that what belongs to some
    documents is read as a range of rows.
    """

    def __init__(self, previous: Previous) -> None:
        self._tables: dict[str, pl.LazyFrame] = {}
        # Text units that were imported need not be in the order of their documents.
        if not previous.is_same_step or "given_ids" in previous.tables:
            return
        try:
            self._open(previous)
        except (OSError, TableError, pl.exceptions.PolarsError) as error:
            self._give_up(error)

    def _open(self, previous: Previous) -> None:
        tables = {name: previous.scan(name) for name in CUT}
        found = {name: rows for name, rows in tables.items() if rows is not None}
        if any(found[n].collect_schema() != TABLES[n].schema for n in found) or len(found) < 3:
            return
        self._documents = found["documents"].select("id").with_row_index("number").collect()
        in_order = np.arange(self._documents.height + 1)
        owners = {
            "base_text_units": found["documents"].select(pl.col("text_unit_ids").list.len()),
            "sentences": found["sentences"].select("document"),
        }
        n_units = owners["base_text_units"].collect().to_series().to_numpy()
        of_sentences = owners["sentences"].collect().to_series().to_numpy()
        # Where the rows of each document begin, and the last end.
        self._starts = {
            "documents": in_order,
            "base_text_units": np.append(0, np.cumsum(n_units.astype(np.int64))),
            "sentences": np.searchsorted(of_sentences, in_order),
        }
        self._tables = found

    def _give_up(self, error: Exception) -> None:
        self._tables = {}
        logger.warning(
            "Text units of the last run cannot be read: all documents are cut again (%s)", error
        )

    def of(self, documents: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Return the rows of `CUT` for those documents that are as they were."""
        if self._tables:
            try:
                return self._read(documents)
            except (OSError, TableError, pl.exceptions.PolarsError) as error:
                self._give_up(error)
        return _NOTHING

    def _read(self, documents: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        there = documents.select("at", "id").join(self._documents, on="id").sort("number")
        if not there.height:
            return _NOTHING
        first, last = int(there["number"][0]), int(there["number"][-1])
        if last - first >= _MOST_READ * there.height:
            return _NOTHING
        before = self._tables["documents"].slice(first, last - first + 1).collect()
        numbers = pl.int_range(first, last + 1, eager=True, dtype=pl.UInt32).alias("number")
        same = (
            documents.select("at", *GIVEN)
            .join(before.with_columns(numbers), on=GIVEN, nulls_equal=True)
            .select("at", "number")
        )
        return {name: self._rows(name, same, first, last) for name in CUT}

    def _rows(self, name: str, same: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
        starts = self._starts[name]
        begin, end = int(starts[first]), int(starts[last + 1])
        rows = self._tables[name].slice(begin, end - begin).collect()
        owners = np.repeat(np.arange(first, last + 1), np.diff(starts[first : last + 2]))
        owned = rows.with_columns(number=pl.Series(owners, dtype=pl.UInt32))
        return owned.join(same, on="number", maintain_order="left").select(CUT[name].names())
