"""Extraction of entities and relationships by rules and corpus statistics, without a model."""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.nlp.find_names import (
    MENTION_COLUMNS,
    Entities,
    find_mentions,
    pair_mentions,
    text_units_of_pairs,
    weight_pairs,
)
from graphrag_index.nlp.name_spans import DEFINED, INITIAL
from graphrag_index.nlp.uncased import find_fallback_entity
from graphrag_index.schema.list_columns import Integers, gather_lists
from graphrag_index.schema.settings.step_sections import ExtractGraphNlp
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Progress, Shards, step
from graphrag_index.storage.memo import read_stable_batches, split_by_size
from graphrag_index.text.sentences import Quotations, are_quotable

# Mean size of the texts of a shard, and maximum size if it has several documents, in bytes. After
# an update only shards with changed documents are processed again, so they should be small. The
# numbers do not change the results.
MEAN_SHARD_BYTES = 500_000
SHARD_BYTES = 4_000_000
MAX_DESCRIPTION_SENTENCES = 2  # maximum number of sentences in the description of an entity
# Columns of entities that are filled only if a model extracts the entities.
_COLUMNS_FILLED_BY_MODELS = ("descriptions", "description_text_units", "text_units", "types")

Flags = npt.NDArray[np.bool_]


@step(
    writes=["extracted_entities", "extracted_relationships", "extracted_mentions"], code_version=4
)
def extract_graph_nlp(
    documents: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    sentences: pl.DataFrame,
    *,
    settings: ExtractGraphNlp,
    progress: Progress,
    shards: Shards,
) -> Mapping[str, pl.DataFrame]:
    """Find names and terms, merge their variants, and relate entities in the same sentence.

    A name is a capitalized span that the corpus uses as a name. In scripts without capital
    letters, a name is a recurring span (see `nlp`). Two entities are related if one sentence or
    two neighbouring sentences mention them. The weight of a relationship is the association of
    the two entities. Its description is the best quotable sentence with both entities. The
    description is empty if only headings, lists, tables or neighbouring sentences contain both.

    Entities are in order of first mention. Their type is person, organization, geo, event,
    acronym, noun phrase, or name if the type is unknown. Relationships are in order of first
    evidence. `extracted_mentions` has one row per mention and text unit that contains the mention.
    """
    ids = documents.select("id").collect()["id"].to_list()
    progress.start(len(ids), "documents")
    mentions, entities = find_mentions(
        lambda: _read_texts(documents), sentences, settings, progress, shards
    )
    units = _read_text_unit_spans(base_text_units, ids)
    mentions = _add_fallback_entities(_locate_mentions(mentions, units), entities, units, documents)
    mentions, entities = _renumber_entities(mentions, entities)
    mentions = _add_sentences(mentions, sentences)
    links = (mentions, settings.max_links, settings.neighbour_weight)
    frequency = np.bincount(mentions["entity"].to_numpy(), minlength=len(entities.titles))
    pairs = (
        weight_pairs(pair_mentions(*links), frequency)
        .filter(
            pl.col("evidence") >= settings.min_evidence, pl.col("weight") >= settings.min_weight
        )
        .sort("mention", "source", "target")
    )
    pairs = pairs.with_columns(
        text_units=text_units_of_pairs(pairs, *links),
        sentence=mentions["sentence"][pairs["mention"]],
    )
    best = _choose_best_sentences(mentions)
    best = best.with_columns(sentence=mentions["sentence"][best["mention"]])
    rows = _make_mention_rows(mentions)
    del mentions, links
    quoted = pl.concat([pairs.filter("is_quotable")["sentence"], best["sentence"]])
    quotations = Quotations(documents, sentences, quoted.to_numpy())
    return {
        "extracted_entities": _make_entity_rows(entities, best, quotations, ids),
        "extracted_relationships": _make_relationship_rows(pairs, quotations, ids),
        "extracted_mentions": rows,
    }


