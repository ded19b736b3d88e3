"""Entities and relationships of the user's graph files, merged by title."""

import logging
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from graphrag_index.errors import InputError
from graphrag_index.readers.graph_rows import FileRows
from graphrag_index.schema.settings.step_sections import ReadGraph
from graphrag_index.schema.tables import parse_columns
from graphrag_nlp.list_columns import Integers, find_rows
from graphrag_nlp.text.normalize import title_key

logger = logging.getLogger(__name__)

DEFAULT_WEIGHT = 1.0  # weight of a relationship whose row has no weight
MAX_WEIGHT = 1e100  # maximum weight of a relationship, so that sums of weights are finite
_ENDS = ["source", "target"]


@dataclass(frozen=True)
class Entities:
    """Entities of the user's files. The number of an entity is its row number in `frame`.

    `frame` has one row per entity, in file order: `title`, `type`, `description`, `aliases`,
    `id` (null if the file has none), `text_unit_ids`. `descriptions` has one row per
    described row of the file: `row` (its number), `description`, `entity` (number). `keys` maps
    ids, and `names` maps normalized titles, to entity numbers.
    """

    frame: pl.DataFrame
    descriptions: pl.DataFrame
    keys: pl.DataFrame
    names: pl.DataFrame

    def find_entity_numbers(self, endpoints: pl.Series) -> Integers:
        """Return the entity number of each source or target; -1 if no entity matches."""
        distinct = endpoints.unique(maintain_order=True)
        found = _match_entities(distinct, self.keys)
        missing = np.flatnonzero(found < 0)
        found[missing] = _match_entities(_make_title_keys(distinct.gather(missing)), self.names)
        return found[find_rows(endpoints, distinct)]

    @cached_property
    def titles(self) -> list[str]:
        return self.frame["title"].to_list()


_EMPTY_KEY_TABLE = pl.DataFrame(schema={"key": pl.String, "number": pl.Int64})
_NO_ENTITIES = Entities(
    pl.DataFrame(
        schema=parse_columns(
            "title, type, id, description, aliases: strings, text_unit_ids: strings"
        )
    ),
    pl.DataFrame(schema=parse_columns("row: int64, description, entity: int64")),
    _EMPTY_KEY_TABLE,
    _EMPTY_KEY_TABLE,
)


def _match_entities(wanted: pl.Series, known: pl.DataFrame) -> Integers:
    numbers: Integers = np.append(known["number"].to_numpy(), -1)
    return numbers[find_rows(wanted, known["key"])]


def _merge_entity_rows(rows: FileRows) -> Entities:
    """Merge the rows of the entities file by title, ignoring case and spacing.

    The title comes from the first row; id and type come from the first row that has one.
    Descriptions are joined; aliases and text units are collected. Raises InputError if a row has
    no title, or if two entities have the same id.
    """
    frame = rows.frame
    rows.check_values("title", "add a title, or delete the row")
    key = _make_title_keys(frame["title"])
    names = pl.DataFrame({"key": key}).unique(maintain_order=True)
    names = names.with_columns(number=pl.int_range(pl.len(), dtype=pl.Int64))
    frame = frame.with_columns(pl.Series("number", _match_entities(key, names)))
    _check_unique_entity_ids(frame, rows)
    if len(names) < len(frame):
        repeated = frame.filter(pl.len().over("number") > 1)
        first = repeated.filter(number=repeated["number"][0])
        logger.warning(
            "%s: repeated titles become one entity: %d in all, the first %r, in the %ss %s.",
            *(rows.name, repeated["number"].n_unique(), first["title"][0], rows.unit),
            " and ".join(f"{row:,}" for row in first["row"].head(2)),
        )
    merged = (
        frame.group_by("number", maintain_order=True)
        .agg(
            pl.col("title").first(),
            pl.col("type", "id").drop_nulls().first(),
            pl.col("description").drop_nulls().unique(maintain_order=True).str.join(" "),
            pl.col("title").unique(maintain_order=True).slice(1).alias("forms"),
            *(
                pl.col(name).explode(empty_as_null=False).drop_nulls().unique(maintain_order=True)
                for name in ("aliases", "text_unit_ids")
            ),
        )
        .with_columns(
            pl.col("type", "description").fill_null(""),
            pl.col("aliases").list.set_union(pl.col("forms")),
        )
    )
    keys = frame.select("key", "number").drop_nulls().unique("key", keep="first")
    described = frame.filter(pl.col("description").is_not_null())
    descriptions = described.select("row", "description", entity="number")
    return Entities(merged.drop("number", "forms"), descriptions, keys, names)


def _append_missing_entities(entities: Entities, titles: pl.Series) -> Entities:
    """Append an entity for each title that no entity has, in order of appearance."""
    distinct = titles.unique(maintain_order=True)
    found = pl.DataFrame({"title": distinct, "key": _make_title_keys(distinct)})
    new = found.unique("key", keep="first", maintain_order=True)
    empty = pl.lit("")
    added = new.select("title", type=empty, description=empty)
    frame = pl.concat([entities.frame, added], how="diagonal")
    first = len(entities.frame)
    names = new.select("key", number=first + pl.int_range(pl.len(), dtype=pl.Int64))
    return replace(
        entities,
        frame=frame.with_columns(pl.col("aliases", "text_unit_ids").fill_null([])),
        names=pl.concat([entities.names, names]),
    )


