"""Keys of a server: who may do what, how often, and at which cost a day.

They lie in the SQLite file `server.sqlite`, with what each key has used. Every request reads the
file, so a new or revoked key takes effect at once, and a restart forgets no limit.
"""

import hashlib
import hmac
import json
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from graphrag_index.errors import GraphRAGError, SettingsError

KEYS_FILE = "server.sqlite"
MAX_NAME_CHARS = 64
MINUTE = 60.0  # seconds
_TOKEN = re.compile(r"gri_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, digest BLOB NOT NULL, scopes TEXT NOT NULL,
    indexes TEXT, questions_per_minute INTEGER, daily_cost REAL, created TEXT NOT NULL, revoked TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS names ON keys (name) WHERE revoked IS NULL;
-- The questions of the last minute.
CREATE TABLE IF NOT EXISTS questions (key TEXT NOT NULL, asked REAL NOT NULL);
CREATE INDEX IF NOT EXISTS askings ON questions (key, asked);
-- What a key has used on a day of UTC.
CREATE TABLE IF NOT EXISTS spending (
    key TEXT NOT NULL, day TEXT NOT NULL, cost REAL NOT NULL, PRIMARY KEY (key, day)
);
"""
_COLUMNS = "id, name, scopes, indexes, questions_per_minute, daily_cost, created, revoked"


class Scope(StrEnum):
    """A right of a caller."""

    READ = "read"  # tables, reports, contexts and the graph
    ASK = "ask"  # searches, which may call a model
    INDEX = "index"  # documents, resolutions and runs
    ADMIN = "admin"  # the metrics of the server


class LimitError(GraphRAGError):
    """A question that a limit of its key does not allow. `wait` is in seconds."""

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait


class RateError(LimitError):
    """A key that has asked too many questions in the last minute."""


class DailyCostError(LimitError):
    """A key that has spent the cost that it may spend on one day."""


@dataclass(frozen=True)
class Key:
    """A key without its secret. A limit of None means no limit."""

    id: str
    name: str
    scopes: frozenset[Scope]
    indexes: frozenset[str] | None  # None: all indexes
    questions_per_minute: int | None
    daily_cost: float | None  # dollars
    created: str
    revoked: str | None


class KeyFile:
    """The keys in one file. Several threads and processes may use the file at once.

    The file is created by the first key. Every method raises GraphRAGError if the file cannot be
    used.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / KEYS_FILE
        # One connection for lookups, so that they do not wait for a write.
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._read_lock, self._write_lock = threading.Lock(), threading.Lock()

    def has_keys(self) -> bool:
        """Return whether a key was ever created. Revoking the last one does not open a server."""
        with self._read() as database:
            return database is not None and bool(
                database.execute("SELECT EXISTS (SELECT 1 FROM keys)").fetchone()[0]
            )

    def find(self, token: str) -> Key | None:
        """Return the key of a token; None if there is no such key, or if it was revoked."""
        match = _TOKEN.fullmatch(token)
        identifier, secret = match.groups() if match else ("", "")
        with self._read() as database:
            row = (
                database
                and database.execute(
                    f"SELECT digest, {_COLUMNS} FROM keys WHERE id = ?", (identifier,)
                ).fetchone()
            )
        # The time of a comparison must not tell how much of a secret was guessed. An unknown id
        # takes as long as a known one.
        same = hmac.compare_digest(row[0] if row else bytes(32), _digest(secret))
        key = _as_key(row[1:]) if row and same else None
        return key if key and key.revoked is None else None

    def add(
        self,
        name: str,
        scopes: frozenset[Scope],
        indexes: frozenset[str] | None = None,
        questions_per_minute: int | None = None,
        daily_cost: float | None = None,
    ) -> str:
        """Create a key, and return its token, which is not stored. Raises SettingsError."""
        if not name.isprintable() or not 0 < len(name.strip()) <= MAX_NAME_CHARS:
            raise SettingsError(
                f"The name of a key has 1 to {MAX_NAME_CHARS} printable characters: "
                f"{name!r} has not."
            )
        identifier, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        row = (
            *(identifier, name, _digest(secret), json.dumps(sorted(scopes))),
            None if indexes is None else json.dumps(sorted(indexes)),
            *(questions_per_minute, daily_cost, _now().isoformat(timespec="seconds")),
        )
        with self._write() as database:
            try:
                database.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)", row)
            except sqlite3.IntegrityError:
                raise SettingsError(
                    f"There is a key {name!r} already: choose another name, or revoke that key."
                ) from None
        return f"gri_{identifier}_{secret}"

    def list(self) -> list[tuple[Key, float]]:
        """Return all keys in the order of their creation, each with its cost of today."""
        with self._read() as database:
            if database is None:
                return []
            rows = database.execute(
                f"SELECT coalesce(cost, 0), {_COLUMNS} FROM keys "
                "LEFT JOIN spending ON key = id AND day = ? ORDER BY keys.rowid",
                (_today(),),
            )
            return [(_as_key(row), cost) for cost, *row in rows]

    def revoke(self, name: str) -> None:
        """Revoke the key of a name or an id. Raises SettingsError if there is none."""
        if not self.has_keys():
            raise SettingsError(f"There is no key in {self.path}.")
        with self._write() as database:
            found = database.execute(
                "UPDATE keys SET revoked = ?1 WHERE ?2 IN (name, id) AND revoked IS NULL",
                (_now().isoformat(timespec="seconds"), name),
            )
            if not found.rowcount:
                raise SettingsError(
                    f"There is no key {name!r} in {self.path}, or it was revoked: "
                    "see `graphrag-index keys list`."
                )

    def count_question(self, key: Key) -> None:
        """Count a question. Raises RateError or DailyCostError if a limit does not allow it.

        The cost of a question is known only at its end, so the question that passes the limit
        of a day, and those that run beside it, are still answered.
        """
        if key.questions_per_minute is None and key.daily_cost is None:
            return
        with self._write() as database:
            if key.daily_cost is not None:
                _check_daily_cost(database, key.id, key.daily_cost)
            if key.questions_per_minute is not None:
                _count_in_minute(database, key.id, key.questions_per_minute)

    def add_cost(self, key: Key, cost: float) -> None:
        """Add the dollars of an answer to what the key has spent today."""
        if cost > 0:
            with self._write() as database:
                database.execute(
                    "INSERT INTO spending VALUES (?, ?, ?) "
                    "ON CONFLICT DO UPDATE SET cost = cost + excluded.cost",
                    (key.id, _today(), cost),
                )

    def close(self) -> None:
        """Close the file."""
        for lock, database in ((self._read_lock, self._reader), (self._write_lock, self._writer)):
            with lock:
                if database is not None:
                    database.close()

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection | None]:
        """Lend the connection for lookups; None if there is no file yet."""
        with self._read_lock, self._explain_errors():
            if self._reader is None and self.path.exists():
                self._reader = self._connect()
            yield self._reader

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction; other processes write before it or after it."""
        with self._write_lock, self._explain_errors():
            if self._writer is None:
                if not self.path.exists():
                    # Nobody else on this computer needs the digests.
                    self.path.touch(mode=0o600)
                self._writer = self._connect()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            self.path, timeout=10, isolation_level=None, check_same_thread=False
        )
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.executescript(_SCHEMA)
        return database

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise GraphRAGError(f"The keys in {self.path} cannot be used: {error}.") from error


def _digest(secret: str) -> bytes:
    # A slow hash protects passwords, which can be guessed. A secret of 256 random bits cannot.
    return hashlib.sha256(secret.encode("ascii")).digest()


def _as_key(row: Any) -> Key:
    identifier, name, scopes, indexes, *rest = row
    return Key(
        identifier,
        name,
        frozenset(map(Scope, json.loads(scopes))),
        None if indexes is None else frozenset(json.loads(indexes)),
        *rest,
    )


def _count_in_minute(database: sqlite3.Connection, key: str, limit: int) -> None:
    now = time.time()
    # A clock that was set back must not leave questions in the future, which would count for long.
    database.execute(
        "DELETE FROM questions WHERE key = ? AND asked NOT BETWEEN ? AND ?",
        (key, now - MINUTE, now),
    )
    count, first = database.execute(
        "SELECT count(*), min(asked) FROM questions WHERE key = ?", (key,)
    ).fetchone()
    if count >= limit:
        raise RateError(
            f"This key may ask {limit} questions a minute: wait, then ask again.",
            first + MINUTE - now,
        )
    database.execute("INSERT INTO questions VALUES (?, ?)", (key, now))


def _check_daily_cost(database: sqlite3.Connection, key: str, limit: float) -> None:
    row = database.execute(
        "SELECT cost FROM spending WHERE key = ? AND day = ?", (key, _today())
    ).fetchone()
    if limit <= (row[0] if row else 0.0):
        now = _now()
        midnight = datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)
        raise DailyCostError(
            f"This key has spent its {limit:g} dollars of today: ask again after midnight UTC, or "
            "have the limit raised.",
            (midnight - now).total_seconds(),
        )


def _now() -> datetime:
    return datetime.now(UTC)


def _today() -> str:
    return _now().date().isoformat()
