"""A seeded sample of the text units of an index, and the records that the index has of them."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.extraction.alignment import Passage, Span
from graphrag_index.extraction.graph_reply import (
    FoundEntity,
    FoundRecords,
    FoundRelationship,
    clean_line,
)
from graphrag_nlp.text.normalize import fold
from graphrag_query.store.index_store import IndexStore

# A shorter text unit, in characters, is a heading or a fragment: nothing can be extracted.
MIN_CHARACTERS = 80
# Text units that the sample is chosen from. The limit bounds time and memory.
MAX_POOL = 5_000


class SampledPassage(NamedTuple):
    """A text unit of the index, with its number and its place in the document."""

    number: int
    document: str  # id
    label: str  # names the passage in messages
    start_char: int
    headings: str
    passage: Passage

    @property
    def text(self) -> str:
        return self.passage.text


def sample_corpus(store: IndexStore, n_passages: int, seed: int) -> list[SampledPassage]:
    """Choose passages that cover the documents of an index.

    Raises `TableError` if the index has no text unit that is long enough.
    """
    documents = store.scan("documents").select("title", "path", "language", document_id="id")
    columns = ("human_readable_id", "document_id", "text", "start_char", "end_char", "headings")
    units = (
        store.scan("text_units")
        .select(columns)
        .filter(pl.col("text").str.strip_chars().str.len_chars() >= MIN_CHARACTERS)
    )
    numbers = units.select("human_readable_id").collect().to_series()
    if len(numbers) > MAX_POOL:
        numbers = numbers.sample(MAX_POOL, seed=seed)
    pool = (
        units.filter(pl.col("human_readable_id").is_in(numbers.implode()))
        .join(documents, on="document_id")
        .sort("human_readable_id")
        .collect()
    )
    if pool.is_empty():
        raise TableError(
            f"The index in {store.backend.output} has no text unit of {MIN_CHARACTERS} characters: "
            "there is nothing to tune on."
        )
    vectors = _read_vectors(store, pool["human_readable_id"].to_list())
    rows = choose_rows(
        pool["document_id"].to_list(), [*map(fold, pool["text"])], vectors, n_passages, seed
    )
    return [
        SampledPassage(
            row["human_readable_id"],
            row["document_id"],
            f"{row['path'] or row['title']}, characters {row['start_char']} to {row['end_char']}",
            row["start_char"],
            row["headings"] or "",
            Passage(row["text"], row["language"]),
        )
        for row in pool[rows].iter_rows(named=True)
    ]


def _read_vectors(store: IndexStore, numbers: Sequence[int]) -> "npt.NDArray[np.float32]":
    """Return the vectors of text units; equal vectors if the index has none."""
    if not store.has_table("text_unit_vectors"):
        return np.ones((len(numbers), 1), np.float32)
    vectors = store.open_mapped("text_unit_vectors").matrix("vector", numbers).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def choose_rows(
    documents: Sequence[str],
    texts: Sequence[str],
    vectors: "npt.NDArray[np.float32]",
    n: int,
    seed: int,
) -> list[int]:
    """Choose rows with different texts by k-means++ (Arthur & Vassilvitskii 2007).

    A row is more likely to be chosen the less it resembles those that are chosen already, and
    each document gives one row before one gives two.
    """
    random = np.random.default_rng(seed)
    distances = np.ones(len(texts))
    n_of_document: Counter[str] = Counter()
    chosen: dict[str, int] = {}
    while len(chosen) < n:
        free = [row for row, text in enumerate(texts) if text not in chosen]
        if not free:
            break
        fewest = min(n_of_document[documents[row]] for row in free)
        free = [row for row in free if n_of_document[documents[row]] == fewest]
        total = distances[free].sum()
        row = int(random.choice(free, p=distances[free] / total if total > 0 else None))
        new = np.clip(1 - vectors.astype(np.float64) @ vectors[row], 0, None)
        distances = np.minimum(distances, new) if chosen else new
        chosen[texts[row]] = row
        n_of_document[documents[row]] += 1
    return list(chosen.values())


def read_index_records(
    store: IndexStore, passages: Sequence[SampledPassage]
) -> dict[int, FoundRecords]:
    """Return what the index states about text units, by their numbers.

    Names are written as in the text, and descriptions are its sentences.
    """
    mentions = (
        store.scan("mentions")
        .filter(pl.col("text_unit").is_in([passage.number for passage in passages]))
        .select("text_unit", "entity", "start_char", "end_char")
        .sort("text_unit", "start_char")
        .collect()
    )
    entities = store.scan("entities").select("human_readable_id", "id", "type").collect()
    numbers = dict(entities.select("id", "human_readable_id").iter_rows())
    types = dict(entities.select("human_readable_id", "type").iter_rows())
    evidence = (
        store.scan("relationships")
        .select("source_id", "target_id", "evidence")
        .explode("evidence")
        .unnest("evidence")
        .filter(pl.col("document_id").is_in({passage.document for passage in passages}))
        .collect()
    )
    links: dict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
    for source, target, document, start, end in evidence.iter_rows():
        links[document].append((numbers[source], numbers[target], start, end))
    found = {}
    for one in passages:
        spans: dict[int, Span] = {}
        for _, entity, start, end in mentions.filter(text_unit=one.number).iter_rows():
            first, last = start - one.start_char, end - one.start_char
            known = spans.get(entity, (0, 0))
            if 0 <= first < last <= len(one.text) and last - first > known[1] - known[0]:
                spans[entity] = (first, last)
        names = {entity: one.text[slice(*span)] for entity, span in spans.items()}
        stated: dict[frozenset[int], FoundRelationship] = {}
        for source, target, start, end in links[one.document]:
            first, last = start - one.start_char, end - one.start_char
            if source in names and target in names and 0 <= first < last <= len(one.text):
                sentence = clean_line(one.text[first:last])
                link = FoundRelationship(names[source], names[target], "", sentence)
                stated.setdefault(frozenset((source, target)), link)
        found[one.number] = FoundRecords(
            tuple(
                FoundEntity(
                    names[entity],
                    types[entity] or "",
                    clean_line(one.text[slice(*one.passage.extend_to_sentences(*span))]),
                )
                for entity, span in spans.items()
            ),
            tuple(stated.values()),
        )
    return found
