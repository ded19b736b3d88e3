"""The ledger: a persistent cache of model replies and their costs, in one SQLite file.

A request is recorded before it is sent, and its reply as soon as it is valid. So no reply is
paid for twice, except the replies to calls that were running when the process was killed.
Requests are recorded as part of a batch before the batch is uploaded; one transaction records a
reply and its cost, and removes its request from the batch.
"""

import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.request import TOO_LONG, Spending, Usage

FILE = "ledger.sqlite"
# Maximum number of keys in one query.
KEYS_PER_QUERY = 500

# States of a request. `open`: there is no valid reply yet.
OPEN, DONE, QUARANTINED = "open", "done", "quarantined"

IN_MEMORY = ":memory:"
# The beginnings of the names of metadata entries about servers, and of those about their limits.
CAPABILITIES = "endpoint capabilities: "
TOKEN_LIMITS = f"{CAPABILITIES}tokens of "

_UPSERT_SENT_REQUEST = """
INSERT INTO requests (key, step, unit, model, state, attempts) VALUES (?1, ?2, ?3, ?4, ?5, 1)
ON CONFLICT (key) DO UPDATE SET state = excluded.state, attempts = attempts + 1,
    unit = excluded.unit
"""
UPDATE_ANSWERED = "UPDATE requests SET state = ?, reply = ?, reason = ?, raw = '' WHERE key = ?"
# The reason of an answered request whose reply is truncated.
TRUNCATED = "truncated"
# Deletes the result of a request in a batch, which was not validated yet.
DELETE_RESULT = "DELETE FROM batch_replies WHERE key = ?"
INSERT_CALL = "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
# Inserts a key into the temporary table that `Ledger.track_use` creates.
INSERT_USED = "INSERT OR IGNORE INTO temp.used VALUES (?)"
# Selects the requests that the newest version of their step uses.
_NEWEST_USES = """
JOIN uses AS u ON u.key = r.key
    AND u.version = (SELECT max(version) FROM uses WHERE step = r.step)
"""
# Sums over calls; the total cost is null if the cost of any call is null.
_SUM_COLUMNS = (
    "sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), "
    "CASE WHEN count(*) = count(cost) THEN total(cost) END"
)


# How the reasons begin for which a server refuses a request whenever it is sent.
_FINAL_REASON = re.compile(rf"HTTP 4|error in the answer|the model refused|{TOO_LONG}")


class LedgerEntry(NamedTuple):
    """The state of a request, its valid reply, and why it is quarantined or truncated."""

    state: str
    reply: str
    reason: str


class StepStatus(NamedTuple):
    """Requests of one step and model in its newest version by state, and costs of all versions."""

    step: str
    model: str
    done: int
    open: int
    quarantined: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    cost: float | None  # in dollars; None if the price of any call is not known


class QuarantinedRequest(NamedTuple):
    """A quarantined request: its step, its label, the reason, and the last raw reply."""

    step: str
    unit: str
    reason: str
    raw: str

    @property
    def is_final(self) -> bool:
        """Whether another try would be refused too: the request or its content is at fault."""
        return _FINAL_REASON.match(self.reason) is not None


