"""Vectors of texts, and the other tables for searches."""

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from graphrag_index.llm.embeddings import text_key
from graphrag_index.llm.local.local_models import STATIC, EmbeddingModel
from graphrag_index.llm.local.static_model import StaticModel, load_static_model
from graphrag_index.schema.settings.models import ModelSettings, describe_vector_identity
from graphrag_index.schema.settings.step_sections import GenerateTextEmbeddings
from graphrag_index.schema.tables import EMBEDDED_COLUMNS, READING, SEARCH_TABLES, TABLES
from graphrag_index.step import Progress, ShardFrames, Shards, step
from graphrag_index.storage import search_tables
from graphrag_index.storage.memo import read_batches
from graphrag_index.storage.table_store import Previous

if TYPE_CHECKING:
    from graphrag_index.storage.vector_store import VectorTable

logger = logging.getLogger(__name__)

# Number of rows per batch. The number limits memory and does not change the results.
BATCH_VECTORS = 2_048
# Seeds of the two hashes by which the vector of a known text is found.
HASH_SEEDS = (0, 1)
# Text to embed, by vector table. Citations are removed from reports.
EMBEDDED = dict.fromkeys(EMBEDDED_COLUMNS, pl.col("text"))
EMBEDDED["community_full_content"] = pl.col("text").str.replace_all(r" ?\[Data: [^\[\]]*\]", "")


def find_embedding_keys(
    settings: GenerateTextEmbeddings, models: Mapping[str, ModelSettings], tables: Previous
) -> Iterator[str]:
    """Yield the ledger keys of all texts that a remote model has embedded."""
    if settings.model not in models:
        return
    model = models[settings.model]
    for name, embedded in EMBEDDED.items():
        rows = tables.scan(name)
        if rows is not None:
            yield from (text_key(text, model) for text in rows.select(embedded).collect()["text"])


