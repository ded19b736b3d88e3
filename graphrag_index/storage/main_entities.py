"""Entities of text units, with those that a text unit is about."""

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.schema.list_columns import Integers, distinct_pairs
from graphrag_index.text.normalize import fold_names

_IN_BRACKETS = r"\s*\([^()]*\)"


def about(
    mentions: pl.LazyFrame,
    entities: pl.LazyFrame,
    text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
) -> pl.DataFrame:
    """Pair text units with the entities that they name, and flag those that they are about.

    A text unit is about the entities in the title of its document, with or without its brackets,
    and in the headings above it. Without any, as in chats and novels, it is about the entity that
    it names first.

    Returns
    -------
    DataFrame
        One row per text unit and entity, in this order, with the flag `about`. The first text
        unit of a document always has the entities of the document's title.
    """
    named = mentions.select("text_unit", "entity").collect()
    units, numbers = (named[name].to_numpy() for name in ("text_unit", "entity"))
    is_first = np.ones(len(units), bool)
    is_first[1:] = units[1:] != units[:-1]
    first = _keys(units[is_first], numbers[is_first])

    titled = _titled(entities, text_units, documents)
    opening = titled.filter("opening")
    text_unit, entity = distinct_pairs(
        np.append(units, opening["text_unit"].to_numpy()),
        np.append(numbers, opening["entity"].to_numpy()),
    )
    pairs = _keys(text_unit, entity)
    is_about = _are_among(pairs, np.sort(_keys(titled["text_unit"], titled["entity"])))
    untitled = ~_are_among(first >> 32, text_unit[is_about])
    is_about |= _are_among(pairs, first[untitled])
    return pl.DataFrame(
        {
            "text_unit": text_unit.astype(np.int32),
            "entity": entity.astype(np.int32),
            "about": is_about,
        }
    )


def names_of_title(title: pl.Expr) -> pl.Expr:
    """Return a title with and without its brackets, as a list."""
    return pl.concat_list(title, title.str.replace_all(_IN_BRACKETS, ""))


def _keys(text_units: Integers | pl.Series, entities: Integers | pl.Series) -> Integers:
    """Pack pairs of numbers into one, in the same order."""
    keys: Integers = (np.asarray(text_units, np.int64) << 32) | np.asarray(entities, np.int64)
    return keys


def _are_among(values: Integers, ascending: Integers) -> npt.NDArray[np.bool_]:
    places = np.searchsorted(ascending, values).clip(max=max(len(ascending) - 1, 0))
    return (
        np.asarray(ascending[places] == values) if len(ascending) else np.zeros(len(values), bool)
    )


def _titled(
    entities: pl.LazyFrame, text_units: pl.LazyFrame, documents: pl.LazyFrame
) -> pl.DataFrame:
    """Return the entities in titles and headings above text units.

    `opening` flags the entities of the title in the first text unit of a document.
    """
    names = (
        entities.select(
            pl.col("human_readable_id").cast(pl.Int32).alias("entity"),
            name=pl.concat_list(pl.concat_list("title"), "aliases"),
        )
        .explode("name")
        .with_columns(fold_names(pl.col("name")))
        .filter(pl.col("name") != "")
        .unique()
    )
    units = text_units.select(
        pl.col("human_readable_id").cast(pl.Int32).alias("text_unit"), "document_id", "headings"
    )
    titles = (
        documents.select(document_id="id", name=names_of_title(pl.col("title")))
        .explode("name")
        .with_columns(fold_names(pl.col("name")))
        .unique()
        .join(names, on="name")
        .select("document_id", "entity")
        .unique()
    )
    by_title = units.join(titles, on="document_id").select(
        "text_unit",
        "entity",
        opening=pl.col("text_unit") == pl.col("text_unit").min().over("document_id"),
    )
    by_heading = (
        units.filter(pl.col("headings") != "")
        .select("text_unit", name=pl.col("headings").str.split(" > "))
        .explode("name")
        .select("text_unit", name=names_of_title(pl.col("name")))
        .explode("name")
        .with_columns(fold_names(pl.col("name")))
        .join(names, on="name")
        .select("text_unit", "entity", opening=pl.lit(False))
    )
    return (
        pl.concat([by_title, by_heading])
        .group_by("text_unit", "entity")
        .agg(pl.col("opening").any())
        .collect()
    )
