"""The entities of a given graph, each once."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from graphrag_index.errors import InputError
from graphrag_index.readers.graph.graph_rows import Rows
from graphrag_index.schema.list_columns import Integers, positions
from graphrag_index.schema.table import STRINGS
from graphrag_index.text.normalize import title_key

logger = logging.getLogger(__name__)

ENDS = ("source", "target")


@dataclass(frozen=True)
class Entities:
    """Entities by their numbers.

    `frame` has one row per entity, in the order of the file: `title`, `type`, `description`,
    `aliases`, `id` (null if none is given), `text_unit_ids`. `told` has one row per row of the
    file that describes one: `entity`, `row`, `description`. `keys` are what relationships may
    name them by, `number` the entity of each; `names` the same for titles, folded.
    """

    frame: pl.DataFrame
    told: pl.DataFrame
    keys: pl.DataFrame
    names: pl.DataFrame

    def find(self, ends: pl.Series) -> Integers:
        """Return the numbers of the entities that ends of relationships name, -1 of no entity."""
        different = ends.unique(maintain_order=True)
        found = _looked_up(different, self.keys)
        missing = np.flatnonzero(found < 0)
        folded = map_titles(different.gather(missing))
        found[missing] = _looked_up(folded, self.names)
        return found[positions(ends, different)]

    @cached_property
    def titles(self) -> list[str]:
        return self.frame["title"].to_list()


def _looked_up(wanted: pl.Series, known: pl.DataFrame) -> Integers:
    place = positions(wanted, known["key"])
    numbers = np.append(known["number"].to_numpy(), -1)
    found: Integers = numbers[place]
    return found


def given_entities(rows: Rows) -> Entities:
    """Make entities of the rows of their file: those of one title are one.

    Case and spacing make no other title. The first row gives title and id, the first that has
    one the type; descriptions are joined, aliases and text units gathered.

    Raises
    ------
    InputError
        A row has no title, or the id of another entity.
    """
    frame = rows.frame
    nameless = frame.filter(pl.col("title").is_null())
    if len(nameless):
        raise InputError(f"{rows.place(nameless['row'][0])} has no title: name it, or delete it.")
    key = map_titles(frame["title"])
    names = pl.DataFrame({"key": key}).unique(maintain_order=True)
    names = names.with_columns(number=pl.int_range(pl.len(), dtype=pl.Int64))
    number = pl.Series("number", _looked_up(key, names))
    frame = frame.with_columns(number)
    _check_ids(frame, rows)
    if len(names) < len(frame):
        _say_repeated(frame, rows)
    merged = (
        frame.group_by("number", maintain_order=True)
        .agg(
            pl.col("title").first(),
            *(pl.col(name).drop_nulls().first() for name in ("type", "id")),
            pl.col("description").drop_nulls().unique(maintain_order=True).str.join(" "),
            pl.col("aliases").explode(empty_as_null=False).drop_nulls().unique(maintain_order=True),
            pl.col("title").unique(maintain_order=True).slice(1).alias("forms"),
            pl.col("text_unit_ids")
            .explode(empty_as_null=False)
            .drop_nulls()
            .unique(maintain_order=True),
        )
        .with_columns(
            pl.col("type", "description").fill_null(""),
            pl.col("aliases").list.set_union(pl.col("forms")),
        )
    )
    keys = frame.select("key", "number").drop_nulls().unique("key", keep="first")
    told = frame.filter(pl.col("description").is_not_null()).select(
        "row", "description", entity="number"
    )
    return Entities(merged.drop("number", "forms"), told, keys, names)


def entities_of_ends(relationships: Rows) -> Entities:
    """Make entities of the ends of relationships, in the order of their rows."""
    ends = relationships.frame.select(end=pl.concat_list(*ENDS)).explode("end")["end"].drop_nulls()
    empty = pl.DataFrame(schema={"key": pl.String, "number": pl.Int64})
    told = pl.DataFrame(schema={"row": pl.Int64, "description": pl.String, "entity": pl.Int64})
    frame = pl.DataFrame(
        schema={
            **dict.fromkeys(("title", "type", "id", "description"), pl.String),
            **dict.fromkeys(("aliases", "text_unit_ids"), STRINGS),
        }
    )
    return with_missing(Entities(frame, told, empty, empty), ends)


def with_missing(entities: Entities, titles: pl.Series) -> Entities:
    """Add entities of titles that no entity has, in their order."""
    different = titles.unique(maintain_order=True)
    found = pl.DataFrame({"title": different, "key": map_titles(different)})
    new = found.unique("key", keep="first", maintain_order=True)
    first = len(entities.frame)
    names = new.select("key", number=first + pl.int_range(pl.len(), dtype=pl.Int64))
    frame = new.select(
        "title",
        type=pl.lit(""),
        id=pl.lit(None, pl.String),
        description=pl.lit(""),
        aliases=pl.lit([], STRINGS),
        text_unit_ids=pl.lit([], STRINGS),
    ).select(entities.frame.columns)
    return Entities(
        pl.concat([entities.frame, frame]),
        entities.told,
        entities.keys,
        pl.concat([entities.names, names]),
    )


def _check_ids(frame: pl.DataFrame, rows: Rows) -> None:
    own = frame.select("id", "row", "number", "title").filter(pl.col("id").is_not_null())
    # An entity may stand in several rows, each with its id.
    other = own.filter(pl.col("number").n_unique().over("id") > 1)
    if len(other):
        first = other.filter(id=other["id"][0]).unique("number", maintain_order=True)
        raise InputError(
            f"{rows.place(first['row'][1])}: {first['title'][1]!r} has the id {first['id'][0]!r} "
            f"of {first['title'][0]!r} in {rows.unit} {first['row'][0]:,}: give each its own, or "
            "set read_graph.entity_columns to {id: null}."
        )


def _say_repeated(frame: pl.DataFrame, rows: Rows) -> None:
    repeated = frame.filter(pl.len().over("number") > 1)
    n = repeated["number"].n_unique()
    first = repeated.filter(number=repeated["number"][0])
    logger.warning(
        "%s: rows of one title are one entity, %d in all, the first %r, in the %ss %s.",
        rows.name,
        n,
        first["title"][0],
        rows.unit,
        " and ".join(f"{row:,}" for row in first["row"].head(2)),
    )


def map_titles(values: pl.Series, function: Callable[[str], str] = title_key) -> pl.Series:
    """Apply a function to each different value once."""
    different = values.unique()
    results: Mapping[str, str] = dict(zip(different, map(function, different), strict=True))
    return values.replace_strict(
        list(results), pl.Series(list(results.values()), dtype=pl.String), return_dtype=pl.String
    )
