"""Which community of this run was which of the last, and what became of the others.

Two communities of one level are the same if more than half of the members that either has
are members of both. So no community is the same as two others, and none has a choice.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from graphrag_index.communities.previous import Before
from graphrag_index.communities.simple_graph import Integers
from graphrag_index.schema.tables import TABLES


def without_history(communities: pl.DataFrame) -> pl.DataFrame:
    """The lineage where there is no earlier run, or where it is not to matter."""
    born = communities.select("community", "level", "size").with_columns(
        status=pl.lit("born"),
        previous_size=pl.lit(0),
        overlap=pl.lit(0.0),
        came_from=pl.lit([], pl.List(pl.Int64)),
        went_to=pl.lit([], pl.List(pl.Int64)),
    )
    return _ordered(born)


def trace(
    communities: pl.DataFrame, levels: Sequence[Integers], before: Before
) -> tuple[Integers, pl.DataFrame]:
    """Give the same numbers to the same communities, and say what became of each.

    Parameters
    ----------
    communities, levels
        As of `rows.number`.

    Returns
    -------
    numbers
        The number of each row of `communities`; numbers that were given never come again.
    lineage
        The table `community_lineage`.
    """
    common = _common(communities, levels, before)
    matched = common.filter("same")
    numbers = np.full(len(communities), -1)
    numbers[matched["row"].to_numpy()] = matched["old"].to_numpy()
    is_new = numbers < 0
    numbers[is_new] = before.highest + 1 + np.arange(is_new.sum())
    common = common.with_columns(new=pl.Series(numbers)[common["row"]])
    now = communities.select("level", "size", row="community").with_columns(
        community=pl.Series(numbers)
    )
    went = common.sort("old", "new").group_by("old").agg(went_to="new")
    alive = _alive(now, matched, common).join(went, left_on="community", right_on="old", how="left")
    rows = pl.concat([alive, _died(before, matched, went)], how="diagonal_relaxed")
    if before.highest >= 0 and not (rows["community"] == before.highest).any():
        # It keeps its number from being given to another.
        last = {"community": [before.highest], "level": [0], "status": ["died"], "size": [0]}
        rows = pl.concat([rows, pl.DataFrame(last)], how="diagonal_relaxed")
    empty = pl.lit([], pl.List(pl.Int64))
    return numbers, _ordered(
        rows.with_columns(
            pl.col("overlap").fill_null(0.0),
            pl.col("old_size").fill_null(0).alias("previous_size"),
            *(pl.coalesce(name, empty).alias(name) for name in ("came_from", "went_to")),
        )
    )


def _alive(now: pl.DataFrame, matched: pl.DataFrame, common: pl.DataFrame) -> pl.DataFrame:
    """Say what became of each community that there is, and where its members come from."""
    sources = (
        common.sort("row", "old")
        .group_by("row", maintain_order=True)
        .agg(
            came_from="old",
            n_swallowed=pl.col("swallowed").sum(),
            # Of an old one that gave the most of several, each of these is a part.
            is_part=(pl.col("given") & (pl.col("n_parts") > 1)).any(),
            has_giver=pl.col("given").any(),
        )
    )
    is_unmatched = pl.col("old_size").is_null()
    return (
        now.join(matched.select("row", "old_size", "overlap", "shared"), on="row", how="left")
        .join(sources, on="row", how="left")
        .with_columns(
            status=pl.when(pl.col("n_swallowed") > 1)
            .then(pl.lit("merged"))
            .when("is_part")
            .then(pl.lit("split"))
            .when(is_unmatched & pl.col("has_giver").fill_null(False))
            .then(pl.lit("split"))
            .when(is_unmatched)
            .then(pl.lit("born"))
            .when(pl.col("size") > pl.col("old_size"))
            .then(pl.lit("grown"))
            .when(pl.col("size") < pl.col("old_size"))
            .then(pl.lit("shrunk"))
            .otherwise(pl.lit("kept"))
        )
    )


def _died(before: Before, matched: pl.DataFrame, went: pl.DataFrame) -> pl.DataFrame:
    """The communities of the last run that are none now, and where their members went."""
    return (
        before.communities.join(matched, left_on="community", right_on="old", how="anti")
        .join(went, left_on="community", right_on="old", how="left")
        .select(
            "community",
            "level",
            "went_to",
            old_size="size",
            status=pl.lit("died"),
            size=pl.lit(0, pl.Int64),
        )
    )


def _common(communities: pl.DataFrame, levels: Sequence[Integers], before: Before) -> pl.DataFrame:
    """Pairs of a row and an old community of its level that have members in common.

    `same`: they match; `swallowed`: most of the old one is in the new; `given`: most of the
    new one comes from the old, and to how many (`n_parts`) it gave as much.
    """
    pairs = []
    for labels, old in zip(levels, before.levels, strict=False):
        at = np.flatnonzero((labels >= 0) & (old >= 0))
        pairs.append(pl.DataFrame({"row": labels[at], "old": old[at]}))
    size, old_size, shared = pl.col("size"), pl.col("old_size"), pl.col("shared")
    return (
        pl.concat(pairs)
        .group_by("row", "old")
        .agg(shared=pl.len().cast(pl.Int64))
        .join(communities.select("size", row="community"), on="row")
        .join(before.communities.select(old="community", old_size="size"), on="old")
        .with_columns(overlap=(shared / (size + old_size - shared)).round(6))
        .with_columns(
            same=2 * shared > size + old_size - shared,
            swallowed=2 * shared > old_size,
            given=2 * shared > size,
        )
        .with_columns(n_parts=pl.col("given").sum().over("old"))
        .sort("row", "old")
    )


def _ordered(lineage: pl.DataFrame) -> pl.DataFrame:
    schema = TABLES["community_lineage"].schema
    return lineage.select(pl.col(name).cast(dtype) for name, dtype in schema.items()).sort(
        "level", "community"
    )
