"""Rows of the table `communities`: numbers, members, links, text units, titles, dates."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.simple_graph import Integers
from graphrag_index.schema.list_columns import distinct_pairs, gather_lists
from graphrag_index.schema.tables import TABLES, content_id


def number(
    levels: Sequence[Integers], is_island: npt.NDArray[np.bool_]
) -> tuple[pl.DataFrame, list[Integers]]:
    """Assign numbers to the communities of all levels.

    Within a level they are sorted by parent, islands last, descending size, first entity.

    Returns
    -------
    communities
        One row per community: community (the row number), level, parent, size, island.
    levels
        The row of the community of each node, or -1, level by level.
    """
    frames = []
    numbered: list[Integers] = []
    n_before = 0
    for level, labels in enumerate(levels):
        nodes = np.flatnonzero(labels >= 0)
        _, first, part, size = np.unique(
            labels[nodes], return_index=True, return_inverse=True, return_counts=True
        )
        first = nodes[first]
        parent = numbered[-1][first] if level else np.full(len(first), -1)
        island = is_island if level == 0 else np.zeros(len(first), dtype=bool)
        order = np.lexsort((first, -size, island, parent))
        number = np.empty(len(first), dtype=np.int64)
        number[order] = n_before + np.arange(len(first))
        numbered.append(np.full(len(labels), -1))
        numbered[-1][nodes] = number[part]
        frames.append(
            pl.DataFrame(
                {
                    "community": number[order],
                    "level": np.full(len(first), level),
                    "parent": parent[order],
                    "size": size[order],
                    "island": island[order],
                }
            )
        )
        n_before += len(first)
    return pl.concat(frames), numbered


def renumber(
    communities: pl.DataFrame, levels: Sequence[Integers], numbers: Integers
) -> tuple[pl.DataFrame, list[Integers]]:
    """Change the numbers of communities; rows are sorted by level, then community.

    Returns
    -------
    communities
        As those of `number`, with the column `above`: the row of the parent, or -1.
    levels
        The row of the community of each node, or -1, level by level.
    """
    order = np.lexsort((numbers, communities["level"].to_numpy()))
    # One more element, so that index -1 gives -1.
    row = np.full(len(order) + 1, -1)
    row[order] = np.arange(len(order))
    above = row[communities["parent"].to_numpy()]
    renumbered = communities.with_columns(
        pl.Series("community", numbers), pl.Series("above", above)
    )[order]
    parent = np.append(renumbered["community"].to_numpy(), -1)[renumbered["above"].to_numpy()]
    return renumbered.with_columns(pl.Series("parent", parent)), [row[of] for of in levels]


def describe(
    communities: pl.DataFrame,
    levels: Sequence[Integers],
    ends: Integers,
    named: Integers,
    shown: Integers,
    entity_ids: pl.Series,
    relationship_ids: pl.Series,
    text_units: pl.DataFrame,
) -> pl.DataFrame:
    """Complete the rows with members, relationships, text units, titles and dates.

    `communities` and `levels` are from `renumber`; `ends` are the two entities of each
    relationship; `named` are pairs of entity and text unit, `shown` of relationship and text unit.
    """
    n = len(communities)
    is_island = communities["island"].to_numpy()
    # Row of the community and number of its member, relationship or text unit.
    members, inner, texts = [], [], []
    for labels in levels:
        of_link = np.where(labels[ends[:, 0]] == labels[ends[:, 1]], labels[ends[:, 0]], -1)
        members.append(_known(labels, np.arange(len(labels))))
        inner.append(_known(of_link, np.arange(len(ends))))
        texts.append(_known(of_link[shown[:, 0]], shown[:, 1]))
        # Islands, and communities without relationships, get the text units of their entities.
        is_silent = np.ones(n, dtype=bool)
        is_silent[texts[-1][:, 0]] = False
        of_entity = labels[named[:, 0]]
        by_entity = (of_entity >= 0) & (is_silent | is_island)[of_entity]
        texts.append(np.stack([of_entity, named[:, 1]], axis=1)[by_entity])
    owners, shown_there = distinct_pairs(*np.concatenate(texts).T)

    # Rank 0 is the empty date.
    dates = pl.concat([pl.Series("date", [""]), text_units["date"]]).unique().sort()
    date_rank = dates.search_sorted(text_units["date"]).to_numpy()
    latest = np.zeros(n, dtype=np.int64)
    np.maximum.at(latest, owners, date_rank[shown_there])

    child = communities.filter(pl.col("above") >= 0).sort("above", maintain_order=True)
    number = pl.col("community").cast(pl.String)
    rows = communities.with_columns(
        pl.col("community").alias("human_readable_id"),
        pl.when("island")
        .then("Island " + number + " (entities with few or no links)")
        .otherwise("Community " + number)
        .alias("title"),
        gather_lists(child["above"].to_numpy(), child["community"], n).alias("children"),
        _lists(np.concatenate(members), entity_ids, n).alias("entity_ids"),
        _lists(np.concatenate(inner), relationship_ids, n).alias("relationship_ids"),
        gather_lists(owners, text_units["id"].gather(shown_there), n).alias("text_unit_ids"),
        dates.gather(latest).alias("period"),
    )
    names = rows.select("level", pl.col("entity_ids").list.join(",")).iter_rows()
    ids = [content_id("community", str(level), ids) for level, ids in names]
    schema = TABLES["communities"].schema
    return rows.with_columns(pl.Series("id", ids, dtype=pl.String)).select(
        pl.col(name).cast(schema[name]) for name in schema
    )


def with_earlier_ids(rows: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Keep the ids of unchanged communities, since imported ones have other ids than ours.

    `before` are the previous communities with `id`, and `members` from `hash_members`.
    """
    known = before.select("community", "members", earlier="id")
    found = rows.select("community", members=hash_members()).join(
        known, on=["community", "members"], how="left", maintain_order="left"
    )
    return rows.with_columns(id=found["earlier"].fill_null(rows["id"]))


def hash_members() -> pl.Expr:
    """Return a hash of the members of a community, valid in this process."""
    return pl.col("entity_ids").list.sort().list.join(",").hash()


def _known(owners: Integers, values: Integers) -> Integers:
    """Return pairs of owner and value, without those of owner -1."""
    return np.stack([owners, values], axis=1)[owners >= 0]


def _lists(pairs: Integers, ids: pl.Series, n: int) -> pl.Series:
    """Return the sorted ids of each community; `ids` are sorted."""
    owners, values = distinct_pairs(*pairs.T)
    return gather_lists(owners, ids.gather(values), n)
