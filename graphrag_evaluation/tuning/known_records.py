"""Entities and relationships of passages that are known without the prompt that is tuned.

They are those of the index, of the linguistic extractor or of another model.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from graphrag_evaluation.tuning.corpus_sample import SampledPassage
from graphrag_index.errors import TableError
from graphrag_index.extraction.alignment import Passage, Span
from graphrag_index.extraction.graph_reply import FoundRecords
from graphrag_index.schema.settings.step_sections import ExtractGraphNlp
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import SerialShards, Silent
from graphrag_index.steps.extract_graph_nlp import extract_graph_nlp
from graphrag_index.storage.memo import join_batches
from graphrag_nlp.text.normalize import title_key
from graphrag_query.store.index_store import IndexStore

# Types of the linguistic extractor that only say that the type is not known.
UNKNOWN_TYPES = frozenset({"", "name", "noun phrase", "acronym"})


@dataclass(frozen=True)
class KnownEntity:
    """An entity of a passage, with the spans of its mentions in the passage."""

    name: str  # as the passage writes it
    type: str
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class KnownRecords:
    """The entities of a passage, and the relationships as pairs of their positions.

    A relationship maps to the span of the sentences that state it.
    """

    entities: tuple[KnownEntity, ...] = ()
    relationships: Mapping[tuple[int, int], Span] | None = None

    @property
    def pairs(self) -> Mapping[tuple[int, int], Span]:
        return self.relationships or {}


def read_index_records(
    store: IndexStore, passages: Sequence[SampledPassage]
) -> dict[str, KnownRecords]:
    """Return what the index states about text units, by the keys of the passages."""
    numbers = [passage.number for passage in passages]
    documents = sorted({passage.document for passage in passages})
    mentions = store.scan("mentions").filter(pl.col("text_unit").is_in(numbers)).collect()
    entities = store.scan("entities").select("human_readable_id", "id", "type").collect()
    numbers_of_ids = dict(entities.select("id", "human_readable_id").iter_rows())
    stated = (
        store.scan("relationships")
        .select("source_id", "target_id", "evidence")
        .explode("evidence")
        .unnest("evidence")
        .filter(pl.col("document_id").is_in(documents))
        .collect()
    )
    links = [
        (numbers_of_ids[source], numbers_of_ids[target], *place)
        for source, target, *place in stated.iter_rows()
    ]
    types = dict(entities.select("human_readable_id", "type").iter_rows())
    return _collect_records(passages, mentions, types, links)


def extract_by_rules(
    store: IndexStore, passages: Sequence[SampledPassage], settings: ExtractGraphNlp
) -> dict[str, KnownRecords]:
    """Extract the records of text units with the linguistic extractor, from their documents."""
    if not store.has_table("sentences"):
        raise TableError(
            f"The index in {store.backend.output} has no table sentences, which the linguistic "
            "extractor reads: name a reference with --reference-model."
        )
    ids = sorted({passage.document for passage in passages})
    documents = store.scan("documents").filter(pl.col("id").is_in(ids)).collect()
    place = {number: at for at, number in enumerate(documents["human_readable_id"])}
    sentences = (
        store.scan("sentences")
        .filter(pl.col("document").is_in(list(place)))
        .collect()
        .with_columns(pl.col("document").replace_strict(place, return_dtype=pl.Int32))
    )
    found: Any = extract_graph_nlp(
        documents.with_columns(human_readable_id=pl.int_range(pl.len(), dtype=pl.Int64)).lazy(),
        store.scan("base_text_units").filter(pl.col("document_id").is_in(ids)),
        sentences,
        settings=settings,
        progress=Silent(),
        shards=SerialShards(),
    )
    names = ("extracted_entities", "extracted_relationships", "extracted_mentions")
    tables = join_batches(found, map(TABLES.__getitem__, names))
    entities, relationships, mentions = (tables[name] for name in names)
    stated = relationships.explode("evidence").drop_nulls("evidence").unnest("evidence")
    links = stated.select("source", "target", "document_id", "start_char", "end_char").rows()
    types = dict(entities.select("human_readable_id", "type").iter_rows())
    return _collect_records(passages, mentions, types, links)


def _collect_records(
    passages: Sequence[SampledPassage],
    mentions: pl.DataFrame,
    types: Mapping[int, str],
    links: Iterable[tuple[int, int, str, int, int]],
) -> dict[str, KnownRecords]:
    """Group mentions and stated relationships by passage; offsets become those of the passage."""
    spans: dict[int, dict[int, list[Span]]] = defaultdict(lambda: defaultdict(list))
    for entity, number, start, end in mentions.select(
        "entity", "text_unit", "start_char", "end_char"
    ).iter_rows():
        spans[number][entity].append((start, end))
    by_document: dict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
    for source, target, document, start, end in links:
        by_document[document].append((source, target, start, end))
    return {
        passage.key: _records_of(
            passage, spans[passage.number], types, by_document[passage.document]
        )
        for passage in passages
    }


def _records_of(
    passage: SampledPassage,
    spans: Mapping[int, Sequence[Span]],
    types: Mapping[int, str],
    links: Sequence[tuple[int, int, int, int]],
) -> KnownRecords:
    first, size = passage.start_char, len(passage.text)
    entities: dict[int, KnownEntity] = {}
    for entity, places in spans.items():
        own = sorted((start - first, end - first) for start, end in places)
        own = [(start, end) for start, end in own if 0 <= start < end <= size]
        if own:
            longest = max(own, key=lambda span: (span[1] - span[0], -span[0]))
            name = passage.text[slice(*longest)]
            entities[entity] = KnownEntity(name, types.get(entity, ""), tuple(own))
    order = {entity: at for at, entity in enumerate(entities)}
    pairs: dict[tuple[int, int], Span] = {}
    for source, target, start, end in links:
        span = (start - first, end - first)
        if source in order and target in order and 0 <= span[0] < span[1] <= size:
            one, other = sorted((order[source], order[target]))
            pairs.setdefault((one, other), span)
    return KnownRecords(tuple(entities.values()), pairs)


def locate_records(passage: SampledPassage, found: FoundRecords) -> tuple[KnownRecords, list[str]]:
    """Locate the records of a reply in its passage; also return the names that are not there."""
    text = Passage(passage.text, passage.language)
    places = text.align_names(entity.name for entity in found.entities)
    order: dict[str, int] = {}
    entities, absent = list[KnownEntity](), list[str]()
    for entity in found.entities:
        key, place = title_key(entity.name), places[entity.name]
        if not place.whole:
            absent.append(entity.name)
        elif key not in order:
            order[key] = len(entities)
            entities.append(KnownEntity(entity.name, entity.type, place.spans))
    pairs: dict[tuple[int, int], Span] = {}
    for link in found.relationships:
        ends = [order.get(title_key(name), -1) for name in (link.source, link.target)]
        if min(ends) >= 0 and ends[0] != ends[1]:
            one, other = sorted(ends)
            span = text.find_evidence(places[link.source], places[link.target])
            pairs.setdefault((one, other), span)
    return KnownRecords(tuple(entities), pairs), absent