def _read_texts(documents: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield documents in batches, with the columns `number`, `text` and `language`."""
    columns = documents.select("id", "text", "language", number="human_readable_id")
    for rows in read_stable_batches(columns, MEAN_SHARD_BYTES):
        yield from split_by_size(rows.select("number", "text", "language"), "text", SHARD_BYTES)


def _read_text_unit_spans(base_text_units: pl.LazyFrame, ids: list[str]) -> pl.DataFrame:
    """Return the number, the document and the span of text units, sorted by position."""
    schema = {"document_id": pl.String, "document": pl.Int64}
    numbers = pl.LazyFrame({"document_id": ids, "document": range(len(ids))}, schema=schema)
    return (
        base_text_units.select("human_readable_id", "document_id", "start_char", "end_char")
        .join(numbers, on="document_id")
        .select("human_readable_id", "document", "start_char", "end_char")
        .sort("document", "start_char")
        .collect()
    )


def _locate_mentions(mentions: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Find the text units of each mention; drop mentions that are not inside a text unit.

    The added column `text_unit` is the number of the last text unit with the mention. The column
    `earlier` is the number of overlapping earlier text units with the same mention.
    """
    row = find_rows_at(units, mentions, "start")
    document, end = units["document"].to_numpy(), units["end_char"].to_numpy()
    own_document, own_end = mentions["document"].to_numpy(), mentions["end"].to_numpy()

    def is_within(back: int) -> Flags:
        unit = np.maximum(row - back, 0)
        found = (row >= back) & (document[unit] == own_document) & (end[unit] >= own_end)
        return np.asarray(found, dtype=np.bool_)

    earlier = is_within(1).astype(np.int32) + is_within(2) + is_within(3)
    return mentions.with_columns(
        text_unit=pl.Series(units["human_readable_id"].to_numpy()[row], dtype=pl.Int32),
        earlier=pl.Series(earlier, dtype=pl.Int32),
    ).filter(pl.Series(is_within(0), dtype=pl.Boolean))


def find_rows_at(spans: pl.DataFrame, places: pl.DataFrame, start: str = "start_char") -> Integers:
    """Return the row of the last span that begins at or before each place; -1 if none.

    A place is a `document` and an offset in the column `start`. `spans` are sorted by `document`
    and `start_char`.
    """

    def keys(rows: pl.DataFrame, start: str) -> Integers:
        document = rows["document"].to_numpy().astype(np.int64)
        return np.asarray((document << 40) + rows[start].to_numpy(), dtype=np.int64)

    return np.searchsorted(keys(spans, "start_char"), keys(places, start), "right") - 1


def _add_fallback_entities(
    mentions: pl.DataFrame, entities: Entities, units: pl.DataFrame, documents: pl.LazyFrame
) -> pl.DataFrame:
    """Add an entity for each document without mentions, so that a community cites the document."""
    empty = units.join(mentions, on="document", how="anti", maintain_order="left")
    units_of_empty = empty.unique(subset="document", keep="first", maintain_order=True)
    spans = units_of_empty.select("document", "start_char", "end_char").iter_rows()
    first = {document: span for document, *span in spans}
    if not first:
        return mentions
    numbers: dict[str, int] = {}
    rows = []
    for batch in _read_texts(documents):
        for document, text, code in batch.filter(pl.col("number").is_in(list(first))).iter_rows():
            offset, end = first[document]
            start, end = find_fallback_entity(text[offset:end], code)
            title = text[offset + start : offset + end]
            number = len(entities.titles) + numbers.setdefault(title, len(numbers))
            rows.append((document, offset + start, offset + end, number, 0))
    entities.add_entities(numbers, "noun phrase")
    found = _locate_mentions(pl.DataFrame(rows, schema=MENTION_COLUMNS, orient="row"), units)
    return pl.concat([mentions, found]).sort("document", "start", maintain_order=True)


def _renumber_entities(mentions: pl.DataFrame, entities: Entities) -> tuple[pl.DataFrame, Entities]:
    """Renumber entities in order of first mention; drop entities without mentions."""
    first = mentions["entity"].unique(maintain_order=True)
    number = np.full(len(entities.titles), -1, np.int32)
    number[first.to_numpy()] = np.arange(len(first), dtype=np.int32)
    mentions = mentions.with_columns(entity=pl.Series(number[mentions["entity"].to_numpy()]))
    aliases = {int(number[n]): names for n, names in entities.aliases.items() if number[n] >= 0}
    return mentions, Entities(
        titles=[entities.titles[n] for n in first],
        types=[entities.types[n] for n in first],
        aliases=aliases,
    )


def _add_sentences(mentions: pl.DataFrame, sentences: pl.DataFrame) -> pl.DataFrame:
    """Add columns about the sentence of each mention: its row, `quotable`, length, start."""
    row = find_rows_at(sentences, mentions, "start").clip(0)
    length = (sentences["end_char"] - sentences["start_char"]).to_numpy()
    return mentions.with_columns(
        sentence=pl.Series(row, dtype=pl.Int64),
        quotable=are_quotable(sentences)[row],
        sentence_length=pl.Series(length[row], dtype=pl.Int32),
        sentence_start=pl.Series(sentences["start_char"].to_numpy()[row]),
    )


def _choose_best_sentences(mentions: pl.DataFrame) -> pl.DataFrame:
    """Choose the sentences that describe each entity best.

    A sentence has a high score if it begins with the name, defines the name ("... was a ..."), is
    early in the document, and has a medium length. The columns of the result are `entity` and
    `mention` (a row number), ordered by entity and position. Entities without a quotable sentence
    are left out.
    """
    # Use arrays, because the mentions are many and a sorted frame needs more memory.
    row = np.flatnonzero(mentions["quotable"].to_numpy())
    names = ("entity", "sentence", "flags", "start", "sentence_start", "sentence_length")
    columns = (mentions[name].to_numpy()[row] for name in names)
    entity, sentence, flags, start, begin, length = columns
    score = 3.0 * ((flags & DEFINED) > 0) + 1.5 * ((flags & INITIAL) > 0)
    score -= np.minimum(np.abs(length - 150), 300) / 200
    score -= np.minimum(start - begin, 200) / 200
    score -= np.minimum(start, 20_000) / 20_000
    # Choose the best mention of each sentence, then the best sentences of each entity.
    order = np.lexsort((row, -score, sentence, entity))
    best = order[_find_first_rows(entity[order], sentence[order])]
    best = best[np.lexsort((row[best], -score[best], entity[best]))]
    rank = np.arange(len(best)) - np.searchsorted(entity[best], entity[best])
    best = np.sort(best[rank < MAX_DESCRIPTION_SENTENCES])
    chosen = pl.DataFrame({"entity": entity[best], "mention": row[best]})
    return chosen.sort("entity", "mention")


def _find_first_rows(*sorted_columns: np.ndarray) -> np.ndarray:
    """Return a mask: True for the first row of each group of equal neighbouring rows."""
    first = np.zeros(len(sorted_columns[0]), bool)
    first[:1] = True
    for column in sorted_columns:
        first[1:] |= column[1:] != column[:-1]
    return first


def _make_entity_rows(
    entities: Entities, best: pl.DataFrame, quotations: Quotations, ids: list[str]
) -> pl.DataFrame:
    owners = best["entity"].to_numpy().astype(np.int64)
    texts, evidence = _group_quotations(
        owners, best["sentence"], quotations, ids, len(entities.titles)
    )
    return pl.DataFrame(
        {
            "human_readable_id": range(len(entities.titles)),
            "title": entities.titles,
            "type": entities.types,
            "description": texts.list.join(" "),
            **dict.fromkeys(_COLUMNS_FILLED_BY_MODELS, [[]] * len(entities.titles)),
            "aliases": [entities.aliases.get(n, []) for n in range(len(entities.titles))],
            "evidence": evidence,
        },
        schema=TABLES["extracted_entities"].schema,
    )


def _make_relationship_rows(
    pairs: pl.DataFrame, quotations: Quotations, ids: list[str]
) -> pl.DataFrame:
    owners = pairs["is_quotable"].arg_true().to_numpy().astype(np.int64)
    quoted = pairs["sentence"][owners]
    texts, evidence = _group_quotations(owners, quoted, quotations, ids, len(pairs))
    rows = pairs.with_columns(
        pl.lit("").alias("type"),
        pl.lit([]).alias("descriptions"),
        pl.lit([]).alias("description_text_units"),
        texts.list.join("").alias("description"),
        evidence.alias("evidence"),
    )
    return rows.select(TABLES["extracted_relationships"].cast_columns)


def _group_quotations(
    owners: Integers, sentences: pl.Series, quotations: Quotations, ids: list[str], n_owners: int
) -> tuple[pl.Series, pl.Series]:
    """Return the texts and the spans of sentences, each as one list per owner."""
    at = quotations.map_sentence_rows(sentences.to_numpy())
    places = quotations.places[at]
    evidence = places.select(
        document_id=pl.Series(ids, dtype=pl.String)[places["document"]],
        start_char=pl.col("start_char").cast(pl.Int64),
        end_char=pl.col("end_char").cast(pl.Int64),
    ).to_struct()
    return (
        gather_lists(owners, quotations.texts[at], n_owners),
        gather_lists(owners, evidence, n_owners),
    )


def _make_mention_rows(mentions: pl.DataFrame) -> pl.DataFrame:
    """Return one row per mention and text unit that contains the mention."""
    return (
        mentions.select(
            "entity",
            text_unit=pl.int_ranges(
                pl.col("text_unit") - pl.col("earlier"), pl.col("text_unit") + 1, dtype=pl.Int32
            ),
            start_char="start",
            end_char="end",
        )
        .explode("text_unit")
        .sort("text_unit", "start_char", "end_char", "entity")
    )
