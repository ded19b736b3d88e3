"""Writing of vector tables in LanceDB, and of their indexes."""

import threading
from collections.abc import Collection, Iterable
from concurrent.futures import Future
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.schema.tables import Table
from graphrag_index.storage.table_writer import EqualBatches, check_columns, empty_table
from graphrag_index.storage.vector_store import ROWS_PER_FRAGMENT, connect, convert_os_errors
from graphrag_index.storage.versions import StoredTable, Vectors
from graphrag_nlp.text.normalize import UNSPACED

if TYPE_CHECKING:
    import pyarrow as pa

# Tables with as many rows get a vector index by default. Fewer rows are searched exactly and fast.
MIN_INDEXED_ROWS = 16_384
# Average rows per cell of a vector index.
ROWS_PER_CELL = 1_024
# Training of the vector index: sampled rows per cell, and number of k-means iterations.
TRAINING_ROWS_PER_CELL, TRAINING_ITERATIONS = 64, 10
# Tolerance of the squared length of unit vectors, since some models round to 16 bits.
MAX_LENGTH_ERROR = 1e-2
# Characters at the beginning of a text that are used to detect its script.
SCRIPT_SAMPLE_CHARS = 200


class VectorWriter:
    """Writer of a new version of a LanceDB table, in batches. `vector` is the last column.

    A table with `min_indexed_rows` rows or more gets an approximate vector index. If the digest of
    the rows is one of `kept_digests`, no index is built: the caller keeps its table with these
    rows.
    """

    def __init__(
        self,
        folder: Path,
        table: Table,
        version: int,
        min_indexed_rows: int | None = MIN_INDEXED_ROWS,
        kept_digests: Collection[str] = (),
    ) -> None:
        self.folder, self.definition, self.version = folder, table, version
        self.min_indexed_rows, self.kept_digests = min_indexed_rows, kept_digests
        self.indexing: Future[None] | None = None
        self.rows = self.dimension = 0
        self.unspaced = self.characters = 0
        self.digest = blake2b(digest_size=16)
        self.normalized = True
        self.regrouped = EqualBatches(ROWS_PER_FRAGMENT)
        self.table: Any = None

    def __enter__(self) -> "VectorWriter":
        return self

    def append(self, batch: pl.DataFrame) -> None:
        """Write rows; `vector` must be an `Array` with the dimension of the model."""
        import numpy as np

        if self.indexing is not None:
            raise TableError(
                f"The vector table {self.definition.name} got more rows after the step had begun "
                "another vector table: change the step to write one vector table after the other."
            )
        check_columns(batch, self.definition)
        data = _to_arrow(batch.select(list(self.definition.columns)))
        self._write_rows(self.regrouped.add(data))
        # Keep the schema, which is needed to create a table without rows.
        self.schema = data.schema
        self.rows += batch.height
        vectors = batch["vector"].to_numpy()
        self.dimension = vectors.shape[1]
        squares = np.einsum("ij,ij->i", vectors, vectors)
        self.normalized &= bool(((abs(squares - 1) < MAX_LENGTH_ERROR) | (squares == 0)).all())
        if self.definition.full_text:
            self._count_characters(batch["text"].str.head(SCRIPT_SAMPLE_CHARS))
        for chunk in data.to_batches():
            self.digest.update(chunk.serialize())

    def _count_characters(self, texts: pl.Series) -> None:
        lengths = texts.str.len_chars()
        # Skip ASCII texts, whose words are always separated by spaces.
        others = texts.filter(texts.str.len_bytes() != lengths)
        self.unspaced += int(others.str.count_matches(UNSPACED).sum())
        self.characters += int(lengths.sum())

    def _write_rows(self, parts: "Iterable[pa.Table]") -> None:
        for part in parts:
            with convert_os_errors(self.folder):
                if self.table is None:
                    name = self.definition.name
                    exists = (self.folder / f"{name}.lance").exists()
                    self.table = connect(self.folder).create_table(
                        name, part, mode="overwrite" if exists else "create"
                    )
                else:
                    self.table.add(part)

    def finish(self) -> None:
        """Write the last rows, and start to build the indexes in another thread."""
        if self.indexing is not None:
            return
        empty = empty_table(self.schema)
        self._write_rows(self.regrouped.add(empty, is_last=True))
        if self.table is None:
            self._write_rows([empty])
        # The index is part of the table: with another setting, the table is another one.
        self.digest.update(b"vector index" if self._has_vector_index else b"no vector index")
        self.indexing = Future()
        # The thread is a daemon, so that an interrupted run does not wait for the indexes.
        threading.Thread(target=self._run_indexing, args=(self.indexing,), daemon=True).start()

    def _run_indexing(self, indexing: "Future[None]") -> None:
        try:
            with convert_os_errors(self.folder):
                self._build_indexes()
        # `__exit__` raises the error, which may also be a panic in Rust code.
        except BaseException as error:  # noqa: BLE001
            indexing.set_exception(error)
        else:
            indexing.set_result(None)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error, leave the new version unfinished: no index refers to it.
        if kind is None:
            self.finish()
            assert self.indexing is not None
            self.indexing.result()
            self.stored = StoredTable(
                rows=self.rows,
                digest=self.digest.hexdigest(),
                lance_version=int(self.table.version),
                vectors=Vectors(self.dimension, self.normalized),
            )

    @property
    def _has_vector_index(self) -> bool:
        return self.min_indexed_rows is not None and self.rows >= self.min_indexed_rows

    def _build_indexes(self) -> None:
        from lancedb.index import FTS, IvfSq

        if self.digest.hexdigest() in self.kept_digests:
            return
        if self.rows and self.definition.full_text:
            # Index texts in scripts without spaces by character n-grams instead of words.
            unspaced = self.unspaced * 5 > self.characters
            words = FTS(
                base_tokenizer="ngram" if unspaced else "simple",
                ngram_min_length=2,
                ngram_max_length=3,
                stem=not unspaced,
                remove_stop_words=False,
            )
            self.table.create_index("text", config=words)
        if self._has_vector_index:
            cells = IvfSq(
                distance_type="cosine",
                num_partitions=max(1, self.rows // ROWS_PER_CELL),
                sample_rate=TRAINING_ROWS_PER_CELL,
                max_iterations=TRAINING_ITERATIONS,
            )
            self.table.create_index("vector", config=cells)
        tag, tags = f"v{self.version}", self.table.tags
        set_tag = tags.update if tag in tags.list() else tags.create
        set_tag(tag, self.table.version)


def _to_arrow(batch: pl.DataFrame) -> "pa.Table":
    """Convert a frame to the types of a Lance table: plain strings, vectors of fixed size."""
    import pyarrow as pa

    data = batch.to_arrow(compat_level=pl.CompatLevel.oldest())
    types = [pa.string() if kind == pa.large_string() else kind for kind in data.schema.types]
    return data.cast(pa.schema(list(zip(data.schema.names, types, strict=True))))
