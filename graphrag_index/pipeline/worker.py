"""Worker of a run that many machines share: it leads the run, or works for the leader.

Every worker is started in the same way. The first one takes the lease of the leader, and runs the
workflow. The others make its shards and send its requests. If the leader is killed, another worker
takes its lease and runs the workflow: it finds the results that are there.
"""

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graphrag_index.errors import GraphRAGError, SettingsError, TableError
from graphrag_index.pipeline.shards import write_file
from graphrag_index.pipeline.shared_calls import CALL, CallSender, ShardMaker
from graphrag_index.pipeline.task_board import LostLeadError, Task, TaskBoard
from graphrag_index.pipeline.tasks import (
    LEADER,
    MAX_ATTEMPTS,
    MAX_BUSY_PAUSE,
    MAX_PAUSE,
    MIN_PAUSE,
    WORK,
    Ending,
    Result,
    describe_program,
    read_board,
)
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.storage.bucket import Bucket, wait_for
from graphrag_index.storage.leases import RENEWALS, Leases

# Maximum number of requests to models that a worker sends at once.
MAX_CALLS = 32


class Follower:
    """A worker that takes tasks from the board of the leader."""

    def __init__(self, leases: Leases, maker: ShardMaker, sender: CallSender, folder: Path) -> None:
        self._leases, self._maker, self._sender, self._folder = leases, maker, sender, folder
        self._bucket = leases.bucket
        self.n_done = 0  # number of tasks that this worker has done
        self._running: dict[str, Future[None]] = {}
        # Tasks that this worker cannot do; the leader does them, and tells the error.
        self._refused: set[str] = set()
        # When to look again at a task that another worker has leased, on the monotonic clock.
        self._not_before: dict[str, float] = {}
        # The board on which this worker has seen a task that is done. The board may be older.
        self._done_on: dict[str, str] = {}
        self._shards, self._calls = ThreadPoolExecutor(maker.n), ThreadPoolExecutor(MAX_CALLS)
        self._random = random.Random(leases.holder)
        self._board, self._etag = None, ""
        self._leader: str | None = None
        self._registered_at = float("-inf")

    @property
    def _key(self) -> str:
        return f"{WORK}/workers/{self._leases.holder}-{self._maker.n}"

    def work(self) -> Ending | None:
        """Work until the run has ended; return None if it has no leader any more."""
        pause, looked_at = MIN_PAUSE, float("-inf")
        try:
            while True:
                now = time.monotonic()
                if now - looked_at > min(MAX_PAUSE, self._leases.seconds / RENEWALS):
                    looked_at = now
                    if not self._find_leader():
                        return self._read_ending()
                self._register(now)
                ending = self._read_ending()
                if ending is not None:
                    return ending
                has_changed = self._start_tasks() or self._finish_tasks(pause)
                pause = MIN_PAUSE if has_changed else min(MAX_BUSY_PAUSE, pause * 1.5)
        finally:
            with suppress(TableError):
                self._bucket.delete([self._key])
            self._registered_at = float("-inf")

    def close(self) -> None:
        """Wait for the tasks that are running."""
        self._shards.shutdown(cancel_futures=True)
        self._calls.shutdown(cancel_futures=True)

    def _find_leader(self) -> bool:
        """Look at the lease of the leader; return whether it is held."""
        seen = self._leases.look_at(LEADER)
        if seen is None or seen.is_expired:
            return False
        self._leader = seen.content["holder"]
        return True

    def _register(self, now: float) -> None:
        """Tell the leader that this worker is there."""
        if now - self._registered_at > self._leases.seconds / RENEWALS:
            self._bucket.write(self._key, uuid.uuid4().hex.encode())
            self._registered_at = now

    def _read_ending(self) -> Ending | None:
        """Read the board; return the end of the run of the leader that was seen last."""
        found = read_board(self._bucket, self._etag or None)
        if found is not None:
            self._board, self._etag = found
        board: Any = self._board
        if board is None or board["leader"] != self._leader:
            return None
        own = describe_program()
        for name, version in own.items():
            if board[name] != version:
                raise SettingsError(
                    f"The worker that leads the run of {self._bucket.url} has {name} "
                    f"{board[name]}, and this one has {version}: install the same versions on "
                    "all machines."
                )
        return Ending(**board["ended"]) if "ended" in board else None

    def _start_tasks(self) -> bool:
        """Start tasks of the board as long as this worker is free; return whether it did."""
        board: Any = self._board
        if board is None or board["leader"] != self._leader:
            return False
        n_calls = sum(name.startswith(CALL) for name in self._running)
        free = {True: MAX_CALLS - n_calls, False: self._maker.n - len(self._running) + n_calls}
        tasks, now = [tuple(task) for task in board["tasks"]], time.monotonic()
        # Workers that begin with different tasks rarely ask for the same lease.
        self._random.shuffle(tasks)
        n_started = 0
        for name, function in tasks:
            is_call = name.startswith(CALL)
            is_open = not (
                name in self._running
                or name in self._refused
                or self._not_before.get(name, now) > now
                or self._done_on.get(name) == self._etag
            )
            if is_open and free[is_call] > 0:
                free[is_call] -= 1
                threads = self._calls if is_call else self._shards
                self._running[name] = threads.submit(self._do_task, name, function)
                n_started += 1
        return n_started > 0

    def _finish_tasks(self, seconds: float) -> bool:
        """Wait until a task is finished, for at most this time; return whether one is.

        Raises an error of the bucket.
        """
        if not self._running:
            time.sleep(seconds)
            return False
        wait(self._running.values(), timeout=seconds, return_when=FIRST_COMPLETED)
        done = [name for name, running in self._running.items() if running.done()]
        for name in done:
            error = self._running.pop(name).exception()
            if isinstance(error, TableError):
                raise error
            if error is not None:
                self._refused.add(name)
        return bool(done)

    def _do_task(self, name: str, function: str) -> None:
        """Do a task, unless another worker has its lease or has done it."""
        lease = self._leases.take(f"{WORK}/leases/{name}", MAX_ATTEMPTS)
        if lease is None:
            self._not_before[name] = time.monotonic() + self._leases.seconds / RENEWALS
            return
        is_done = False
        try:
            key, etag = f"{WORK}/results/{name}", self._etag
            # The worker that had the lease before may have created the result. Then the lease
            # stays: a worker with an old board could take a new one, and do the task again.
            is_done = lease.attempt > 1 and self._bucket.exists(key)
            if not is_done:
                try:
                    task = self._bucket.read(f"{WORK}/tasks/{name}")
                except FileNotFoundError:  # The leader has the result, and this board is old.
                    task = None
                if task is not None:
                    self._bucket.create(key, self._perform(name, function, task[0]).encode())
                    self.n_done += 1
                    is_done = True
            self._done_on[name] = etag
        finally:
            # The leader deletes the lease of a task that is done, after it has seen the result.
            with suppress(TableError):  # It expires.
                (self._leases.keep if is_done else self._leases.release)(lease)

    def _perform(self, name: str, function: str, content: bytes) -> Result:
        if not function:
            return self._sender.send(content)
        path = self._folder / function
        if not path.exists():
            try:
                found = wait_for(lambda: self._bucket.read(f"{WORK}/functions/{function}"))
            except FileNotFoundError:
                raise GraphRAGError(f"{self._bucket.url} has no {function} any more.") from None
            assert found is not None
            write_file(path, found[0])
        return self._maker.make(path, content, name)


