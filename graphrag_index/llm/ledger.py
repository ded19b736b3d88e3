"""The ledger: a persistent cache of model replies and their costs, in one SQLite file.

A request is recorded before it is sent and again when its reply is valid, so that no reply
is paid for twice: a kill in between loses that one call.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.request import Spent, Usage

FILE = "ledger.sqlite"
# Keys in one query.
KEYS_AT_ONCE = 500

# States of a request. `open`: sent, or to be sent, and not answered yet.
OPEN, DONE, QUARANTINED = "open", "done", "quarantined"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS requests (
    key TEXT PRIMARY KEY,        -- hash of model, parameters, messages and schema
    step TEXT NOT NULL,
    unit TEXT NOT NULL,          -- a label for people
    model TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    reply BLOB,                  -- validated
    reason TEXT NOT NULL DEFAULT '',
    raw TEXT NOT NULL DEFAULT '' -- the last invalid reply
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS requests_by_state ON requests (step, state);
-- Apart from the requests, whose replies are long: each run marks the requests that it uses.
CREATE TABLE IF NOT EXISTS uses (
    key TEXT PRIMARY KEY,        -- of the request
    step TEXT NOT NULL,
    version INTEGER NOT NULL     -- the newest that uses it
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
CREATE TABLE IF NOT EXISTS metadata (
    name TEXT PRIMARY KEY,       -- such as the capabilities of a server
    value TEXT NOT NULL
) WITHOUT ROWID;
"""

IN_MEMORY = ":memory:"

_SEND = """
INSERT INTO requests (key, step, unit, model, state, attempts) VALUES (?1, ?2, ?3, ?4, ?5, 1)
ON CONFLICT (key) DO UPDATE SET state = excluded.state, attempts = attempts + 1,
    unit = excluded.unit
"""
ANSWERED = "UPDATE requests SET state = ?, reply = ?, reason = '', raw = '' WHERE key = ?"
FAILED = "UPDATE requests SET state = ?, reason = ?, raw = ? WHERE key = ?"
INSERT_CALL = "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
# Into the table of `track_use`.
INSERT_USED = "INSERT OR IGNORE INTO temp.used VALUES (?)"
# A request of the newest version of its step.
_NEWEST = """
JOIN uses AS u ON u.key = r.key
    AND u.version = (SELECT max(version) FROM uses WHERE step = r.step)
"""
# Sums of the calls; the cost is null if the price of one is not known.
_TOTALS = (
    "sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), "
    "CASE WHEN count(*) = count(cost) THEN total(cost) END"
)


class Entry(NamedTuple):
    """The state of a request, its reply, and the reason of a failure."""

    state: str
    reply: str
    reason: str


class StepStatus(NamedTuple):
    """Counts of the requests of a step and model in its newest version, and total costs."""

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


class Quarantined(NamedTuple):
    """A request without a valid reply, and the reason."""

    step: str
    unit: str
    reason: str
    raw: str


