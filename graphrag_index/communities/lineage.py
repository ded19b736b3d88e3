"""Numbers and table rows of communities, and their lineage from version to version.

A community matches a previous community of the same level if they share more than half of all
entities that are in at least one of them. So a community matches at most one previous community.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.simple_graph import (
    Allocate,
    Graph,
    Integers,
    Nodes,
    build_graph,
    read_endpoints,
)
from graphrag_index.errors import TableError
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.memo import (
    LISTS_PER_BATCH,
    content_ids,
    read_batches,
    read_number_lists,
    read_or_fallback,
)
from graphrag_index.storage.table_store import Previous
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
            uses_entities = by_entity[of_node]
            position, more_units = named.take(nodes[uses_entities])
            theme_of_unit = themes[level] if level < len(themes) else np.zeros(0, dtype=np.int64)
            units_of_themes = np.flatnonzero((theme_of_unit >= start) & (theme_of_unit < stop))
            owners = np.concatenate([owners, of_node[uses_entities][position]])
            units = np.concatenate([units, more_units])
            # A theme has the text units that are about it, wherever else its entities are named.
            is_owned = np.zeros(len(by_entity), dtype=bool)
            is_owned[theme_of_unit[units_of_themes] - start] = True
            is_open = ~is_owned[owners]
            owners, distinct_units = distinct_pairs(
                np.concatenate([owners[is_open], theme_of_unit[units_of_themes] - start]),
                np.concatenate([units[is_open], units_of_themes]),
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


def number_communities(
    levels: Sequence[Integers], is_island: npt.NDArray[np.bool_], n_theme_levels: int = 0
) -> tuple[pl.DataFrame, list[Integers]]:
    """Assign numbers to the communities of all levels.

    The first `n_theme_levels` levels are themes, and `is_island` flags communities of the next one.

    Communities are sorted by level, then parent, then islands last, then descending size, then
    first entity. Returns one row per community with community (the row number), level, parent,
    size, island and theme; and for each level the row of each node's community, or -1.
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
        island = is_island if level == n_theme_levels else np.zeros(len(first), dtype=bool)
        order = np.lexsort((first, -size, island, parent))
        number = n_before + np.argsort(order)
        numbered.append(np.full(len(labels), -1))
        numbered[-1][nodes] = number[part]
        columns = {"community": number, "parent": parent, "size": size, "island": island}
        rows = pl.DataFrame(columns).with_columns(
            level=pl.lit(level, pl.Int64), theme=pl.lit(level < n_theme_levels)
        )
        frames.append(rows.sort("community"))
        n_before += len(first)
    return pl.concat(frames), numbered


def renumber_communities(
    communities: pl.DataFrame, levels: Sequence[Integers], numbers: Integers
) -> tuple[pl.DataFrame, list[Integers]]:
    """Replace the numbers of communities by `numbers`; sort rows by level, then number.

    Returns the same tuple as `number_communities`. The rows also have a column `above`: the row of
    the parent community, or -1.
    """
    order = np.lexsort((numbers, communities["level"].to_numpy()))
    # Add one more element -1, so that the index -1 (no parent) gives -1.
    row = np.full(len(order) + 1, -1)
    row[order] = np.arange(len(order))
    above = row[communities["parent"].to_numpy()]
    renumbered = communities.with_columns(
        pl.Series("community", numbers), pl.Series("above", above)
    )[order]
    parent = np.append(renumbered["community"].to_numpy(), -1)[renumbered["above"].to_numpy()]
    return renumbered.with_columns(pl.Series("parent", parent)), [row[of] for of in levels]


@dataclass(frozen=True)
class PreviousCommunities:
    """The communities of the last version, mapped to the nodes of the present version."""

    communities: pl.DataFrame  # id, community, level, size, island, theme, members (their hash)
    levels: list[Integers]  # previous community of each node, or -1, level by level, no themes
    themes: list[Integers]  # previous theme of each node, or -1, level by level
    graph: Graph  # previous relationships between present nodes
    is_new: npt.NDArray[np.bool_]  # flags of nodes that are new or have lost a neighbour
    settings: Mapping[str, object]  # previous settings of the step; empty if unknown
    highest_number: int  # highest community number that any version has used; -1 if none

    @property
    def island_of_nodes(self) -> Integers:
        """The number of each node's previous island, or -1."""
        islands = self.communities.filter("island")["community"].to_numpy()
        top = self.levels[0]
        return np.where(np.isin(top, islands), top, -1)


