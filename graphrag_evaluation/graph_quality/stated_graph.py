"""Entities and relationships of passages, as an index states them."""

from typing import NamedTuple

import polars as pl

from graphrag_evaluation.graph_quality.grounding import holds_name, read_names
from graphrag_index.health.checked_index import CheckedIndex, explode_lists
from graphrag_nlp.list_columns import find_rows, keep_first_keys
from graphrag_nlp.text.normalize import fold_names

# The places of an index that are compared: `document` is the row of the document, `text` the
# normalized text of a part of it, and null for a whole document.
PASSAGES = {"passage": pl.UInt32, "document": pl.UInt32, "text": pl.String}
ENTITIES = {
    "passage": pl.UInt32,
    "title": pl.String,
    "types": pl.String,
    "is_optional": pl.Boolean,
}
NAMES = {"passage": pl.UInt32, "entity": pl.UInt32, "name": pl.String}
PAIRS = {"passage": pl.UInt32, "source": pl.UInt32, "target": pl.UInt32}
# Between the types of an entity, whose own characters are letters, digits and spaces.
TYPE_SEPARATOR = "/"
# A type of entities without a proper name, which a reference of names does not list.
NOUN_PHRASE = "noun phrase"


class StatedGraph(NamedTuple):
    """Entities and relationships of passages; an entity is a row of `entities`."""

    # One row per passage and entity. `types` are normalized, joined, and "" if unknown.
    entities: pl.DataFrame
    names: pl.DataFrame  # the normalized names of these entities
    pairs: pl.DataFrame  # relationships, with source < target
    passages_with_pairs: pl.Series  # passages for which relationships are stated at all

    @property
    def is_phrase(self) -> pl.Series:
        return self.entities["types"] == NOUN_PHRASE


def read_stated_graph(index: CheckedIndex, passages: pl.DataFrame) -> StatedGraph:
    """Read what an index states about passages of its documents.

    An entity is in a document if one of its text units is, and in a part of a document if the
    part has one of its names besides.
    """
    units = index.text_unit_documents()
    assert units is not None
    documents = index.tables["documents"].select(key=pl.col("id").hash())
    places = (
        units.join(documents.with_row_index("document"), on="key")
        .join(passages.lazy(), on="document")
        .select("unit", "passage")
    )
    names = read_names(index)
    kind = pl.col("type").fill_null("") if index.has("entities", "type") else pl.lit("")
    rows = (
        index.tables["entities"]
        .select("title", types=fold_names(kind), is_optional=False)
        .collect()
    )
    inside = _find_passages(index, "entities", places)
    is_part = pl.col("passage").is_in(
        passages.filter(pl.col("text").is_not_null())["passage"].implode()
    )
    named = (
        inside.filter(is_part)
        .join(passages, on="passage")
        .join(names, left_on="row", right_on="entity")
        .filter(holds_name("text"))
        .select("passage", "row")
        .unique()
    )
    pairs = _read_pairs(index, places)
    ends = [pairs.select("passage", row=end) for end in ("source", "target")]
    # The two ends of a relationship are entities of its document, but perhaps not of a part.
    whole = (rows.filter(~is_part) for rows in (inside, *ends))
    known = pl.concat([named, *whole]).unique().sort("passage", "row").with_row_index("number")
    for end in ("source", "target"):
        numbers = known.rename({"row": end, "number": f"{end}_number"})
        pairs = pairs.join(numbers, on=["passage", end])
    stated = passages["passage"]
    return StatedGraph(
        pl.concat([known.select("passage"), rows[known["row"]]], how="horizontal"),
        known.join(names, left_on="row", right_on="entity").select(
            "passage", "name", entity="number"
        ),
        # The numbers are sorted as the entities of a passage are.
        pairs.select("passage", source="source_number", target="target_number"),
        stated if index.has("relationships", "text_unit_ids") else stated.clear(),
    )


def _find_passages(index: CheckedIndex, table: str, places: pl.LazyFrame) -> pl.DataFrame:
    """Return pairs of a `passage` and the `row` of a table whose text units it has."""
    rows = index.tables[table].select(unit="text_unit_ids").with_row_index("row")
    return (
        explode_lists(rows, "unit")
        .with_columns(pl.col("unit").hash())
        .join(places, on="unit")
        .select("passage", "row")
        .unique()
        .collect(engine="streaming")
    )


def _read_pairs(index: CheckedIndex, places: pl.LazyFrame) -> pl.DataFrame:
    """Return the relationships of the documents of passages."""
    key, ends = index.relationship_keys()
    if not index.has("relationships", *ends, "text_unit_ids"):
        return pl.DataFrame(schema=PAIRS)
    links = index.tables["relationships"]
    keys = keep_first_keys(index.tables["entities"].select(pl.col(key).hash()).collect()[key])
    rows = links.select(pl.col(ends).hash()).collect(engine="streaming")
    source, target = (pl.Series(find_rows(rows[end], keys)) for end in ends)
    stated = _find_passages(index, "relationships", places)
    at = stated["row"]
    return (
        stated.select("passage", one=source.gather(at), other=target.gather(at))
        .filter(pl.col("one") >= 0, pl.col("other") >= 0, pl.col("one") != pl.col("other"))
        .select(
            "passage",
            source=pl.min_horizontal("one", "other").cast(pl.UInt32),
            target=pl.max_horizontal("one", "other").cast(pl.UInt32),
        )
        .unique()
    )
