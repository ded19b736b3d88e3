"""A seeded sample of the text units of an index, and the records that are known of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.extraction.alignment import Passage, Span
from graphrag_index.extraction.graph_reply import FoundRecords
from graphrag_index.schema.settings.step_sections import ExtractGraphNlp
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import SerialShards, Silent
from graphrag_index.steps.extract_graph_nlp import extract_graph_nlp
from graphrag_index.storage.memo import join_batches
from graphrag_nlp.text.normalize import fold, title_key
from graphrag_query.store.index_store import IndexStore

# A shorter text unit, in characters, is a heading or a fragment: nothing can be extracted.
MIN_CHARACTERS = 80
# Text units that the sample is chosen from. The limit bounds time and memory.
MAX_POOL = 5_000
# Types of the linguistic extractor that only say that the type is not known.
UNKNOWN_TYPES = frozenset({"", "name", "noun phrase", "acronym"})


@dataclass(frozen=True)
class SampledPassage:
    """A text unit of the index."""

    number: int  # of the text unit
    document: str  # id of the document
    label: str  # names the passage in messages
    text: str
    start_char: int  # in the document
    language: str
    headings: str = ""

    @property
    def key(self) -> str:
        """The place of the passage."""
        return f"{self.document}:{self.start_char}:{len(self.text)}"


@dataclass(frozen=True)
class CorpusSample:
    """Passages to tune on and passages to report on, of different documents."""

    tuning: tuple[SampledPassage, ...]
    held_out: tuple[SampledPassage, ...]
    languages: Mapping[str, int]  # documents of the index by language, the most frequent first
    n_documents: int


def sample_corpus(store: IndexStore, n_passages: int, seed: int) -> CorpusSample:
    """Choose passages that cover the documents, half of them to tune on.

    The documents of each language are split by a hash of the seed. In each half, a passage is
    more likely to be chosen the less it resembles those that are chosen already (k-means++,
    Arthur & Vassilvitskii 2007), and each document gives one passage before one gives two.
    """
    documents = (
        store.scan("documents").select("id", "title", "path", "language", "human_readable_id")
    ).collect()
    columns = ("human_readable_id", "document_id", "text", "start_char", "end_char", "headings")
    units = store.scan("text_units").select(columns[:2]).collect()
    if units.height > MAX_POOL:
        order = [_seeded_hash(seed, str(n)) for n in units["human_readable_id"]]
        units = units[np.argsort(order)[:MAX_POOL].tolist()].sort("human_readable_id")
    wanted = units.select("human_readable_id").lazy()
    rows = store.scan("text_units").select(columns).join(wanted, on="human_readable_id")
    pool = (
        rows.filter(pl.col("text").str.strip_chars().str.len_chars() >= MIN_CHARACTERS)
        .collect()
        .join(documents.select("title", "path", "language", document_id="id"), on="document_id")
        .sort("human_readable_id")
    )
    if pool.is_empty():
        raise TableError(
            f"The index in {store.backend.output} has no text unit of {MIN_CHARACTERS} characters: "
            "there is nothing to tune on."
        )
    vectors = _read_vectors(store, pool["human_readable_id"].to_list())
    first, second = _split_documents(pool, seed)
    n_tuning = (n_passages + 1) // 2
    tuning = choose_passages(pool, vectors, first, n_tuning, seed)
    held_out = choose_passages(pool, vectors, second, n_passages - n_tuning, seed)
    # Two documents may have the same passage.
    texts = {fold(passage.text) for passage in tuning}
    languages = Counter(documents["language"].to_list())
    return CorpusSample(
        tuning,
        tuple(passage for passage in held_out if fold(passage.text) not in texts),
        dict(sorted(languages.items(), key=lambda item: (-item[1], item[0]))),
        documents.height,
    )


def _read_vectors(store: IndexStore, numbers: Sequence[int]) -> "npt.NDArray[np.float32]":
    """Return the vectors of text units; equal vectors if the index has none."""
    if not store.has_table("text_unit_vectors"):
        return np.ones((len(numbers), 1), np.float32)
    vectors = store.open_mapped("text_unit_vectors").matrix("vector", numbers).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _split_documents(pool: pl.DataFrame, seed: int) -> tuple[set[str], set[str]]:
    """Split the documents of each language into two halves."""
    tuning, held_out = set[str](), set[str]()
    by_language = pool.select("document_id", "language").unique().group_by("language")
    for _, rows in sorted(by_language, key=lambda item: str(item[0])):
        ids = sorted(rows["document_id"], key=lambda id: _seeded_hash(seed, id))
        for id in ids:
            smaller = held_out if len(held_out) < len(tuning) else tuning
            smaller.add(id)
    return tuning, held_out


def _seeded_hash(seed: int, text: str) -> int:
    return int.from_bytes(blake2b(f"{seed} {text}".encode(), digest_size=8).digest())


def choose_passages(
    pool: pl.DataFrame,
    vectors: "npt.NDArray[np.float32]",
    documents: set[str],
    n_passages: int,
    seed: int,
) -> tuple[SampledPassage, ...]:
    """Choose passages of these documents, from each language by its share of the documents."""
    owners, languages = pool["document_id"].to_list(), pool["language"].to_list()
    language_of_document = dict(zip(owners, languages, strict=True))
    counts = Counter(language_of_document[id] for id in documents)
    texts = [fold(text) for text in pool["text"]]
    chosen: list[int] = []
    for language, n_documents in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        quota = max(1, round(n_passages * n_documents / len(documents)))
        rows = [
            row
            for row, id in enumerate(owners)
            if id in documents and language_of_document[id] == language
        ]
        chosen += _spread(rows, owners, texts, vectors, quota, seed)
    return tuple(_as_passage(pool.row(row, named=True)) for row in chosen[:n_passages])


def _spread(
    rows: Sequence[int],
    owners: Sequence[str],
    texts: Sequence[str],
    vectors: "npt.NDArray[np.float32]",
    quota: int,
    seed: int,
) -> list[int]:
    """Choose rows by k-means++; no text is chosen twice."""
    random = np.random.default_rng(seed)
    places = np.array(rows, np.int64)
    distances = np.ones(len(places))
    n_of_owner: Counter[str] = Counter()
    taken: dict[str, int] = {}
    while len(taken) < quota:
        free = [i for i, row in enumerate(places.tolist()) if texts[row] not in taken]
        if not free:
            break
        fewest = min(n_of_owner[owners[places[i]]] for i in free)
        free = [i for i in free if n_of_owner[owners[places[i]]] == fewest]
        weights = distances[free]
        total = weights.sum()
        at = int(random.choice(free, p=weights / total if total > 0 else None))
        row = int(places[at])
        taken[texts[row]] = row
        n_of_owner[owners[row]] += 1
        new = np.clip(1 - vectors[places].astype(np.float64) @ vectors[row], 0, None)
        distances = new if len(taken) == 1 else np.minimum(distances, new)
    return list(taken.values())


def _as_passage(row: Mapping[str, object]) -> SampledPassage:
    start, end = int(str(row["start_char"])), int(str(row["end_char"]))
    name = str(row["path"] or row["title"])
    return SampledPassage(
        int(str(row["human_readable_id"])),
        str(row["document_id"]),
        f"{name}, characters {start} to {end}",
        str(row["text"]),
        start,
        str(row["language"]),
        str(row["headings"] or ""),
    )


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
