"""The queue of jobs of one index: SQLite in its output folder, for several processes."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import uuid4

from graphrag_server.problems import RequestError
from graphrag_server.tracing import hide_roots

FILE = "jobs.db"
# Jobs that have ended are deleted when there are more than this.
MAX_ENDED_JOBS = 200
_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE, kind TEXT, state TEXT, budget REAL,
    created TEXT, started TEXT, ended TEXT, step TEXT,
    step_number INTEGER, n_steps INTEGER, unit TEXT, rows_done INTEGER, rows_total INTEGER,
    seconds_left REAL,
    calls INTEGER, cost REAL, estimate TEXT, quarantined INTEGER, version INTEGER, message TEXT,
    attempts INTEGER, cancel INTEGER);
CREATE TABLE IF NOT EXISTS events (
    job TEXT, number INTEGER, kind TEXT, data TEXT, PRIMARY KEY (job, number));
"""


class JobState(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING_BUDGET = "waiting_budget"  # the next request could exceed the budget: raise it
    FAILED = "failed"
    CANCELLED = "cancelled"
    DONE = "done"


ENDED = (JobState.FAILED, JobState.CANCELLED, JobState.DONE)


@dataclass(frozen=True)
class Job:
    """One run of an index. Times are UTC; `cost` is in dollars, null if a price is unknown.

    `rows_done` of `rows_total` rows of the present step are finished, in `seconds_left`. `version`
    is the version that the run has made, or found up to date.
    """

    id: str
    kind: str
    state: JobState
    budget: float | None
    created: str
    started: str | None
    ended: str | None
    step: str | None
    step_number: int
    n_steps: int
    unit: str | None
    rows_done: int
    rows_total: int | None
    seconds_left: float | None
    calls: int
    cost: float | None
    estimate: dict[str, Any] | None  # cost of the run before it began
    quarantined: int  # requests without a valid reply
    version: int | None
    message: str


_COLUMNS = [field.name for field in fields(Job)]


class JobStore:
    """The jobs of one index. Each call opens the file anew, so processes can share it."""

    def __init__(self, output: Path) -> None:
        self._output = output

    @contextmanager
    def _open(self, *, writes: bool = False) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction; one that only reads waits for no writer.

        Raises RequestError if the file cannot be used.
        """
        try:
            self._output.mkdir(parents=True, exist_ok=True)
            path = self._output / FILE
            with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
                if not connection.execute("PRAGMA user_version").fetchone()[0]:
                    connection.execute("PRAGMA journal_mode=WAL")
                    connection.executescript(_SCHEMA)
                    connection.execute("PRAGMA user_version = 1")
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                yield connection
                connection.execute("COMMIT")
        except (OSError, sqlite3.Error) as error:
            raise RequestError(
                503,
                "jobs_unavailable",
                f"The file of jobs, {self._output / FILE}, cannot be used ({error}): make its "
                "folder writable, and make room on the disk.",
            ) from error

    def create(self, kind: str, budget: float | None) -> Job:
        """Add a job, and delete the oldest ended ones."""
        with self._open(writes=True) as db:
            job = uuid4().hex
            db.execute(
                "INSERT INTO jobs (id, kind, state, budget, created, step_number, n_steps, "
                "rows_done, calls, cost, quarantined, message, attempts, cancel) "
                "VALUES (?, ?, 'queued', ?, ?, 0, 0, 0, 0, 0, 0, '', 0, 0)",
                (job, kind, budget, _now()),
            )
            _add_event(db, job, "state", {"state": "queued"})
            db.execute(
                "DELETE FROM jobs WHERE state IN ('failed', 'cancelled', 'done') AND number <= "
                "(SELECT max(number) FROM jobs) - ?",
                (MAX_ENDED_JOBS,),
            )
            db.execute("DELETE FROM events WHERE job NOT IN (SELECT id FROM jobs)")
            return _read(db, job)

    def create_first(self) -> None:
        """Add a run if no job is queued or running."""
        if not any(job.state not in ENDED for job in self.jobs()):
            self.create("run", None)

    def get(self, job: str) -> Job | None:
        """Return a job; None if there is none of this id."""
        with self._open() as db:
            known = db.execute("SELECT 1 FROM jobs WHERE id = ?", (job,)).fetchone()
            return _read(db, job) if known else None

    def jobs(self, limit: int = 100) -> list[Job]:
        """Return the newest jobs, the newest first. Reading creates no queue."""
        if not (self._output / FILE).exists():
            return []
        with self._open() as db:
            query = "SELECT id FROM jobs ORDER BY number DESC LIMIT ?"
            return [_read(db, job) for (job,) in db.execute(query, (limit,)).fetchall()]

    def counts(self) -> dict[str, int]:
        """Return the number of jobs in each state."""
        with self._open(writes=True) as db:
            found = dict(db.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall())
        return {state.value: found.get(state.value, 0) for state in JobState}

    def claim(self) -> Job | None:
        """Start the oldest queued job; None if there is none."""
        with self._open(writes=True) as db:
            query = "SELECT id FROM jobs WHERE state = 'queued' ORDER BY number LIMIT 1"
            if (found := db.execute(query).fetchone()) is None:
                return None
            started = "coalesce(started, ?)"
            db.execute(
                f"UPDATE jobs SET state = 'running', attempts = attempts + 1, started = {started}, "
                "message = '' WHERE id = ?",
                (_now(), found[0]),
            )
            _add_event(db, found[0], "state", {"state": "running"})
            return _read(db, found[0])

    def requeue_interrupted(self) -> None:
        """Queue the jobs again whose server or process has ended in the middle."""
        with self._open(writes=True) as db:
            query = "SELECT id FROM jobs WHERE state = 'running'"
            for (job,) in db.execute(query).fetchall():
                db.execute("UPDATE jobs SET state = 'queued' WHERE id = ?", (job,))
                _add_event(db, job, "state", {"state": "queued"})

    def update(self, job: str, **values: Any) -> None:
        """Write the progress of a job, and add an event with it."""
        with self._open(writes=True) as db:
            _set(db, job, values)
            _add_event(db, job, "progress", values)

    def finish(self, job: str, state: JobState, message: str = "", **values: Any) -> None:
        """Write the end of a job, or of its process."""
        with self._open(writes=True) as db:
            ended = {"ended": _now()} if state in ENDED else {}
            _set(db, job, {"state": state, "message": message, **ended, **values})
            _add_event(db, job, "state", {"state": state, "message": message, **values})

    def cancel(self, job: str) -> None:
        """Cancel a job: at once if it does not run, else as soon as its process has stopped."""
        with self._open(writes=True) as db:
            db.execute("UPDATE jobs SET cancel = 1 WHERE id = ?", (job,))
            waiting = "state IN ('queued', 'waiting_budget')"
            query = f"UPDATE jobs SET state = 'cancelled', ended = ? WHERE id = ? AND {waiting}"
            if db.execute(query, (_now(), job)).rowcount:
                _add_event(db, job, "state", {"state": "cancelled"})

    def is_cancelled(self, job: str) -> bool:
        """Return whether somebody has cancelled a job."""
        with self._open() as db:
            return bool(db.execute("SELECT cancel FROM jobs WHERE id = ?", (job,)).fetchone()[0])

    def attempts(self, job: str) -> int:
        """Return how often the process of a job was started."""
        with self._open() as db:
            return int(db.execute("SELECT attempts FROM jobs WHERE id = ?", (job,)).fetchone()[0])

    def raise_budget(self, job: str, budget: float) -> None:
        """Set the budget of a job; a job that waits for it is queued again."""
        with self._open(writes=True) as db:
            db.execute("UPDATE jobs SET budget = ? WHERE id = ?", (budget, job))
            query = "UPDATE jobs SET state = 'queued' WHERE id = ? AND state = 'waiting_budget'"
            if db.execute(query, (job,)).rowcount:
                _add_event(db, job, "state", {"state": "queued", "budget": budget})

    def events(self, job: str, after: int) -> list[tuple[int, str, dict[str, Any]]]:
        """Return the (number, kind, data) of the events after a number."""
        with self._open() as db:
            query = (
                "SELECT number, kind, data FROM events WHERE job = ? AND number > ? ORDER BY number"
            )
            found = db.execute(query, (job, after)).fetchall()
        return [(number, kind, _read_event(data)) for number, kind, data in found]


def _read(db: sqlite3.Connection, job: str) -> Job:
    row = db.execute(f"SELECT {', '.join(_COLUMNS)} FROM jobs WHERE id = ?", (job,)).fetchone()
    values = dict(zip(_COLUMNS, row, strict=True))
    values["state"] = JobState(values["state"])
    values["estimate"] = json.loads(values["estimate"]) if values["estimate"] else None
    values["message"] = hide_roots(values["message"])
    return Job(**values)


def _read_event(data: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(data)
    return values | {name: hide_roots(values[name]) for name in values.keys() & {"message"}}


def _set(db: sqlite3.Connection, job: str, values: dict[str, Any]) -> None:
    stored = {
        name: json.dumps(value) if isinstance(value, dict) else value
        for name, value in values.items()
    }
    columns = ", ".join(f"{name} = ?" for name in stored)
    db.execute(f"UPDATE jobs SET {columns} WHERE id = ?", (*stored.values(), job))


def _add_event(db: sqlite3.Connection, job: str, kind: str, data: dict[str, Any]) -> None:
    number = "coalesce((SELECT max(number) FROM events WHERE job = ?), 0) + 1"
    db.execute(f"INSERT INTO events VALUES (?, {number}, ?, ?)", (job, job, kind, json.dumps(data)))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
