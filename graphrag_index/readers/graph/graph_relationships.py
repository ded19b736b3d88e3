"""The relationships of a given graph, by the numbers of their ends."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from graphrag_index.errors import InputError
from graphrag_index.readers.graph.graph_entities import (
    ENDS,
    Entities,
    entities_of_ends,
    with_missing,
)
from graphrag_index.readers.graph.graph_rows import Rows
from graphrag_index.schema.settings.embedded_steps import ReadGraph
from graphrag_index.schema.table import STRINGS

logger = logging.getLogger(__name__)

# Of a relationship that says nothing of it.
DEFAULT_WEIGHT = 1.0
# So that sums of weights stay numbers.
MOST_WEIGHT = 1e100


@dataclass(frozen=True)
class Given:
    """A given graph.

    `relationships` has one row per row of the file that links two entities, in its order: `row`,
    `source` and `target` (numbers), `weight`, `type`, `description`, `id`, `text_unit_ids`.
    """

    entities: Entities
    relationships: pl.DataFrame

    def without_text_units(self) -> "Given":
        """Return it as if nothing named a text unit."""
        nothing = pl.lit([], STRINGS).alias("text_unit_ids")
        entities = replace(self.entities, frame=self.entities.frame.with_columns(nothing))
        return Given(entities, self.relationships.with_columns(nothing))


def given_graph(entities: Entities | None, name: str, rows: Rows, settings: ReadGraph) -> Given:
    """Find the ends of the relationships among the entities; `name` is of the file of these.

    Raises
    ------
    InputError
        An end is missing, or no entity; a weight is no number greater than 0; an id stands twice.
    """
    frame = rows.frame
    for end in ENDS:
        bare = frame.filter(pl.col(end).is_null())
        if len(bare):
            raise InputError(
                f"{rows.place(bare['row'][0])} has no {end}: name the entity, or delete the row."
            )
    rows.check_ids(", or set read_graph.relationship_columns to {id: null}")
    weights = _weights(rows)
    if entities is None:
        entities = entities_of_ends(rows)
    ends = {end: entities.find(frame[end]) for end in ENDS}
    missing = [pl.Series(numbers < 0) for numbers in ends.values()]
    unknown = frame.with_columns(missing[0].alias("no_source"), missing[1].alias("no_target"))
    unknown = unknown.filter(pl.col("no_source") | pl.col("no_target"))
    if len(unknown):
        if not settings.add_missing_entities:
            raise _dangling(unknown, name, rows)
        new = pl.concat_list(
            *(pl.when(f"no_{end}").then(pl.col(end)) for end in ENDS),
        )
        titles = unknown.select(title=new).explode("title")["title"].drop_nulls()
        entities = with_missing(entities, titles)
        ends = {end: entities.find(frame[end]) for end in ENDS}
        logger.warning(
            "%s: ends of relationships that are no entity are added, %d in all, the first %r.",
            *(rows.name, titles.n_unique(), titles[0]),
        )
    is_loop = ends["source"] == ends["target"]
    if is_loop.any():
        logger.warning(
            "%s: relationships of an entity with itself are left out, %d in all, the first in "
            "%s %d.",
            *(rows.name, is_loop.sum(), rows.unit, frame["row"][int(np.argmax(is_loop))]),
        )
    found = frame.select(
        "row",
        pl.Series("source", ends["source"]),
        pl.Series("target", ends["target"]),
        weights,
        pl.col("type", "description").fill_null(""),
        "id",
        pl.col("text_unit_ids").fill_null([]),
    )
    return Given(entities, found.filter(pl.Series(~is_loop)))


def _weights(rows: Rows) -> pl.Series:
    """Read the weights; a row that has none has `DEFAULT_WEIGHT`."""
    said = rows.frame["weight"]
    if rows.decimal_comma:
        said = said.str.replace(r"^(\d+),(\d+)$", "${1}.${2}")
    weights = said.cast(pl.Float64, strict=False)
    bad = rows.frame.filter(
        said.is_not_null() & ~weights.is_between(0, MOST_WEIGHT, closed="right").fill_null(False)
    )
    if len(bad):
        raise InputError(
            f"{rows.place(bad['row'][0])}: the weight {bad['weight'][0]!r} is no number greater "
            f"than 0 and up to {MOST_WEIGHT:g}: correct it, or set "
            "read_graph.relationship_columns to {weight: null}, which gives every relationship "
            f"the weight {DEFAULT_WEIGHT:g}."
        )
    n_without = said.null_count()
    if n_without and n_without < len(said):
        logger.warning(
            "%s: relationships without a weight have the weight %g, %d in all.",
            *(rows.name, DEFAULT_WEIGHT, n_without),
        )
    return weights.fill_null(DEFAULT_WEIGHT).alias("weight")


def _dangling(unknown: pl.DataFrame, name: str, rows: Rows) -> InputError:
    first = unknown.row(0, named=True)
    end = "source" if first["no_source"] else "target"
    n = len(unknown) - 1
    more = f" (and so in {n:,} more)" if n else ""
    return InputError(
        f"{rows.place(first['row'])}: the {end} {first[end]!r} is no entity of {name}{more}: add "
        "it there, correct it here, or set read_graph.add_missing_entities to true."
    )