def read_old_communities(
    previous: Previous, ids: pl.Series, allocate: Allocate
) -> PreviousCommunities | None:
    """Read the communities of the last version; None if they are missing or damaged.

    `ids` are the ids of the present nodes, in the order of the nodes.
    """
    make = read_or_fallback(None, "communities", lambda: _read_communities(previous, ids))
    # The graph may need disk space: a full disk does not mean that the communities are damaged.
    return make(allocate) if make else None


def _read_communities(
    previous: Previous, ids: pl.Series
) -> Callable[[Allocate], PreviousCommunities] | None:
    """Read all tables; return a function that builds the graph."""
    found, links = previous.scan("communities"), previous.scan("relationships")
    if found is None or links is None:
        return None
    if "theme" not in found.collect_schema():
        # An older version of this program, or another program, wrote the table.
        found = found.with_columns(theme=False)
    columns = ["id", "community", "level", "size", "island", "theme"]
    communities = pl.concat(
        batch.select(*columns, members=hash_members())
        for batch in read_batches(found, LISTS_PER_BATCH, at_least_one=True)
    )
    members = read_number_lists(found.select("entity_ids"), ids)
    levels = []
    for level in communities["level"].unique(maintain_order=True):
        rows = np.flatnonzero((communities["level"] == level).to_numpy())
        position, node = members.take(rows)
        labels = np.full(len(ids), -1)
        labels[node] = communities["community"].to_numpy()[rows[position]]
        levels.append(labels)
    n_theme_levels = communities.filter("theme")["level"].n_unique()
    themes, levels = levels[:n_theme_levels], levels[n_theme_levels:]
    if not levels:
        # Go on even without communities: the lineage may hold numbers that must not be used again.
        levels.append(np.full(len(ids), -1))
    endpoints = read_endpoints(links, ids)
    is_known = (endpoints >= 0).all(axis=1)
    is_new = levels[0] < 0
    left = endpoints[~is_known]
    is_new[left[left >= 0]] = True
    weights = links.select("weight").collect()["weight"].to_numpy()[is_known]
    sources, targets = endpoints[is_known].T
    highest_number = _find_highest_number(previous, communities["community"])
    settings = previous.settings.get("create_communities") or {}

    def make(allocate: Allocate) -> PreviousCommunities:
        graph = build_graph(len(ids), sources, targets, weights, allocate)
        return PreviousCommunities(
            communities, levels, themes, graph, is_new, settings, highest_number
        )

    return make


def _find_highest_number(previous: Previous, numbers_now: pl.Series) -> int:
    numbers = [numbers_now]
    lineage = previous.scan("community_lineage")
    if lineage is not None:
        numbers.append(lineage.select("community").collect()["community"])
    for lineage in previous.rolled_back_tables("community_lineage"):
        # Skip a version with a damaged lineage table.
        with suppress(OSError, TableError, pl.exceptions.PolarsError):
            numbers.append(lineage.select("community").collect()["community"])
    return max([-1, *(int(found.max()) for found in numbers if len(found))])  # type: ignore[arg-type]


