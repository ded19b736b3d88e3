"""Building of the graph from extracted rows, and links from text units to the graph."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from graphrag_index.communities.layout import layout_graph
from graphrag_index.communities.simple_graph import (
    Graph,
    Integers,
    build_graph,
    check_weights,
    count_neighbours,
)
from graphrag_index.schema.list_columns import (
    ListValues,
    RowGroups,
    distinct_pairs,
    gather_lists,
    spread_lists,
)
from graphrag_index.schema.settings.step_sections import FinalizeGraph
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import step
from graphrag_index.storage.memo import content_ids, locate_list_values
from graphrag_index.text.normalize import title_key

# Number of rows per batch. The number limits memory and does not change the results.
BATCH_RELATIONSHIPS = 65_536
BATCH_TEXT_UNITS = 20_000
_ENTITY_COLUMNS = ("human_readable_id", "title", "type", "aliases", "evidence")
_RELATIONSHIP_COLUMNS = ("source", "target", "type", "weight", "text_units", "evidence")
# Numbers of the two entities of a relationship, the smaller number first.
_PAIR = (
    pl.min_horizontal("number", "target").alias("one"),
    pl.max_horizontal("number", "target").alias("other"),
)


@step(writes=["entities", "relationships", "mentions"], code_version=6)
def finalize_graph(
    extracted_entities: pl.LazyFrame,
    extracted_relationships: pl.LazyFrame,
    extracted_mentions: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    given_ids: pl.DataFrame | None = None,
    described_entities: pl.LazyFrame | None = None,
    described_relationships: pl.LazyFrame | None = None,
    *,
    settings: FinalizeGraph,
) -> Iterator[dict[str, pl.DataFrame]]:
    """Merge duplicates, count degrees and compute the layout.

    - Entities whose titles differ only in case and spacing are merged. The merged entity keeps the
      title, type and description of the first entity.
    - Relationships between the same two entities are merged, in both directions. Their weights are
      added, their descriptions are joined, and the type of the heaviest row is kept.
    - A relationship of an entity with itself or with an unknown entity is dropped. Entities without
      relationships are kept.
    - Ids in `given_ids` are kept. A merged row keeps the first id.
    - `described_entities` and `described_relationships`, if present, replace the extracted tables.

    Relationships are in the order of their first evidence.
    """
    if described_entities is not None and described_relationships is not None:
        extracted_entities, extracted_relationships = described_entities, described_relationships
    check_weights("extracted_relationships", extracted_relationships)
    numbers, entities = _merge_entities(_read_one_description(extracted_entities, _ENTITY_COLUMNS))
    if given_ids is not None and given_ids.height:
        entities = _apply_given_ids(entities, numbers, given_ids)
    mentions = _renumber_mentions(extracted_mentions, numbers)
    yield {"mentions": mentions}
    text_unit_ids = (
        base_text_units.select("id", "human_readable_id").sort("human_readable_id").collect()["id"]
    )
    links = _MergedRelationships(
        _read_one_description(extracted_relationships, _RELATIONSHIP_COLUMNS), numbers
    )
    given = links.find_given_ids(given_ids, numbers)
    ids, titles = entities["id"], entities["title"]
    # Number the nodes by id, as in create_communities. So the layout and the communities refer to
    # the same nodes, and the layout does not depend on the order of the entities.
    node = np.argsort(ids.arg_sort().to_numpy())
    endpoints = node[links.endpoints]
    graph = build_graph(len(ids), endpoints[:, 0], endpoints[:, 1], links.weights)
    degree = count_neighbours(graph)[node]
    entity, text_unit = distinct_pairs(*(mentions[n].to_numpy() for n in ("entity", "text_unit")))
    yield {
        "entities": entities.with_columns(
            gather_lists(entity, text_unit_ids.gather(text_unit), len(ids)).alias("text_unit_ids"),
            pl.Series("degree", degree),
            *_compute_coordinates(graph, node, settings),
            human_readable_id=pl.int_range(pl.len(), dtype=pl.Int64),
        ).with_columns(pl.col("text_unit_ids").list.len().alias("frequency"))
    }
    del entities, mentions, graph
    for start in range(0, len(links), BATCH_RELATIONSHIPS):
        batch = slice(start, min(start + BATCH_RELATIONSHIPS, len(links)))
        source, target = links.endpoints[batch].T
        source_ids, target_ids = ids.gather(source), ids.gather(target)
        is_upward = source_ids <= target_ids
        low = source_ids.zip_with(is_upward, target_ids)
        high = target_ids.zip_with(is_upward, source_ids)
        link_ids = given[batch].fill_null(content_ids("relationship", low, high))
        relationships = links.make_rows(batch, text_unit_ids).with_columns(
            link_ids.alias("id"),
            pl.Series("human_readable_id", np.arange(batch.start, batch.stop)),
            titles.gather(source).alias("source"),
            titles.gather(target).alias("target"),
            source_ids.alias("source_id"),
            target_ids.alias("target_id"),
            pl.Series("combined_degree", degree[source] + degree[target]),
        )
        yield {"relationships": relationships}


def _read_one_description(rows: pl.LazyFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return one description per row; descriptions that were not summarized are joined."""
    description = pl.col("description")
    if "descriptions" in rows.collect_schema():
        joined = pl.col("descriptions").list.join(" ")
        description = pl.when(description == "").then(joined).otherwise(description)
    return rows.select(description.alias("description"), *columns).collect()


