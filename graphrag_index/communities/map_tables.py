"""The tables of the map: places of communities and entities in a drawing."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from graphrag_index.communities.map_layout import PreviousMap, layout_map
from graphrag_index.communities.simple_graph import Graph, Integers
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Shards
from graphrag_index.storage.memo import open_previous, read_or_fallback
from graphrag_index.storage.table_store import Previous

_ROWS_PER_BATCH = 131_072


def create_map(
    graph: Graph,
    communities: pl.DataFrame,
    levels: Sequence[Integers],
    ids: pl.Series,
    order: Integers,
    previous: Previous | None = None,
    shards: Shards | None = None,
) -> Iterator[dict[str, pl.DataFrame]]:
    """Yield the batches of `map_communities` and `map_entities`.

    `communities` and `levels` are those of `renumber_communities`. `ids` has the entity of each
    node, and `order` its row in the table of entities. With `previous`, communities and entities
    of the last version keep their places.
    """
    numbers = communities["community"]
    before = None
    if previous is not None:
        before = read_or_fallback(
            None, "map_communities", lambda: _read_previous(previous, communities, levels, ids)
        )
    above, size = communities["above"].to_numpy(), communities["size"].to_numpy()
    layout = layout_map(graph, list(levels), above, size, before, shards)
    discs = pl.DataFrame(
        {
            "community": numbers,
            "parent": communities["parent"],
            **{name: layout.discs[:, at] for at, name in enumerate(("x", "y", "radius"))},
        }
    )
    yield from _split("map_communities", discs.sort("community"))
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    homes = np.append(numbers.to_numpy(), -1)[layout.home]
    places = pl.DataFrame(
        {
            "entity": np.arange(len(order)),
            "community": homes[row],
            "x": layout.nodes[row, 0],
            "y": layout.nodes[row, 1],
        }
    )
    yield from _split("map_entities", places)


def _split(name: str, rows: pl.DataFrame) -> Iterator[dict[str, pl.DataFrame]]:
    rows = rows.select(TABLES[name].cast_columns)
    for start in range(0, max(1, len(rows)), _ROWS_PER_BATCH):
        yield {name: rows.slice(start, _ROWS_PER_BATCH)}


def _read_previous(
    previous: Previous, communities: pl.DataFrame, levels: Sequence[Integers], ids: pl.Series
) -> PreviousMap | None:
    """Read the map of the last version; None if it has none."""
    tables = open_previous(previous, [TABLES["map_communities"], TABLES["map_entities"]])
    entities = previous.scan("entities")
    if tables is None or entities is None:
        return None
    discs, places = tables
    keys = ["community", "parent"]
    found = communities.select(pl.col(keys).cast(pl.Int32)).join(
        discs.collect(), on=keys, how="left", maintain_order="left"
    )
    home = np.full(len(ids), -1)
    for labels in levels:
        home[labels >= 0] = labels[labels >= 0]
    homes = np.append(communities["community"].to_numpy(), -1)[home]
    known = entities.select("id", entity=pl.col("human_readable_id").cast(pl.Int32))
    nodes = pl.DataFrame({"id": ids, "community": pl.Series(homes, dtype=pl.Int32)}).join(
        places.join(known, on="entity").drop("entity").collect(),
        on=["id", "community"],
        how="left",
        maintain_order="left",
    )
    columns = ("x", "y", "radius")
    return PreviousMap(
        np.column_stack([found[name].cast(pl.Float64).fill_null(np.nan) for name in columns]),
        np.column_stack([nodes[name].cast(pl.Float64).fill_null(np.nan) for name in ("x", "y")]),
    )