def trace_lineage(
    communities: pl.DataFrame, levels: Sequence[Integers], before: PreviousCommunities | None
) -> tuple[Integers, pl.DataFrame]:
    """Match communities with those of the last version; return numbers and the lineage table.

    A community that matches a previous community gets the number of that community. Every other
    community gets a number that no version has used. If `before` is None, the numbers are kept.
    `communities` and `levels` are results of `number_communities`.
    """
    if before is None:
        born = communities.select("community", "level", "size", status=pl.lit("born"))
        return communities["community"].to_numpy(), _make_lineage_table(born)
    common = _find_common_pairs(communities, levels, before)
    matched = common.filter("same")
    numbers = np.full(len(communities), -1)
    numbers[matched["row"].to_numpy()] = matched["old"].to_numpy()
    is_new = numbers < 0
    numbers[is_new] = before.highest_number + 1 + np.arange(is_new.sum())
    common = common.with_columns(new=pl.Series(numbers)[common["row"]])
    now = communities.select("level", "size", row="community").with_columns(
        community=pl.Series(numbers)
    )
    went = common.sort("old", "new").group_by("old").agg(went_to="new")
    alive = _add_statuses(now, matched, common).join(
        went, left_on="community", right_on="old", how="left"
    )
    died = (
        before.communities.join(matched, left_on="community", right_on="old", how="anti")
        .join(went, left_on="community", right_on="old", how="left")
        .select("community", "level", "went_to", previous_size="size", status=pl.lit("died"))
    )
    parts = [alive, died]
    highest = before.highest_number
    if highest >= 0 and not any(highest in part["community"] for part in parts):
        # Add a row with the highest number, so that no later version uses that number again.
        last = {"community": [highest], "level": [0], "status": ["died"]}
        parts.append(pl.DataFrame(last))
    return numbers, _make_lineage_table(*parts)


def _add_statuses(now: pl.DataFrame, matched: pl.DataFrame, common: pl.DataFrame) -> pl.DataFrame:
    """Add the status of each present community, and the previous communities of its members."""
    sources = (
        common.sort("row", "old")
        .group_by("row", maintain_order=True)
        .agg(
            came_from="old",
            n_swallowed=pl.col("swallowed").sum(),
            # True if this community and another got most of their members from the same old one.
            is_part=(pl.col("given") & (pl.col("n_parts") > 1)).any(),
            has_giver=pl.col("given").any(),
        )
    )
    is_unmatched = pl.col("previous_size").is_null()
    kept = matched.select("row", "overlap", previous_size="old_size")
    return (
        now.join(kept, on="row", how="left")
        .join(sources, on="row", how="left")
        .with_columns(
            status=pl.when(pl.col("n_swallowed") > 1)
            .then(pl.lit("merged"))
            .when(pl.col("is_part") | (is_unmatched & pl.col("has_giver").fill_null(False)))
            .then(pl.lit("split"))
            .when(is_unmatched)
            .then(pl.lit("born"))
            .when(pl.col("size") > pl.col("previous_size"))
            .then(pl.lit("grown"))
            .when(pl.col("size") < pl.col("previous_size"))
            .then(pl.lit("shrunk"))
            .otherwise(pl.lit("kept"))
        )
    )


def _find_common_pairs(
    communities: pl.DataFrame, levels: Sequence[Integers], before: PreviousCommunities
) -> pl.DataFrame:
    """Return pairs of a present and an old community on one level that share members.

    `row` is the row of the present community. `same` is True if the communities match,
    `swallowed` if most members of the old community are in the present community, and `given` if
    most members of the present community are from the old community. `n_parts` is the number of
    present communities that got most of their members from the old community.
    """
    n_theme_levels = communities.filter("theme")["level"].n_unique()
    pairs = [
        *zip(levels[n_theme_levels:], before.levels, strict=False),
        # The finest levels of themes correspond, if the numbers of levels differ.
        *zip(levels[:n_theme_levels][::-1], before.themes[::-1], strict=False),
    ]
    size, old_size, shared = pl.col("size"), pl.col("old_size"), pl.col("shared")
    return (
        pl.concat(pl.DataFrame({"row": labels, "old": old}) for labels, old in pairs)
        .filter(pl.col("row") >= 0, pl.col("old") >= 0)
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


def _make_lineage_table(*parts: pl.DataFrame) -> pl.DataFrame:
    """Build the table `community_lineage` from rows that may lack some columns."""
    table = TABLES["community_lineage"]
    rows = pl.concat([table.empty(), *parts], how="diagonal_relaxed").with_columns(
        pl.col("overlap", "size", "previous_size").fill_null(0),
        pl.col("came_from", "went_to").fill_null(pl.lit([], pl.List(pl.Int64))),
    )
    return rows.select(table.cast_columns).sort("level", "community")
