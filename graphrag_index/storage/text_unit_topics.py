"""Pairs of text units and entities: which entities a text unit names, and which it is about."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.storage.memo import read_batches
from graphrag_nlp.list_columns import Integers
from graphrag_nlp.text.normalize import fold_names

# Rows per batch of links. They limit memory.
LINKS_PER_BATCH = 1_000_000
# Maximum number of characters before the entity that a text unit begins with: "The ", or a mark.
MAX_CHARS_BEFORE_TOPIC = 12
_TEXT_IN_BRACKETS = r"\s*\([^()]*\)"


def pair_text_units_with_entities(
    mentions: pl.LazyFrame,
    entities: pl.LazyFrame,
    text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
) -> Iterator[pl.DataFrame]:
    """Pair text units with the entities they name; `about` is true for a topic of the text unit.

    A text unit is about the entities in the title of its document (with or without the text in
    brackets), and in the headings above the text unit. If there are no such entities, it is about
    the entity that it names first: below headings, anywhere; otherwise, at its beginning. If this
    is a person with middle names, it is also about a person with the same name without them: a
    text about Ada Mary King is about Ada King. Yields batches with one row per text unit and
    entity, in this order, with `about` and `n_mentions`. The first text unit of a document also
    has a row for each entity in the title.
    """
    names = list_entity_names(entities).collect().lazy()  # it is read three times
    titled = _entities_in_titles(names, text_units, documents).sort("text_unit", "entity")
    short_forms = _find_short_forms(names, entities)
    del names
    units = text_units.select("start_char", is_headed=pl.col("headings") != "").collect()
    start = 0
    columns = mentions.select("text_unit", "entity", "start_char")
    for named, end in _split_by_text_unit(columns):
        bounds = np.searchsorted(titled["text_unit"].to_numpy(), [start, end]).tolist()
        start = end
        text_unit = named["text_unit"]
        keys = _pack_pairs(text_unit, named["entity"])
        own = units[text_unit]
        begins = named["start_char"] - own["start_char"] <= MAX_CHARS_BEFORE_TOPIC
        is_first = text_unit.ne_missing(text_unit.shift()) & (begins | own["is_headed"])
        first = keys[is_first.to_numpy()]
        titled_here = titled[slice(*bounds)]
        titled_keys = _pack_pairs(titled_here["text_unit"], titled_here["entity"])
        is_opening = titled_here["opening"].to_numpy()
        topics = titled_keys[is_opening | _are_among(titled_keys, np.sort(keys))]
        first = first[~_are_among(first >> 32, topics >> 32)]
        shortened = _unpack_pairs(first).join(short_forms, on="entity")
        short = _pack_pairs(shortened["text_unit"], shortened["short_form"])
        # These pairs get a row, but do not count as mentions.
        unmentioned = np.unique(np.append(titled_keys[is_opening], short))
        pairs, n_mentions = np.unique(np.append(keys, unmentioned), return_counts=True)
        n_mentions[np.searchsorted(pairs, unmentioned)] -= 1
        about = _are_among(pairs, np.sort(np.concatenate([topics, first, short])))
        counts = n_mentions.astype(np.int32)
        yield _unpack_pairs(pairs).with_columns(about=about, n_mentions=counts)


def _find_short_forms(names: pl.LazyFrame, entities: pl.LazyFrame) -> pl.DataFrame:
    """Pair each person with middle names with persons of the same name without them.

    The columns are `entity` and `short_form`.
    """
    number = pl.col("human_readable_id").cast(pl.Int32).alias("entity")
    is_person = pl.col("type").str.to_lowercase() == "person"
    persons = names.join(entities.filter(is_person).select(number), on="entity", how="semi")
    words = pl.col("name").str.split(" ")
    ends = pl.concat_str(words.list.first(), words.list.last(), separator=" ")
    return (
        persons.filter(words.list.len() > 2)
        .with_columns(ends.alias("name"))
        .join(persons.rename({"entity": "short_form"}), on="name")
        .filter(pl.col("entity") != pl.col("short_form"))
        .select("entity", "short_form")
        .unique()
        .collect()
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


def _unpack_pairs(pairs: Integers) -> pl.DataFrame:
    columns = {"text_unit": pairs >> 32, "entity": pairs & 0xFFFFFFFF}
    return pl.DataFrame({name: values.astype(np.int32) for name, values in columns.items()})


def _are_among(values: Integers, ascending: Integers) -> npt.NDArray[np.bool_]:
    places = np.searchsorted(ascending, values)
    # Append -1 for values above the last: it equals no value, since none is negative.
    return np.asarray(np.append(ascending, -1)[places] == values)
