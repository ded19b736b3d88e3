"""Batches in the ledger: what was submitted, where it stands, and what came back unread.

Before a batch is uploaded, its requests are noted as in it; what it holds for each is noted
together with what that cost, and the request is in it no longer. So whatever is killed in
between, nothing is asked or paid twice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from graphrag_index.llm.ledger import DONE, Ledger
from graphrag_index.llm.request import Usage

# What a batch can be. `prepared`: its file lies here; `uploaded`: there, and the batch may have
# been made; `submitted`: its id is known; `collected`: all that it gave is in the ledger.
PREPARED, UPLOADED, SUBMITTED, COLLECTED = "prepared", "uploaded", "submitted", "collected"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
    key TEXT PRIMARY KEY,        -- ours: the name of its file, and in its metadata
    step TEXT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL,
    file_id TEXT NOT NULL,       -- the provider's, empty until it is known
    batch_id TEXT NOT NULL,
    n_requests INTEGER NOT NULL,
    n_tokens INTEGER NOT NULL,   -- estimated, of all prompts and replies
    most REAL NOT NULL,          -- dollars that it may cost
    capabilities TEXT NOT NULL,  -- of the endpoint, as the requests were written
    submitted REAL NOT NULL,     -- seconds since 1970
    said TEXT NOT NULL,          -- how it stands, in the provider's word
    n_done INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batch_requests (
    key TEXT PRIMARY KEY,
    batch TEXT NOT NULL,
    attempt TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS requests_by_batch ON batch_requests (batch);
CREATE TABLE IF NOT EXISTS batch_replies (
    key TEXT PRIMARY KEY,
    attempt TEXT NOT NULL,
    reply TEXT,                  -- null if none came yet
    finish TEXT NOT NULL,
    status INTEGER NOT NULL,     -- of HTTP, 200 if the reply is to be read
    said TEXT NOT NULL,          -- the error, in the provider's words
    failures INTEGER NOT NULL,   -- which may pass
    capabilities TEXT NOT NULL
) WITHOUT ROWID;
"""

_TAKE = """
INSERT INTO batch_replies VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (key) DO UPDATE SET status = excluded.status, said = excluded.said,
    failures = failures + excluded.failures, capabilities = excluded.capabilities
"""


@dataclass(frozen=True)
class Batch:
    """A batch as the ledger has it; the columns of its table."""

    key: str
    step: str
    model: str
    state: str
    file_id: str
    id: str
    n_requests: int
    n_tokens: int
    most: float
    capabilities: str
    submitted: float
    said: str = ""
    n_done: int = 0


@dataclass(frozen=True)
class Line:
    """A request in a batch that is about to be submitted."""

    key: str
    unit: str
    attempt: str


@dataclass(frozen=True)
class Received:
    """What a batch gave for one request: a reply, or an error."""

    key: str
    reply: str | None = None
    finish: str = "stop"
    usage: Usage | None = None  # none: nothing was paid
    cost: float | None = None
    status: int = 200
    said: str = ""
    may_pass: bool = False


@dataclass(frozen=True)
class Kept:
    """What is known of a request that is neither done nor in a batch."""

    attempt: str
    reply: str | None
    finish: str
    status: int
    said: str
    failures: int
    capabilities: str


