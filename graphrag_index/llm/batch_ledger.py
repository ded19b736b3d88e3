"""Tables of the ledger for batches: their state, their requests, and unvalidated replies.

Requests are recorded as part of a batch before the batch is uploaded. One transaction records
a reply and its cost, and removes its request from the batch. So no request is sent or paid for
twice, whenever the process is killed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from graphrag_index.llm.ledger import DELETE_RESULT, INSERT_CALL, Ledger
from graphrag_index.llm.request import Usage

# States of a batch. `prepared`: its file exists on this machine. `uploaded`: its file is at the
# provider, and the batch may have been created. `submitted`: the provider's id of the batch is
# known. `collected`: all its replies are in the ledger.
PREPARED, UPLOADED, SUBMITTED, COLLECTED = "prepared", "uploaded", "submitted", "collected"

_UPSERT_RESULT = """
INSERT INTO batch_replies VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET status = excluded.status, message = excluded.message,
    failures = failures + excluded.failures, capabilities = excluded.capabilities
"""
_DELETE_REQUESTS = "DELETE FROM batch_requests WHERE batch = ?"


class Batch(NamedTuple):
    """A row of the table `batches`."""

    key: str
    step: str
    model: str
    state: str
    file_id: str
    id: str
    n_requests: int
    n_tokens: int
    max_cost: float
    capabilities: str
    submitted: float
    status: str = ""
    n_done: int = 0


@dataclass(frozen=True)
class ReceivedResult:
    """The result of one request in a result file of a batch: a reply or an error."""

    key: str
    reply: str | None = None
    finish: str = "stop"  # reason why the reply ends
    usage: Usage | None = None  # None: the request cost nothing
    cost: float | None = None  # in dollars; None if the price is not known
    status: int = 200  # HTTP status
    message: str = ""  # error message of the provider
    is_temporary: bool = False  # the error is temporary


class BatchResult(NamedTuple):
    """A row of `batch_replies`: the last result of a request that has no valid reply yet."""

    attempt: str
    reply: str | None
    finish: str
    status: int
    message: str
    failures: int
    capabilities: str


class BatchLedger:
    """The tables for batches in a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def open_batches(self, step: str | None = None, model: str | None = None) -> list[Batch]:
        """Return the batches that are not collected yet, oldest first."""
        query = (
            "SELECT * FROM batches WHERE state != ?1 AND (?2 IS NULL OR step = ?2) "
            "AND (?3 IS NULL OR model = ?3) ORDER BY submitted, key"
        )
        return [Batch(*row) for row in self._ledger.fetch_rows(query, COLLECTED, step, model)]

    def has_failed_twice(self, step: str, model: str) -> bool:
        """Tell whether the two most recent collected batches failed as a whole."""
        query = (
            "SELECT status FROM batches WHERE state = ? AND step = ? AND model = ? "
            "ORDER BY submitted DESC, key DESC LIMIT 2"
        )
        return self._ledger.fetch_rows(query, COLLECTED, step, model) == [("failed",)] * 2

    def record_batch(self, batch: Batch, requests: Mapping[str, tuple[str, str]]) -> None:
        """Record a batch before it is uploaded; `requests` maps keys to (label, attempt)."""
        with self._ledger.transaction() as database:
            places = ", ".join("?" * len(batch))
            database.execute(f"INSERT INTO batches VALUES ({places})", batch)
            attempts = ((key, batch.key, attempt) for key, (_, attempt) in requests.items())
            database.executemany("INSERT INTO batch_requests VALUES (?, ?, ?)", attempts)
            sent = ((key, batch.step, unit, batch.model) for key, (unit, _) in requests.items())
            self._ledger.record_all_sent(database, sent)

    def update_batch(self, batch: Batch) -> None:
        """Record the state of a batch; a collected batch loses its requests without a result."""
        with self._ledger.transaction() as database:
            if batch.state == COLLECTED:
                database.execute(_DELETE_REQUESTS, (batch.key,))
            database.execute(
                "UPDATE batches SET state = ?, file_id = ?, batch_id = ?, status = ?, n_done = ? "
                "WHERE key = ?",
                (batch.state, batch.file_id, batch.id, batch.status, batch.n_done, batch.key),
            )

    def delete_batch(self, batch: Batch) -> None:
        """Delete a batch, so that its requests are queued for the next batch."""
        with self._ledger.transaction() as database:
            database.execute(_DELETE_REQUESTS, (batch.key,))
            database.execute("DELETE FROM batches WHERE key = ?", (batch.key,))

    def record_results(self, batch: Batch, received: Iterable[ReceivedResult]) -> float:
        """Record results of a batch, each only once; returns the cost of all, in dollars."""
        total = 0.0
        query = "DELETE FROM batch_requests WHERE key = ? AND batch = ? RETURNING attempt"
        with self._ledger.transaction() as database:
            for new in received:
                for (attempt,) in database.execute(query, (new.key, batch.key)).fetchall():
                    if new.reply is not None:
                        database.execute(DELETE_RESULT, (new.key,))
                    result = (new.reply, new.finish, new.status, new.message, new.is_temporary)
                    row = (new.key, attempt, *result, batch.capabilities)
                    database.execute(_UPSERT_RESULT, row)
                    if new.usage is not None:
                        call = (new.key, batch.step, batch.model, new.usage, new.cost)
                        database.execute(INSERT_CALL, self._ledger.call_row(*call))
                        total += new.cost or 0.0
        return total

    def unanswered_keys(self, batch: Batch) -> list[str]:
        """Return the keys of the requests of a batch that have no result yet."""
        rows = self._ledger.fetch_rows("SELECT key FROM batch_requests WHERE batch = ?", batch.key)
        return [key for (key,) in rows]

    def is_in_batch(self, key: str) -> bool:
        """Tell whether a request is in a batch that is not collected yet."""
        return bool(self._ledger.fetch_rows("SELECT 1 FROM batch_requests WHERE key = ?", key))

    def find_result(self, key: str) -> BatchResult | None:
        """Return the last result of a request without a valid reply; None if there is none."""
        columns = ", ".join(BatchResult._fields)
        rows = self._ledger.fetch_rows(f"SELECT {columns} FROM batch_replies WHERE key = ?", key)
        return BatchResult(*rows[0]) if rows else None
