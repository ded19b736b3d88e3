"""Processing of the shards of a step, in this process, worker processes or other machines.

A shard is a small part of the input of a step: a few frames, such as some documents and their
sentences. A pure function maps a shard to a part of the result. Each part is a file, whose name is
a hash of the function, the settings and the rows of the shard. A file has this name only when it is
complete, so the name marks the part as done: a run continues an interrupted run, and another
runner may make the same parts. Neither the number of processes nor their order changes a result.
Parts are deleted when their step has finished, except parts that the next run may use.
"""

import os
import pickle
import time
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from graphrag_index.spans import span
from graphrag_index.storage.atomic import temporary_path

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphrag_index.step import ShardFrames
    from graphrag_index.storage.partitions import Partitions

T = TypeVar("T")

# Number of shards per process that are prepared or processed at once. It limits memory.
SHARDS_PER_WORKER = 2
# Arrays of at least this size are memory maps of files.
MIN_MAPPED_BYTES = 16_000_000


class Runner(Protocol):
    """The processes that make the parts of shards, on this machine or on others."""

    @property
    def n(self) -> int:
        """The number of parts that can be made at once; it may change while a step runs."""

    @property
    def min_bytes(self) -> int:
        """The size of the rows of a step below which this process makes the parts itself."""

    @property
    def seconds_alone(self) -> float:
        """The CPU time in which this process makes the first parts of a step of an update."""

    def start(self, function: Path, shard: bytes, part: Path) -> Any:
        """Start to make a part, with the function in a file; the result is for `wait`."""

    def wait(self, started: Any) -> None:
        """Wait until the file of a part exists; raises the exception of its function."""

    def count_cpu_seconds(self) -> float:
        """Return the CPU time of this process and of all processes that made parts."""

    def measure_peak_memory(self) -> int | None:
        """Return the peak memory of the largest process, in bytes; None if it is not known."""

    def close(self) -> None:
        """End the processes of the run at once; parts that are not finished are lost."""