@dataclass(frozen=True)
class Lead:
    """The means of the worker that leads: the tasks of the run, and the processes for shards."""

    board: TaskBoard
    maker: ShardMaker


class Worker:
    """One worker of the runs in a bucket. `tell` gets lines for the user."""

    def __init__(
        self, leases: Leases, maker: ShardMaker, follower: Follower, tell: Callable[[str], None]
    ) -> None:
        self._leases, self._maker, self._follower, self._tell = leases, maker, follower, tell

    def run(self, lead: Callable[[Lead], Ending]) -> Ending:
        """Work until the run has ended; `lead` runs the workflow with the other workers.

        An error that `lead` raises as a GraphRAGError would meet every other worker too, so all
        workers end with it. After another exception, such as a full disk, another worker leads.
        """
        is_told = False
        while True:
            lease = self._leases.take(LEADER)
            if lease is not None:
                self._tell("This worker leads the run.")
                board = TaskBoard(self._leases, lease, self._make_part, self._maker.n)
                ending: Ending | None = None
                try:
                    ending = lead(Lead(board, self._maker))
                    return ending._replace(message="")  # It has told the user already.
                except LostLeadError as error:
                    self._tell(str(error))
                except GraphRAGError as error:
                    ending = Ending(error.exit_code, str(error))
                    raise
                finally:
                    board.close(ending)
                    self._leases.release(lease)
                continue
            if not is_told:
                self._tell("Another worker leads the run; this one works for it.")
                is_told = True
            ending = self._follower.work()
            if ending is not None:
                n_done = self._follower.n_done
                self._tell(f"The run has ended; this worker has done {n_done:,} of its tasks.")
                return ending

    def _make_part(self, task: Task) -> Result:
        assert task.function is not None
        return self._maker.make(task.function, task.content, task.name)


@contextmanager
def open_worker(
    address: str,
    models: Mapping[str, ModelSettings],
    n_workers: int,
    seconds: float,
    tell: Callable[[str], None],
) -> Iterator[Worker]:
    """Open a worker of the runs whose output is in a bucket, with this number of processes."""
    with (
        TemporaryDirectory(prefix="graphrag-index-") as folder,
        closing(Leases(Bucket(address), seconds)) as leases,
        closing(CallSender(models)) as sender,
        closing(ShardMaker(n_workers, Path(folder))) as maker,
        closing(Follower(leases, maker, sender, Path(folder))) as follower,
    ):
        yield Worker(leases, maker, follower, tell)
