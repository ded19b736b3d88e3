"""Vector tables in LanceDB: searching them and deleting their versions.

LanceDB keeps every version of a table. A run writes a new version, and `index.json` names it.
Readers of the old version are not affected. Tags protect used versions from LanceDB's clean-up.

LanceDB's clean-up cannot delete single versions, and it compacts files. Therefore `delete_versions`
deletes the manifests of unused versions itself, and makes an empty version the newest version.
Then LanceDB's clean-up removes the files that no version refers to.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.storage.versions import manifest_name

if TYPE_CHECKING:
    import numpy as np

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
