"""Runner whose shards are made by worker processes of this machine."""

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from graphrag_index.errors import StepError
from graphrag_index.pipeline.shards import make_part

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

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
        """End the worker processes at once; parts that they have not finished are lost."""
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
