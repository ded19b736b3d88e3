"""Building of the graph from extracted rows, and its links from text units."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.layout import layout_graph
from graphrag_index.communities.simple_graph import (
    Floats,
    build_graph,
    check_weights,
    count_neighbours,
)
from graphrag_index.schema.settings.step_sections import FinalizeGraph
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Partitions, Shards, step
from graphrag_index.storage.memo import LISTS_PER_BATCH, content_ids, read_batches, regroup_batches
from graphrag_nlp.list_columns import distinct_pairs, find_rows, gather_lists, spread_lists
from graphrag_nlp.text.normalize import title_key

Numbers = npt.NDArray[np.int32]

# Numbers of rows per batch. They limit memory and do not change the results.
BATCH_ROWS = 65_536  # entities or relationships
BATCH_MENTIONS = 1_048_576
BATCH_TEXT_UNITS = 20_000
_ENTITY_COLUMNS = ("title", "type", "aliases", "evidence")
_RELATIONSHIP_COLUMNS = ("type", "weight", "text_units", "evidence")
# Numbers of the two entities of a relationship, the smaller number first.
_PAIR = (
    pl.min_horizontal("number", "target").alias("one"),
    pl.max_horizontal("number", "target").alias("other"),
)
# Columns of pairs: an entity, and a text unit that names the entity.
_NAMING = {"entity": pl.Int32, "text_unit": pl.Int32}
# Columns of pairs: a text unit, and a row that names the text unit.
_LINKS = {"text_unit": pl.Int32, "row": pl.Int32}


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
    shards: Shards,
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

    Relationships are in the order of their first evidence. Rows are merged in partitions: only
    the ids and titles of entities, and the weighted pairs of entities, are all in memory.
    """
    if described_entities is not None and described_relationships is not None:
        extracted_entities, extracted_relationships = described_entities, described_relationships
    check_weights("extracted_relationships", extracted_relationships)
    merged = _MergedEntities(extracted_entities)
    if given_ids is not None and given_ids.height:
        merged.apply_given_ids(given_ids)
    text_unit_ids = (
        base_text_units.select("id", "human_readable_id").sort("human_readable_id").collect()["id"]
    )
    n_batches = _count_batches(len(merged.ids))
    with shards.open_partitions(n_batches, _NAMING) as naming:
        for mentions in _renumber_mentions(extracted_mentions, merged, len(text_unit_ids), shards):
            pairs = distinct_pairs(*(mentions[name].to_numpy() for name in _NAMING))
            naming.append(pl.DataFrame(pairs, _NAMING), pairs[0] // BATCH_ROWS)
            yield {"mentions": mentions}
        links = _MergedLinks(extracted_relationships, merged)
        degree, positions = _place_entities(merged.ids, links, settings, shards)
        rows = _read_one_description(extracted_entities, _ENTITY_COLUMNS)
        for batch, entities in _finalize_entities(rows, merged, naming, text_unit_ids, shards):
            placed = pl.Series("degree", degree[batch]), *_make_coordinates(positions, batch)
            yield {"entities": entities.with_columns(*placed)}
    given = links.find_given_ids(given_ids, merged)
    rows = _read_one_description(extracted_relationships, _RELATIONSHIP_COLUMNS)
    for batch, relationships in _finalize_relationships(rows, merged, links, text_unit_ids, shards):
        if given is not None:
            known = given[batch].fill_null(relationships["id"])
            relationships = relationships.with_columns(known.alias("id"))
        source, target = links.endpoints[batch].T
        combined = pl.Series("combined_degree", degree[source] + degree[target])
        yield {"relationships": relationships.with_columns(combined)}


def _finalize_entities(
    rows: pl.LazyFrame,
    merged: "_MergedEntities",
    naming: Partitions,
    text_unit_ids: pl.Series,
    shards: Shards,
) -> Iterator[tuple[slice, pl.DataFrame]]:
    """Merge the rows of each entity, in batches; `naming` pairs entities with text units."""
    for batch, own in _split_by_number(rows, merged.numbers, len(merged.ids), shards):
        named, ids = naming.read(batch.start // BATCH_ROWS), merged.ids[batch]
        owners, text_units = distinct_pairs(*(named[name].to_numpy() for name in _NAMING))
        units = text_unit_ids.gather(text_units)
        entities = _merge_entities(own, merged.titles[batch]).with_columns(
            ids.alias("id"),
            pl.Series("human_readable_id", np.arange(batch.start, batch.stop)),
            gather_lists(owners - batch.start, units, len(ids)).alias("text_unit_ids"),
        )
        yield batch, entities.with_columns(frequency=pl.col("text_unit_ids").list.len())


def _finalize_relationships(
    rows: pl.LazyFrame,
    merged: "_MergedEntities",
    links: "_MergedLinks",
    text_unit_ids: pl.Series,
    shards: Shards,
) -> Iterator[tuple[slice, pl.DataFrame]]:
    """Merge the rows of each relationship, in batches; ids are hashes of the two entities."""
    for batch, own in _split_by_number(rows, links.numbers, len(links.weights), shards):
        source, target = links.endpoints[batch].T
        source_ids, target_ids = merged.ids.gather(source), merged.ids.gather(target)
        yield (
            batch,
            _merge_relationships(own, text_unit_ids).with_columns(
                _hash_pairs(source_ids, target_ids).alias("id"),
                pl.Series("human_readable_id", np.arange(batch.start, batch.stop)),
                merged.titles.gather(source).alias("source"),
                merged.titles.gather(target).alias("target"),
                pl.Series("weight", links.weights[batch]),
                source_ids.alias("source_id"),
                target_ids.alias("target_id"),
            ),
        )


def _count_batches(n_rows: int) -> int:
    return -(-n_rows // BATCH_ROWS)


class _MergedEntities:
    """Entities, merged if they have the same title key, and numbered in first-seen order.

    `numbers` has the number of the merged entity of each row. `ids` and `titles` have one value
    per merged entity.
    """

    def __init__(self, rows: pl.LazyFrame) -> None:
        found = rows.select("human_readable_id", "title").collect()
        parts = (
            content_ids("entity", pl.Series([title_key(title) for title in part["title"]]))
            for part in found.iter_slices(BATCH_ROWS)
        )
        ids = pl.concat([pl.Series(dtype=pl.String), *parts])
        is_first = ids.is_first_distinct()
        self.ids, self.titles = ids.filter(is_first), found["title"].filter(is_first)
        self.numbers = find_rows(ids, self.ids).astype(np.int32)
        raw = found["human_readable_id"].to_numpy()
        # The merged number of each `human_readable_id`. The last item is for unknown entities.
        self._number_of = np.full(int(raw.max(initial=-1)) + 2, -1, np.int32)
        self._number_of[raw] = self.numbers

    def find(self, raw: pl.Series) -> Numbers:
        """Return the number of the merged entity of each `human_readable_id`; -1 if unknown."""
        at = raw.fill_null(-1).to_numpy().clip(-1, len(self._number_of) - 1)
        found: Numbers = self._number_of[at]
        return found

    def apply_given_ids(self, given_ids: pl.DataFrame) -> None:
        """Replace the hashed ids of entities by the ids in `given_ids`."""
        own = given_ids.filter(table="entities")
        own = own.select("id", number=pl.Series(self.find(own["number"])))
        own = own.filter(pl.col("number") >= 0).unique("number", keep="first", maintain_order=True)
        self.ids = self.ids.scatter(own["number"], own["id"])


class _MergedLinks:
    """Pairs of entities with relationships, in both directions, numbered in first-seen order.

    `numbers` has the number of the pair of each row, or -1. `endpoints` has the entity numbers of
    source and target of the first row of each pair, and `weights` the sums of the weights.
    """

    def __init__(self, rows: pl.LazyFrame, entities: _MergedEntities) -> None:
        parts = [np.zeros((0, 2), np.int32)]
        weights = [np.zeros(0)]
        for batch in read_batches(rows.select("source", "target", "weight"), BATCH_MENTIONS):
            ends = [entities.find(batch[end]) for end in ("source", "target")]
            parts.append(np.stack(ends, axis=1))
            weights.append(batch["weight"].to_numpy())
        endpoints, weight = np.concatenate(parts), np.concatenate(weights)
        is_link = (endpoints >= 0).all(axis=1) & (endpoints[:, 0] != endpoints[:, 1])
        endpoints, weight = endpoints[is_link], weight[is_link]
        keys = endpoints.min(axis=1).astype(np.int64) * len(entities.ids) + endpoints.max(axis=1)
        _, first, pair = np.unique(keys, return_index=True, return_inverse=True)
        del keys
        rank = np.empty(len(first), np.int32)
        rank[np.argsort(first)] = np.arange(len(first))
        self.numbers = np.full(len(is_link), -1, np.int32)
        self.numbers[is_link] = rank[pair]
        self.endpoints = endpoints[np.sort(first)]
        self.weights = np.zeros(len(first))
        np.add.at(self.weights, rank[pair], weight)

    def find_given_ids(
        self, given_ids: pl.DataFrame | None, entities: _MergedEntities
    ) -> pl.Series | None:
        """Look up the id of each pair in `given_ids`; null if it has none.

        A pair with several ids gets the first. An id is given to one pair only.
        """
        if given_ids is None or given_ids.is_empty():
            return None
        is_link = (pl.col("table") == "relationships") & (pl.col("id") != "")
        own = given_ids.filter(is_link).select("id", "number", "target")
        own = (
            own.with_columns(
                pl.Series(end, entities.find(own[end])) for end in ("number", "target")
            )
            .filter(pl.col("number") >= 0, pl.col("target") >= 0)
            .select("id", *_PAIR)
            .unique(["one", "other"], keep="first", maintain_order=True)
            .unique("id", keep="first", maintain_order=True)
        )
        pairs = pl.DataFrame(self.endpoints, schema={"number": pl.Int32, "target": pl.Int32})
        found = pairs.select(_PAIR).join(own, ["one", "other"], "left", maintain_order="left")
        return found["id"]


def _place_entities(
    ids: pl.Series, links: _MergedLinks, settings: FinalizeGraph, shards: Shards
) -> tuple[npt.NDArray[Any], Floats | None]:
    """Return the number of neighbours of each entity, and its position if there is a layout."""
    # Number the nodes by id, as in create_communities. So the layout and the communities refer to
    # the same nodes, and the layout does not depend on the order of the entities.
    node = np.argsort(ids.arg_sort().to_numpy()).astype(np.int32)
    sources, targets = node[links.endpoints].T
    graph = build_graph(len(ids), sources, targets, links.weights, shards.allocate)
    degree = count_neighbours(graph)[node]
    positions = layout_graph(graph, seed=settings.seed)[node].round(6) if settings.layout else None
    return degree, positions


def _hash_pairs(one: pl.Series, other: pl.Series) -> pl.Series:
    """Return one id per pair of ids, which does not depend on the order of the two."""
    is_upward = one <= other
    return content_ids(
        "relationship", one.zip_with(is_upward, other), other.zip_with(is_upward, one)
    )


def _read_one_description(rows: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
    """Select one description per row; descriptions that were not summarized are joined."""
    description = pl.col("description")
    if "descriptions" in rows.collect_schema():
        joined = pl.col("descriptions").list.join(" ")
        description = pl.when(description == "").then(joined).otherwise(description)
    return rows.select(description.alias("description"), *columns)


def _split_by_number(
    rows: pl.LazyFrame, numbers: Numbers, n: int, shards: Shards
) -> Iterator[tuple[slice, pl.DataFrame]]:
    """Yield (range of numbers, rows with these numbers) for the numbers from 0 to `n` - 1.

    `numbers` has the number of each row; rows with -1 are left out. The rows of a range are sorted
    by their number. Their column `owner` is the position of the number in the range.
    """
    schema = {**rows.collect_schema(), "owner": pl.Int64}
    offset = 0
    with shards.open_partitions(_count_batches(n), schema) as partitions:
        for batch in read_batches(rows, BATCH_ROWS):
            owner = numbers[offset : offset + batch.height].astype(np.int64)
            batch = batch.with_columns(owner=owner % BATCH_ROWS).filter(owner >= 0)
            partitions.append(batch, owner[owner >= 0] // BATCH_ROWS)
            offset += len(owner)
        for number, part in partitions:
            start = number * BATCH_ROWS
            if not part["owner"].is_sorted():
                part = part.sort("owner", maintain_order=True)
            yield slice(start, min(start + BATCH_ROWS, n)), part


def _renumber_mentions(
    found: pl.LazyFrame, entities: _MergedEntities, n_text_units: int, shards: Shards
) -> Iterator[pl.DataFrame]:
    """Yield mentions with the numbers of merged entities, sorted by text, without duplicates."""
    columns = ["text_unit", "start_char", "end_char", "entity"]
    n = max(1, -(-n_text_units // BATCH_TEXT_UNITS))

    def sort_partitions() -> Iterator[pl.DataFrame]:
        for _, rows in partitions:
            rows = rows.sort(columns)
            # Drop rows that equal the row before. After sorting, this is faster than `unique`.
            is_new = (pl.col(name).ne_missing(pl.col(name).shift()) for name in columns)
            yield rows.filter(pl.any_horizontal(is_new))

    with shards.open_partitions(n, dict.fromkeys(columns, pl.Int32)) as partitions:
        for batch in read_batches(found, BATCH_MENTIONS):
            number = entities.find(batch["entity"])
            rows = batch.with_columns(entity=number).filter(number >= 0)
            at = rows["text_unit"].to_numpy() // BATCH_TEXT_UNITS
            partitions.append(rows, np.minimum(at, n - 1))
        yield from regroup_batches(sort_partitions())


def _merge_entities(rows: pl.DataFrame, titles: pl.Series) -> pl.DataFrame:
    """Merge the rows of each `owner`; `titles` has the titles of the merged entities."""
    row, values = spread_lists(rows["aliases"])
    forms = pl.DataFrame([rows["owner"].gather(row), values.alias("form")])
    own = pl.DataFrame({"owner": np.arange(len(titles)), "title": titles})
    aliases = (
        pl.concat([forms, rows.select("owner", form="title")])
        .join(own, on="owner", maintain_order="left")
        .filter(pl.col("form") != pl.col("title"))
        .unique(["owner", "form"], maintain_order=True)
        .sort("owner", maintain_order=True)
    )
    row, evidence = spread_lists(rows["evidence"])
    first = rows.filter(pl.col("owner").is_first_distinct())
    return first.select("title", "type", "description").with_columns(
        gather_lists(aliases["owner"].to_numpy(), aliases["form"], len(titles)).alias("aliases"),
        gather_lists(rows["owner"].to_numpy()[row], evidence, len(titles)).alias("evidence"),
    )


def _merge_relationships(rows: pl.DataFrame, text_unit_ids: pl.Series) -> pl.DataFrame:
    """Merge the rows of each `owner` to a relationship, without the columns of its two ends."""
    owners = rows["owner"].to_numpy()
    n = int(owners[-1]) + 1
    row, units = spread_lists(rows["text_units"])
    owners_of_units, distinct_units = distinct_pairs(owners[row], units.to_numpy())
    row, evidence = spread_lists(rows["evidence"])
    by_weight = rows.select("owner", "description", "type")[
        np.lexsort((-rows["weight"].to_numpy(), owners))
    ]
    return pl.DataFrame(
        {
            "description": _join_descriptions(by_weight, n),
            "text_unit_ids": gather_lists(owners_of_units, text_unit_ids.gather(distinct_units), n),
            "evidence": gather_lists(owners[row], evidence, n),
            "type": by_weight.filter(pl.col("owner").is_first_distinct())["type"],
        }
    )


def _join_descriptions(rows: pl.DataFrame, n: int) -> pl.Series:
    """Join the distinct descriptions of each `owner`, in the order of the rows."""
    if rows.height == n:
        return rows["description"]
    distinct = (
        rows.select("owner", "description")
        .filter(pl.col("description") != "")
        .unique(maintain_order=True)
    )
    return gather_lists(distinct["owner"].to_numpy(), distinct["description"], n).list.join(" ")


def _make_coordinates(positions: Floats | None, batch: slice) -> list[pl.Series]:
    """Return the columns x and y of a batch; all values are null without a layout."""
    if positions is None:
        nothing = [None] * (batch.stop - batch.start)
        return [pl.Series(name, nothing, dtype=pl.Float64) for name in "xy"]
    return [pl.Series(name, positions[batch, axis]) for axis, name in enumerate("xy")]


@step(writes=["text_units"])
def link_text_units(
    base_text_units: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    covariates: pl.LazyFrame | None = None,
    *,
    shards: Shards,
) -> Iterator[pl.DataFrame]:
    """Add the ids of entities, relationships and covariates to each text unit.

    A list has the ids of all rows whose `text_unit_ids` (or `text_unit_id`) name the text unit, in
    order of `human_readable_id`. A list may be empty. Text units keep their order.
    """
    ids = base_text_units.select("id").collect()["id"]
    if covariates is None:
        covariates = TABLES["covariates"].empty().lazy()
    sources = {
        "entity_ids": (entities, pl.col("text_unit_ids")),
        "relationship_ids": (relationships, pl.col("text_unit_ids")),
        "covariate_ids": (covariates, pl.concat_list("text_unit_id")),
    }
    # Yield one empty batch if there is no text unit.
    starts = range(0, max(len(ids), 1), BATCH_TEXT_UNITS)
    with ExitStack() as stack:
        linked = {}
        for name, (table, named) in sources.items():
            pairs = stack.enter_context(shards.open_partitions(len(starts), _LINKS))
            linked[name] = _split_by_text_unit(ids, table, named, pairs), pairs
        for number, start in enumerate(starts):
            batch = base_text_units.slice(start, BATCH_TEXT_UNITS).collect()
            lists = []
            for name, (row_ids, pairs) in linked.items():
                owners, rows = distinct_pairs(*(pairs.read(number)[c].to_numpy() for c in _LINKS))
                own = gather_lists(owners - start, row_ids.gather(rows), len(batch))
                lists.append(own.alias(name))
            yield batch.with_columns(lists).select(TABLES["text_units"].cast_columns)


def _split_by_text_unit(
    text_unit_ids: pl.Series, table: pl.LazyFrame, named: pl.Expr, links: Partitions
) -> pl.Series:
    """Append the rows of a table to `links`, which has a partition per batch of text units.

    `named` selects the ids of the text units of a row. Return the ids of the table; the rows in
    `links` are positions in these ids, which are sorted by `human_readable_id`.
    """
    ids = table.select("id", "human_readable_id").collect()
    order = ids["human_readable_id"].arg_sort().to_numpy()
    place = np.argsort(order)
    offset = 0
    for batch in read_batches(table.select(named), LISTS_PER_BATCH):
        row, values = spread_lists(batch.to_series())
        text_unit = find_rows(values, text_unit_ids)
        is_known = text_unit >= 0
        rows = place[offset + row[is_known]]
        found = pl.DataFrame((text_unit[is_known], rows), _LINKS)
        links.append(found, text_unit[is_known] // BATCH_TEXT_UNITS)
        offset += batch.height
    return ids["id"].gather(order)