@step(
    writes=["text_unit_text", "text_unit_vectors", "entity_description", "community_full_content"],
    code_version=4,
    request_keys=find_embedding_keys,
)
def generate_text_embeddings(
    text_units: pl.LazyFrame,
    entities: pl.LazyFrame,
    community_reports: pl.LazyFrame | None = None,
    *,
    settings: GenerateTextEmbeddings,
    embedding_model: EmbeddingModel,
    previous: Previous,
    progress: Progress,
    shards: Shards,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Embed the reading of text units, `title:description` of entities, and whole reports.

    Texts that the last version embedded with the same model are not embedded again. Citations of
    reports are not embedded, because their numbers change when a document is added or removed. A
    text whose request failed has a vector of zeros; a search finds it only by its words. Without
    `community_reports`, the table `community_full_content` is empty. The table
    `text_unit_vectors` is a second copy, from which searches read many rows quickly.
    """
    sources = select_embedded_rows(text_units, entities, community_reports)
    made_by = {identity for name in sources if (identity := _find_identity(previous, name))}
    if made_by - {embedding_model.identity}:
        logger.warning(
            "Another model made the vectors of the last version (%s): the model %s embeds all "
            "texts again.",
            ", ".join(sorted(map(describe_vector_identity, made_by))),
            describe_vector_identity(embedding_model.identity),
        )
    counts = [rows.select(pl.len()).collect().item() for rows in sources.values()]
    progress.start(sum(counts), "texts")
    for name, rows in sources.items():
        known = _open_known_vectors(previous, name, embedding_model)
        batches = read_batches(rows, BATCH_VECTORS, at_least_one=True)
        work = (
            _find_missing_vectors(batch, EMBEDDED[name], known, embedding_model.dimension)
            for batch in batches
        )
        # Other models use all cores, or a server, for the texts of one batch.
        is_static = isinstance(embedding_model, StaticModel) and embedding_model.name == STATIC
        mapped = shards.map(_embed_shard, work, embedding_model.identity) if is_static else work
        for (batch, vectors, missing), part in mapped:
            progress.advance(len(vectors) - len(missing))
            if len(missing) and is_static:
                vectors[missing] = part["vectors"]["vector"].to_numpy()
                progress.advance(len(missing))
            elif len(missing):
                texts = part["texts"]["text"].to_list()
                vectors[missing] = embedding_model.embed(texts, progress.advance)
            yield make_vector_tables(name, batch, vectors)


def select_embedded_rows(
    text_units: pl.LazyFrame, entities: pl.LazyFrame, community_reports: pl.LazyFrame | None
) -> dict[str, pl.LazyFrame]:
    """Return the rows of each vector table without the column `vector`, by table name."""
    if community_reports is None:
        community_reports = TABLES["community_reports"].empty().lazy()
    sources = {
        "text_units": text_units.with_columns(text=READING),
        "entities": entities,
        "community_reports": community_reports,
    }
    return {
        name: sources[table]
        .with_columns(text=pl.concat_str(columns, separator=":"))
        .select(column for column in TABLES[name].columns if column != "vector")
        for name, (table, columns) in EMBEDDED_COLUMNS.items()
    }


def make_vector_tables(
    name: str, rows: pl.DataFrame, vectors: np.ndarray
) -> dict[str, pl.DataFrame]:
    """Add vectors to rows of a vector table; for text units, return a copy of the vectors too."""
    dtype = pl.Array(pl.Float32, vectors.shape[1])
    embedded = rows.with_columns(vector=pl.Series(vectors, dtype=dtype))
    tables = {name: embedded.select(list(TABLES[name].columns))}
    if name == "text_unit_text":
        tables["text_unit_vectors"] = embedded.select(pl.col("vector").arr.to_list())
    return tables


def _find_identity(previous: Previous, name: str) -> tuple[str, int | None] | None:
    """Return the identity of the model that made the last version of a vector table."""
    table = previous.tables.get(name)
    return table.vectors.identity if table and table.vectors else None


class _KnownVectors:
    """The vectors of a table of the last version, found by the hashes of their texts.

    Only hashes are kept in memory: texts and vectors stay in the table.
    """

    def __init__(self, table: "VectorTable | None", embedded: pl.Expr) -> None:
        self._table, self._embedded = table, embedded
        batches = table.batches(["text"]) if table else ()
        parts = [_hash_texts(batch.select(text=embedded)["text"]) for batch in batches]
        first, second = np.concatenate([np.zeros((2, 0), np.uint64), *parts], axis=1)
        # The sort is stable, so that the first of several equal texts is found.
        self._rows = np.argsort(first, kind="stable")
        self._first, self._second = first[self._rows], second[self._rows]

    def find(self, texts: pl.Series) -> tuple[np.ndarray, np.ndarray]:
        """Return (positions of the texts with a known vector, their vectors)."""
        if self._table is None or not len(self._rows):
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        first, second = _hash_texts(texts)
        at = np.searchsorted(self._first, first).clip(max=len(self._rows) - 1)
        positions = np.flatnonzero((self._first[at] == first) & (self._second[at] == second))
        rows, place = np.unique(self._rows[at[positions]], return_inverse=True)
        vectors = self._table.at(rows.tolist(), ["vector"])["vector"].to_numpy()[place]
        # Vectors of zeros stand for failed requests: these texts are embedded again.
        is_known = vectors.any(axis=1)
        return positions[is_known], vectors[is_known]


def _hash_texts(texts: pl.Series) -> np.ndarray:
    """Return two hashes of 64 bits for each text, in two rows; together they are unique."""
    return np.stack([texts.hash(seed).to_numpy() for seed in HASH_SEEDS])


def _open_known_vectors(previous: Previous, name: str, model: EmbeddingModel) -> _KnownVectors:
    """Open the vectors of the last version; there are none if another model created them."""
    table = None
    if _find_identity(previous, name) == model.identity:
        table = previous.open_vectors(name)
    if table is not None and table.dimension != model.dimension:
        table = None
    return _KnownVectors(table, EMBEDDED[name])


def _find_missing_vectors(
    batch: pl.DataFrame, embedded: pl.Expr, known: _KnownVectors, dimension: int
) -> tuple[tuple[pl.DataFrame, np.ndarray, np.ndarray], ShardFrames]:
    """Return (batch, vectors, rows without a vector), and a shard with the texts of these rows."""
    texts = batch.select(text=embedded)
    vectors = np.empty((batch.height, dimension), np.float32)
    rows, found = known.find(texts["text"])
    vectors[rows] = found.reshape(-1, dimension)
    missing = np.setdiff1d(np.arange(batch.height), rows)
    return (batch, vectors, missing), {"texts": texts[missing]}


def _embed_shard(shard: ShardFrames, identity: tuple[str, int | None]) -> ShardFrames:
    """Embed texts with the static model; its identity is part of the name of the result."""
    model = load_static_model()
    vectors = model.embed(shard["texts"]["text"].to_list())
    dtype = pl.Array(pl.Float32, model.dimension)
    return {"vectors": pl.DataFrame({"vector": pl.Series(vectors, dtype=dtype)})}


create_search_tables = step(writes=SEARCH_TABLES, code_version=11)(
    search_tables.create_search_tables
)
