"""Random access to the rows of a memory-mapped Arrow file."""

import mmap
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.errors import TableError

Integers = npt.NDArray[np.integer[Any]]
_SearchSide = Literal["left", "right"]
_SEARCH_SIDES: tuple[_SearchSide, _SearchSide] = ("left", "right")


class MappedTable:
    """A memory-mapped table. The time of a read depends on its rows, not on the file size.

    Row numbers start with 0. `bounds` and `find_row` search in ascending columns. Threads may share
    a table, since only its caches change. All batches except the last have the same number of
    rows.
    """

    def __init__(self, schema: Any, batches: list[Any]) -> None:
        self._schema, self._batches = schema, batches
        # Number of the first row of each batch; the last item is the number of all rows.
        self._starts = [0]
        for batch in batches:
            self._starts.append(self._starts[-1] + batch.num_rows)
        self._columns = cache(lambda name: [batch.column(name) for batch in batches])
        self._numbers = cache(lambda name: [_as_array(part) for part in self._columns(name)])
        self._ends = cache(lambda name: np.array([part[-1] for part in self._numbers(name)]))

    @classmethod
    def open(cls, path: Path) -> "MappedTable":
        """Open a file without loading it; raise TableError if it is damaged or missing."""
        import pyarrow as pa

        try:
            with path.open("rb") as opened:
                mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            # The description of each batch lies beside it: do not read ahead into the batch.
            if sys.platform != "win32":
                mapped.madvise(mmap.MADV_RANDOM)
            # Not `pa.memory_map`, which tells the system to read all that it maps. Arrow reads a
            # buffer in this thread; a thread of its own would need the interpreter to let go of a
            # file in Python, and abort a process that is just ending.
            file = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped)))
            batches = [file.get_batch(i) for i in range(file.num_record_batches)]
            if sys.platform != "win32":
                mapped.madvise(mmap.MADV_NORMAL)
        # An empty or a damaged file is a ValueError.
        except (ValueError, OSError) as error:
            raise TableError(
                f"{path} cannot be read: run `graphrag-index run` to write it again."
            ) from error
        return cls(file.schema, batches)

    @classmethod
    def of(cls, rows: pl.DataFrame) -> "MappedTable":
        """Create a table with one batch from rows in memory."""
        data = rows.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
        return cls(data.schema, [batch for batch in data.to_batches() if batch.num_rows])

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def column_names(self) -> list[str]:
        return list(self._schema.names)

    def rows(self, numbers: Iterable[int] | Integers, *columns: str) -> pl.DataFrame:
        """Return rows in the order of `numbers`; without `columns`, return all columns."""
        import pyarrow as pa

        wanted = np.fromiter(numbers, np.int64)
        schema = pa.schema([self._schema.field(name) for name in columns or self._schema.names])
        if not len(wanted):
            return pl.DataFrame(schema.empty_table())
        lowest, highest = int(wanted.min()), int(wanted.max())
        if lowest < 0 or highest >= len(self):
            raise IndexError(
                f"Rows {wanted.tolist()} were requested, but there are {len(self)} rows."
            )
        first, last = (bisect_right(self._starts, number) - 1 for number in (lowest, highest))
        if first == last:
            return pl.DataFrame(self._take(schema, first, wanted))
        order = np.argsort(wanted, kind="stable")
        ascending = wanted[order]
        bounds = np.searchsorted(ascending, self._starts[first : last + 2]).tolist()
        parts = [
            self._take(schema, first + at, ascending[start:stop])
            for at, (start, stop) in enumerate(pairwise(bounds))
            if start < stop
        ]
        return pl.DataFrame(pa.concat_tables(parts))[np.argsort(order)]

    def _take(self, schema: Any, batch: int, numbers: Integers) -> Any:
        import pyarrow as pa

        rows = pa.array(numbers - self._starts[batch])
        taken = self._batches[batch].select(schema.names).take(rows)
        return pa.Table.from_batches([taken], schema)

    def columns(self, *names: str) -> pl.DataFrame:
        """Return columns of all rows."""
        import pyarrow as pa

        schema = pa.schema([self._schema.field(name) for name in names])
        parts = [batch.select(list(names)) for batch in self._batches]
        return pl.DataFrame(pa.Table.from_batches(parts, schema))

    def slice(self, column: str, first: int, stop: int) -> npt.NDArray[Any]:
        """Return the values of a column of numbers in the rows from `first` to `stop`."""
        parts = self._numbers(column)
        slices = [parts[at][start:end] for at, start, end in self._split_by_batch(first, stop)]
        if len(slices) == 1:
            return slices[0]
        return np.concatenate(slices) if slices else np.zeros(0, np.int32)

    def flags(self, column: str, first: int, stop: int) -> npt.NDArray[np.bool_]:
        """Return the values of a column of booleans in the rows from `first` to `stop`."""
        parts = [np.zeros(0, np.bool_)]
        for at, start, end in self._split_by_batch(first, stop):
            values = self._columns(column)[at]
            bits = np.frombuffer(values.buffers()[1], np.uint8)
            start, end = start + values.offset, end + values.offset
            read = np.unpackbits(bits[start // 8 : (end + 7) // 8], bitorder="little")
            parts.append(read[start % 8 : start % 8 + end - start].view(np.bool_))
        return parts[1] if len(parts) == 2 else np.concatenate(parts)

    def find_rows(self, column: str, value: int) -> range:
        """Return the range of rows with a value in an ascending column of numbers."""
        # A model may cite a number beyond 32 bits, which no row has.
        if not -(2**31) <= value < 2**31:
            return range(0)
        # Search like `bounds`, but for one value, which is faster without arrays.
        number, rows = np.int32(value), []
        for side in _SEARCH_SIDES:
            part = int(self._ends(column).searchsorted(number, side))
            rows.append(self._starts[part])
            if part < len(self._batches):
                rows[-1] += int(self._numbers(column)[part].searchsorted(number, side))
        return range(*rows)

    def bounds(self, column: str, values: Integers) -> tuple[Integers, Integers]:
        """Return (first row, row after the last row) of each value in an ascending column."""
        first, stop = (self._search_rows(column, values, side) for side in _SEARCH_SIDES)
        return first, stop

    def _search_rows(self, column: str, values: Integers, side: _SearchSide) -> Integers:
        places = np.full(len(values), len(self), np.int64)
        # Find the first batch whose last value is not less than the value.
        parts = np.searchsorted(self._ends(column), values, side)
        for part in np.unique(parts):
            if part < len(self._batches):
                here = parts == part
                found = np.searchsorted(self._numbers(column)[part], values[here], side)
                places[here] = found + self._starts[part]
        return places

    def find_row(self, column: str, text: str, first: int = 0) -> int:
        """Return the first row, from row `first` on, whose text is not less than `text`.

        The texts of the column must be in ascending order of code points.
        """
        parts = self._columns(column)
        at = first // self._starts[1] if first < len(self) else len(parts)
        at = bisect_left(parts, text, lo=at, key=lambda part: part[-1].as_py())
        if at == len(parts):
            return len(self)
        start = self._starts[at]
        low = max(0, first - start)
        return start + bisect_left(parts[at], text, lo=low, key=lambda value: value.as_py())

    def text(self, column: str, row: int) -> str:
        part, place = divmod(row, self._starts[1])
        found: str = self._columns(column)[part][place].as_py()
        return found

    def texts(self, column: str, first: int, stop: int) -> list[str]:
        return [self.text(column, row) for row in range(first, min(stop, len(self)))]

    def numbers(self, column: str, row: int, max_values: int | None = None) -> Integers:
        """Return the list of a row, or its first `max_values` values, without copying them."""
        part, place = divmod(row, self._starts[1])
        lists = self._columns(column)[part]
        first, stop = lists.offsets[place].as_py(), lists.offsets[place + 1].as_py()
        if max_values is not None:
            stop = min(stop, first + max_values)
        # Read no values for an empty list: a batch of only empty lists has no buffer of values.
        if first == stop:
            return np.zeros(0, np.int32)
        return _as_array(lists.values.slice(first, stop - first))

    def lists(self, column: str, rows: Integers) -> tuple[Integers, Integers]:
        """Return the concatenated lists of some rows, and the length of each list."""
        first, lengths = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        taken = []
        parts = rows // self._starts[1] if len(rows) else rows
        for part in np.unique(parts).tolist():
            here, lists = parts == part, self._columns(column)[part]
            offsets, places = _as_array(lists.offsets), rows[here] - self._starts[part]
            first[here], lengths[here] = offsets[places], offsets[places + 1] - offsets[places]
            taken.append((here, _as_array(lists.values)))
        found = np.zeros(int(lengths.sum()), taken[0][1].dtype if taken else np.int32)
        # Position of each value: the start of its list plus the position inside the list.
        within = np.arange(len(found)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        places = np.repeat(first, lengths) + within
        for here, values in taken:
            inside = np.repeat(here, lengths)
            found[inside] = values[places[inside]]
        return found, lengths

    def matrix(self, column: str, rows: Iterable[int] | Integers) -> npt.NDArray[Any]:
        """Return the lists of some rows, all of equal length, as the rows of a matrix."""
        wanted = np.array(list(rows), np.int64)
        if not len(wanted):
            return np.zeros((0, 0), np.float32)
        part_of = wanted // self._starts[1]
        lists = {at: self._columns(column)[at] for at in np.unique(part_of).tolist()}
        parts = {at: _as_array(part.values).reshape(len(part), -1) for at, part in lists.items()}
        first = next(iter(parts.values()))
        found = np.empty((len(wanted), first.shape[1]), first.dtype)
        for at, values in parts.items():
            here = part_of == at
            found[here] = values[wanted[here] - self._starts[at]]
        return found

    def _split_by_batch(self, first: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield (batch, first row in the batch, row after the last) for a range of rows."""
        while first < stop:
            part = first // self._starts[1]
            start, end = self._starts[part], self._starts[part + 1]
            yield part, first - start, min(stop, end) - start
            first = end


def _as_array(column: Any) -> Integers:
    """Return a column of numbers without nulls as an array, without copying it."""
    name = str(column.type)
    dtype = np.dtype({"float": "float32", "double": "float64"}.get(name, name))
    start = column.offset * dtype.itemsize
    return np.frombuffer(column.buffers()[1], dtype, len(column), start)
