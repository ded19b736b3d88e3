"""The open tasks of the worker that leads a run, exchanged with others through a bucket."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from graphrag_index.errors import ExitCode, GraphRAGError, StepError, TableError, WorkflowError
from graphrag_index.pipeline.tasks import (
    BOARD,
    MAX_ATTEMPTS,
    MAX_BUSY_PAUSE,
    MAX_PAUSE,
    MIN_PAUSE,
    WORK,
    Ending,
    Result,
    describe_program,
)
from graphrag_index.storage.leases import RENEWALS, Lease, Leases

# Maximum number of tasks on the board, and of results that are asked for in one round.
MAX_LISTED = 500
MAX_ASKED = 64
TRANSFERS_AT_ONCE = 8


class LostLeadError(WorkflowError):
    """Another worker leads the run, because this one was too slow to renew its lease."""


@dataclass(eq=False)
class Task:
    """An open task. `function` is the file of the function of a shard."""

    name: str
    content: bytes
    function: Path | None
    done: "Future[Result]" = field(default_factory=Future)
    is_published: bool = False
    # This process works on the task.
    is_taken: bool = False
    # Another process has the lease; the time of `time.monotonic` for the next look at it.
    not_before: float = 0.0


class TaskBoard:
    """The open tasks of the worker that leads a run; a thread exchanges them with other workers.

    `perform` does a task in this process, which does `n_own` tasks at once.
    """

    def __init__(
        self, leases: Leases, lead: Lease, perform: Callable[[Task], Result], n_own: int
    ) -> None:
        self.bucket, self._leases, self._lead = leases.bucket, leases, lead
        self._perform, self._n_own = perform, n_own
        self._tasks: dict[str, Task] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._others: dict[str, tuple[str, float, int]] = {}
        self._looked_at = float("-inf")
        self._functions: set[str] = set()
        self._done_objects: list[str] = []
        self._error: BaseException | None = None
        self.cpu_seconds_of_others = 0.0
        self._n_boards = 0
        self._closed = False
        # Results, and tasks that the leader before has published: others may work on them.
        self._known = self._list_names("results")
        self._published_before = self._list_names("tasks")
        self._etag = self._find_board()
        self._listed: list[Any] = [None]
        self._transfers = ThreadPoolExecutor(TRANSFERS_AT_ONCE)
        self._own = ThreadPoolExecutor(n_own)
        self._write_board([])
        self._thread = threading.Thread(target=self._exchange_forever, daemon=True)
        self._thread.start()

    @property
    def n_slots(self) -> int:
        """The number of tasks that all workers together can do at once."""
        return self._n_own + self.n_others

    @property
    def seconds_to_wait(self) -> float:
        """The time after which the leader looks whether anybody works on a request."""
        return 2 * self._leases.seconds

    @property
    def n_workers(self) -> int:
        """The number of workers, with this one."""
        return 1 + len(self._others)

    @property
    def n_others(self) -> int:
        """The number of tasks that the other workers can do at once."""
        return sum(n for _, _, n in self._others.values())

    def submit(self, name: str, content: bytes, function: Path | None = None) -> "Future[Result]":
        """Add a task, unless it is there; its future gets the result."""
        with self._lock:
            task = self._tasks.setdefault(name, Task(name, content, function))
            # A result that is there is fetched like that of another worker.
            if self.was_published(name):
                task.is_published = True
        self._wake.set()
        return task.done

    def wait(self, done: "Future[Result]") -> Result:
        """Wait for a result; raise what its task or the exchange has raised."""
        while True:
            with suppress(TimeoutError):
                return done.result(timeout=MAX_PAUSE)
            self.check()

    def take_back(self, name: str) -> Lease | None:
        """Remove a task that no other worker has leased; return None if one has.

        The lease keeps workers with an older board from the task, until `give_up` is called.
        """
        with self._lock:
            task = self._tasks.get(name)
            if task is None or task.is_taken:
                return None
            task.is_taken = True
        lease = self._leases.take(f"{WORK}/leases/{name}")
        with self._lock:
            task.is_taken = False
            if lease is not None:
                self._tasks.pop(name, None)
        return lease

    def give_up(self, name: str, lease: Lease) -> None:
        """Delete what is left of a task that was taken back, so that it may be submitted again."""
        self._published_before.discard(name)
        self.bucket.delete([f"{WORK}/tasks/{name}"])
        self._leases.release(lease)

    def check(self) -> None:
        """Raise the error that has ended the exchange, if there is one."""
        if self._error is not None:
            raise self._error

    def was_published(self, name: str) -> bool:
        """Return whether a leader before this one has published a task; it may be done."""
        return name in self._known or name in self._published_before

    def store_result(self, name: str, result: Result) -> None:
        """Create the result of a task that this process has done on its own."""
        self.bucket.create(f"{WORK}/results/{name}", result.encode())

    def close(self, ending: Ending | None) -> None:
        """End the exchange; with an `ending`, all workers end, and its kept results stay."""
        self._closed = True
        self._wake.set()
        self._thread.join()
        self._own.shutdown(cancel_futures=True)
        self._transfers.shutdown(cancel_futures=True)
        if ending is None or self._lead.is_lost:
            return
        if not self._put_board({"ended": ending._replace(kept=())._asdict()}):
            return
        if ending.exit_code not in (ExitCode.DONE, ExitCode.QUARANTINED):
            # The next run continues with the results.
            return
        stay = {f"{WORK}/results/{name}" for name in ending.kept}
        for folder in ("functions", "tasks", "leases", "results", "workers"):
            listed = self.bucket.list_objects(f"{WORK}/{folder}/")
            self.bucket.delete(sorted({str(one["path"]) for one in listed} - stay))

    def _exchange_forever(self) -> None:
        pause = MIN_PAUSE
        try:
            while not self._closed:
                if self._lead.is_lost:
                    raise LostLeadError(
                        f"Another worker leads the run of {self.bucket.url}: this one was too slow "
                        "to renew its lease."
                    )
                self._look_for_others()
                self._start_own()
                self._publish()
                longest = MAX_BUSY_PAUSE if self._tasks else MAX_PAUSE
                pause = MIN_PAUSE if self._collect() else min(longest, pause * 1.5)
                self._wake.wait(pause)
                self._wake.clear()
        except GraphRAGError as error:
            self._error = error
            for task in list(self._tasks.values()):
                self._end(task, error)
        finally:
            if not self._closed and self._error is None:
                # Those who wait for a result must not wait for ever.
                self._error = StepError("The exchange of tasks has ended by a bug in the program.")

    def _look_for_others(self) -> None:
        """List the other workers; one that has not renewed its object for a lease is gone."""
        now, seconds = time.monotonic(), self._leases.seconds
        if now - self._looked_at < min(seconds / RENEWALS, MAX_PAUSE):
            return
        self._looked_at, found = now, {}
        for one in self.bucket.list_objects(f"{WORK}/workers/"):
            # The name of the object is the identity of the worker and the number of its processes.
            name, etag = _name(one["path"]), str(one["e_tag"])
            if name.startswith(self._leases.holder):
                continue  # This worker worked for another one before.
            before = self._others.get(name)
            since = before[1] if before and before[0] == etag else now
            if now - since <= seconds:
                found[name] = (etag, since, int(name.rpartition("-")[2]))
            else:
                self._done_objects.append(f"{WORK}/workers/{name}")
        self._others = found

    def _start_own(self) -> None:
        """Start tasks in this process, the oldest first."""
        now = time.monotonic()
        with self._lock:
            free = self._n_own - sum(task.is_taken for task in self._tasks.values())
            ready = [
                task
                for task in self._tasks.values()
                if not task.is_taken
                and task.not_before <= now
                and task.name not in self._known
                and task.function is not None
            ][: max(0, free)]
            for task in ready:
                task.is_taken = True
        for task in ready:
            self._own.submit(self._do_own, task).add_done_callback(partial(self._finish_own, task))

    def _do_own(self, task: Task) -> Result | None:
        """Do a task in this process; return None if another one has its lease."""
        if not task.is_published:
            return self._perform_and_store(task)
        lease = self._leases.take(f"{WORK}/leases/{task.name}")
        if lease is None:
            return None
        is_done = False
        try:
            # The worker that had the lease before may have created the result.
            is_done = lease.attempt > 1 and self.bucket.exists(f"{WORK}/results/{task.name}")
            if is_done:
                return None
            if lease.attempt > MAX_ATTEMPTS:
                raise StepError(
                    f"A shard has ended {MAX_ATTEMPTS} workers, possibly because memory was short: "
                    "start workers on machines with more memory, or with fewer --workers. Finished "
                    "parts are kept."
                )
            result = self._perform_and_store(task)
            is_done = True
            return result
        finally:
            # The lease of a task that is done stays until the task is deleted: the boards that
            # others have read may be old.
            with suppress(TableError):  # It expires.
                (self._leases.keep if is_done else self._leases.release)(lease)

    def _perform_and_store(self, task: Task) -> Result:
        result = self._perform(task)
        self.store_result(task.name, result)
        return result

    def _finish_own(self, task: Task, own: "Future[Result | None]") -> None:
        """Give the result of a task of this process, or its error, to the caller."""
        error = CancelledError() if own.cancelled() else own.exception()
        outcome = error or own.result()
        if outcome is not None:
            self._end(task, outcome)
        task.not_before = time.monotonic() + self._leases.seconds / RENEWALS
        task.is_taken = False
        self._wake.set()

    def _publish(self) -> None:
        """Publish the tasks that wait, if there are other workers, and list them on the board."""
        done, self._done_objects = self._done_objects, []
        # An equal request may have been submitted again; it ends later.
        self._delete([key for key in done if key.rpartition("/")[2] not in self._tasks])
        if self.n_others:
            with self._lock:
                new = [t for t in self._tasks.values() if not (t.is_published or t.is_taken)]
                for task in new:
                    task.is_published = True
            for function in {t.function for t in new if t.function} - {None}:
                if function.name not in self._functions:
                    self.bucket.write(f"{WORK}/functions/{function.name}", function.read_bytes())
                    self._functions.add(function.name)
            list(self._transfers.map(self._write_task, new))
        with self._lock:
            listed = [
                (task.name, task.function.name if task.function else "")
                for task in self._tasks.values()
                if task.is_published and not task.is_taken and task.name not in self._known
            ][:MAX_LISTED]
        self._write_board(listed)

    def _write_task(self, task: Task) -> None:
        self.bucket.write(f"{WORK}/tasks/{task.name}", task.content)

    def _collect(self) -> bool:
        """Fetch the results of other workers; return whether there are any."""
        with self._lock:
            asked = [t for t in self._tasks.values() if t.is_published and not t.is_taken]
        return any(list(self._transfers.map(self._fetch_result, asked[:MAX_ASKED])))

    def _fetch_result(self, task: Task) -> bool:
        key = f"{WORK}/results/{task.name}"
        try:
            found = self.bucket.read(key)
        except FileNotFoundError:
            self._known.discard(task.name)
            return False
        assert found is not None
        result = Result.decode(found[0])
        if result is None or not result.is_final:
            # The task is done again: a request that failed may be submitted at once.
            self.bucket.delete([key])
            self._delete(_objects_of(task.name))
            task.is_published = False
        if result is None:
            self._known.discard(task.name)
            self._published_before.discard(task.name)
            return False
        self.cpu_seconds_of_others += result.header.get("cpu_seconds", 0.0)
        self._end(task, result)
        return True

    def _delete(self, keys: list[str]) -> None:
        """Delete objects of tasks, the leases last: nobody must lease a task that is done."""
        self.bucket.delete([key for key in keys if "/leases/" not in key])
        self.bucket.delete([key for key in keys if "/leases/" in key])

    def _end(self, task: Task, outcome: Result | BaseException) -> None:
        with self._lock:
            if self._tasks.pop(task.name, None) is None:
                return
            # A request that failed is published anew.
            self._known.discard(task.name)
            self._published_before.discard(task.name)
            if task.is_published:
                self._done_objects += _objects_of(task.name)
        if isinstance(outcome, BaseException):
            task.done.set_exception(outcome)
        else:
            task.done.set_result(outcome)

    def _list_names(self, folder: str) -> set[str]:
        listed = self.bucket.list_objects(f"{WORK}/{folder}/")
        return {str(one["path"]).rpartition("/")[2] for one in listed}

    def _find_board(self) -> str | None:
        try:
            found = self.bucket.read(BOARD)
        except FileNotFoundError:
            return None
        return found[1] if found else None

    def _write_board(self, listed: list[tuple[str, str]]) -> None:
        if listed == self._listed:
            return
        if not self._put_board({"tasks": listed}):
            self._lead.is_lost = True
        self._listed = list(listed)

    def _put_board(self, content: Mapping[str, Any]) -> bool:
        """Write the board; return False if another worker leads."""
        self._n_boards += 1
        # The number makes the etag of each board another one.
        board = {"leader": self._leases.holder, "number": self._n_boards, **content}
        board |= describe_program()
        etag = self.bucket.replace(BOARD, json.dumps(board).encode(), self._etag)
        self._etag = etag or self._etag
        return etag is not None


def _objects_of(name: str) -> list[str]:
    """Return the objects of a task that are not needed when its result is there."""
    return [f"{WORK}/tasks/{name}", f"{WORK}/leases/{name}"]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
