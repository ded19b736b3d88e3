"""Extraction of entities and relationships by rules and corpus statistics, without a model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.schema.settings.step_sections import ExtractGraphNlp
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Partitions, Progress, ShardFrames, Shards, step
from graphrag_index.storage.memo import read_stable_batches, regroup_batches, split_by_size
from graphrag_index.storage.partitions import hash_partitions
from graphrag_nlp.list_columns import Integers, gather_lists, pack_lists
from graphrag_nlp.names.find_names import MENTION_COLUMNS, Entities, ReadMentions, find_mentions
from graphrag_nlp.names.mention_links import (
    BLOCK_MENTIONS,
    LINKED_COLUMNS,
    PAIR_COLUMNS,
    RATED_COLUMNS,
    choose_best_sentences,
    link_block,
    merge_pairs,
)
from graphrag_nlp.names.uncased import find_fallback_entity
from graphrag_nlp.text.sentences import Quotations, are_quotable

# Mean size of the texts of a shard, and maximum size if it has several documents, in bytes. After
# an update only shards with changed documents are processed again, so they should be small. These
# numbers and the next ones do not change the results.
MEAN_SHARD_BYTES = 500_000
SHARD_BYTES = 4_000_000
# Number of text units whose mentions are in memory, and whose links are in one partition.
RANGE_TEXT_UNITS = 8_192
LINKED_TEXT_UNITS = 16_384
# Number of sentences, and of entities, whose rows are written at once.
RANGE_SENTENCES = 400_000
RANGE_ENTITIES = 65_536
# Columns of entities that are filled only if a model extracts the entities.
_COLUMNS_FILLED_BY_MODELS = ("descriptions", "description_text_units", "text_units", "types")
_KEPT_COLUMNS = {
    **dict.fromkeys(("source", "target", "mention", "sentence"), pl.Int32),
    **dict.fromkeys(("evidence", "weight"), pl.Float64),
    **{"is_quotable": pl.Boolean, "text_units": pl.List(pl.Int64)},
}
_QUOTATION_COLUMNS = {
    **dict.fromkeys(("entity", "mention", "document", "start_char", "end_char"), pl.Int32),
    "text": pl.String,
}

Flags = npt.NDArray[np.bool_]


@step(
    writes=["extracted_entities", "extracted_relationships", "extracted_mentions"], code_version=31
)
def extract_graph_nlp(
    documents: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    sentences: pl.DataFrame,
    *,
    settings: ExtractGraphNlp,
    progress: Progress,
    shards: Shards,
) -> Iterator[Mapping[str, pl.DataFrame]]:
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
    ids = documents.select("id").collect()["id"]
    progress.start(len(ids), "documents")
    units = _read_text_unit_spans(base_text_units, ids)
    # Documents at which ranges of documents begin, and the number of documents.
    starts = np.unique(units["document"].to_numpy()[::RANGE_TEXT_UNITS])
    bounds = [0, *starts[1:].tolist(), len(ids)]
    read_mentions, entities = find_mentions(
        lambda: _read_texts(documents), sentences, bounds, settings, progress, shards
    )
    spans = sentences.select("document", "start_char", "end_char", quotable=are_quotable(sentences))
    del sentences
    found = _LocatedMentions(read_mentions, entities, units, spans, documents)
    n_ranges = found.max_entities // RANGE_ENTITIES + 1
    with (
        shards.open_partitions(units.height // LINKED_TEXT_UNITS + 1, PAIR_COLUMNS) as linked,
        shards.open_partitions(spans.height // RANGE_SENTENCES + 1, _KEPT_COLUMNS) as kept,
        shards.open_partitions(n_ranges, RATED_COLUMNS) as rated,
        shards.open_partitions(n_ranges, _QUOTATION_COLUMNS) as quoted,
    ):
        for batch in regroup_batches(
            _link_mentions(found.read(bounds), settings, shards, linked, rated)
        ):
            yield {"extracted_mentions": batch}
        partitions = ((None, {"pairs": pairs}) for _, pairs in linked)
        limits = (settings.min_evidence, settings.min_weight)
        for _, merged in shards.map(merge_pairs, partitions, found.counts, *limits):
            sentence = merged["pairs"]["sentence"].to_numpy()
            kept.append(merged["pairs"], sentence // RANGE_SENTENCES)
        quotations = _quote_sentences(kept, rated, quoted, spans, documents)
        for batch in regroup_batches(
            _make_relationship_rows(pairs, quotation, ids) for pairs, quotation in quotations
        ):
            yield {"extracted_relationships": batch}
        first_of_ranges = range(0, len(found.order), RANGE_ENTITIES)
        for batch in regroup_batches(
            _make_entity_rows(entities, found.order, first, quoted.read(number), ids)
            for number, first in enumerate(first_of_ranges)
        ):
            yield {"extracted_entities": batch}


def _read_texts(documents: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield documents in batches, with the columns `number`, `text` and `language`."""
    columns = documents.select("id", "text", "language", number="human_readable_id")
    for rows in read_stable_batches(columns, MEAN_SHARD_BYTES):
        yield from split_by_size(rows.select("number", "text", "language"), SHARD_BYTES)