def _merge_entities(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Merge entities with equal title keys.

    Return the `raw` number and the merged `number` of each entity, and the merged entities.
    """
    seen: dict[str, int] = {}
    merged = [seen.setdefault(title_key(title), len(seen)) for title in rows["title"]]
    number = pl.Series("number", merged, dtype=pl.Int64)
    numbers = pl.DataFrame([rows["human_readable_id"].alias("raw"), number])
    first = rows.filter(number.is_first_distinct())

    row, values = spread_lists(rows["aliases"])
    forms = pl.DataFrame([number.gather(row), values.alias("form")])
    titles = pl.DataFrame([number, rows["title"].alias("form")])
    own = pl.DataFrame({"number": np.arange(len(seen)), "title": first["title"]})
    aliases = (
        pl.concat([forms, titles])
        .join(own, on="number", maintain_order="left")
        .filter(pl.col("form") != pl.col("title"))
        .unique(["number", "form"], maintain_order=True)
        .sort("number", maintain_order=True)
    )
    row, evidence = spread_lists(rows["evidence"])
    owners = number.gather(row).to_numpy()
    by_number = np.argsort(owners, kind="stable")
    ids = content_ids("entity", pl.Series(list(seen), dtype=pl.String)).alias("id")
    return numbers, first.select("title", "type", "description").with_columns(
        ids,
        gather_lists(aliases["number"].to_numpy(), aliases["form"], len(seen)).alias("aliases"),
        gather_lists(owners[by_number], evidence.gather(by_number), len(seen)).alias("evidence"),
    )


def _apply_given_ids(
    entities: pl.DataFrame, numbers: pl.DataFrame, given_ids: pl.DataFrame
) -> pl.DataFrame:
    """Replace the hashed ids of entities by the ids in `given_ids`."""
    own = (
        given_ids.filter(table="entities")
        .join(numbers, left_on="number", right_on="raw", maintain_order="left")
        .unique("number_right", keep="first", maintain_order=True)
    )
    return entities.with_columns(entities["id"].scatter(own["number_right"], own["id"]))


def _renumber_mentions(found: pl.LazyFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """Replace raw entity numbers by merged numbers; sort by text, and drop duplicates."""
    keys = numbers.select(pl.col("raw", "number").cast(pl.Int32)).lazy()
    columns = ["text_unit", "start_char", "end_char", "number"]
    rows = (
        found.join(keys, left_on="entity", right_on="raw", maintain_order="left")
        .select(columns)
        .collect()
        .sort(columns)
    )
    # Drop rows that equal the row before. After sorting, this is faster than `unique`.
    is_new = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in columns)
    return rows.filter(is_new).rename({"number": "entity"})


class _MergedRelationships:
    """Relationships, merged if they are between the same two entities, in first-seen order.

    `endpoints` has the entity numbers of source and target. `weights` has the sums of the weights.
    """

    def __init__(self, raw: pl.DataFrame, numbers: pl.DataFrame) -> None:
        found = pl.DataFrame(
            raw.select(pl.col(end).alias("raw"))
            .join(numbers, on="raw", how="left", maintain_order="left")["number"]
            .alias(end)
            for end in ("source", "target")
        )
        is_link = (found["source"] != found["target"]).fill_null(False)
        rows = np.flatnonzero(is_link.to_numpy())
        endpoints = found.filter(is_link).to_numpy()
        keys = endpoints.min(axis=1) * len(numbers) + endpoints.max(axis=1)
        _, first, part = np.unique(keys, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        group, first = rank[part], np.sort(first)

        weights = raw["weight"].to_numpy()[rows]
        self.endpoints = endpoints[first]
        self.weights = np.zeros(len(first))
        np.add.at(self.weights, group, weights)
        self._raw = raw.select("description", "type")
        self._text_units = ListValues(raw["text_units"])
        self._evidence = ListValues(raw["evidence"])
        # Raw rows, sorted by group: a group is merged into one relationship. `_by_weight` has the
        # same rows, sorted by group and descending weight.
        by_group = np.argsort(group, kind="stable")
        self._rows, self._groups = rows[by_group], group[by_group]
        self._by_weight = rows[np.lexsort((-weights, group))]

    def __len__(self) -> int:
        return len(self.endpoints)

    def find_given_ids(self, given_ids: pl.DataFrame | None, numbers: pl.DataFrame) -> pl.Series:
        """Look up the id of each relationship in `given_ids`; null if it has none.

        A relationship with several ids gets the first. An id is given to one relationship only.
        """
        if given_ids is None:
            return pl.Series("id", [None] * len(self), dtype=pl.String)
        is_link = (pl.col("table") == "relationships") & (pl.col("id") != "")
        own = given_ids.filter(is_link).select("id", "number", "target")
        for end in ("number", "target"):
            found = own.select(raw=end).join(numbers, on="raw", how="left", maintain_order="left")
            own = own.with_columns(found["number"].alias(end))
        own = (
            own.select("id", *_PAIR)
            .drop_nulls()
            .unique(["one", "other"], keep="first", maintain_order=True)
            .unique("id", keep="first", maintain_order=True)
        )
        pairs = pl.DataFrame(self.endpoints, schema={"number": pl.Int64, "target": pl.Int64})
        found = pairs.select(_PAIR).join(own, ["one", "other"], "left", maintain_order="left")
        return found["id"]

    def make_rows(self, batch: slice, text_unit_ids: pl.Series) -> pl.DataFrame:
        """Merge the columns of the raw rows of a batch of relationships."""
        first, last = np.searchsorted(self._groups, (batch.start, batch.stop))
        rows = self._rows[first:last]
        owners = self._groups[first:last] - batch.start
        n_lists = batch.stop - batch.start
        row, units = self._text_units.at(rows)
        owners_of_units, distinct_units = distinct_pairs(owners[row], units.to_numpy())
        row, evidence = self._evidence.at(rows)
        by_weight = self._by_weight[first:last]
        heaviest = by_weight[np.searchsorted(owners, np.arange(n_lists))]
        return pl.DataFrame(
            {
                "weight": self.weights[batch],
                "description": self._join_descriptions(owners, by_weight, n_lists),
                "text_unit_ids": gather_lists(
                    owners_of_units, text_unit_ids.gather(distinct_units), n_lists
                ),
                "evidence": gather_lists(owners[row], evidence, n_lists),
                "type": self._raw["type"].gather(heaviest),
            }
        )

    def _join_descriptions(self, owners: Integers, rows: Integers, n_lists: int) -> pl.Series:
        """Join the distinct descriptions of merged rows, by descending weight."""
        descriptions = self._raw["description"].gather(rows)
        if len(rows) == n_lists:
            return descriptions
        distinct = (
            pl.DataFrame({"owner": owners, "description": descriptions})
            .filter(pl.col("description") != "")
            .unique(maintain_order=True)
        )
        owner = distinct["owner"].to_numpy()
        return gather_lists(owner, distinct["description"], n_lists).list.join(" ")


def _compute_coordinates(graph: Graph, node: Integers, settings: FinalizeGraph) -> list[pl.Series]:
    """Return the columns x and y; all values are null if the layout is disabled."""
    if not settings.layout:
        return [pl.Series(name, [None] * len(node), dtype=pl.Float64) for name in "xy"]
    positions = layout_graph(graph, seed=settings.seed)[node].round(6)
    return [pl.Series(name, positions[:, axis]) for axis, name in enumerate("xy")]


@step(writes=["text_units"])
def link_text_units(
    base_text_units: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    covariates: pl.LazyFrame | None = None,
) -> Iterator[pl.DataFrame]:
    """Add the ids of entities, relationships and covariates to each text unit.

    A list has the ids of all rows whose `text_unit_ids` (or `text_unit_id`) name the text unit, in
    order of `human_readable_id`. A list may be empty. Text units keep their order.
    """
    ids = base_text_units.select("id").collect()["id"]
    if covariates is None:
        covariates = TABLES["covariates"].empty().lazy()
    linked = {
        "entity_ids": _group_by_text_unit(ids, entities, pl.col("text_unit_ids")),
        "relationship_ids": _group_by_text_unit(ids, relationships, pl.col("text_unit_ids")),
        "covariate_ids": _group_by_text_unit(ids, covariates, pl.concat_list("text_unit_id")),
    }
    # Yield one empty batch if there is no text unit.
    for start in range(0, max(len(ids), 1), BATCH_TEXT_UNITS):
        batch = base_text_units.slice(start, BATCH_TEXT_UNITS).collect()
        lists = []
        for name, (row_ids, grouped) in linked.items():
            first, last = grouped.bounds[[start, start + len(batch)]]
            own = row_ids.gather(grouped.rows[first:last])
            owners = grouped.owners[first:last] - start
            lists.append(gather_lists(owners, own, len(batch)).alias(name))
        yield batch.with_columns(lists).select(TABLES["text_units"].cast_columns)


def _group_by_text_unit(
    text_unit_ids: pl.Series, table: pl.LazyFrame, named: pl.Expr
) -> tuple[pl.Series, RowGroups]:
    """Group the rows of a table by text unit; `named` selects the ids of their text units.

    Return the ids of the table in order, and the row numbers of each text unit.
    """
    ids = table.select("id", "human_readable_id").collect()
    order = ids["human_readable_id"].arg_sort().to_numpy()
    rows, text_units = locate_list_values(table.select(named.alias("ids")), text_unit_ids)
    grouped = RowGroups(text_units, np.argsort(order)[rows], len(text_unit_ids))
    return ids["id"].gather(order), grouped
