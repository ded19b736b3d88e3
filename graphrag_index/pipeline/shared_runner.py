"""Runner whose shards are made by all workers that share a run through a bucket."""

import threading
import time
from concurrent.futures import Future
from pathlib import Path

from graphrag_index.pipeline.shards import write_file
from graphrag_index.pipeline.task_board import TaskBoard
from graphrag_index.pipeline.tasks import Result
from graphrag_index.pipeline.worker_processes import MIN_BYTES_FOR_WORKERS, Workers


class ShardMaker:
    """The processes of this machine that make shards, for as many threads as processes.

    Parts lie in `folder` until they are read.
    """

    def __init__(self, n: int, folder: Path) -> None:
        self.n, self._folder = n, folder
        self.workers, self._lock = Workers(n), threading.Lock()

    def make(self, function: Path, shard: bytes, name: str) -> Result:
        """Make the part of a shard."""
        part = self._folder / name
        cpu = time.thread_time()
        with self._lock:
            # With one process, this thread makes the part.
            started = self.workers.start(function, shard, part)
        cpu = started.result().cpu_seconds or time.thread_time() - cpu
        with self._lock:
            self.workers.wait(started)
        content = part.read_bytes()
        part.unlink()
        return Result({"cpu_seconds": round(cpu, 3)}, content)

    def close(self) -> None:
        self.workers.close()


class SharedRunner:
    """Runner of the worker that leads a run."""

    seconds_alone = 0.0

    def __init__(self, board: TaskBoard, maker: ShardMaker) -> None:
        self._board, self._maker = board, maker
        self._parts: dict[Future[Result], Path] = {}

    @property
    def n(self) -> int:
        """The number of processes of all workers."""
        return self._board.n_slots

    @property
    def min_bytes(self) -> int:
        return MIN_BYTES_FOR_WORKERS

    def start(self, function: Path, shard: bytes, part: Path) -> "Future[Result]":
        """Start to make a part, on this machine or another one."""
        done = self._board.submit(part.name, shard, function)
        self._parts[done] = part
        return done

    def wait(self, started: "Future[Result]") -> None:
        """Wait for a part, and write it; raises the exception of its function."""
        result = self._board.wait(started)
        part = self._parts.pop(started, None)
        if part is not None:
            write_file(part, result.content)

    def count_cpu_seconds(self) -> float:
        """Return the CPU time of this process, and of all processes that made parts."""
        return self._maker.workers.count_cpu_seconds() + self._board.cpu_seconds_of_others

    def measure_peak_memory(self) -> int | None:
        """Return the peak memory of the largest process of this machine, in bytes."""
        return self._maker.workers.measure_peak_memory()

    def close(self) -> None:
        """Leave the processes running: they belong to the worker, not to the run."""
