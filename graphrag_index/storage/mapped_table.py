"""Random access to the rows of a memory-mapped Arrow file."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from graphrag_index.errors import TableError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.integer[Any]]


class MappedTable:
    """A memory-mapped table, of which reads cost as much as their rows, not as the file.

    Row numbers start with 0. `bounds` and `place` search ascending columns. Threads may share a
    table: only its caches change.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        try:
            file = pa.ipc.open_file(pa.memory_map(str(path)))
            batches = [file.get_batch(i) for i in range(file.num_record_batches)]
        except (pa.ArrowInvalid, OSError) as error:
            raise TableError(
                f"{path} cannot be read: run `graphrag-index run` to write it again."
            ) from error
        self._hold(file.schema, batches)

    @classmethod
    def of(cls, rows: pl.DataFrame) -> "MappedTable":
        """Create a table from rows in memory, as one batch."""
        data = rows.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
        table = cls.__new__(cls)
        table._hold(data.schema, [batch for batch in data.to_batches() if batch.num_rows])
        return table

    def _hold(self, schema: Any, batches: list[Any]) -> None:
        self._schema, self._batches = schema, batches
        # The first row of each batch, and the number of rows.
        self._starts = [0]
        for batch in self._batches:
            self._starts.append(self._starts[-1] + batch.num_rows)
        self._numbers: Callable[[str], Sequence[Integers]] = lru_cache(maxsize=None)(
            self._number_parts
        )
        self._ends: Callable[[str], Integers] = lru_cache(maxsize=None)(self._last_values)
        self._texts: Callable[[str], Sequence[_Texts]] = lru_cache(maxsize=None)(
            lambda column: [_Texts(batch.column(column)) for batch in self._batches]
        )

    def __len__(self) -> int:
        return self._starts[-1]

    @cached_property
    def columns(self) -> list[str]:
        return list(self._schema.names)

    def rows(self, numbers: "Iterable[int] | Integers", *columns: str) -> pl.DataFrame:
        """Return rows by number, in the given order; all columns if none is named."""
        import numpy as np
        import pyarrow as pa

        wanted = np.array(list(numbers), np.int64)
        names = list(columns) or self.columns
        order = np.argsort(wanted, kind="stable")
        ascending = wanted[order]
        if len(wanted) and not 0 <= ascending[0] <= ascending[-1] < len(self):
            raise IndexError(f"There are {len(self)} rows, and {wanted.tolist()} were asked for.")
        parts = []
        for part, first, last in self._split(ascending):
            taken = pl.Series(ascending[first:last] - self._starts[part]).to_arrow()
            parts.append(self._batches[part].select(names).take(taken))
        schema = pa.schema([self._schema.field(name) for name in names])
        found = pl.DataFrame(pa.Table.from_batches(parts, schema))
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return found[back] if len(wanted) else found

    def slice(self, column: str, first: int, stop: int) -> "npt.NDArray[Any]":
        """Return the values of a column of numbers in the rows from `first` to `stop`."""
        import numpy as np

        parts = self._numbers(column)
        if not parts or first >= stop:
            return np.zeros(0, np.int32)
        at = self._part_of(first)
        pieces = []
        while first < stop:
            start = self._starts[at]
            pieces.append(parts[at][first - start : stop - start])
            at, first = at + 1, self._starts[at + 1]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def flags(self, column: str, first: int, stop: int) -> "npt.NDArray[np.bool_]":
        """Return the values of a column of booleans in the rows from `first` to `stop`."""
        import numpy as np

        pieces = []
        while first < stop:
            at = self._part_of(first)
            start, end = self._starts[at : at + 2]
            column_part = self._batches[at].column(column)
            bits = np.frombuffer(column_part.buffers()[1], np.uint8)
            place = first - start + column_part.offset
            n_rows = min(stop, end) - first
            read = np.unpackbits(bits[place // 8 : (place + n_rows + 7) // 8], bitorder="little")
            pieces.append(read[place % 8 : place % 8 + n_rows].view(np.bool_))
            first = end
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.bool_)

    def range_of(self, column: str, value: int) -> range:
        """Return the rows of a value; the column of numbers is ascending."""
        # Columns are 32-bit, but a model may cite any number.
        if not -(2**31) <= value < 2**31:
            return range(0)
        ends, parts, at = self._ends(column), self._numbers(column), []
        # Like `bounds` for one value, without the cost of arrays.
        number = ends.dtype.type(value) if len(ends) else 0
        sides: tuple[Literal["left", "right"], ...] = ("left", "right")
        for side in sides:
            part = int(ends.searchsorted(number, side))
            if part == len(parts):
                at.append(len(self))
            else:
                at.append(self._starts[part] + int(parts[part].searchsorted(number, side)))
        return range(*at)

    def bounds(self, column: str, values: "Integers") -> "tuple[Integers, Integers]":
        """Return the first row of each value and the row after its last, in an ascending column."""
        return self._places(column, values, "left"), self._places(column, values, "right")

    def _places(self, column: str, values: "Integers", side: Any) -> "Integers":
        import numpy as np

        places = np.full(len(values), len(self), np.int64)
        # The first batch whose last value is not less.
        parts = np.searchsorted(self._ends(column), values, side)
        for part in np.unique(parts):
            if part < len(self._batches):
                here = parts == part
                found = np.searchsorted(self._numbers(column)[part], values[here], side)
                places[here] = found + self._starts[part]
        return places

    def place(self, column: str, text: str, first: int = 0) -> int:
        """Return the first row, from `first` on, whose text is not less than this one.

        The column is in ascending order of code points.
        """
        wanted = text.encode()
        parts = self._texts(column)
        at = self._part_of(first) if first < len(self) else len(parts)
        at = bisect_left(range(len(parts)), wanted, lo=at, key=lambda i: parts[i][-1])
        if at == len(parts):
            return len(self)
        start = self._starts[at]
        return start + bisect_left(parts[at], wanted, lo=max(0, first - start))

    def text(self, column: str, row: int) -> str:
        at = self._part_of(row)
        found: bytes = self._texts(column)[at][row - self._starts[at]]
        return found.decode()

    def texts(self, column: str, first: int, stop: int) -> list[str]:
        return [self.text(column, row) for row in range(first, min(stop, len(self)))]

    def numbers(self, column: str, row: int, max_values: int | None = None) -> "Integers":
        """Return the list of a row, or its first `max_values`, without a copy."""
        import numpy as np

        at = self._part_of(row)
        lists = self._batches[at].column(column)
        place = row - self._starts[at]
        first, stop = lists.offsets[place].as_py(), lists.offsets[place + 1].as_py()
        if max_values is not None:
            stop = min(stop, first + max_values)
        # A batch of empty lists has no buffer of values.
        if first == stop:
            return np.zeros(0, np.int32)
        return _zero_copy(lists.values.slice(first, stop - first))

    def lists(
        self, column: str, rows: "Iterable[int] | Integers"
    ) -> "tuple[Integers, npt.NDArray[np.int64]]":
        """Return the concatenated lists of some rows, and the length of each."""
        import numpy as np

        wanted = np.array(list(rows) if not isinstance(rows, np.ndarray) else rows, np.int64)
        first, lengths = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.int64)
        parts = wanted // self._starts[1] if len(wanted) else wanted
        taken: list[tuple[npt.NDArray[np.bool_], Integers]] = []
        for part in np.unique(parts).tolist():
            here, lists = parts == part, self._batches[part].column(column)
            offsets, places = _zero_copy(lists.offsets), wanted[parts == part] - self._starts[part]
            first[here], lengths[here] = offsets[places], offsets[places + 1] - offsets[places]
            taken.append((here, _zero_copy(lists.values)))
        found = np.zeros(int(lengths.sum()), taken[0][1].dtype if taken else np.int32)
        # The position of each value: the start of its list plus that inside the list.
        within = np.arange(len(found)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        places = np.repeat(first, lengths) + within
        for here, values in taken:
            inside = np.repeat(here, lengths)
            found[inside] = values[places[inside]]
        return found, lengths

    def matrix(self, column: str, rows: "Iterable[int] | Integers") -> "npt.NDArray[Any]":
        """Return lists of equal length as the rows of a matrix."""
        import numpy as np

        wanted = np.array(list(rows), np.int64)
        if not len(wanted):
            return np.zeros((0, 0), np.float32)
        parts = wanted // self._starts[1]
        found: npt.NDArray[Any] | None = None
        for part in np.unique(parts).tolist():
            here = parts == part
            lists = self._batches[part].column(column)
            values = _zero_copy(lists.values).reshape(len(lists), -1)
            if found is None:
                found = np.empty((len(wanted), values.shape[1]), values.dtype)
            found[here] = values[wanted[here] - self._starts[part]]
        assert found is not None
        return found

    def _part_of(self, row: int) -> int:
        # All batches but the last have the same size.
        return row // self._starts[1] if len(self) else 0

    def _split(self, ascending: "Integers") -> "Iterable[tuple[int, int, int]]":
        """Yield the batches of ascending row numbers, with the start and end of their parts."""
        import numpy as np

        places = np.searchsorted(ascending, self._starts)
        for part, (first, last) in enumerate(pairwise(places)):
            if first < last:
                yield part, int(first), int(last)

    def _number_parts(self, column: str) -> "Sequence[Integers]":
        return [_zero_copy(batch.column(column)) for batch in self._batches]

    def _last_values(self, column: str) -> "Integers":
        import numpy as np

        return np.array([part[-1] for part in self._numbers(column)])


class _Texts(Sequence[bytes]):
    """The texts of a batch as UTF-8, which sorts by code points."""

    def __init__(self, column: Any) -> None:
        import numpy as np

        _, offsets, data = column.buffers()
        self.offsets = np.frombuffer(offsets, np.int64)[column.offset :]
        self.data = memoryview(data or b"")
        self.length = len(column)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, row: Any) -> Any:
        row = row if row >= 0 else self.length + row
        return bytes(self.data[self.offsets[row] : self.offsets[row + 1]])


def _zero_copy(column: Any) -> "Integers":
    """View a column of numbers without nulls as an array."""
    import numpy as np

    name = str(column.type)
    dtype = np.dtype({"float": "float32", "double": "float64"}.get(name, name))
    start = column.offset * dtype.itemsize
    return np.frombuffer(column.buffers()[1], dtype, len(column), start)
