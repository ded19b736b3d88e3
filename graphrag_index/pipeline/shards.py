"""Processing of the shards of a step, in this process, worker processes or other machines.

A shard is a small part of the input of a step: a few frames, such as some documents and their
sentences. A pure function maps a shard to a part of the result. Each part is a file, whose name is
a hash of the function, the settings and the rows of the shard. A file has this name only when it is
complete, so the name marks the part as done: a run continues an interrupted run, and another
runner may make the same parts. Neither the number of processes nor their order changes a result.
Parts are deleted when their step has finished, except parts that the next run may use.
"""

import gc
import os
import pickle
import signal
import sys
import threading
import time
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from graphrag_index.errors import StepError
from graphrag_index.spans import span
from graphrag_index.storage.atomic import temporary_path

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import numpy.typing as npt

    from graphrag_index.step import ShardFrames
    from graphrag_index.storage.partitions import Partitions

T = TypeVar("T")

# Number of shards per process that are in memory at the same time. It limits memory.
SHARDS_PER_WORKER = 2
# Arrays of at least this size are memory maps of files.
MIN_MAPPED_BYTES = 16_000_000


class Runner(Protocol):
    """The processes that make the parts of shards, on this machine or on others."""

    @property
    def n(self) -> int:
        """The number of parts that can be made in parallel; it may change while a step runs."""

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
        """End the processes of the run immediately; parts that are not finished are lost."""


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
        # The span measures only the waiting: the part may have begun long before.
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


# Minimum size of the rows of a step for workers that must be started, and for workers that run.
MIN_BYTES_FOR_WORKERS, MIN_BYTES_FOR_RUNNING_WORKERS = 1_000_000, 200_000
# CPU seconds for shards of a step of an update in the main process before workers start, which
# takes as long.
SECONDS_BEFORE_WORKERS = 2.0


class _Usage(NamedTuple):
    """CPU time of a shard, in seconds, and peak memory of its process, in bytes."""

    cpu_seconds: float
    peak_memory_bytes: int


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalRunner:
    """Worker processes of this machine, started when a step has several shards.

    Each worker is one process with one thread, so that `n` workers use `n` cores; None: all cores.
    With `n` = 1 this process does the work.
    """

    def __init__(self, n: int | None = None) -> None:
        self.n = n or count_cores()
        # Sum of the CPU time, and maximum of the peak memory, of all worker processes.
        self._cpu_seconds = 0.0
        self._peak_memory_bytes = 0
        self._pool: ProcessPoolExecutor | None = None

    @property
    def min_bytes(self) -> int:
        return MIN_BYTES_FOR_WORKERS if self._pool is None else MIN_BYTES_FOR_RUNNING_WORKERS

    @property
    def seconds_alone(self) -> float:
        return SECONDS_BEFORE_WORKERS if self._pool is None else 0.0

    def start(self, function: Path, shard: bytes, part: Path) -> Future[_Usage]:
        """Start to process a shard; the future has a result when the file of the part exists."""
        if self.n == 1:
            done: Future[_Usage] = Future()
            make_part(function, shard, part)
            done.set_result(_Usage(0, 0))
            return done
        with _explain_killed_worker(), separate_processes():
            return self._get_pool().submit(_process_shard, function, shard, part)

    def wait(self, shard: Future[_Usage]) -> None:
        """Wait until a part exists; raises the exception of its function."""
        with _explain_killed_worker():
            usage = shard.result()
        self._cpu_seconds += usage.cpu_seconds
        self._peak_memory_bytes = max(self._peak_memory_bytes, usage.peak_memory_bytes)

    def count_cpu_seconds(self) -> float:
        """Return the CPU time of this process and of its workers so far."""
        return time.process_time() + self._cpu_seconds

    def measure_peak_memory(self) -> int | None:
        """Return the peak memory of the largest process so far, in bytes; None on Windows."""
        peak = measure_peak_memory()
        return peak and max(peak, self._peak_memory_bytes)

    def _get_pool(self) -> ProcessPoolExecutor:
        if self._pool is None:
            import multiprocessing

            # Start new processes: a forked process could wait for a lock that no thread releases.
            context = multiprocessing.get_context("spawn")
            listener, self._speaker = context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(
                self.n, mp_context=context, initializer=_prepare_worker, initargs=(listener,)
            )
        return self._pool

    def close(self) -> None:
        """End the worker processes immediately; parts that they have not finished are lost."""
        if self._pool is not None:
            self._speaker.close()
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


@contextmanager
def separate_processes() -> Iterator[None]:
    """Keep processes that start in the `with` block apart from the main module and from Ctrl-C.

    The main module may be a script of a user, which would start a run in each worker. The
    terminal sends Ctrl-C to all processes; only the main process handles it.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    can_block = hasattr(signal, "pthread_sigmask")  # not on Windows
    if can_block:
        # A new process inherits the mask. In this process the signal arrives after the block.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if can_block:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _explain_killed_worker() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise StepError(
            "A worker process was killed, possibly because memory was short. Run again, if "
            "necessary with fewer --workers: finished parts are kept."
        ) from error


def _prepare_worker(listener: "Connection") -> None:
    """Prepare a worker process: one thread for polars, and an end when the run ends.

    polars is not imported yet, since a worker imports the module of a function with its first
    shard.
    """
    os.environ["POLARS_MAX_THREADS"] = "1"
    gc.set_threshold(10_000)  # as in the main process
    # On Windows the process starts without the block of `separate_processes`.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_run() -> None:
        # The pipe is closed by `close`, or by the system if the main process was killed.
        with suppress(EOFError, OSError):
            listener.recv()
        os._exit(1)

    threading.Thread(target=end_with_run, daemon=True).start()


def _process_shard(function: Path, shard: bytes, part: Path) -> _Usage:
    """Process a shard in a worker process."""
    global _counted_seconds
    make_part(function, shard, part)
    before, _counted_seconds = _counted_seconds, time.process_time()
    return _Usage(_counted_seconds - before, measure_peak_memory() or 0)


# CPU time of this worker process that is part of the usage of earlier shards.
_counted_seconds = 0.0


def measure_peak_memory() -> int | None:
    """Return the peak resident memory of this process, in bytes; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
