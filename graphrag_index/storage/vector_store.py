"""Vector tables in LanceDB: writing and searching them, and deleting their versions.

LanceDB keeps every version of a table. A run writes a new version, and `index.json` names it.
Readers of the old version are not affected. Tags protect used versions from LanceDB's clean-up.

LanceDB's clean-up cannot delete single versions, and it compacts files. Therefore `delete_versions`
deletes the manifests of unused versions itself, and makes an empty version the newest version.
Then LanceDB's clean-up removes the files that no version refers to.
"""

import os
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.schema.tables import Table
from graphrag_index.storage.table_writer import EqualBatches, check_columns, empty_table
from graphrag_index.storage.versions import StoredTable, Vectors, manifest_name
from graphrag_nlp.text.normalize import UNSPACED

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

# Cells of a vector index that a search reads. benchmarks/RESULTS.md has the recall.
CELLS_PER_SEARCH = 160
# Limits of LanceDB's caches of indexes and metadata for all tables: bytes, and shares (0 to 1) of
# the machine's memory. The smaller limit applies. Searches read again what the caches cannot hold.
MAX_INDEX_CACHE, MAX_METADATA_CACHE = 6 << 30, 1 << 30
INDEX_CACHE_SHARE, METADATA_CACHE_SHARE = 1 / 4, 1 / 16
# Assumed memory of the machine on Windows, in bytes.
DEFAULT_MEMORY_BYTES = 8 << 30
# Vectors of a table up to this number of bytes are searched in memory. LanceDB takes some 4 ms to
# plan a search, and the multiplication less than 1 ms.
MAX_BYTES_IN_MEMORY = 8 << 20
# Rows of each fragment except the last. A flat search reads the fragments in parallel.
ROWS_PER_FRAGMENT = 8_192
# The low bits of a row id are the row inside the fragment; the bits above are the fragment.
_ROW_OFFSET_BITS = 32
ROW_NUMBER = "human_readable_id"