class BatchLedger:
    """The batches of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        with ledger.transaction() as database:
            for statement in _SCHEMA.split(";"):
                database.execute(statement)

    def open(self, step: str | None = None, model: str | None = None) -> list[Batch]:
        """Return the batches that are not collected, in the order in which they were made."""
        rows = self._ledger.rows(
            "SELECT * FROM batches WHERE state != ?1 AND (?2 IS NULL OR step = ?2) "
            "AND (?3 IS NULL OR model = ?3) ORDER BY submitted, key",
            COLLECTED,
            step,
            model,
        )
        return [Batch(*row) for row in rows]

    def held(self) -> float:
        """Return what the batches that are not collected may cost, in dollars."""
        return sum(batch.most for batch in self.open())

    def n_failed_of_late(self, step: str, model: str) -> int:
        """Return how many of the last batches that were collected have failed as a whole."""
        rows = self._ledger.rows(
            "SELECT said FROM batches WHERE state = ? AND step = ? AND model = ? "
            "ORDER BY submitted DESC, key DESC LIMIT 20",
            COLLECTED,
            step,
            model,
        )
        said = [said for (said,) in rows]
        return next((n for n, word in enumerate(said) if word != "failed"), len(said))

    def prepare(self, batch: Batch, lines: Sequence[Line]) -> None:
        """Note a batch and its requests, right before it is uploaded."""
        with self._ledger.transaction() as database:
            marks = ", ".join("?" * len(astuple(batch)))
            database.execute(f"INSERT INTO batches VALUES ({marks})", astuple(batch))
            database.executemany(
                "INSERT INTO batch_requests VALUES (?, ?, ?)",
                ((line.key, batch.key, line.attempt) for line in lines),
            )
            self._ledger.record_all_sent(
                database, ((line.key, batch.step, line.unit, batch.model) for line in lines)
            )

    def update(self, batch: Batch) -> None:
        """Note where a batch stands."""
        with self._ledger.transaction() as database:
            database.execute(
                "UPDATE batches SET state = ?, file_id = ?, batch_id = ?, said = ?, n_done = ? "
                "WHERE key = ?",
                (batch.state, batch.file_id, batch.id, batch.said, batch.n_done, batch.key),
            )

    def drop(self, batch: Batch) -> None:
        """Forget a batch: its requests go into the next one."""
        with self._ledger.transaction() as database:
            database.execute("DELETE FROM batch_requests WHERE batch = ?", (batch.key,))
            database.execute("DELETE FROM batches WHERE key = ?", (batch.key,))

    def take(self, batch: Batch, received: Iterable[Received]) -> float:
        """Note what a batch gave, once; returns what it cost, in dollars."""
        total = 0.0
        with self._ledger.transaction() as database:
            for one in received:
                row = database.execute(
                    "DELETE FROM batch_requests WHERE key = ? AND batch = ? RETURNING attempt",
                    (one.key, batch.key),
                ).fetchall()
                if not row:
                    continue
                values: tuple[Any, ...] = (one.key, row[0][0], one.reply, one.finish, one.status)
                values += (one.said, int(one.may_pass), batch.capabilities)
                if one.reply is not None:
                    database.execute("DELETE FROM batch_replies WHERE key = ?", (one.key,))
                database.execute(_TAKE, values)
                if one.usage is not None:
                    counts = (one.usage.prompt, one.usage.cached, one.usage.completion)
                    database.execute(
                        "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                        (one.key, batch.step, batch.model, self._ledger.version, *counts, one.cost),
                    )
                    total += one.cost or 0.0
        return total

    def left(self, batch: Batch) -> list[str]:
        """Return the keys of the requests for which a batch has given nothing."""
        rows = self._ledger.rows("SELECT key FROM batch_requests WHERE batch = ?", batch.key)
        return [key for (key,) in rows]

    def collected(self, batch: Batch) -> None:
        """Note that a batch gives nothing more: what is left of it goes into the next one."""
        with self._ledger.transaction() as database:
            database.execute("DELETE FROM batch_requests WHERE batch = ?", (batch.key,))
            database.execute(
                "UPDATE batches SET state = ?, said = ?, n_done = ? WHERE key = ?",
                (COLLECTED, batch.said, batch.n_done, batch.key),
            )

    def is_in_batch(self, key: str) -> bool:
        """Whether a request is in a batch that is not collected."""
        return bool(self._ledger.rows("SELECT 1 FROM batch_requests WHERE key = ?", key))

    def kept(self, key: str) -> Kept | None:
        """Return what came back for a request and has not been read yet, or was no good."""
        rows = self._ledger.rows(
            "SELECT attempt, reply, finish, status, said, failures, capabilities "
            "FROM batch_replies WHERE key = ?",
            key,
        )
        return Kept(*rows[0]) if rows else None

    def record_reply(self, key: str, reply: str) -> None:
        """Keep a reply that was read; it was paid for when it came."""
        with self._ledger.transaction() as database:
            database.execute("DELETE FROM batch_replies WHERE key = ?", (key,))
            database.execute(
                "UPDATE requests SET state = ?, reply = ?, reason = '', raw = '' WHERE key = ?",
                (DONE, reply, key),
            )

    def record_failure(self, key: str, state: str, reason: str, raw: str) -> None:
        """Note that a request is quarantined or skipped, and why."""
        with self._ledger.transaction() as database:
            database.execute("DELETE FROM batch_replies WHERE key = ?", (key,))
            database.execute(
                "UPDATE requests SET state = ?, reason = ?, raw = ? WHERE key = ?",
                (state, reason, raw, key),
            )
