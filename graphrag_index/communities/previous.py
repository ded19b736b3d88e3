"""The communities of the last run, seen from the entities of this one."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.rows import hash_members
from graphrag_index.communities.simple_graph import Graph, Integers, simple_graph
from graphrag_index.errors import TableError
from graphrag_index.schema.list_columns import positions
from graphrag_index.storage.table_store import Previous

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Before:
    """What the last run found.

    Parameters
    ----------
    communities
        One row per community: id, community, level, size, island, and what stands for its members.
    levels
        The number of the community of each node of this run, or -1, level by level.
    graph
        The relationships of then between nodes of this run.
    is_new
        Which nodes were not there, or lost a neighbour that is gone.
    settings
        With which communities were made; empty if that is not known.
    highest
        The highest number that a community ever had, -1 if there was none.
    """

    communities: pl.DataFrame
    levels: list[Integers]
    graph: Graph
    is_new: npt.NDArray[np.bool_]
    settings: Mapping[str, object]
    highest: int

    @property
    def islands(self) -> Integers:
        """The number of the island of each node, -1 where it was in none."""
        islands = self.communities.filter("island")["community"].to_numpy()
        top = self.levels[0]
        return np.where(np.isin(top, islands), top, -1)


def read_previous(previous: Previous, ids: pl.Series) -> Before | None:
    """Read the communities of the last run; None if it made none, or they cannot be read.

    `ids` are those of the nodes, in their order.
    """
    try:
        return _read(previous, ids)
    except (OSError, TableError, pl.exceptions.PolarsError) as error:
        logger.warning(
            "Communities of the last run cannot be read: all are made anew, with new numbers (%s)",
            error,
        )
        return None


def _read(previous: Previous, ids: pl.Series) -> Before | None:
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
        # There were none: what became of their numbers the lineage tells.
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
    return Before(
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
        # Nothing else of these versions matters here, nor that one is damaged.
        with suppress(OSError, TableError, pl.exceptions.PolarsError):
            numbers.append(lineage.select("community").collect()["community"])
    return int(pl.concat([pl.Series([-1], dtype=pl.Int64), *numbers]).max())  # type: ignore[arg-type]