def _check_unique_entity_ids(frame: pl.DataFrame, rows: FileRows) -> None:
    own = frame.select("id", "row", "number", "title").filter(pl.col("id").is_not_null())
    # Find ids that several entities share. One entity may have rows with different ids.
    other = own.filter(pl.col("number").n_unique().over("id") > 1)
    if len(other):
        first = other.filter(id=other["id"][0]).unique("number", maintain_order=True)
        raise InputError(
            f"{rows.describe_row(first['row'][1])}: {first['title'][1]!r} has the id "
            f"{first['id'][0]!r} of {first['title'][0]!r} in {rows.unit} {first['row'][0]:,}: "
            "give each entity its own id, or set read_graph.entity_columns to {id: null}."
        )


def _make_title_keys(titles: pl.Series) -> pl.Series:
    """Return the normalized form of each title; equal forms are one entity."""
    distinct = titles.unique()
    keys = pl.Series(list(map(title_key, distinct)), dtype=pl.String)
    return titles.replace_strict(distinct, keys, return_dtype=pl.String)


@dataclass(frozen=True)
class GivenGraph:
    """The graph of the user's files.

    `relationships` has one row per row of the file that links different entities, in file order:
    `row`, `source` and `target` (entity numbers), `weight`, `type`, `description`, `id`,
    `text_unit_ids`.
    """

    entities: Entities
    relationships: pl.DataFrame


def build_given_graph(
    entity_rows: FileRows | None, rows: FileRows, settings: ReadGraph
) -> GivenGraph:
    """Build the graph: link the endpoints of the relationships in `rows` to entities.

    `entity_rows` is None if there is no file of entities. Raises InputError if a source or
    target is missing or unknown, if a weight is not positive, or if an id occurs twice.
    """
    entities = _NO_ENTITIES if entity_rows is None else _merge_entity_rows(entity_rows)
    frame = rows.frame
    for end in _ENDS:
        rows.check_values(end, "name the entity, or delete the row")
    rows.check_unique_ids(", or set read_graph.relationship_columns to {id: null}")
    weights = _parse_weights(rows)
    endpoints = {end: entities.find_entity_numbers(frame[end]) for end in _ENDS}
    # Sources and targets that are not an entity; null where the entity is known.
    unknown = frame.select(
        "row", *(pl.when(pl.Series(endpoints[e] < 0)).then(e).alias(e) for e in _ENDS)
    )
    unknown = unknown.filter(~pl.all_horizontal(pl.col(_ENDS).is_null()))
    if len(unknown):
        if entity_rows is not None and not settings.add_missing_entities:
            first = unknown.row(0, named=True)
            end = "target" if first["source"] is None else "source"
            more = f" (and in {len(unknown) - 1:,} more rows)" if len(unknown) > 1 else ""
            raise InputError(
                f"{rows.describe_row(first['row'])}: the {end} {first[end]!r} is not an entity of "
                f"{entity_rows.name}{more}: add it there, correct it here, or set "
                "read_graph.add_missing_entities to true."
            )
        titles = unknown.select(title=pl.concat_list(_ENDS)).explode("title")["title"].drop_nulls()
        entities = _append_missing_entities(entities, titles)
        endpoints = {end: entities.find_entity_numbers(frame[end]) for end in _ENDS}
        if entity_rows is not None:
            logger.warning(
                "%s: %d sources or targets are added as entities, the first is %r.",
                *(rows.name, titles.n_unique(), titles[0]),
            )
    is_loop = endpoints["source"] == endpoints["target"]
    if is_loop.any():
        logger.warning(
            "%s: %d relationships of an entity with itself are left out, the first in %s %d.",
            *(rows.name, is_loop.sum(), rows.unit, frame["row"][int(np.argmax(is_loop))]),
        )
    linked = frame.select(
        "row",
        pl.Series("source", endpoints["source"]),
        pl.Series("target", endpoints["target"]),
        weights,
        pl.col("type", "description").fill_null(""),
        "id",
        pl.col("text_unit_ids").fill_null([]),
    )
    return GivenGraph(entities, linked.filter(pl.Series(~is_loop)))


def _parse_weights(rows: FileRows) -> pl.Series:
    """Parse the weights; a row without a weight gets `DEFAULT_WEIGHT`."""
    stated = rows.frame["weight"]
    if rows.decimal_comma:
        stated = stated.str.replace(r"^(\d+),(\d+)$", "${1}.${2}")
    weights = stated.cast(pl.Float64, strict=False)
    bad = rows.frame.filter(
        stated.is_not_null() & ~weights.is_between(0, MAX_WEIGHT, closed="right").fill_null(False)
    )
    if len(bad):
        raise InputError(
            f"{rows.describe_row(bad['row'][0])}: the weight {bad['weight'][0]!r} is not a number "
            f"greater than 0 and up to {MAX_WEIGHT:g}: correct it, or set "
            "read_graph.relationship_columns to {weight: null}, which gives every relationship "
            f"the weight {DEFAULT_WEIGHT:g}."
        )
    n_without = stated.null_count()
    if n_without and n_without < len(stated):
        logger.warning(
            "%s: %d relationships without a weight get the weight %g.",
            *(rows.name, n_without, DEFAULT_WEIGHT),
        )
    return weights.fill_null(DEFAULT_WEIGHT).alias("weight")
