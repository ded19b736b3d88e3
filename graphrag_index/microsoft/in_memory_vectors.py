"""Exhaustive search of vectors and texts in memory, for an index of Microsoft's."""

import re
import threading
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from graphrag_index.microsoft.read_positions import first_rows
from graphrag_index.storage.mapped_table import MappedTable
from graphrag_index.text.normalize import UNSPACED, stem

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_index.microsoft.read_files import MicrosoftVectors

# The usual parameters of BM25.
_SATURATION, _LENGTH_SHARE = 1.2, 0.75
# Shorter stems match the whole word only, longer ones with any short ending.
_MIN_STEM = 4
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(f"{UNSPACED}+")


class InMemoryVectors:
    """Rows with their texts and vectors, with the searches of `VectorTable`.

    Vectors are normalized to length 1. A row without a vector has zeros, and is found by its words
    alone; without `vectors` all rows are.
    """

    def __init__(
        self,
        rows: pl.LazyFrame,
        ids: pl.LazyFrame,
        vectors: "MicrosoftVectors | None",
        width: int,
        place: str,
    ) -> None:
        self._lazy, self._ids, self._vectors = rows, ids, vectors
        self._width, self._place = width, place
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return self.frame.height

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return self._width

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The rows without their vectors."""
        with self._lock:
            return self._lazy.collect()

    @cached_property
    def matrix(self) -> "npt.NDArray[np.float32]":
        """The vectors as rows, of length 1 or 0."""
        import numpy as np

        with self._lock:
            ids = self._ids.collect()["id"]
            found = np.zeros((len(ids), self._width), np.float32)
            if self._vectors is None:
                return found
            last = np.full(len(ids), -1, np.int64)
            for batch in self._vectors.batches():
                at = first_rows(batch["id"], ids)
                known = at >= 0
                found[at[known]] = batch["vector"].to_numpy()[known]
                last[at[known]] = at[known]
            # The second row of an id has the vector of the first.
            again = first_rows(ids, ids)
            found[last < 0] = found[again[last < 0]]
            np.nan_to_num(found, copy=False)
            lengths = np.linalg.norm(found, axis=1, keepdims=True)
            found /= np.where(lengths > 0, lengths, 1)
            return found

    @cached_property
    def _has_vector(self) -> pl.Series:
        return pl.Series(self.matrix.any(axis=1), dtype=pl.Boolean)

    def as_mapped(self) -> MappedTable:
        """Return the vectors as the mapped table `text_unit_vectors`."""
        values = pl.Series("vector", self.matrix, pl.Array(pl.Float32, self._width))
        return MappedTable.of(values.to_frame())

    def nearest(
        self, vector: "np.ndarray", top_k: int, columns: Sequence[str], where: str | None = None
    ) -> pl.DataFrame:
        """Return the rows nearest to a vector, best first, with their cosine as `similarity`."""
        import numpy as np

        cosines = self.matrix @ np.asarray(vector, np.float32)
        found = self.frame.select(*columns, similarity=pl.Series(cosines, dtype=pl.Float32)).filter(
            self._has_vector & self._matches(where)
        )
        best = ["similarity", columns[0]]
        return found.sort(best, descending=[True, False], maintain_order=True).head(top_k)

    def matching(
        self,
        words: str,
        top_k: int,
        columns: Sequence[str],
        column: str = "text",
        where: str | None = None,
    ) -> pl.DataFrame:
        """Return the rows whose text matches the words best (BM25), with their `score`."""
        patterns = list(dict.fromkeys(_patterns(words)))
        rows = self.frame
        if not patterns or not rows.height:
            return pl.DataFrame(schema=[*columns, "score"])
        text = pl.col(column)
        counts = rows.select(
            text.str.count_matches(pattern).alias(str(n)) for n, pattern in enumerate(patterns)
        )
        length = text.str.len_bytes().cast(pl.Float64)
        norm = rows.select(1 - _LENGTH_SHARE + _LENGTH_SHARE * length / length.mean()).to_series()
        score = pl.Series([0.0] * rows.height)
        for count in counts.iter_columns():
            n_holding = int((count > 0).sum())
            rarity = _rarity(n_holding, rows.height)
            share = count * (_SATURATION + 1) / (count + _SATURATION * norm)
            score = score + rarity * share
        found = rows.select(*columns, score=score).filter(
            (pl.col("score") > 0) & self._matches(where)
        )
        best = ["score", columns[0]]
        return found.sort(best, descending=[True, False], maintain_order=True).head(top_k)

    def at(self, numbers: Sequence[int], columns: Sequence[str]) -> pl.DataFrame:
        """Fetch rows by number."""
        wanted = list(numbers)
        found = self.frame[wanted]
        if "vector" in columns:
            values = pl.Series("vector", self.matrix[wanted], pl.Array(pl.Float32, self._width))
            found = found.with_columns(values)
        return found.select(columns)

    def rows(self, ids: Iterable[str], columns: Sequence[str]) -> pl.DataFrame:
        """Fetch rows by id, in the order of the table."""
        wanted = pl.Series(list(ids), dtype=pl.String)
        return self.frame.filter(pl.col("id").is_in(wanted.implode())).select(columns)

    def _matches(self, where: str | None) -> pl.Series:
        """Tell which rows match a condition in SQL."""
        rows = self.frame
        if where is None:
            return pl.Series([True]).new_from_index(0, rows.height)
        return rows.select(pl.sql_expr(where)).to_series()


def _patterns(words: str) -> list[str]:
    """Return regular expressions for the words of a question, with any ending.

    In scripts without spaces, each pair of characters is one.
    """
    found = []
    for word in _WORD.findall(words.lower()):
        for run in _UNSPACED.findall(word):
            found += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
        for part in _UNSPACED.sub(" ", word).split():
            # The stem of story and stories is stori.
            root = stem(part).removesuffix("i")
            if len(root) >= _MIN_STEM:
                found.append(rf"(?i)\b{re.escape(root)}\w{{0,4}}\b")
            elif len(part) > 1 or part.isdigit():
                found.append(rf"(?i)\b{re.escape(part)}\b")
    return found


def _rarity(n_holding: int, n_rows: int) -> float:
    import math

    return math.log(1 + (n_rows - n_holding + 0.5) / (n_holding + 0.5))
