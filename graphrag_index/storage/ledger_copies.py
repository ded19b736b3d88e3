"""Copies of the ledger: snapshots for a bucket, and replies that are added from them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from graphrag_index.errors import TableError
from graphrag_index.storage.atomic import temporary_path

# The tables whose rows have a key. A reply that is known replaces an open request.
_ADD_ROWS = """
INSERT INTO requests SELECT * FROM other.requests WHERE true
    ON CONFLICT (key) DO UPDATE SET state = excluded.state, reply = excluded.reply,
        reason = excluded.reason, raw = excluded.raw
    WHERE excluded.state = 'done' AND requests.state != 'done';
INSERT OR IGNORE INTO uses SELECT * FROM other.uses;
INSERT OR IGNORE INTO metadata SELECT * FROM other.metadata;
INSERT INTO calls SELECT * FROM other.calls
    WHERE key NOT IN (SELECT key FROM calls);
"""


@contextmanager
def copy_ledger(path: Path) -> Iterator[Path]:
    """Yield a consistent copy of a ledger, which may be written meanwhile."""
    snapshot = temporary_path(path)
    snapshot.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(snapshot)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        yield snapshot
    except sqlite3.DatabaseError as error:
        raise TableError(f"{path} cannot be copied: {error}.") from error
    finally:
        snapshot.unlink(missing_ok=True)


def merge_ledger(snapshot: Path, path: Path) -> None:
    """Add the requests, replies and calls of a snapshot that a ledger lacks.

    Calls for one request are added if the ledger has none for it. Open batches stay where they
    were sent.
    """
    if not path.exists():
        with copy_ledger(snapshot) as copy:
            copy.replace(path)
        return
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as database:
            database.execute("ATTACH ? AS other", (str(snapshot),))
            database.executescript(f"BEGIN IMMEDIATE;{_ADD_ROWS}COMMIT;")
    except sqlite3.DatabaseError as error:
        raise TableError(f"The replies of a bucket cannot be added to {path}: {error}.") from error
