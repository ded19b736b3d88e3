"""Commits of an index in a bucket: its files, its ledger, and the pointer to the newest one."""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphrag_index.errors import TableError
from graphrag_index.storage.atomic import digest_file, temporary_path
from graphrag_index.storage.bucket import CONFLICT_PAUSES, Bucket, wait_for

CURRENT, COMMITS, OBJECTS = "current.json", "commits", "objects"
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


@dataclass(frozen=True)
class StoredFile:
    """A file of the index: the key of its object, and its size in bytes."""

    object: str
    n_bytes: int

    def is_content_of(self, path: Path) -> bool:
        """Return whether a file on this machine has the content of the object."""
        size = path.stat().st_size
        return size == self.n_bytes and self.object == object_key(path, digest_file(path))


def object_key(path: Path, digest: str) -> str:
    """Return the key of the object for the content of a file."""
    return f"{OBJECTS}/{digest}-{path.name}"


@dataclass(frozen=True)
class Commit:
    """The content of a commit. `writer` tells it from the commits of others."""

    number: int
    version: int
    files: Mapping[str, StoredFile]
    writer: str = ""

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True, indent=1).encode()

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Commit":
        files = {path: StoredFile(**file) for path, file in content["files"].items()}
        return cls(content["number"], content["version"], files, content["writer"])


NO_COMMIT = Commit(0, 0, {})


class Commits:
    """The commits in a bucket. A server may show objects, and changes of objects, late."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def find(self, number: int) -> Commit | None:
        """Read a commit, if there is one of this number."""
        try:
            return Commit.from_json(self._bucket.read_json(_key(number)))
        except FileNotFoundError:
            return None

    def read(self, number: int) -> Commit:
        """Read a commit that must be there."""
        try:
            return Commit.from_json(wait_for(lambda: self._bucket.read_json(_key(number))))
        except FileNotFoundError:
            raise TableError(
                f"{self._bucket.url} has lost its commit {number}: restore it from a backup."
            ) from None

    def has(self, number: int) -> bool:
        """Return whether a commit that was there is still there."""
        with suppress(FileNotFoundError):
            wait_for(lambda: self._bucket.read(_key(number)))
            return True
        return False

    def create(self, commit: Commit) -> bool:
        """Create a commit; return False if another writer has created the one of its number."""
        return self._bucket.create(_key(commit.number), commit.to_json())

    def delete(self, numbers: Iterable[int]) -> None:
        """Delete commits, in this order."""
        self._bucket.delete([_key(number) for number in numbers])

    def move_current(self, number: int, etag: str | None) -> str | None:
        """Make a commit the current one; another writer may have made a later one current.

        Returns the etag of the pointer; None if it names a later commit.
        """
        content = json.dumps({"commit": number}).encode()
        for pause in CONFLICT_PAUSES:
            moved = self._bucket.replace(CURRENT, content, etag)
            if moved is not None:
                return moved
            with suppress(FileNotFoundError):
                found = self._bucket.read(CURRENT)
                assert found is not None
                etag = found[1]
                if int(json.loads(found[0])["commit"]) > number:
                    return None
            # The server shows an old pointer. If it does so for long, the next writer moves it.
            time.sleep(pause)
        return etag


def _key(number: int) -> str:
    return f"{COMMITS}/{number}.json"


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
