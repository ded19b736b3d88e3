"""A seeded sample of the text units of an index."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.errors import TableError
from graphrag_nlp.text.normalize import fold
from graphrag_query.store.index_store import IndexStore

# A shorter text unit, in characters, is a heading or a fragment: nothing can be extracted.
MIN_CHARACTERS = 80
# Text units that the sample is chosen from. The limit bounds time and memory.
MAX_POOL = 5_000


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
