"""Pairs of text units and entities: which entities a text unit names, and which it is about."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.schema.list_columns import Integers
from graphrag_index.storage.memo import read_batches
from graphrag_index.text.normalize import fold_names

# Rows per batch of links. They limit memory.
LINKS_PER_BATCH = 1_000_000
_TEXT_IN_BRACKETS = r"\s*\([^()]*\)"


def pair_text_units_with_entities(
    mentions: pl.LazyFrame,
    entities: pl.LazyFrame,
    text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
) -> Iterator[pl.DataFrame]:
    """Pair text units with the entities they name; `about` is true for a topic of the text unit.

    A text unit is about the entities in the title of its document (with or without the text in
    brackets), and in the headings above the text unit. If there are no such entities, as in chats
    and novels, the text unit is about the entity that it names first. Yields batches with one row
    per text unit and entity, in this order, with `about` and `n_mentions`. The first text unit of
    a document also has a row for each entity in the title.
    """
    titled = _entities_in_titles(list_entity_names(entities), text_units, documents)
    titled = titled.sort("text_unit", "entity")
    start = 0
    for named, end in _split_by_text_unit(mentions.select("text_unit", "entity")):
        bounds = np.searchsorted(titled["text_unit"].to_numpy(), [start, end]).tolist()
        start = end
        keys = _pack_pairs(named["text_unit"], named["entity"])
        is_first = named["text_unit"].ne_missing(named["text_unit"].shift())
        first = keys[is_first.to_numpy()]
        titled_here = titled[slice(*bounds)]
        titled_keys = _pack_pairs(titled_here["text_unit"], titled_here["entity"])
        opening = titled_keys[titled_here["opening"].to_numpy()]
        pairs, n_mentions = np.unique(np.append(keys, opening), return_counts=True)
        # Subtract the pairs of entities in document titles, which do not count as mentions.
        n_mentions[np.searchsorted(pairs, opening)] -= 1
        is_about = _are_among(pairs, titled_keys)
        untitled = ~_are_among(first >> 32, pairs[is_about] >> 32)
        is_about |= _are_among(pairs, first[untitled])
        yield pl.DataFrame(
            {
                "text_unit": (pairs >> 32).astype(np.int32),
                "entity": (pairs & 0xFFFFFFFF).astype(np.int32),
                "about": is_about,
                "n_mentions": n_mentions.astype(np.int32),
            }
        )


def _split_by_text_unit(mentions: pl.LazyFrame) -> Iterator[tuple[pl.DataFrame, int]]:
    """Yield mentions in batches, each with the number of the first text unit after the batch.

    The mentions are in order of their text units, and those of a text unit are in one batch.
    """
    rest = mentions.clear().collect()
    for batch in read_batches(mentions, LINKS_PER_BATCH):
        rows = pl.concat([rest, batch])
        last = int(rows["text_unit"][-1])
        n_complete = int(np.searchsorted(rows["text_unit"].to_numpy(), last))
        yield rows[:n_complete], last
        rest = rows[n_complete:]
    yield rest, np.iinfo(np.int32).max


def _entities_in_titles(
    names: pl.LazyFrame, text_units: pl.LazyFrame, documents: pl.LazyFrame
) -> pl.DataFrame:
    """Return pairs of a text unit and an entity in its document title or headings.

    `opening` is true if the entity is in the title and the text unit opens the document.
    """
    units = text_units.select(
        pl.col("human_readable_id").cast(pl.Int32).alias("text_unit"), "document_id", "headings"
    )
    titles = (
        normalize_names(documents.select(document_id="id", name=list_title_variants("title")))
        .join(names, on="name")
        .select("document_id", "entity")
        .unique()
    )
    by_title = units.join(titles, on="document_id").select(
        "text_unit",
        "entity",
        opening=pl.col("text_unit") == pl.col("text_unit").min().over("document_id"),
    )
    headings = (
        units.filter(pl.col("headings") != "")
        .select("text_unit", heading=pl.col("headings").str.split(" > "))
        .explode("heading")
        .select("text_unit", name=list_title_variants("heading"))
    )
    by_heading = normalize_names(headings).join(names, on="name")
    return (
        pl.concat([by_title, by_heading.select("text_unit", "entity", opening=pl.lit(False))])
        .group_by("text_unit", "entity")
        .agg(pl.col("opening").any())
        .collect()
    )


def list_title_variants(column: str) -> pl.Expr:
    """Return a list for each title: the title with and without its text in brackets."""
    return pl.concat_list(column, pl.col(column).str.replace_all(_TEXT_IN_BRACKETS, ""))


def list_entity_names(entities: pl.LazyFrame) -> pl.LazyFrame:
    """Return a row for each normalized name of each entity."""
    return normalize_names(
        entities.select(
            name=pl.concat_list(pl.concat_list("title"), "aliases"),
            entity=pl.col("human_readable_id").cast(pl.Int32),
        )
    )


def normalize_names(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Split lists in the column `name` into a row per normalized name; drop duplicates."""
    return (
        rows.explode("name")
        .with_columns(fold_names(pl.col("name")))
        .filter(pl.col("name") != "")
        .unique()
    )


def _pack_pairs(high: pl.Series, low: pl.Series) -> Integers:
    """Pack each pair of 32-bit numbers into one number; the numbers sort like the pairs."""
    keys: Integers = high.to_numpy().astype(np.int64) << 32
    keys |= low.to_numpy()
    return keys


def _are_among(values: Integers, ascending: Integers) -> npt.NDArray[np.bool_]:
    places = np.searchsorted(ascending, values)
    # Append -1 for values above the last: it equals no value, since none is negative.
    return np.asarray(np.append(ascending, -1)[places] == values)