class StepShards:
    """The service `shards` of one step: its parts lie in `folder`.

    Parts of an earlier run of the step are in folders beside it, with the same name up to "-".
    `code` is a hash of the code and the settings of the step.
    """

    def __init__(self, runner: Runner, folder: Path, code: str, is_update: bool = False) -> None:
        self._runner, self._folder, self._code = runner, folder, code
        self._is_update = is_update
        step = folder.name.partition("-")[0]
        self._earlier = [path for path in folder.parent.glob(f"{step}-*") if path != folder]
        self._kept: set[Path] = set()
        self._n_files = 0  # number of files that partitions may use

    def map(
        self,
        function: "Callable[..., ShardFrames]",
        shards: "Iterable[tuple[T, ShardFrames]]",
        *shared: Any,
        keep_parts: bool = False,
    ) -> "Iterator[tuple[T, ShardFrames]]":
        """Yield (context, part) for each (context, shard), in the order of the shards.

        A part is `function(shard, *shared)`. A single shard, few rows, and the first shards of an
        update are processed here, without files. With `keep_parts`, files of all parts stay for
        the next run.
        """
        remaining = iter(shards)
        first: list[tuple[T, ShardFrames]] = []
        n_bytes, min_bytes, seconds = 0, self._runner.min_bytes, 0.0
        while (n_bytes < min_bytes or len(first) < 2) and (found := next(remaining, None)):
            first.append(found)
            n_bytes += int(sum(frame.estimated_size() for frame in found[1].values()))
        is_small = n_bytes < min_bytes or len(first) < 2
        file: Path | None = None
        waiting: deque[tuple[T, bytes, Path, Any]] = deque()
        for context, shard in chain(first, remaining):
            is_early = is_small or (self._is_update and seconds < self._runner.seconds_alone)
            started_at = time.process_time()
            if is_early and not keep_parts:
                with span("batch"):
                    done = function(shard, *shared)
                seconds += time.process_time() - started_at
                yield context, done
                continue
            file = file or self._write_function(function, shared)
            rows = encode_frames(shard)
            name = _hash_bytes(self._code.encode(), file.name.encode(), rows)
            part = self._folder / f"part-{name}"
            if keep_parts:
                self._kept.add(part)
                self._fetch_earlier(part)
            if is_early and not part.exists():
                with span("batch"):
                    make_part(file, rows, part)
                seconds += time.process_time() - started_at
            started = None if part.exists() else self._runner.start(file, rows, part)
            waiting.append((context, rows, part, started))
            if len(waiting) >= SHARDS_PER_WORKER * self._runner.n:
                yield self._finish_part(file, *waiting.popleft())
        while waiting and file:
            yield self._finish_part(file, *waiting.popleft())

    def open_partitions(self, n: int, schema: "Mapping[str, Any]") -> "Partitions":
        """Return `n` empty partitions; they replace a file that an interrupted run has left."""
        from graphrag_index.storage.partitions import Partitions

        self._n_files += 1
        return Partitions(n, schema, self._folder / f"partitions-{self._n_files}")

    def allocate(self, n: int, dtype: Any) -> "npt.NDArray[Any]":
        """Return an array of `n` numbers; a large array is a memory map of a file without name."""
        import numpy as np

        n_bytes = n * np.dtype(dtype).itemsize
        if n_bytes < MIN_MAPPED_BYTES:
            return np.empty(n, dtype)
        self._folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=self._folder) as file:
            file.truncate(n_bytes)
            if hasattr(os, "posix_fallocate"):
                # Reserve the space now: if the disk is full later, the system kills the process.
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            return np.asarray(np.memmap(file, dtype, "r+", shape=n))

    def _fetch_earlier(self, part: Path) -> None:
        """Move a part of an earlier run of the step to the folder of this run, if there is one."""
        for folder in self._earlier:
            with suppress(FileNotFoundError):
                (folder / part.name).replace(part)

    def _finish_part(
        self, function: Path, context: T, shard: bytes, part: Path, started: Any
    ) -> "tuple[T, ShardFrames]":
        """Wait for a part and read it; a damaged part of an interrupted run is made again."""
        if started is None:
            with suppress(zipfile.BadZipFile):
                return context, decode_frames(part.read_bytes())
            started = self._runner.start(function, shard, part)
        # The span has the time of waiting: the part was perhaps begun long before.
        with span("batch"):
            self._runner.wait(started)
        return context, decode_frames(part.read_bytes())

    def _write_function(self, function: object, shared: tuple[Any, ...]) -> Path:
        """Write a function and its shared arguments to a file, for the workers."""
        self._folder.mkdir(parents=True, exist_ok=True)
        content = pickle.dumps((function, shared))
        path = self._folder / f"function-{_hash_bytes(content)}"
        write_file(path, content)
        return path

    def remove_files(self) -> None:
        """Delete all files except kept parts, after the step has written its tables."""
        for path in {*self._folder.glob("*")} - self._kept:
            path.unlink()
        with suppress(OSError):  # the folder is not there, or has kept parts
            self._folder.rmdir()
            self._folder.parent.rmdir()


def encode_frames(frames: "ShardFrames") -> bytes:
    """Encode frames as a ZIP of Arrow streams; equal frames have equal bytes."""
    import polars as pl

    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, frame in frames.items():
            rows = BytesIO()
            # Copy the rows: the bytes of a slice would depend on the rows around the slice.
            copied = frame.select(pl.all().gather(pl.int_range(pl.len()))).rechunk()
            copied.write_ipc_stream(rows, compat_level=pl.CompatLevel.oldest())
            # ZipInfo has a fixed date.
            archive.writestr(zipfile.ZipInfo(name), rows.getbuffer())
    return file.getvalue()


def decode_frames(content: bytes) -> "ShardFrames":
    """Decode frames that `encode_frames` has encoded. The archive has a checksum for each frame."""
    import polars as pl

    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {name: pl.read_ipc_stream(archive.read(name)) for name in archive.namelist()}


def make_part(function_file: Path, shard: bytes, part: Path) -> None:
    """Process a shard, and write its part."""
    function, shared = _load_function(function_file)
    write_file(part, encode_frames(function(decode_frames(shard), *shared)))


@lru_cache(maxsize=1)
def _load_function(path: Path) -> "tuple[Callable[..., ShardFrames], tuple[Any, ...]]":
    # The file is safe to unpickle: this run has written it.
    return pickle.loads(path.read_bytes())  # type: ignore[no-any-return]


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    temporary = temporary_path(path)
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _hash_bytes(*contents: bytes) -> str:
    digest = blake2b(digest_size=16)
    for content in contents:
        # Hash the length too, so that two contents never look like two others.
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()
