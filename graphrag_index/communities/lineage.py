"""Lineage of communities between versions, and the table `community_lineage`.

Two communities of one level match if they share more than half of the union of their members. So
no community matches two others.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.rows import hash_members
from graphrag_index.communities.simple_graph import Graph, Integers, simple_graph
from graphrag_index.errors import TableError
from graphrag_index.schema.list_columns import positions
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.memo import read_or
from graphrag_index.storage.table_store import Previous


@dataclass(frozen=True)
class PreviousCommunities:
    """The communities of the last version, by the nodes of this one.

    Parameters
    ----------
    communities
        One row per community: id, community, level, size, island, and a hash of its members.
    levels
        The previous community of each node, or -1, level by level.
    graph
        The previous relationships between present nodes.
    is_new
        Flags of nodes that are new, or lost a neighbour that is gone.
    settings
        Settings of the step then; empty if unknown.
    highest
        The highest community number so far, -1 if there was none.
    """

    communities: pl.DataFrame
    levels: list[Integers]
    graph: Graph
    is_new: npt.NDArray[np.bool_]
    settings: Mapping[str, object]
    highest: int

    @property
    def islands(self) -> Integers:
        """The previous island of each node, or -1."""
        islands = self.communities.filter("island")["community"].to_numpy()
        top = self.levels[0]
        return np.where(np.isin(top, islands), top, -1)


def read_previous(previous: Previous, ids: pl.Series) -> PreviousCommunities | None:
    """Read the communities of the last version; None if there are none, or they are damaged.

    `ids` are those of the nodes, in their order.
    """
    return read_or(None, "communities", lambda: _read(previous, ids))


def _read(previous: Previous, ids: pl.Series) -> PreviousCommunities | None:
    found, links = previous.scan("communities"), previous.scan("relationships")
    if found is None or links is None:
        return None
    columns = ("id", "community", "level", "size", "island", "entity_ids")
    communities = found.select(*columns, members=hash_members()).collect()
    levels = []
    for rows in communities.partition_by("level", maintain_order=True):
        members = rows.select("community", "entity_ids").explode("entity_ids").drop_nulls()
        at = positions(members["entity_ids"], ids)
        labels = np.full(len(ids), -1)
        labels[at[at >= 0]] = members["community"].to_numpy()[at >= 0]
        levels.append(labels)
    if not levels:
        # There were none, but the lineage may have used numbers.
        levels.append(np.full(len(ids), -1))
    edges = links.select("source_id", "target_id", "weight").collect()
    ends = np.stack([positions(edges[end], ids) for end in ("source_id", "target_id")], axis=1)
    is_known = (ends >= 0).all(axis=1)
    is_new = levels[0] < 0
    left = ends[~is_known]
    is_new[left[left >= 0]] = True
    weights = edges["weight"].to_numpy()[is_known]
    graph = simple_graph(len(ids), ends[is_known, 0], ends[is_known, 1], weights)
    communities = communities.drop("entity_ids")
    return PreviousCommunities(
        communities,
        levels,
        graph,
        is_new,
        previous.settings.get("create_communities") or {},
        _highest(previous, communities),
    )


def _highest(previous: Previous, communities: pl.DataFrame) -> int:
    numbers = [communities["community"]]
    lineage = previous.scan("community_lineage")
    if lineage is not None:
        numbers.append(lineage.select("community").collect()["community"])
    for lineage in previous.left_behind("community_lineage"):
        # Only the numbers matter; a damaged version is skipped.
        with suppress(OSError, TableError, pl.exceptions.PolarsError):
            numbers.append(lineage.select("community").collect()["community"])
    return int(pl.concat([pl.Series([-1], dtype=pl.Int64), *numbers]).max())  # type: ignore[arg-type]


def without_history(communities: pl.DataFrame) -> pl.DataFrame:
    """Return the lineage of a first run: all communities are born."""
    born = communities.select("community", "level", "size").with_columns(
        status=pl.lit("born"),
        previous_size=pl.lit(0),
        overlap=pl.lit(0.0),
        came_from=pl.lit([], pl.List(pl.Int64)),
        went_to=pl.lit([], pl.List(pl.Int64)),
    )
    return _ordered(born)


def trace(
    communities: pl.DataFrame, levels: Sequence[Integers], before: PreviousCommunities
) -> tuple[Integers, pl.DataFrame]:
    """Give matching communities their previous numbers; return the lineage.

    Parameters
    ----------
    communities, levels
        As of `rows.number`.

    Returns
    -------
    numbers
        The number of each row of `communities`. Numbers are never reused.
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
        # Without this row its number could be reused.
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
    """Return the status of each present community, and the origin of its members."""
    sources = (
        common.sort("row", "old")
        .group_by("row", maintain_order=True)
        .agg(
            came_from="old",
            n_swallowed=pl.col("swallowed").sum(),
            # One of several communities that have most of their members from one old one.
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


def _died(before: PreviousCommunities, matched: pl.DataFrame, went: pl.DataFrame) -> pl.DataFrame:
    """Return the communities that are gone, and where their members went."""
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


def _common(
    communities: pl.DataFrame, levels: Sequence[Integers], before: PreviousCommunities
) -> pl.DataFrame:
    """Return pairs of a row and an old community of its level with common members.

    `same`: they match; `swallowed`: most of the old one is in the new; `given`: most of the new
    one comes from the old, which did the same for `n_parts` communities.
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
