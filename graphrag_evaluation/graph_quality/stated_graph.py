"""Entities and relationships of passages, as an index or a marked file states them."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from graphrag_evaluation.graph_quality.grounding import holds_name, read_names
from graphrag_evaluation.reference_file import MarkedEntity, MarkedPassage
from graphrag_index.health.checked_index import CheckedIndex, explode_lists
from graphrag_nlp.list_columns import find_rows, keep_first_keys
from graphrag_nlp.text.normalize import fold_name, fold_names

# The places of an index that are compared: `document` is the row of the document, `text` the
# normalized text of a part of it, and null for a whole document.
PASSAGES = {
    "passage": pl.UInt32,
    "document": pl.UInt32,
    "start_char": pl.Int64,
    "end_char": pl.Int64,
    "text": pl.String,
}
_ENTITIES = {
    "passage": pl.UInt32,
    "title": pl.String,
    "types": pl.String,
    "is_optional": pl.Boolean,
}
_NAMES = {"passage": pl.UInt32, "entity": pl.UInt32, "name": pl.String}
_SPANS = {
    "passage": pl.UInt32,
    "start_char": pl.Int64,
    "end_char": pl.Int64,
    "is_optional": pl.Boolean,
    "is_phrase": pl.Boolean,
}
_PAIRS = {"passage": pl.UInt32, "source": pl.UInt32, "target": pl.UInt32}
# Between the types of an entity, whose own characters are letters, digits and spaces.
TYPE_SEPARATOR = "/"
# A type of entities without a proper name, which a reference of names does not list.
NOUN_PHRASE = "noun phrase"


class StatedGraph(NamedTuple):
    """Entities and relationships of passages; an entity is a row of `entities`."""

    # One row per passage and entity. `types` are normalized, joined, and "" if unknown.
    entities: pl.DataFrame
    names: pl.DataFrame  # the normalized names of these entities
    spans: pl.DataFrame  # places of mentions in the document, only of passages that have them
    pairs: pl.DataFrame  # relationships, with source < target
    # Passages for which spans and relationships are stated at all.
    passages_with_spans: pl.Series
    passages_with_pairs: pl.Series

    @property
    def is_phrase(self) -> pl.Series:
        return self.entities["types"] == NOUN_PHRASE


def read_stated_graph(index: CheckedIndex, passages: pl.DataFrame) -> StatedGraph:
    """Read what an index states about passages of its documents.

    An entity is in a document if one of its text units is, and in a part of a document if it has
    a mention there. Without a table of mentions, it is there if the part has one of its names.
    """
    units = _read_places(index)
    names = read_names(index)
    rows = (
        index.tables["entities"]
        .select("title", types=_normalize_type(index), is_optional=False)
        .collect()
    )
    inside = (
        explode_lists(
            index.tables["entities"].select(unit="text_unit_ids").with_row_index("entity"), "unit"
        )
        .with_columns(pl.col("unit").hash())
        .join(units, on="unit")
        .join(passages.lazy(), on="document")
        .select("passage", "entity")
        .unique()
        .collect(engine="streaming")
    )
    spans = _read_spans(index, passages)
    parts = passages.filter(pl.col("text").is_not_null())
    if len(parts):
        inside = _keep_inside(inside, parts, spans, names)
    pairs = _read_pairs(index, units, passages)
    ends = [pairs.select("passage", entity=end) for end in ("source", "target")]
    of_parts = pl.col("passage").is_in(parts["passage"].implode())
    # The two ends of a relationship are entities of its document, but perhaps not of a part.
    known = pl.concat([inside, *(end.filter(~of_parts) for end in ends)]).unique()
    known = known.sort("passage", "entity").with_row_index("number")
    for end in ("source", "target"):
        pairs = pairs.join(
            known.rename({"entity": end, "number": f"{end}_number"}), on=["passage", end]
        )
    is_phrase = rows["types"] == NOUN_PHRASE
    stated = passages["passage"]
    return StatedGraph(
        pl.concat([known.select("passage"), rows[known["entity"]]], how="horizontal"),
        known.join(names, on="entity").select("passage", "name", entity="number"),
        pl.DataFrame(schema=_SPANS)
        if spans is None
        else spans.select(
            "passage",
            "start_char",
            "end_char",
            is_optional=False,
            is_phrase=is_phrase.gather(spans["entity"]),
        ).unique(),
        # The numbers are sorted as the entities of a passage are.
        pairs.select("passage", source="source_number", target="target_number"),
        stated.clear() if spans is None else stated,
        stated if index.has("relationships", "text_unit_ids") else stated.clear(),
    )


def _normalize_type(index: CheckedIndex) -> pl.Expr:
    kind = pl.col("type").fill_null("") if index.has("entities", "type") else pl.lit("")
    return fold_names(kind)


def _read_places(index: CheckedIndex) -> pl.LazyFrame:
    """Return the hashed id `unit` of each text unit, and the row `document` of its document."""
    units = index.text_unit_documents()
    assert units is not None
    documents = index.tables["documents"].select(key=pl.col("id").hash())
    return units.join(documents.with_row_index("document"), on="key").select("unit", "document")


def _read_spans(index: CheckedIndex, passages: pl.DataFrame) -> pl.DataFrame | None:
    """Return the mentions in passages, with their entities; None without a table of mentions."""
    if not index.has("mentions", "entity", "text_unit", "start_char", "end_char"):
        return None
    documents = index.tables["documents"].select(document_id="id").with_row_index("document")
    units = index.tables["text_units"].select("document_id").with_row_index("text_unit")
    return (
        index.tables["mentions"]
        .select(
            pl.col("entity", "text_unit").cast(pl.UInt32),
            pl.col("start_char", "end_char").cast(pl.Int64),
        )
        .join(units, on="text_unit")
        .join(documents, on="document_id")
        .join(
            passages.lazy().select("passage", "document", first="start_char", last="end_char"),
            on="document",
        )
        .filter(pl.col("start_char") >= pl.col("first"), pl.col("end_char") <= pl.col("last"))
        .select("passage", "entity", "start_char", "end_char")
        .unique()
        .collect(engine="streaming")
    )


def _keep_inside(
    inside: pl.DataFrame, parts: pl.DataFrame, spans: pl.DataFrame | None, names: pl.DataFrame
) -> pl.DataFrame:
    """Keep the entities of whole documents, and of parts those that the parts name."""
    is_part = pl.col("passage").is_in(parts["passage"].implode())
    if spans is None:
        named = (
            inside.join(parts.select("passage", "text"), on="passage")
            .join(names, on="entity")
            .filter(holds_name("text"))
        )
    else:
        named = spans.filter(is_part)
    return pl.concat([inside.filter(~is_part), named.select("passage", "entity").unique()])


def _read_pairs(index: CheckedIndex, units: pl.LazyFrame, passages: pl.DataFrame) -> pl.DataFrame:
    """Return the relationships of the documents of passages.

    A relationship with spans of evidence is in a part of a document if a span touches it.
    """
    key, ends = index.relationship_keys()
    if not index.has("relationships", *ends, "text_unit_ids"):
        return pl.DataFrame(schema=_PAIRS)
    links = index.tables["relationships"]
    keys = keep_first_keys(index.tables["entities"].select(pl.col(key).hash()).collect()[key])
    rows = links.select(pl.col(ends).hash()).collect(engine="streaming")
    source, target = (pl.Series(find_rows(rows[end], keys)) for end in ends)
    of_units = explode_lists(links.select(unit="text_unit_ids").with_row_index("row"), "unit")
    stated = (
        of_units.with_columns(pl.col("unit").hash())
        .join(units, on="unit")
        .join(passages.lazy(), on="document")
        .select("passage", "row")
        .unique()
        .collect(engine="streaming")
    )
    parts = passages.filter(pl.col("text").is_not_null())
    if len(parts) and index.has("relationships", "evidence"):
        stated = _keep_evident(stated, index, parts)
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


def _keep_evident(stated: pl.DataFrame, index: CheckedIndex, parts: pl.DataFrame) -> pl.DataFrame:
    """Leave out relationships whose evidence is not in the part of the document."""
    documents = index.tables["documents"].select(document_id="id").with_row_index("document")
    evident = (
        explode_lists(
            index.tables["relationships"].select("evidence").with_row_index("row"), "evidence"
        )
        .unnest("evidence")
        .join(documents, on="document_id")
        .join(
            parts.lazy().select("passage", "document", first="start_char", last="end_char"),
            on="document",
        )
        .filter(pl.col("start_char") < pl.col("last"), pl.col("end_char") > pl.col("first"))
        .select("passage", "row")
        .unique()
        .collect(engine="streaming")
    )
    is_part = pl.col("passage").is_in(parts["passage"].implode())
    in_parts = stated.filter(is_part).join(evident, on=["passage", "row"], how="semi")
    return pl.concat([stated.filter(~is_part), in_parts])


def build_marked_graph(passages: Sequence[MarkedPassage], starts: Sequence[int]) -> StatedGraph:
    """Build the graph of marked passages; `starts` are their offsets in their documents.

    Entities of a passage with equal titles are one entity with several mentions. Spans of a
    passage are stated if all of its entities have one.
    """
    entities: list[tuple[int, str, str, bool]] = []
    names, spans, pairs = [], [], []
    with_spans, with_pairs = [], []
    for at, passage in enumerate(passages):
        groups: dict[str, list[MarkedEntity]] = {}
        for entity in passage.entities:
            groups.setdefault(fold_name(entity.title), []).append(entity)
        numbers = {title: len(entities) + rank for rank, title in enumerate(groups)}
        for title, mentions in groups.items():
            types = sorted({fold_name(kind) for entity in mentions for kind in entity.types} - {""})
            is_optional = all(entity.is_optional for entity in mentions)
            entities.append((at, mentions[0].title, TYPE_SEPARATOR.join(types), is_optional))
            names += [
                (at, numbers[title], name)
                for entity in mentions
                for name in (entity.title, *entity.aliases)
            ]
        for title, mentions in groups.items():
            for alias in (alias for entity in mentions for alias in entity.aliases):
                numbers.setdefault(fold_name(alias), numbers[title])
        found = [(*entity.span, entity.is_optional) for entity in passage.entities if entity.span]
        if found and len(found) == len(passage.entities):
            with_spans.append(at)
            first = starts[at]
            spans += [
                (at, first + start, first + end, is_optional, False)
                for start, end, is_optional in found
            ]
        if passage.relationships is not None:
            with_pairs.append(at)
            for one, other in passage.relationships:
                source, target = sorted((numbers[fold_name(one)], numbers[fold_name(other)]))
                pairs += [(at, source, target)] if source < target else []
    folded = pl.DataFrame(names, _NAMES, orient="row").with_columns(fold_names(pl.col("name")))
    return StatedGraph(
        pl.DataFrame(entities, _ENTITIES, orient="row"),
        folded.filter(pl.col("name") != "").unique(),
        pl.DataFrame(spans, _SPANS, orient="row").unique(),
        pl.DataFrame(pairs, _PAIRS, orient="row").unique(),
        pl.Series("passage", with_spans, pl.UInt32),
        pl.Series("passage", with_pairs, pl.UInt32),
    )
