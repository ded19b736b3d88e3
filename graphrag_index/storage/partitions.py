"""Rows of a step that are split into partitions, in memory or in a temporary file.

A step that groups or sorts more rows than memory can hold appends the rows batch by batch, each
with the number of its partition: a hash of its key, or the position of its key in ranges such as
document numbers. Then the step reads one partition at a time. A partition has all rows of its
keys, so the step can group or sort each partition alone, for example as a shard.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from graphrag_nlp.list_columns import Integers

# Rows are written to the file when this many bytes have been appended. It limits memory.
MAX_BUFFERED_BYTES = 16_000_000


class Partitions:
    """Rows in `n` partitions, numbered from 0. They are removed at the end of a `with` block.

    The rows of a partition stay in the order in which they were appended. Few rows stay in memory;
    many rows are in a file. Without a `path`, all rows stay in memory.
    """

    def __init__(self, n: int, schema: Mapping[str, Any], path: Path | None = None) -> None:
        self.n, self.schema = n, pl.Schema(schema)
        self._path = path
        # Rows that are not in the file, with the partition of each row.
        self._buffer: list[tuple[pl.DataFrame, Integers]] = []
        self._n_bytes = 0
        # Offsets and lengths, in bytes, of the pieces of each partition in the file.
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        self._file: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._buffer.clear()
        if self._path and self._file:
            # The rows are not needed any more, so it does not matter if closing cannot write them.
            with suppress(OSError):
                self._file.close()
            self._path.unlink(missing_ok=True)

    def append(self, rows: pl.DataFrame, partition: Integers) -> None:
        """Append rows; `partition` has the number of the partition of each row."""
        self._buffer.append((rows.select(self.schema.names()), partition))
        self._n_bytes += int(rows.estimated_size())
        if self._path and self._n_bytes >= MAX_BUFFERED_BYTES:
            self._write_buffer(self._path)

    def read(self, number: int) -> pl.DataFrame:
        """Return the rows of one partition."""
        rows, bounds = self._sort_buffer()
        return pl.concat([*self._read_pieces(number), rows[bounds[number] : bounds[number + 1]]])

    def __iter__(self) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield the number and the rows of each partition that has rows."""
        for number in range(self.n):
            rows = self.read(number)
            if rows.height:
                yield number, rows

    def _sort_buffer(self) -> tuple[pl.DataFrame, list[int]]:
        """Sort the rows in memory by partition; return them and the first row of each partition."""
        if len(self._buffer) != 1:
            parts = [(self.schema.to_frame(), np.zeros(0, np.int64)), *self._buffer]
            rows, partition = zip(*parts, strict=True)
            self._buffer = [(pl.concat(rows), np.concatenate(partition))]
        [(all_rows, numbers)] = self._buffer
        if np.any(numbers[1:] < numbers[:-1]):
            order = np.argsort(numbers, kind="stable")
            all_rows, numbers = all_rows[order], numbers[order]
            self._buffer = [(all_rows, numbers)]
        return all_rows, np.searchsorted(numbers, np.arange(self.n + 1)).tolist()

    def _write_buffer(self, path: Path) -> None:
        """Append the rows in memory to the file, partition by partition."""
        if self._file is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w+b")
        rows, bounds = self._sort_buffer()
        offset = self._file.seek(0, 2)
        for number, (start, end) in enumerate(pairwise(bounds)):
            if start < end:
                piece = BytesIO()
                rows[start:end].write_ipc_stream(piece, compat_level=pl.CompatLevel.oldest())
                self._file.write(piece.getbuffer())
                self._pieces[number].append((offset, piece.tell()))
                offset += piece.tell()
        self._buffer.clear()
        self._n_bytes = 0

    def _read_pieces(self, number: int) -> Iterator[pl.DataFrame]:
        for offset, length in self._pieces[number]:
            self._file.seek(offset)
            yield pl.read_ipc_stream(self._file.read(length))


def hash_partitions(keys: pl.Series, n: int) -> Integers:
    """Return the partition of each key, 0 to `n` - 1; equal keys are in the same partition."""
    return (keys.hash() % n).to_numpy().astype(np.int64)
