"""Every request to a model and what became of it, so that no reply is paid for twice.

One SQLite file beside the tables. A request is written before it is sent and again when its
reply has been read: a process that is killed in between has lost that one call.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.request import Spent, Usage

FILE = "ledger.sqlite"
# Requests that one query is about.
KEYS_AT_ONCE = 500

# What a request can be. `open`: sent, or to be sent, and not answered yet.
OPEN, DONE, QUARANTINED, SKIPPED = "open", "done", "quarantined", "skipped"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS requests (
    key TEXT PRIMARY KEY,        -- hash of model, parameters, messages and schema
    step TEXT NOT NULL,
    unit TEXT NOT NULL,          -- what it is about, for people
    model TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    reply BLOB,                  -- validated
    reason TEXT NOT NULL DEFAULT '',
    raw TEXT NOT NULL DEFAULT '' -- the last reply that was no good
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS requests_by_state ON requests (step, state);
-- Apart from the requests, whose replies are long: each run notes what its tables rest on.
CREATE TABLE IF NOT EXISTS uses (
    key TEXT PRIMARY KEY,        -- of the request
    step TEXT NOT NULL,
    version INTEGER NOT NULL     -- the newest whose tables rest on it
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS uses_by_step ON uses (step, version);
CREATE TABLE IF NOT EXISTS calls (
    key TEXT NOT NULL,
    step TEXT NOT NULL,
    model TEXT NOT NULL,
    version INTEGER NOT NULL,    -- for which it was made
    prompt_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost REAL                    -- in dollars; null where the price is not known
);
CREATE TABLE IF NOT EXISTS facts (
    name TEXT PRIMARY KEY,       -- such as what an endpoint was found to support
    value TEXT NOT NULL
) WITHOUT ROWID;
"""

# The path of a ledger that is not kept, as SQLite names it.
IN_MEMORY = ":memory:"

_SEND = """
INSERT INTO requests (key, step, unit, model, state, attempts) VALUES (?1, ?2, ?3, ?4, ?5, 1)
ON CONFLICT (key) DO UPDATE SET state = excluded.state, attempts = attempts + 1,
    unit = excluded.unit
"""
_USE = "INSERT OR REPLACE INTO uses VALUES (?, ?, ?)"
# A request of the newest version of its step.
_NEWEST = """
JOIN uses AS u ON u.key = r.key
    AND u.version = (SELECT max(version) FROM uses WHERE step = r.step)
"""

# Into the table that `note_use` makes.
NOTE = "INSERT OR IGNORE INTO temp.used VALUES (?)"

_ANSWERED = "UPDATE requests SET state = ?, reply = ?, reason = '', raw = '' WHERE key = ?"


@dataclass(frozen=True)
class Entry:
    """What the ledger knows of a request."""

    state: str
    reply: str
    reason: str


@dataclass(frozen=True)
class StepStatus:
    """The requests of one step and model in its newest version, and all that they have cost."""

    step: str
    model: str
    done: int
    open: int
    quarantined: int
    skipped: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    cost: float | None  # null if the price of a call is not known


@dataclass(frozen=True)
class Quarantined:
    """A request that gave nothing, and why."""

    step: str
    unit: str
    reason: str
    raw: str


def reply_hashes(rows: Callable[..., list[Any]], keys: Iterable[str]) -> list[str]:
    """Return a hash of the reply that is kept under each key; empty where none is.

    `rows` answers a query with values for its marks.
    """
    wanted = list(keys)
    hashes: dict[str, str] = {}
    for marks, some in _together(wanted):
        # As bytes, which need not become a text and bytes again.
        query = f"SELECT key, CAST(reply AS BLOB) FROM requests WHERE key IN {marks} AND state = ?"
        for key, reply in rows(query, *some, DONE):
            hashes[key] = blake2b(reply or b"", digest_size=16).hexdigest()
    return [hashes.get(key, "") for key in wanted]