def _key_batches(keys: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Split keys into batches for one query each, with its placeholders."""
    # In the order of the file, so that no page of it is read twice.
    ordered = sorted(keys)
    for start in range(0, len(ordered), KEYS_AT_ONCE):
        some = ordered[start : start + KEYS_AT_ONCE]
        yield f"({', '.join('?' * len(some))})", some


class Ledger:
    """The ledger of one output folder, or one in memory; safe to use from several threads.

    With `read_only` the file must exist, and nothing is written into it.
    """

    def __init__(self, output: Path | None, version: int = 0, read_only: bool = False) -> None:
        self.path = output / FILE if output else IN_MEMORY
        self.version, self._is_read_only = version, read_only
        self._lock = threading.Lock()
        is_shared = output is None or read_only
        self._read_lock = self._lock if is_shared else threading.Lock()
        self._tracks_use = False
        self._sent: list[tuple[str, str, str, str]] = []
        if output and not read_only:
            output.mkdir(parents=True, exist_ok=True)
        with self._explain_errors():
            self._database = self._connect()
            if not read_only:
                self._database.execute("PRAGMA journal_mode = WAL")
                # A killed process loses nothing; a power cut may lose the last moments.
                self._database.execute("PRAGMA synchronous = NORMAL")
                self._database.executescript(_SCHEMA)
            # A second connection, so that a look-up does not wait for a write.
            self._reader = self._database if is_shared else self._connect()

    def _connect(self) -> sqlite3.Connection:
        address = str(self.path)
        if isinstance(self.path, Path) and self._is_read_only:
            # Without a write-ahead log, SQLite would create one unless the file is immutable.
            is_written = self.path.with_name(f"{FILE}-wal").exists()
            mode = "mode=ro" if is_written else "mode=ro&immutable=1"
            address = f"{self.path.absolute().as_uri()}?{mode}"
        return sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False, timeout=30
        )

    def close(self) -> None:
        """Write the pending records, and close the file."""
        # On a full disk the records of sent requests are lost, which costs nothing.
        if self._sent:
            with suppress(GraphRAGError), self.transaction():
                pass
        with self._lock:
            self._reader.close()
            self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a write transaction, flushing pending records of sent requests first.

        Raises `GraphRAGError` if the file is damaged or cannot be written.
        """
        with self._lock, self._explain_errors():
            try:
                self._database.execute("BEGIN IMMEDIATE")
                self.record_all_sent(self._database, self._sent)
                yield self._database
                self._database.execute("COMMIT")
                self._sent.clear()
            except BaseException:
                with suppress(sqlite3.DatabaseError):
                    if self._database.in_transaction:
                        self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Raise errors of the file as a `GraphRAGError`."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and not self._is_read_only:
                raise GraphRAGError(
                    f"{self.path} cannot be written ({error}): fix that and run again; what was "
                    "answered before is kept."
                ) from error
            raise GraphRAGError(
                f"{self.path} cannot be read ({error}): it holds the replies that were paid for; "
                "restore it, or move it away to start without them."
            ) from error

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Run a query, and return its rows."""
        with self._lock, self._explain_errors():
            return self._database.execute(query, values).fetchall()

    def find(self, key: str) -> Entry | None:
        """Return the entry of a request, by its cache key."""
        query = "SELECT state, coalesce(reply, ''), reason FROM requests WHERE key = ?"
        with self._read_lock, self._explain_errors():
            row = self._reader.execute(query, (key,)).fetchone()
        return Entry(*row) if row else None

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        """Return a hash of the reply that is kept under each key; empty where none is."""
        wanted = list(keys)
        # As bytes, which need not become a text and bytes again.
        query = "SELECT key, CAST(reply AS BLOB) FROM requests WHERE state = ? AND key IN "
        hashes = {
            key: blake2b(reply or b"", digest_size=16).hexdigest()
            for places, some in _key_batches(wanted)
            for key, reply in self.rows(query + places, DONE, *some)
        }
        return [hashes.get(key, "") for key in wanted]

    def record_sent(self, key: str, step: str, unit: str, model: str) -> None:
        """Record with the next transaction that a request is being sent.

        A transaction of its own would take as long as the call. A kill loses only this record.
        """
        with self._lock:
            self._sent.append((key, step, unit, model))

    def record_all_sent(
        self, database: sqlite3.Connection, requests: Iterable[tuple[str, str, str, str]]
    ) -> None:
        """Record in a transaction that requests are sent: key, step, unit and model of each."""
        for key, step, unit, model in requests:
            database.execute(_SEND, (key, step, unit, model, OPEN))
            use = (key, step, self.version)
            database.execute("INSERT OR REPLACE INTO uses VALUES (?, ?, ?)", use)

    def record_cost(
        self, key: str, step: str, model: str, usage: Usage, cost: float | None
    ) -> None:
        """Record the cost of a call, whether its reply is valid or not."""
        with self.transaction() as database:
            database.execute(INSERT_CALL, self.call_row(key, step, model, usage, cost))

    def record_reply(
        self, key: str, step: str, model: str, reply: str, usage: Usage, cost: float | None
    ) -> None:
        """Keep a validated reply and its cost."""
        with self.transaction() as database:
            database.execute(INSERT_CALL, self.call_row(key, step, model, usage, cost))
            database.execute(ANSWERED, (DONE, reply, key))

    def call_row(
        self, key: str, step: str, model: str, usage: Usage, cost: float | None
    ) -> tuple[Any, ...]:
        """Return the row of a call made for this version."""
        counts = (usage.prompt, usage.cached, usage.completion)
        return (key, step, model, self.version, *counts, cost)

    def record_replies(self, replies: Mapping[str, str]) -> None:
        """Keep validated replies, whose costs are recorded already, by their keys."""
        with self.transaction() as database:
            database.executemany(ANSWERED, ((DONE, reply, key) for key, reply in replies.items()))

    def record_failure(self, key: str, reason: str, raw: str = "") -> None:
        """Record that a request is quarantined, with the reason."""
        with self.transaction() as database:
            database.execute(FAILED, (QUARANTINED, reason, raw, key))

    def mark_used(self, keys: Iterable[str]) -> None:
        """Mark requests as used by the version that is being made."""
        keys = list(keys)
        with self.transaction() as database:
            for places, some in _key_batches(keys):
                query = f"UPDATE uses SET version = ? WHERE key IN {places}"
                database.execute(query, (self.version, *some))
            if self._tracks_use:
                database.executemany(INSERT_USED, ((key,) for key in keys))

    def track_use(self) -> None:
        """Track, apart from the file, the requests used from now on, to purge the others."""
        with self.transaction() as database:
            database.execute("DROP TABLE IF EXISTS temp.used")
            database.execute("CREATE TEMP TABLE used (key TEXT PRIMARY KEY) WITHOUT ROWID")
        self._tracks_use = True

    def relabel(self, key: str, unit: str) -> None:
        """Replace the label of a request, such as when a file is renamed."""
        if self.rows("SELECT 1 FROM requests WHERE key = ? AND unit != ?", key, unit):
            with self.transaction() as database:
                database.execute("UPDATE requests SET unit = ? WHERE key = ?", (unit, key))

    def shrink(self) -> bool:
        """Compact the file, so that no deleted byte stays; False while another program reads."""
        with self._lock, self._explain_errors():
            self._database.execute("VACUUM")
            # In ms: a longer reader may read for hours.
            self._database.execute("PRAGMA busy_timeout = 1000")
            return not self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

    def get_meta(self, name: str) -> str | None:
        """Return a value that was kept beside the replies."""
        rows = self.rows("SELECT value FROM metadata WHERE name = ?", name)
        return rows[0][0] if rows else None

    def copy_capabilities(self, output: Path) -> None:
        """Copy the capabilities of servers from the ledger of a folder, if it is readable."""
        query = "SELECT name, value FROM metadata WHERE name LIKE 'endpoint capabilities: %'"
        with suppress(GraphRAGError), closing(Ledger(output, read_only=True)) as other:
            for name, value in other.rows(query):
                self.set_meta(name, value)

    def set_meta(self, name: str, value: str) -> None:
        """Keep a value beside the replies."""
        with self.transaction() as database:
            database.execute("INSERT OR REPLACE INTO metadata VALUES (?, ?)", (name, value))

    def spent(self) -> float:
        """Return the cost so far of the version that is being made, in dollars."""
        query = "SELECT total(cost) FROM calls WHERE version = ?"
        return float(self.rows(query, self.version)[0][0])

    def spent_for(self, version: int) -> Spent:
        """Return the calls, tokens and cost of a version."""
        query = f"SELECT count(*), {_TOTALS} FROM calls WHERE version = ?"
        n_calls, *n_tokens, cost = self.rows(query, version)[0]
        # An empty sum is null.
        return Spent(n_calls, Usage(*(n or 0 for n in n_tokens)), cost)

    def quarantined(self, steps: Iterable[str]) -> list[Quarantined]:
        """Return the quarantined requests of the newest version of some steps."""
        query = f"SELECT r.step, unit, reason, raw FROM requests AS r {_NEWEST} "
        query += "WHERE r.step = ? AND state = ? ORDER BY unit"
        found = (row for step in steps for row in self.rows(query, step, QUARANTINED))
        return [Quarantined(*row) for row in found]

    def release(self, steps: Iterable[str]) -> int:
        """Reopen the quarantined requests of some steps; returns their number."""
        query = "UPDATE requests SET state = ?, attempts = 0 WHERE state = ? AND step = ?"
        with self.transaction() as database:
            return sum(
                database.execute(query, (OPEN, QUARANTINED, step)).rowcount for step in steps
            )

    def status(self) -> list[StepStatus]:
        """Return the counts of requests of each step that used a model, and their costs."""
        with self.transaction():
            pass
        states = self.rows(
            "SELECT r.step, model, sum(state = 'done'), sum(state = 'open'), "
            f"sum(state = 'quarantined'), sum(state = 'skipped') FROM requests AS r {_NEWEST} "
            "GROUP BY r.step, model ORDER BY min(u.version), r.step, model"
        )
        calls = self.rows(f"SELECT step, model, {_TOTALS} FROM calls GROUP BY step, model")
        costs = {row[:2]: row[2:] for row in calls}
        return [StepStatus(*row, *costs.get(row[:2], (0, 0, 0, 0.0))) for row in states]
