"""Link text units to their entities, relationships and covariates."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.schema.list_columns import Integers, distinct_pairs, gather_lists
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import step
from graphrag_index.storage.memo import list_pairs

# Text units written at once: bounds memory, not results.
BATCH_TEXT_UNITS = 20_000


@step(writes=["text_units"])
def link_text_units(
    base_text_units: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    covariates: pl.LazyFrame | None = None,
) -> Iterator[pl.DataFrame]:
    """Add to every text unit the ids of its entities, relationships and covariates.

    The lists invert `text_unit_ids` of those tables. They are in order of `human_readable_id`, and
    empty where there are none. Text units keep their order and are written in batches.
    """
    ids = base_text_units.select("id").collect()["id"]
    columns = {
        "entity_ids": _links(ids, entities, pl.col("text_unit_ids")),
        "relationship_ids": _links(ids, relationships, pl.col("text_unit_ids")),
        "covariate_ids": _links(ids, covariates, pl.concat_list("text_unit_id")),
    }
    schema = TABLES["text_units"].schema
    # An empty table is one empty batch.
    for start in range(0, max(len(ids), 1), BATCH_TEXT_UNITS):
        batch = base_text_units.slice(start, BATCH_TEXT_UNITS).collect()
        yield batch.with_columns(
            links.lists(start, start + len(batch)).alias(name) for name, links in columns.items()
        ).select(pl.col(name).cast(schema[name]) for name in schema)


class _Links(NamedTuple):
    """Pairs of text units and rows of a table, sorted by text unit."""

    ids: pl.Series  # of the rows
    text_units: Integers
    rows: Integers

    def lists(self, start: int, stop: int) -> pl.Series:
        """Return the linked ids of each of the text units from `start` to `stop`."""
        first, last = np.searchsorted(self.text_units, [start, stop])
        return gather_lists(
            self.text_units[first:last] - start,
            self.ids.gather(self.rows[first:last]),
            stop - start,
        )


def _links(text_unit_ids: pl.Series, table: pl.LazyFrame | None, named: pl.Expr) -> _Links:
    """Invert the lists of text unit ids in `named`."""
    if table is None:
        empty = np.zeros(0, dtype=np.int64)
        return _Links(pl.Series("id", [], dtype=pl.String), empty, empty)
    ids = table.select("id", "human_readable_id").collect()
    order = ids["human_readable_id"].arg_sort().to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    rows, text_units = list_pairs(table.select(named.alias("ids")), text_unit_ids)
    return _Links(ids["id"].gather(order), *distinct_pairs(text_units, rank[rows]))