def _together(keys: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Give keys that one query has room for, with the marks for them in it.

    They are in the order of the file, so that no page of it is read twice.
    """
    ordered = sorted(keys)
    for start in range(0, len(ordered), KEYS_AT_ONCE):
        some = ordered[start : start + KEYS_AT_ONCE]
        yield f"({', '.join('?' * len(some))})", some


class Ledger:
    """The ledger of one output folder, or one in memory; safe to use from several threads."""

    def __init__(self, output: Path | None, version: int = 0) -> None:
        self.path = output / FILE if output else IN_MEMORY
        self.version = version
        self._lock = threading.Lock()
        self._read_lock = threading.Lock() if output else self._lock
        self._is_noting = False
        self._sent: list[tuple[str, str, str, str]] = []
        if output:
            output.mkdir(parents=True, exist_ok=True)
        try:
            self._database = self._connect()
            self._database.execute("PRAGMA journal_mode = WAL")
            # A killed process loses nothing; a power cut may lose the last moments.
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_SCHEMA)
            self._take_over_uses()
            # Whoever looks for a reply need not wait for one that is being written.
            self._reader = self._connect() if output else self._database
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def _take_over_uses(self) -> None:
        """Take over what an earlier program noted in the table of requests."""
        columns = {row[1] for row in self._database.execute("PRAGMA table_info(requests)")}
        if "used_in" in columns and not self._database.execute("SELECT 1 FROM uses").fetchone():
            self._database.execute("INSERT INTO uses SELECT key, step, used_in FROM requests")

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)

    def close(self) -> None:
        # On a full disk what was noted as sent is lost, which costs nothing.
        with suppress(GraphRAGError), self.transaction():
            pass
        with self._lock:
            self._reader.close()
            self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Change the file: all of it or nothing, and before that what was noted as sent.

        Raises
        ------
        GraphRAGError
            It cannot be written: the disk is full, or another program holds it; or it is damaged.
        """
        with self._lock:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                self.record_all_sent(self._database, self._sent)
                yield self._database
                self._database.execute("COMMIT")
                self._sent.clear()
            except sqlite3.DatabaseError as error:
                self._roll_back()
                raise self._unusable(error) from error
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        with suppress(sqlite3.DatabaseError):
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")

    def _unusable(self, error: sqlite3.DatabaseError) -> GraphRAGError:
        """Say what can be done about a file that cannot be read or written."""
        if isinstance(error, sqlite3.OperationalError):
            return GraphRAGError(
                f"{self.path} cannot be written ({error}): mend that and run again; what was "
                "answered before is kept."
            )
        return GraphRAGError(
            f"{self.path} cannot be used ({error}): it holds the replies that were paid for; "
            "restore it, or move it away to start without them."
        )

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Read rows of the file."""
        with self._lock:
            return self._select(self._database, query, values)

    def _select(self, database: sqlite3.Connection, query: str, values: Sequence[Any]) -> list[Any]:
        try:
            return database.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def find(self, key: str) -> Entry | None:
        query = "SELECT state, reply, reason FROM requests WHERE key = ?"
        with self._read_lock:
            rows = self._select(self._reader, query, (key,))
        return Entry(rows[0][0], rows[0][1] or "", rows[0][2]) if rows else None

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        """Return a hash of the reply that is kept under each key; empty where none is."""
        return reply_hashes(self.rows, keys)

    def record_sent(self, key: str, step: str, unit: str, model: str) -> None:
        """Note that a request is about to be sent: with the next note that must last.

        To write each by itself takes as long as the call. What a kill loses of them is that
        a request, which was never answered, had been sent.
        """
        with self._lock:
            self._sent.append((key, step, unit, model))

    def record_all_sent(
        self, database: sqlite3.Connection, requests: Iterable[tuple[str, str, str, str]]
    ) -> None:
        """Note, in a transaction, that requests are sent: key, step, unit and model of each."""
        for key, step, unit, model in requests:
            database.execute(_SEND, (key, step, unit, model, OPEN))
            database.execute(_USE, (key, step, self.version))

    def record_cost(
        self, key: str, step: str, model: str, usage: Usage, cost: float | None
    ) -> None:
        """Note what a call has cost, whether its reply is good or not."""
        row = (key, step, model, self.version, usage.prompt, usage.cached, usage.completion, cost)
        with self.transaction() as database:
            database.execute("INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def record_reply(
        self, key: str, step: str, model: str, reply: str, usage: Usage, cost: float | None
    ) -> None:
        """Keep a validated reply and what it has cost."""
        row = (key, step, model, self.version, usage.prompt, usage.cached, usage.completion, cost)
        with self.transaction() as database:
            database.execute("INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            database.execute(_ANSWERED, (DONE, reply, key))

    def record_replies(self, replies: Mapping[str, str]) -> None:
        """Keep validated replies, which are paid for already, by their keys."""
        rows = [(DONE, reply, key) for key, reply in replies.items()]
        with self.transaction() as database:
            database.executemany(_ANSWERED, rows)

    def record_failure(self, key: str, state: str, reason: str, raw: str = "") -> None:
        """Note that a request is quarantined or skipped, or still open, and why."""
        with self.transaction() as database:
            database.execute(
                "UPDATE requests SET state = ?, reason = ?, raw = ? WHERE key = ?",
                (state, reason, raw, key),
            )

    def mark_used(self, keys: Iterable[str]) -> None:
        """Note that the version which is being made rests on these requests."""
        keys = list(keys)
        with self.transaction() as database:
            for marks, some in _together(keys):
                query = f"UPDATE uses SET version = ? WHERE key IN {marks}"
                database.execute(query, (self.version, *some))
            if self._is_noting:
                database.executemany(NOTE, ((key,) for key in keys))

    def track_use(self) -> None:
        """From now on note, apart from the file, which requests are used: to purge the others."""
        table = "CREATE TEMP TABLE IF NOT EXISTS used (key TEXT PRIMARY KEY) WITHOUT ROWID"
        with self.transaction() as database:
            database.execute(table)
            database.execute("DELETE FROM temp.used")
        self._is_noting = True

    def relabel(self, key: str, unit: str) -> None:
        """Note what a request is about now, such as a file that has another name."""
        if self.rows("SELECT 1 FROM requests WHERE key = ? AND unit != ?", key, unit):
            with self.transaction() as database:
                database.execute("UPDATE requests SET unit = ? WHERE key = ?", (unit, key))

    def shrink(self) -> bool:
        """Write the file anew, so that no byte of what was deleted stays; False if it does,
        since another program reads the file.
        """
        with self._lock:
            try:
                self._database.execute("VACUUM")
                # Who reads for longer than this, in ms, may do so for hours.
                self._database.execute("PRAGMA busy_timeout = 1000")
                query = "PRAGMA wal_checkpoint(TRUNCATE)"
                return not self._database.execute(query).fetchone()[0]
            except sqlite3.DatabaseError as error:
                raise self._unusable(error) from error

    def get_meta(self, name: str) -> str | None:
        rows = self.rows("SELECT value FROM facts WHERE name = ?", name)
        return rows[0][0] if rows else None

    def copy_capabilities(self, output: Path) -> None:
        """Take over what the ledger of an output folder knows of endpoints, if it can be read."""
        query = "SELECT name, value FROM facts WHERE name LIKE 'endpoint capabilities: %'"
        with suppress(sqlite3.Error):
            address = f"{(output / FILE).absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True)) as other:
                known = other.execute(query).fetchall()
            for name, value in known:
                self.set_meta(name, value)

    def set_meta(self, name: str, value: str) -> None:
        with self.transaction() as database:
            database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def spent(self) -> float:
        """Return what the version that is being made has cost so far, in dollars."""
        rows = self.rows("SELECT total(cost) FROM calls WHERE version = ?", self.version)
        return float(rows[0][0])

    def spent_for(self, version: int) -> Spent:
        """Return what the calls that were made for a version have used."""
        n, prompt, cached, completion, cost = self.rows(
            "SELECT count(*), total(prompt_tokens), total(cached_tokens), "
            "total(completion_tokens), CASE WHEN count(*) = count(cost) THEN total(cost) END "
            "FROM calls WHERE version = ?",
            version,
        )[0]
        return Spent(n, Usage(int(prompt), int(cached), int(completion)), cost)

    def quarantined(self, steps: Iterable[str]) -> list[Quarantined]:
        """Return what is quarantined in the newest version of some steps."""
        return [
            Quarantined(*row)
            for step in steps
            for row in self.rows(
                f"SELECT r.step, unit, reason, raw FROM requests AS r {_NEWEST} "
                "WHERE r.step = ? AND state = ? ORDER BY unit",
                step,
                QUARANTINED,
            )
        ]

    def release(self, steps: Iterable[str]) -> int:
        """Make what is quarantined open again; returns how many requests that are."""
        steps = list(steps)
        marks = ", ".join("?" * len(steps))
        with self.transaction() as database:
            cursor = database.execute(
                "UPDATE requests SET state = ?, attempts = 0 "
                f"WHERE state = ? AND step IN ({marks})",
                (OPEN, QUARANTINED, *steps),
            )
            return cursor.rowcount

    def status(self) -> list[StepStatus]:
        """Return the state of each step that asked a model, and what it has cost."""
        with self.transaction():
            pass
        states = self.rows(
            "SELECT r.step, model, sum(state = 'done'), sum(state = 'open'), "
            f"sum(state = 'quarantined'), sum(state = 'skipped') FROM requests AS r {_NEWEST} "
            "GROUP BY r.step, model ORDER BY min(u.version), r.step, model"
        )
        costs = {
            row[:2]: row[2:]
            for row in self.rows(
                "SELECT step, model, sum(prompt_tokens), sum(cached_tokens), "
                "sum(completion_tokens), CASE WHEN count(*) = count(cost) THEN total(cost) END "
                "FROM calls GROUP BY step, model"
            )
        }
        return [StepStatus(*row, *costs.get(row[:2], (0, 0, 0, 0.0))) for row in states]
