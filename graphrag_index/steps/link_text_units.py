"""Links from text units to the graph."""

from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import polars as pl

from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Partitions, Shards, step
from graphrag_index.storage.memo import LISTS_PER_BATCH, read_batches
from graphrag_nlp.list_columns import (
    distinct_pairs,
    find_rows,
    gather_lists,
    spread_lists,
)

# Number of text units per batch. It limits memory and does not change the results.
BATCH_TEXT_UNITS = 20_000
# Columns of pairs: a text unit, and a row that names the text unit.
_LINKS = {"text_unit": pl.Int32, "row": pl.Int32}


@step(writes=["text_units"])
def link_text_units(
    base_text_units: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    covariates: pl.LazyFrame | None = None,
    *,
    shards: Shards,
) -> Iterator[pl.DataFrame]:
    """Add the ids of entities, relationships and covariates to each text unit.

    A list has the ids of all rows whose `text_unit_ids` (or `text_unit_id`) name the text unit, in
    order of `human_readable_id`. A list may be empty. Text units keep their order.
    """
    ids = base_text_units.select("id").collect()["id"]
    if covariates is None:
        covariates = TABLES["covariates"].empty().lazy()
    sources = {
        "entity_ids": (entities, pl.col("text_unit_ids")),
        "relationship_ids": (relationships, pl.col("text_unit_ids")),
        "covariate_ids": (covariates, pl.concat_list("text_unit_id")),
    }
    # Yield one empty batch if there is no text unit.
    starts = range(0, max(len(ids), 1), BATCH_TEXT_UNITS)
    with ExitStack() as stack:
        linked = {}
        for name, (table, named) in sources.items():
            pairs = stack.enter_context(shards.open_partitions(len(starts), _LINKS))
            linked[name] = _split_by_text_unit(ids, table, named, pairs), pairs
        for number, start in enumerate(starts):
            batch = base_text_units.slice(start, BATCH_TEXT_UNITS).collect()
            lists = []
            for name, (row_ids, pairs) in linked.items():
                owners, rows = distinct_pairs(*(pairs.read(number)[c].to_numpy() for c in _LINKS))
                own = gather_lists(owners - start, row_ids.gather(rows), len(batch))
                lists.append(own.alias(name))
            yield batch.with_columns(lists).select(TABLES["text_units"].cast_columns)


def _split_by_text_unit(
    text_unit_ids: pl.Series, table: pl.LazyFrame, named: pl.Expr, links: Partitions
) -> pl.Series:
    """Append the rows of a table to `links`, which has a partition per batch of text units.

    `named` selects the ids of the text units of a row. Return the ids of the table; the rows in
    `links` are positions in these ids, which are sorted by `human_readable_id`.
    """
    ids = table.select("id", "human_readable_id").collect()
    order = ids["human_readable_id"].arg_sort().to_numpy()
    place = np.argsort(order)
    offset = 0
    for batch in read_batches(table.select(named), LISTS_PER_BATCH):
        row, values = spread_lists(batch.to_series())
        text_unit = find_rows(values, text_unit_ids)
        is_known = text_unit >= 0
        rows = place[offset + row[is_known]]
        found = pl.DataFrame((text_unit[is_known], rows), _LINKS)
        links.append(found, text_unit[is_known] // BATCH_TEXT_UNITS)
        offset += batch.height
    return ids["id"].gather(order)
