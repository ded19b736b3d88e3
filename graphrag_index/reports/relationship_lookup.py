"""Lookup of the numbers of relationships by their two entities."""

import numpy as np
import polars as pl

from graphrag_index.storage.memo import read_batches
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE
from graphrag_nlp.list_columns import (
    distinct_pairs,
    find_rows,
    gather_lists,
    spread_lists,
)

BATCH_ROWS = 64 * ROW_GROUP_SIZE  # relationships that are read at once


class RelationshipLookup:
    """Lookup of the numbers of relationships by their two entities."""

    def __init__(self, relationships: pl.LazyFrame, entity_ids: pl.Series) -> None:
        self._width = len(entity_ids)
        keys, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        columns = relationships.select("source_id", "target_id", "human_readable_id")
        for batch in read_batches(columns, BATCH_ROWS):
            ends = pl.concat([batch["source_id"], batch["target_id"]])
            pairs = find_rows(ends, entity_ids).reshape(2, -1)
            known = (pairs >= 0).all(axis=0)
            keys.append(pairs[:, known].min(axis=0) * self._width + pairs[:, known].max(axis=0))
            numbers.append(batch["human_readable_id"].to_numpy()[known].astype(np.int32))
        self._keys = np.concatenate(keys)
        order = np.argsort(self._keys, kind="stable")
        self._keys = self._keys[order]
        self._numbers = np.concatenate(numbers)[order]

    def find_between(self, entities: pl.Series) -> pl.Series:
        """Return the relationships between the entities of each list, as sorted lists."""
        owner, entity = spread_lists(entities)
        rows = pl.LazyFrame({"owner": owner, "entity": entity.cast(pl.Int64)})
        pairs = (
            rows.join(rows, on="owner")
            .filter(pl.col("entity") < pl.col("entity_right"))
            .select("owner", key=pl.col("entity") * self._width + pl.col("entity_right"))
            .collect()
        )
        keys = pairs["key"].to_numpy()
        place = np.minimum(np.searchsorted(self._keys, keys), max(len(self._keys) - 1, 0))
        found = self._keys[place] == keys if len(self._keys) else np.zeros(len(keys), bool)
        owner, number = distinct_pairs(
            pairs["owner"].to_numpy()[found], self._numbers[place[found]]
        )
        return gather_lists(owner, pl.Series(number), len(entities))
