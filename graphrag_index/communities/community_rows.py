"""Rows of the table of communities, with their members, relationships and text units."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import polars as pl

from graphrag_index.communities.simple_graph import Integers, Nodes
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.memo import content_ids
from graphrag_nlp.list_columns import NumberLists, distinct_pairs, gather_lists

# Number of entities in the communities of a batch: more only if one community has more. It limits
# memory and does not change the results.
BATCH_ENTITIES = 400_000


def make_community_rows(
    communities: pl.DataFrame,
    levels: Sequence[Integers],
    endpoints: Nodes,
    named: NumberLists,
    shown: NumberLists,
    entity_ids: pl.Series,
    relationship_ids: pl.Series,
    text_units: pl.DataFrame,
    themes: Sequence[Integers] = (),
) -> Iterator[pl.DataFrame]:
    """Yield the rows of communities in batches; a batch has communities of one level.

    `communities` and `levels` are results of `renumber_communities`. `endpoints` has the entities
    of each relationship. `named` and `shown` have the text units of each entity and of each
    relationship. `themes` has the theme of each text unit, level by level: its community among
    those of the level. Ids and rows are sorted, so the lists of a community are sorted by id.
    """
    # Rank the dates; the empty date has rank 0, so a community without dates gets it.
    dates = pl.concat([pl.Series("date", [""]), text_units["date"]]).unique().sort()
    date_rank = dates.search_sorted(text_units["date"]).to_numpy()
    child = communities.filter(pl.col("above") >= 0).sort("above", maintain_order=True)
    children = gather_lists(child["above"].to_numpy(), child["community"], len(communities))
    is_island = communities["island"].to_numpy()
    batches = _find_batches(communities)
    for level, (labels, bounds) in enumerate(zip(levels, batches, strict=False)):
        source, target = labels[endpoints].T
        of_link = np.where(source == target, source, -1)
        del source, target
        for start, stop in pairwise(bounds):
            batch = slice(start, stop)
            nodes = np.flatnonzero((labels >= start) & (labels < batch.stop))
            links = np.flatnonzero((of_link >= start) & (of_link < batch.stop))
            of_node, of_inner = labels[nodes] - start, of_link[links] - start
            position, units = shown.take(links)
            owners = of_inner[position]
            # Give islands and communities without relationships the text units of their entities.
            by_entity = is_island[batch].copy()
            by_entity |= np.bincount(owners, minlength=len(by_entity)) == 0
            spoken = by_entity[of_node]
            position, more_units = named.take(nodes[spoken])
            home = themes[level] if level < len(themes) else np.zeros(0, dtype=np.int64)
            at_home = np.flatnonzero((home >= start) & (home < stop))
            owners = np.concatenate([owners, of_node[spoken][position]])
            units = np.concatenate([units, more_units])
            # A theme has the text units that are about it, wherever else its entities are named.
            is_owned = np.zeros(len(by_entity), dtype=bool)
            is_owned[home[at_home] - start] = True
            is_open = ~is_owned[owners]
            owners, distinct_units = distinct_pairs(
                np.concatenate([owners[is_open], home[at_home] - start]),
                np.concatenate([units[is_open], at_home]),
            )
            latest = np.zeros(len(by_entity), dtype=np.int64)
            np.maximum.at(latest, owners, date_rank[distinct_units])
            lists = {
                "entity_ids": _gather_ids(of_node, nodes, entity_ids, len(latest)),
                "relationship_ids": _gather_ids(of_inner, links, relationship_ids, len(latest)),
                "text_unit_ids": gather_lists(
                    owners, text_units["id"].gather(distinct_units), len(latest)
                ),
                "period": dates.gather(latest),
            }
            yield _add_titles_and_ids(
                communities[batch].with_columns(children[batch].alias("children"), **lists)
            )


def _find_batches(communities: pl.DataFrame) -> list[list[int]]:
    """Return the first row of each batch of a level, and the row after the level, by level."""
    size = pl.col("size")
    batch = (size.cum_sum() - size).over("level") // BATCH_ENTITIES
    rows = communities.select("level", batch=batch).with_row_index("row")
    first = rows.group_by("level", "batch", maintain_order=True).agg(pl.col("row").first())
    starts = first.group_by("level", maintain_order=True).agg("row")["row"].to_list()
    ends = [*(rows[0] for rows in starts[1:]), communities.height]
    return [[*rows, end] for rows, end in zip(starts, ends, strict=False)]


def _gather_ids(owners: Integers, rows: Integers, ids: pl.Series, n: int) -> pl.Series:
    """Return a list of ids, in the order of `rows`, for each of n owners."""
    order = np.argsort(owners, kind="stable")
    return gather_lists(owners[order], ids.gather(rows[order]), n)


def _add_titles_and_ids(rows: pl.DataFrame) -> pl.DataFrame:
    number = pl.col("community").cast(pl.String)
    rows = rows.with_columns(
        pl.col("community").alias("human_readable_id"),
        pl.when("island")
        .then("Island " + number + " (entities with few or no links)")
        .when("theme")
        .then(pl.lit("Theme ") + number)
        .otherwise("Community " + number)
        .alias("title"),
    )
    level, joined_ids = rows["level"].cast(pl.String), rows["entity_ids"].list.join(",")
    rows = rows.with_columns(id=content_ids("community", level, joined_ids))
    return rows.select(TABLES["communities"].cast_columns)


def keep_previous_ids(rows: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Keep the previous ids of communities with unchanged members, such as imported ids.

    `before` contains the previous communities, with `id`, and `members` from `hash_members`.
    """
    known = before.select("community", "members", earlier="id")
    found = rows.select("community", members=hash_members()).join(
        known, on=["community", "members"], how="left", maintain_order="left"
    )
    return rows.with_columns(id=found["earlier"].fill_null(rows["id"]))


def hash_members() -> pl.Expr:
    """Return an expression that hashes the members of a community, for this process only."""
    return pl.col("entity_ids").list.sort().list.join(",").hash()