class VectorTable:
    """A version of a LanceDB table, opened for reading."""

    def __init__(self, table: Any) -> None:
        self.table = table

    @classmethod
    def open(cls, folder: Path, name: str, version: int | None) -> "VectorTable":
        """Open a version of a table; raise TableError if the version does not exist."""
        return cls(_open_table(folder, name, version))

    @property
    def dimension(self) -> int:
        return int(self.table.schema.field("vector").type.list_size)

    def __len__(self) -> int:
        return self._n_rows

    @cached_property
    def _n_rows(self) -> int:
        return int(self.table.count_rows())

    def lazy(self) -> pl.LazyFrame:
        return pl.DataFrame(self.table.to_arrow()).lazy()

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield all rows in the order of their numbers, some thousands at a time."""
        for start in range(0, len(self), ROWS_PER_FRAGMENT):
            yield self.at(range(start, min(start + ROWS_PER_FRAGMENT, len(self))), columns)

    def nearest(
        self, vector: "np.ndarray", top_k: int, columns: Sequence[str], where: str | None = None
    ) -> pl.DataFrame:
        """Return the rows nearest to a vector, best first; `similarity` is their cosine.

        With a vector index, the cosine is exact to about 0.005. Vectors of zeros are left out.
        """
        if where is None and self._in_memory is not None:
            return self._nearest_in_memory(vector, top_k, columns)
        query = self.table.search(vector).distance_type("cosine").minimum_nprobes(CELLS_PER_SEARCH)
        # The nearest cells may have few rows that meet the condition; 0 reads further cells then.
        query = query.maximum_nprobes(0 if where else CELLS_PER_SEARCH)
        found = self._run_search(query, top_k, columns, where, "_distance")
        cosine = 1 - pl.col("_distance") / self._distance_factor
        return _sort_best_first(found, columns, similarity=cosine)

    @cached_property
    def _in_memory(self) -> "tuple[pl.DataFrame, np.ndarray] | None":
        """The rows of a small table and their vectors, scaled to the length 1; else None."""
        import numpy as np

        if not 0 < len(self) * self.dimension * 4 <= MAX_BYTES_IN_MEMORY:
            return None
        rows = self.lazy().drop("text", strict=False).collect()
        vectors = rows["vector"].to_numpy().astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        found = np.flatnonzero(lengths)
        return rows.drop("vector")[found], vectors[found] / lengths[found, None]

    def _nearest_in_memory(
        self, vector: "np.ndarray", top_k: int, columns: Sequence[str]
    ) -> pl.DataFrame:
        import numpy as np

        assert self._in_memory is not None
        rows, vectors = self._in_memory
        length = float(np.sqrt(vector @ vector))
        if not length:
            return rows.clear().select(*columns, similarity=pl.lit(0.0, pl.Float32))
        # Unlike a product of matrices, einsum computes equal cosines for equal vectors.
        cosines = np.einsum("ij,j->i", vectors, vector.astype(np.float32) / length)
        best = np.argsort(-cosines, kind="stable")[:top_k]
        found = rows[best].with_columns(similarity=pl.Series(cosines[best]))
        return _sort_best_first(found, columns, similarity=pl.col("similarity"))

    @cached_property
    def _distance_factor(self) -> int:
        """By how much the distances of the vector index exceed the cosine distance.

        LanceDB 0.40 returns twice the distance of vectors with one byte per number (issue 3530 of
        lancedb). `refine_factor` would correct this, but reads a file for almost every row.
        """
        kinds = {index.index_type for index in self.table.list_indices()}
        return 2 if "IvfSq" in kinds else 1

    def find_matching_rows(
        self, words: str, top_k: int, columns: Sequence[str], where: str | None = None
    ) -> pl.DataFrame:
        """Return the rows whose text matches the words best; `score` is their BM25 score."""
        from lancedb.query import MatchQuery

        if not self._n_rows or not words.strip():
            return pl.DataFrame(schema=[*columns, "score"])
        query = self.table.search(MatchQuery(words, "text"), query_type="fts")
        found = self._run_search(query, top_k, columns, where, "_score")
        return _sort_best_first(found, columns, score=pl.col("_score"))

    def _run_search(
        self, query: Any, top_k: int, columns: Sequence[str], where: str | None, score: str
    ) -> pl.DataFrame:
        """Run a search; if only row numbers are wanted, compute them from row ids (faster)."""
        query = query.limit(top_k)
        if where:
            query = query.where(where, prefilter=True)
        first = self._first_fragment if list(columns) == [ROW_NUMBER] else None
        if first is None:
            return pl.DataFrame(query.select([*columns, score]).to_arrow())
        found = pl.DataFrame(query.with_row_id(True).select(["_rowid", score]).to_arrow())
        row = pl.col("_rowid").cast(pl.Int64)
        fragment, place = row // (1 << _ROW_OFFSET_BITS) - first, row % (1 << _ROW_OFFSET_BITS)
        return found.select((fragment * ROWS_PER_FRAGMENT + place).alias(ROW_NUMBER), score)

    @cached_property
    def _first_fragment(self) -> int | None:
        """The number of the first fragment; None if row numbers cannot be computed from row ids.

        Row numbers can be computed if fragments are numbered in order and all except the last are
        full. Lance does not guarantee this, so it is checked with the first row of each fragment.
        """
        n_rows = len(self)
        if not n_rows or ROW_NUMBER not in self.table.schema.names:
            return None
        places = sorted({*range(0, n_rows, ROWS_PER_FRAGMENT), n_rows - 1})
        rows = pl.DataFrame(
            self.table.take_offsets(places).with_row_id().select(["_rowid", ROW_NUMBER]).to_arrow()
        )
        first = int(rows["_rowid"][0]) >> _ROW_OFFSET_BITS
        ids = [
            ((first + place // ROWS_PER_FRAGMENT) << _ROW_OFFSET_BITS) + place % ROWS_PER_FRAGMENT
            for place in places
        ]
        is_so = rows["_rowid"].to_list() == ids and rows[ROW_NUMBER].to_list() == places
        return first if is_so else None

    def at(self, numbers: Sequence[int], columns: Sequence[str]) -> pl.DataFrame:
        """Return rows by their numbers, which must be ascending and without duplicates."""
        if not numbers:
            return pl.DataFrame(self.table.schema.empty_table().select(list(columns)))
        return pl.DataFrame(self.table.take_offsets(list(numbers)).select(list(columns)).to_arrow())


def _sort_best_first(found: pl.DataFrame, columns: Sequence[str], **score: pl.Expr) -> pl.DataFrame:
    return found.select(*columns, **score).sort(
        *score, columns[0], descending=[True, False], maintain_order=True
    )


@contextmanager
def convert_os_errors(folder: Path) -> Iterator[None]:
    """Convert a RuntimeError of Lance to an OSError if it reports an error of the system."""
    try:
        yield
    except RuntimeError as error:
        found = re.search(r"\(os error (\d+)\)", str(error))
        if found is None:
            raise
        code = int(found[1])
        raise OSError(code, os.strerror(code), str(folder)) from error


def connect(folder: Path) -> Any:
    import lancedb

    return lancedb.connect(str(folder), session=_shared_session())


@cache
def _shared_session() -> Any:
    """Return the LanceDB session with the caches that all tables of this process share."""
    import lancedb

    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        memory = DEFAULT_MEMORY_BYTES
    return lancedb.Session(*cache_limits(memory))


def cache_limits(memory: int) -> tuple[int, int]:
    """Return (bytes for cached indexes, bytes for cached metadata); `memory` is in bytes."""
    return (
        min(MAX_INDEX_CACHE, int(memory * INDEX_CACHE_SHARE)),
        min(MAX_METADATA_CACHE, int(memory * METADATA_CACHE_SHARE)),
    )


# Age above which LanceDB's clean-up deletes a version: no version becomes so old.
_MAX_VERSION_AGE = timedelta(days=36_500)


def delete_versions(folder: Path, name: str, keep: Iterable[int], newest: int) -> None:
    """Delete all versions of a table, with their files, except the versions in `keep`.

    `newest` is one of the versions in `keep`. A program that opens the table without a version
    gets `newest`. Raises TableError, and deletes nothing, if the table cannot be opened.
    """
    kept = set(keep)
    table = _open_table(folder, name)
    with convert_os_errors(folder):
        tags = table.tags.list()
        for tag, about in tags.items():
            if about["version"] not in kept:
                table.tags.delete(tag)
        # Tag the kept versions: tags protect them from LanceDB's clean-up.
        for version in kept - {about["version"] for about in tags.values()}:
            table.tags.create(f"kept-{version}", version)
        empty = connect(folder).create_table(name, table.schema.empty_table(), mode="overwrite")
        manifests = folder / f"{name}.lance" / "_versions"
        stay = {manifest_name(version) for version in (*kept, int(empty.version))}
        for path in manifests.glob("*.manifest"):
            if path.name not in stay:
                path.unlink()
        empty.optimize(cleanup_older_than=_MAX_VERSION_AGE, delete_unverified=True)
        empty.restore(newest)
        (manifests / manifest_name(int(empty.version) - 1)).unlink(missing_ok=True)


def make_versions_newest(folder: Path, versions: Mapping[str, int]) -> None:
    """Make the versions of tables the newest, for programs that open the newest version."""
    for name, version in versions.items():
        table = _open_table(folder, name)
        with convert_os_errors(folder):
            table.restore(version)


def _open_table(folder: Path, name: str, version: int | None = None) -> Any:
    try:
        table = connect(folder).open_table(name)
        if version is not None:
            table.checkout(version)
    except (ValueError, RuntimeError, OSError) as error:
        of_version = "" if version is None else f", version {version},"
        raise TableError(
            f"The vectors {name}{of_version} cannot be opened in {folder}: "
            "run `graphrag-index run` to write them again."
        ) from error
    return table


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