class Ledger:
    """The ledger of one output folder, or in memory if `output` is None. It is thread-safe.

    `version` is the version of the index that the run creates. With `read_only`, the file must
    exist, and nothing is written to it.
    """

    def __init__(self, output: Path | None, version: int = 0, read_only: bool = False) -> None:
        self.path = output / FILE if output else IN_MEMORY
        self.version, self._is_read_only = version, read_only
        self._lock = threading.Lock()
        is_shared = output is None or read_only
        self._read_lock = self._lock if is_shared else threading.Lock()
        self._tracks_use = False
        # Folder of the index whose ledger gets the token limits too.
        self._shared: Path | None = None
        self._sent: list[tuple[str, str, str, str]] = []
        if output and not read_only:
            output.mkdir(parents=True, exist_ok=True)
        with self._explain_errors():
            self._database = self._open_connection()
            if not read_only:
                self._database.execute("PRAGMA journal_mode = WAL")
                # A killed process loses no transaction; a power cut may lose the last few.
                self._database.execute("PRAGMA synchronous = NORMAL")
                schema = files("graphrag_index.llm").joinpath("ledger.sql")
                self._database.executescript(schema.read_text(encoding="utf-8"))
            # Use a second connection, so that a lookup does not wait for a write transaction.
            self._reader = self._database if is_shared else self._open_connection()

    def _open_connection(self) -> sqlite3.Connection:
        address = str(self.path)
        if isinstance(self.path, Path) and self._is_read_only:
            # If there is no write-ahead log, SQLite would create one, unless `immutable` is set.
            is_written = self.path.with_name(f"{FILE}-wal").exists()
            mode = "mode=ro" if is_written else "mode=ro&immutable=1"
            address = f"{self.path.absolute().as_uri()}?{mode}"
        return sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False, timeout=30
        )

    def close(self) -> None:
        """Write the pending records, and close the file."""
        # If the disk is full, only records of sent requests are lost: their loss does no harm.
        if self._sent:
            with suppress(GraphRAGError), self.transaction():
                pass
        with self._lock:
            self._reader.close()
            self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction, which first writes the pending records of sent requests.

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
        """Turn exceptions of SQLite into a `GraphRAGError`."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and not self._is_read_only:
                raise GraphRAGError(
                    f"{self.path} cannot be written ({error}): fix the cause and run again; "
                    "received replies are kept."
                ) from error
            raise GraphRAGError(
                f"{self.path} cannot be read ({error}): it contains the replies that you have paid "
                "for; restore the file, or move it away to start without these replies."
            ) from error

    def fetch_rows(self, query: str, *values: Any) -> list[Any]:
        """Run a query, and return its rows."""
        with self._lock, self._explain_errors():
            return self._database.execute(query, values).fetchall()

    def find_entry(self, key: str) -> LedgerEntry | None:
        """Look up a request by its cache key; None if it is not in the ledger."""
        query = "SELECT state, coalesce(reply, ''), reason FROM requests WHERE key = ?"
        with self._read_lock, self._explain_errors():
            row = self._reader.execute(query, (key,)).fetchone()
        return LedgerEntry(*row) if row else None

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        """Return the hash of the cached reply for each key; "" for a key without a reply."""
        wanted = list(keys)
        # Sort the keys as the table is sorted, so that SQLite reads no page of the file twice.
        ordered, hashes = sorted(wanted), dict[str, str]()
        for start in range(0, len(ordered), KEYS_PER_QUERY):
            some = ordered[start : start + KEYS_PER_QUERY]
            # Read replies as bytes: decoding and encoding them again would take time.
            query = "SELECT key, CAST(reply AS BLOB) FROM requests WHERE state = ? AND key IN "
            query += f"({', '.join('?' * len(some))})"
            for key, reply in self.fetch_rows(query, DONE, *some):
                hashes[key] = blake2b(reply or b"", digest_size=16).hexdigest()
        return [hashes.get(key, "") for key in wanted]

    def record_sent(self, key: str, step: str, unit: str, model: str) -> None:
        """Record that a request is being sent; the next transaction writes the record.

        A separate transaction for this record would be slow. If the process is killed before
        the next transaction, only this record is lost.
        """
        with self._lock:
            self._sent.append((key, step, unit, model))

    def record_all_sent(
        self, database: sqlite3.Connection, requests: Iterable[tuple[str, str, str, str]]
    ) -> None:
        """Record in an open transaction that requests are sent: tuples (key, step, unit, model)."""
        for key, step, unit, model in requests:
            database.execute(_UPSERT_SENT_REQUEST, (key, step, unit, model, OPEN))
            use = (key, step, self.version)
            database.execute("INSERT OR REPLACE INTO uses VALUES (?, ?, ?)", use)

    def record_call(
        self,
        key: str,
        step: str,
        model: str,
        usage: Usage,
        cost: float | None,
        reply: str | None = None,
        is_truncated: bool = False,
    ) -> None:
        """Record the tokens and the cost (in dollars) of a call, and its reply if it is valid."""
        reason = TRUNCATED if is_truncated else ""
        with self.transaction() as database:
            database.execute(INSERT_CALL, self.call_row(key, step, model, usage, cost))
            if reply is not None:
                database.execute(UPDATE_ANSWERED, (DONE, reply, reason, key))

    def call_row(
        self, key: str, step: str, model: str, usage: Usage, cost: float | None
    ) -> tuple[Any, ...]:
        """Return the row of the table `calls` for a call made by this run."""
        counts = (usage.prompt, usage.cached, usage.completion)
        return (key, step, model, self.version, *counts, cost)

    def record_replies(self, replies: Mapping[str, str], reason: str = "") -> None:
        """Record validated replies by their keys. Their costs are recorded already.

        `reason` is `TRUNCATED` if they are truncated.
        """
        with self.transaction() as database:
            database.executemany(DELETE_RESULT, ((key,) for key in replies))
            database.executemany(
                UPDATE_ANSWERED, ((DONE, reply, reason, key) for key, reply in replies.items())
            )

    def record_failure(self, key: str, reason: str, raw: str = "") -> None:
        """Record that a request is quarantined, the reason, and the raw reply."""
        with self.transaction() as database:
            database.execute(DELETE_RESULT, (key,))
            database.execute(
                "UPDATE requests SET state = ?, reason = ?, raw = ? WHERE key = ?",
                (QUARANTINED, reason, raw, key),
            )

    def forget_request(self, key: str) -> None:
        """Delete a request that was refused and replaced by another one."""
        with self.transaction() as database:
            for table in ("requests", "uses", "batch_replies"):
                database.execute(f"DELETE FROM {table} WHERE key = ?", (key,))

    def mark_used(self, keys: Iterable[str]) -> None:
        """Mark requests as used by the version of the index that this run creates."""
        keys = list(keys)
        with self.transaction() as database:
            versions = ((self.version, key) for key in sorted(keys))
            database.executemany("UPDATE uses SET version = ? WHERE key = ?", versions)
            if self._tracks_use:
                database.executemany(INSERT_USED, ((key,) for key in keys))

    def track_use(self) -> None:
        """Track the requests used from now on in a temporary table, to purge all others later."""
        with self.transaction() as database:
            database.execute("DROP TABLE IF EXISTS temp.used")
            database.execute("CREATE TEMP TABLE used (key TEXT PRIMARY KEY) WITHOUT ROWID")
        self._tracks_use = True

    def update_label(self, key: str, unit: str) -> None:
        """Update the label of a request, for example after a file was renamed."""
        if self.fetch_rows("SELECT 1 FROM requests WHERE key = ? AND unit != ?", key, unit):
            with self.transaction() as database:
                database.execute("UPDATE requests SET unit = ? WHERE key = ?", (unit, key))

    def compact_file(self) -> bool:
        """Remove all deleted bytes from the file; False if another program is reading the file."""
        with self._lock, self._explain_errors():
            self._database.execute("VACUUM")
            # Wait at most 1000 ms for readers: a long query could run for hours.
            self._database.execute("PRAGMA busy_timeout = 1000")
            return not self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

    def get_meta(self, name: str) -> str | None:
        """Return a value from the metadata table; None if there is none."""
        rows = self.fetch_rows("SELECT value FROM metadata WHERE name = ?", name)
        return rows[0][0] if rows else None

    def share_capabilities(self, output: Path) -> None:
        """Copy server capabilities from the ledger of an index, and add learned token limits to it.

        A ledger that cannot be read or written stays as it is: the limits are learned again.
        """
        query = f"SELECT name, value FROM metadata WHERE name LIKE '{CAPABILITIES}%'"
        with suppress(GraphRAGError), closing(Ledger(output, read_only=True)) as other:
            for name, value in other.fetch_rows(query):
                self.set_meta(name, value)
        self._shared = output

    def set_meta(self, name: str, value: str) -> None:
        """Store a value in the metadata table."""
        with self.transaction() as database:
            database.execute("INSERT OR REPLACE INTO metadata VALUES (?, ?)", (name, value))
        if self._shared is not None and name.startswith(TOKEN_LIMITS):
            with suppress(GraphRAGError, OSError), closing(Ledger(self._shared)) as other:
                other.set_meta(name, value)

    def spent_so_far(self) -> float:
        """Return the cost so far of the version that this run creates, in dollars."""
        query = "SELECT total(cost) FROM calls WHERE version = ?"
        return float(self.fetch_rows(query, self.version)[0][0])

    def spent_for(self, version: int) -> Spending:
        """Return the number of calls, the tokens and the cost of a version of the index."""
        return self._sum_calls("version", version)

    def spent_on(self, key: str) -> Spending:
        """Return the number of calls of a request, their tokens and their cost."""
        return self._sum_calls("key", key)

    def _sum_calls(self, column: str, value: int | str) -> Spending:
        query = f"SELECT count(*), {_SUM_COLUMNS} FROM calls WHERE {column} = ?"
        n_calls, *n_tokens, cost = self.fetch_rows(query, value)[0]
        # In SQL the sum over no rows is null.
        return Spending(n_calls, Usage(*(n or 0 for n in n_tokens)), cost)

    def quarantined_requests(self, steps: Iterable[str]) -> list[QuarantinedRequest]:
        """Return the quarantined requests of these steps in their newest version."""
        query = f"SELECT r.step, unit, reason, raw FROM requests AS r {_NEWEST_USES} "
        query += "WHERE r.step = ? AND state = ? ORDER BY unit"
        found = (row for step in steps for row in self.fetch_rows(query, step, QUARANTINED))
        return [QuarantinedRequest(*row) for row in found]

    def reopen_quarantined(self, steps: Iterable[str]) -> int:
        """Set the quarantined requests of these steps to `open`; returns their number."""
        query = "UPDATE requests SET state = ?, attempts = 0 WHERE state = ? AND step = ?"
        with self.transaction() as database:
            return sum(
                database.execute(query, (OPEN, QUARANTINED, step)).rowcount for step in steps
            )

    def limit_replies(self, most: int) -> None:
        """Delete all replies and calls if there are more than `most` requests.

        A server answers questions for months, and their ledger is in memory.
        """
        if self.fetch_rows("SELECT count(*) FROM requests")[0][0] <= most:
            return
        with self.transaction() as database:
            database.execute("DELETE FROM requests WHERE state = ?", (DONE,))
            for table in ("uses", "calls"):
                database.execute(f"DELETE FROM {table}")

    def step_statuses(self) -> list[StepStatus]:
        """Return one status for each step and model: requests by state, tokens and cost."""
        with self.transaction():
            pass
        states = self.fetch_rows(
            "SELECT r.step, model, sum(state = 'done'), sum(state = 'open'), "
            f"sum(state = 'quarantined') FROM requests AS r {_NEWEST_USES} "
            "GROUP BY r.step, model ORDER BY min(u.version), r.step, model"
        )
        calls = self.fetch_rows(
            f"SELECT step, model, {_SUM_COLUMNS} FROM calls GROUP BY step, model"
        )
        costs = {row[:2]: row[2:] for row in calls}
        return [StepStatus(*row, *costs.get(row[:2], (0, 0, 0, 0.0))) for row in states]


# States of a batch. `prepared`: its file exists on this machine. `uploaded`: its file is at the
# provider, and the batch may have been created. `submitted`: the provider's id of the batch is
# known. `collected`: all its replies are in the ledger.
PREPARED, UPLOADED, SUBMITTED, COLLECTED = "prepared", "uploaded", "submitted", "collected"

_UPSERT_RESULT = """
INSERT INTO batch_replies VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET status = excluded.status, message = excluded.message,
    failures = failures + excluded.failures, capabilities = excluded.capabilities,
    attempt = CASE WHEN reply IS NULL THEN excluded.attempt ELSE attempt END
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