def _read_text_unit_spans(base_text_units: pl.LazyFrame, ids: pl.Series) -> pl.DataFrame:
    """Return the number, the document and the span of text units, sorted by position."""
    numbers = pl.LazyFrame({"document_id": ids, "document": np.arange(len(ids))})
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


class _LocatedMentions:
    """Mentions with their text units and sentences, and entities in order of first mention."""

    def __init__(
        self,
        read_mentions: ReadMentions,
        entities: Entities,
        units: pl.DataFrame,
        sentences: pl.DataFrame,
        documents: pl.LazyFrame,
    ) -> None:
        self._read_mentions, self._entities, self._documents = read_mentions, entities, documents
        self._units, self._sentences = units, sentences
        # A document without mentions gets an entity.
        self.max_entities = len(entities.titles) + units["document"].n_unique()
        self._fallback: dict[str, int] = {}
        # The new number of each entity in `entities`; -1 if the entity has no mention yet.
        self._number = np.full(self.max_entities, -1, np.int32)
        # By new number: the number in `entities`, and the number of mentions.
        self.order = np.zeros(0, np.int64)
        self.counts = np.zeros(self.max_entities, np.int64)

    def read(self, bounds: Sequence[int]) -> Iterator[pl.DataFrame]:
        """Yield the mentions in each range of documents."""
        for first, last in pairwise(bounds):
            units, _ = _select_documents(self._units, first, last)
            mentions = _locate_mentions(self._read_mentions(first, last), units)
            mentions = self._number_entities(self._add_fallback_entities(mentions, units))
            yield self._add_sentences(mentions, first, last)

    def _add_fallback_entities(self, mentions: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
        """Add an entity for each document without mentions, so that a community cites it."""
        empty = units.join(mentions, on="document", how="anti", maintain_order="left")
        empty = empty.unique(subset="document", keep="first", maintain_order=True)
        if empty.is_empty():
            return mentions
        first, last = empty["document"][0], empty["document"][-1]
        texts = self._documents.select("text", "language", document="human_readable_id")
        spans = empty.select("document", "start_char", "end_char").join(
            texts.slice(first, last - first + 1).collect(), on="document", maintain_order="left"
        )
        rows = []
        for document, offset, unit_end, text, code in spans.iter_rows():
            start, end = find_fallback_entity(text[offset:unit_end], code)
            title = text[offset + start : offset + end]
            if title not in self._fallback:
                self._fallback[title] = len(self._entities.titles)
                self._entities.add_entities([title], "noun phrase")
            rows.append((document, offset + start, offset + end, self._fallback[title], 0))
        found = _locate_mentions(pl.DataFrame(rows, schema=MENTION_COLUMNS, orient="row"), units)
        return pl.concat([mentions, found]).sort("document", "start", maintain_order=True)

    def _number_entities(self, mentions: pl.DataFrame) -> pl.DataFrame:
        """Give entities numbers in order of first mention, and count their mentions."""
        first = mentions["entity"].unique(maintain_order=True).to_numpy()
        first = first[self._number[first] < 0]
        self._number[first] = np.arange(len(first)) + len(self.order)
        self.order = np.append(self.order, first)
        entity = self._number[mentions["entity"].to_numpy()]
        self.counts += np.bincount(entity, minlength=len(self.counts))
        return mentions.with_columns(entity=pl.Series(entity, dtype=pl.Int32))

    def _add_sentences(self, mentions: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
        """Add columns about the sentence of each mention: its row, `quotable`, length, start."""
        sentences, offset = _select_documents(self._sentences, first, last)
        row = find_rows_at(sentences, mentions, "start").clip(0)
        return pl.concat(
            [
                mentions,
                sentences[row].select(
                    "quotable",
                    sentence=pl.Series(row + offset, dtype=pl.Int32),
                    sentence_length=pl.col("end_char") - pl.col("start_char"),
                    sentence_start="start_char",
                ),
            ],
            how="horizontal",
        )


def _select_documents(rows: pl.DataFrame, first: int, last: int) -> tuple[pl.DataFrame, int]:
    """Return the rows of the documents from `first` to before `last`, and the first row number."""
    start, end = np.searchsorted(rows["document"].to_numpy(), (first, last)).tolist()
    return rows[start:end], start


def _link_mentions(
    ranges: Iterable[pl.DataFrame],
    settings: ExtractGraphNlp,
    shards: Shards,
    linked: Partitions,
    rated: Partitions,
) -> Iterator[pl.DataFrame]:
    """Collect the pairs and the rated sentences of all blocks; yield rows of `mentions`."""
    blocks = _make_blocks(ranges, settings.max_links)
    links = (settings.max_links, settings.neighbour_weight)
    for (begin, rows), part in shards.map(link_block, blocks, *links):
        pairs, sentences = (
            frame.with_columns(pl.col("mention") + begin) for frame in part.values()
        )
        linked.append(pairs, hash_partitions(pairs["pair"], linked.n))
        rated.append(sentences, sentences["entity"].to_numpy() // RANGE_ENTITIES)
        yield from rows


def _make_blocks(
    ranges: Iterable[pl.DataFrame], max_links: int
) -> Iterator[tuple[tuple[int, list[pl.DataFrame]], ShardFrames]]:
    """Regroup mentions into blocks; a block has the `max_links` mentions that follow it too.

    Yields ((number of the first mention of the block, rows of `extracted_mentions`), block).
    """
    begin = 0
    rows: list[pl.DataFrame] = []
    pending = pl.DataFrame(schema=LINKED_COLUMNS)

    def cut_blocks(min_rows: int) -> Iterator[tuple[tuple[int, list[pl.DataFrame]], ShardFrames]]:
        nonlocal begin, rows, pending
        while pending.height >= min_rows:
            following = pending[BLOCK_MENTIONS : BLOCK_MENTIONS + max_links]
            yield (begin, rows), {"mentions": pending[:BLOCK_MENTIONS], "following": following}
            begin, rows, pending = begin + BLOCK_MENTIONS, [], pending[BLOCK_MENTIONS:]

    for mentions in ranges:
        rows.append(_make_mention_rows(mentions))
        pending = pl.concat([pending, mentions.select(*LINKED_COLUMNS)])
        yield from cut_blocks(BLOCK_MENTIONS + max_links)
    yield from cut_blocks(1)


def _quote_sentences(
    kept: Partitions,
    rated: Partitions,
    quoted: Partitions,
    sentences: pl.DataFrame,
    documents: pl.LazyFrame,
) -> Iterator[tuple[pl.DataFrame, Quotations]]:
    """Yield the kept pairs in order of first evidence, with their quotations.

    The quotations of entities are added to `quoted` on the way, so documents are read once.
    """
    chosen = [choose_best_sentences(rows) for _, rows in rated]
    best = pl.concat([pl.DataFrame(schema=RATED_COLUMNS), *chosen]).sort("sentence", "entity")
    steps = np.arange(kept.n + 1) * RANGE_SENTENCES
    bounds = np.searchsorted(best["sentence"].to_numpy(), steps).tolist()
    for number, (start, end) in enumerate(pairwise(bounds)):
        pairs = kept.read(number).sort("mention", "source", "target")
        owners = best[start:end]
        wanted = pl.concat([pairs.filter("is_quotable")["sentence"], owners["sentence"]])
        quotations = Quotations(documents, sentences, wanted.to_numpy())
        at = quotations.map_sentence_rows(owners["sentence"].to_numpy())
        rows = pl.concat(
            [
                owners.select("entity", "mention"),
                quotations.places[at],
                quotations.texts[at].to_frame("text"),
            ],
            how="horizontal",
        )
        quoted.append(rows, owners["entity"].to_numpy() // RANGE_ENTITIES)
        if pairs.height:
            yield pairs, quotations


def _make_relationship_rows(
    pairs: pl.DataFrame, quotations: Quotations, ids: pl.Series
) -> pl.DataFrame:
    owners = pairs["is_quotable"].arg_true().to_numpy().astype(np.int64)
    at = quotations.map_sentence_rows(pairs["sentence"].to_numpy()[owners])
    evidence = _make_evidence(quotations.places[at], ids)
    rows = pairs.with_columns(
        pl.lit("").alias("type"),
        pl.lit([]).alias("descriptions"),
        pl.lit([]).alias("description_text_units"),
        gather_lists(owners, quotations.texts[at], len(pairs)).list.join("").alias("description"),
        gather_lists(owners, evidence, len(pairs)).alias("evidence"),
    )
    return rows.select(TABLES["extracted_relationships"].cast_columns)


def _make_entity_rows(
    entities: Entities, order: Integers, first: int, quoted: pl.DataFrame, ids: pl.Series
) -> pl.DataFrame:
    """Return the rows of a range of entities. `order` has their numbers in `entities`."""
    order = order[first : first + RANGE_ENTITIES]
    quoted = quoted.sort("entity", "mention")
    owners = quoted["entity"].to_numpy().astype(np.int64) - first
    evidence = _make_evidence(quoted, ids)
    columns = {
        "human_readable_id": first + np.arange(len(order)),
        "title": [entities.titles[n] for n in order],
        "type": [entities.types[n] for n in order],
        "description": gather_lists(owners, quoted["text"], len(order)).list.join(" "),
        "aliases": pack_lists([entities.aliases.get(n, []) for n in order.tolist()], pl.String),
        "evidence": gather_lists(owners, evidence, len(order)),
    }
    schema = {name: TABLES["extracted_entities"].schema[name] for name in columns}
    empty = [pl.lit([]).alias(name) for name in _COLUMNS_FILLED_BY_MODELS]
    rows = pl.DataFrame(columns, schema).with_columns(empty)
    return rows.select(TABLES["extracted_entities"].cast_columns)


def _make_evidence(places: pl.DataFrame, ids: pl.Series) -> pl.Series:
    """Return the spans of quotations as structs."""
    return places.select(
        document_id=ids.gather(places["document"]),
        start_char=pl.col("start_char").cast(pl.Int64),
        end_char=pl.col("end_char").cast(pl.Int64),
    ).to_struct()


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
