"""What is named where, seen from the text unit."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.communities.simple_graph import Integers
from graphrag_index.schema.list_columns import distinct_pairs, gather_lists, spread_lists
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import step

_TEXT_UNITS_AT_ONCE = 20_000
_ROWS_AT_ONCE = 200_000


@step(writes=["text_units"])
def link_text_units(
    base_text_units: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    covariates: pl.LazyFrame | None = None,
) -> Iterator[pl.DataFrame]:
    """Give every text unit the ids of its entities, relationships and covariates.

    The links are those of `entities.text_unit_ids` and of its like, turned
    round: in order of `human_readable_id`, an empty list where there are none.
    Text units keep their order and come in batches.
    """
    ids = base_text_units.select("id").collect()["id"]
    columns = {
        "entity_ids": _links(ids, entities, pl.col("text_unit_ids")),
        "relationship_ids": _links(ids, relationships, pl.col("text_unit_ids")),
        "covariate_ids": _links(ids, covariates, pl.concat_list("text_unit_id")),
    }
    schema = TABLES["text_units"].schema
    # Without text units there is one batch too, of no rows.
    for start in range(0, max(len(ids), 1), _TEXT_UNITS_AT_ONCE):
        batch = base_text_units.slice(start, _TEXT_UNITS_AT_ONCE).collect()
        yield batch.with_columns(
            links.lists(start, start + len(batch)).alias(name) for name, links in columns.items()
        ).select(pl.col(name).cast(schema[name]) for name in schema)


class _Links(NamedTuple):
    """Which rows of a table name which text units, as pairs sorted by text unit."""

    ids: pl.Series  # of the table's rows
    text_units: Integers
    rows: Integers

    def lists(self, start: int, stop: int) -> pl.Series:
        """The ids linked with each of the text units from `start` to `stop`."""
        first, last = np.searchsorted(self.text_units, [start, stop])
        return gather_lists(
            self.text_units[first:last] - start,
            self.ids.gather(self.rows[first:last]),
            stop - start,
        )


def _links(text_unit_ids: pl.Series, table: pl.LazyFrame | None, named: pl.Expr) -> _Links:
    """Turn the lists `named`, of ids of text units, round."""
    if table is None:
        nobody = np.zeros(0, dtype=np.int64)
        return _Links(pl.Series("id", [], dtype=pl.String), nobody, nobody)
    ids = table.select("id", "human_readable_id").collect()
    order = ids["human_readable_id"].arg_sort().to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    numbers = pl.DataFrame({"id": text_unit_ids, "number": np.arange(len(text_unit_ids))})
    links = [np.zeros((0, 2), dtype=np.int64)]
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        lists = table.select(named.alias("ids")).slice(start, _ROWS_AT_ONCE).collect()["ids"]
        row, found = spread_lists(lists)
        pairs = pl.DataFrame({"row": rank[start + row], "id": found}).join(numbers, on="id")
        links.append(pairs.select("number", "row").to_numpy())
    return _Links(ids["id"].gather(order), *distinct_pairs(*np.concatenate(links).T))
