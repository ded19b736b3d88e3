"""An output folder in a bucket: a working copy on this machine, and commits to the bucket.

    <bucket>/current.json             the number of the newest commit
    <bucket>/commits/<n>.json         the files of the index by path, each with its object
    <bucket>/objects/<hash>-<name>    the content of files

A commit and an object never change. A writer uploads new objects, creates the next commit, and then
moves `current.json`. Of two writers one creates the commit, and the other is told so. All programs
work on the folder on this machine, whose search tables are read by memory map. It has the files of
the newest version, and fetches those of others when they are read.
"""

import json
import logging
import shutil
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import TableError, WorkflowError
from graphrag_index.storage.atomic import digest_file, temporary_path, write_json
from graphrag_index.storage.bucket import (
    CONFLICT_PAUSES,
    TRANSFERS_AT_ONCE,
    Bucket,
    copies_folder,
    is_bucket,
    wait_for,
)
from graphrag_index.storage.versions import INDEX_FILE

if TYPE_CHECKING:
    from graphrag_index.schema.settings.project_settings import Settings

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


logger = logging.getLogger(__name__)

STATE_FILE = ".bucket.json"
# A run holds this lock of the folder; readers leave the folder as it is meanwhile.
LOCK_FILE = ".lock"
# A reader asks at most this often whether there is a newer commit.
SECONDS_BETWEEN_REFRESHES = 1.0
LEDGER_FILE = "ledger.sqlite"
# Files of a version, and of the vectors of all versions.
PATTERNS = ("versions/*/*", "lancedb/**/*")
# An object that no commit names may belong to a run that has not committed yet.
MIN_AGE_OF_GARBAGE = timedelta(days=1)


def _read_state(folder: Path) -> "_State":
    path = folder / STATE_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        commit = Commit.from_json(content.pop("commit"))
        files = {name: StoredFile(**file) for name, file in content.pop("files").items()}
        return _State(**content, commit=commit, files=files)
    except (ValueError, KeyError, TypeError):
        raise TableError(
            f"{path} is damaged: delete the folder, which is a copy of a bucket."
        ) from None


@dataclass
class _State:
    """The knowledge of this machine about the bucket, kept in `.bucket.json`.

    `times` has the time of change of each file when it was last equal to its object.
    """

    address: str
    etag: str | None = None  # of current.json
    commit: Commit = NO_COMMIT
    files: dict[str, StoredFile] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)


class WorkingCopy:
    """The folder on this machine that an index in a bucket is read from and written to."""

    def __init__(self, folder: Path, state: _State) -> None:
        self.folder, self._read_state, self._time_of_state = folder, state, 0
        self.bucket = Bucket(state.address)
        self._commits = Commits(self.bucket)
        self._refreshed = float("-inf")

    @property
    def _state(self) -> _State:
        """The knowledge of this machine; another process may have changed it."""
        time_of_state = (self.folder / STATE_FILE).stat().st_mtime_ns
        if time_of_state != self._time_of_state:
            self._read_state, self._time_of_state = _read_state(self.folder), time_of_state
        return self._read_state

    @classmethod
    def create(cls, folder: Path, address: str) -> "WorkingCopy":
        """Return the working copy of a bucket in a folder, which may be new."""
        if not (folder / STATE_FILE).is_file():
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / STATE_FILE, asdict(_State(address)))
        return cls(folder, _read_state(folder))

    @classmethod
    def open(cls, folder: Path) -> "WorkingCopy | None":
        """Return the working copy in a folder; None if it is a folder of its own."""
        return cls(folder, _read_state(folder)) if (folder / STATE_FILE).is_file() else None

    def _write_state(self) -> None:
        state = self._state
        write_json(self.folder / STATE_FILE, asdict(state))
        self._time_of_state = (self.folder / STATE_FILE).stat().st_mtime_ns

    def refresh(self) -> None:
        """Fetch the newest commit for a reader, unless a run on this machine is writing."""
        from filelock import FileLock, Timeout

        if time.monotonic() - self._refreshed < SECONDS_BETWEEN_REFRESHES:
            return
        try:
            with suppress(Timeout), FileLock(self.folder / LOCK_FILE, timeout=0).acquire():
                self.pull()
        except TableError as error:
            if not self._state.commit.number:
                raise
            told = "%s Version %d, which is on this machine, is read meanwhile."
            logger.warning(told, error, self._state.commit.version)
        self._refreshed = time.monotonic()

    def pull(self, *, for_writing: bool = False) -> None:
        """Fetch the files of the newest commit, and make it current on this machine.

        A reader asks for `current.json` only. A writer also writes it as it is: if that is not
        allowed, its run must not begin. Then it looks for a commit whose writer was killed before
        it moved `current.json`, and moves it. A server that shows an old `current.json` for a while
        does not take a newer commit from this machine.
        """
        known, etag = self._state.commit.number, self._state.etag
        try:
            found = (self.bucket if for_writing else self.bucket.hasty).read(CURRENT, unless=etag)
        except FileNotFoundError:
            found, etag = (b'{"commit": 0}', ""), None
        number = known
        if found is not None:
            number, etag = int(json.loads(found[0])["commit"]), found[1] or None
        if number < known:
            if self._commits.has(known):
                number = known
            elif not number:
                raise TableError(
                    f"{self.bucket.url} is empty, and had version {self._state.commit.version}: "
                    f"restore it, or delete {self.folder}, the copy on this machine, to begin anew."
                )
        if for_writing:
            etag = self._commits.move_current(number, etag)
            while (later := self._commits.find(number + 1)) is not None:
                number, etag = later.number, self._commits.move_current(later.number, etag)
        if number != known:
            try:
                self._check_out(self._commits.read(number))
            except TableError:
                # `gc` deletes what only older commits need, also while it is fetched.
                if self._read_current() == number:
                    raise
                self.pull(for_writing=for_writing)
                return
        elif LEDGER_FILE in self._state.commit.files:
            self._take_ledger(self._state.commit.files[LEDGER_FILE])
        if etag != self._state.etag or found is not None:
            self._state.etag = etag
            self._write_state()

    def _read_current(self) -> int:
        """Return the number of the commit that is current now."""
        found = self.bucket.read(CURRENT)
        assert found is not None
        return int(json.loads(found[0])["commit"])

    def _check_out(self, commit: Commit) -> None:
        """Make the files on this machine those of a commit; `index.json` is written last."""
        eager = [
            path
            for path in commit.files
            if path.startswith((f"versions/{commit.version}/", "lancedb/"))
            or path.endswith(f"/{INDEX_FILE}")
        ]
        with ThreadPoolExecutor(TRANSFERS_AT_ONCE) as threads:
            list(threads.map(self._fetch, eager, (commit.files[path] for path in eager)))
        if LEDGER_FILE in commit.files:
            self._take_ledger(commit.files[LEDGER_FILE])
        self._remove_other_files(commit)
        if commit.version:  # else it has only the ledger of runs that have not finished
            described = self.folder / "versions" / str(commit.version) / INDEX_FILE
            write_json(self.folder / INDEX_FILE, json.loads(described.read_text(encoding="utf-8")))
        self._state.commit = commit

    def _remove_other_files(self, commit: Commit) -> None:
        """Delete files of versions and vectors that no commit has; keep those of later runs."""
        for path in self._find_files():
            name = path.relative_to(self.folder).as_posix()
            parts = name.split("/")
            is_later = parts[0] == "versions" and parts[1].isdecimal()
            if name not in commit.files and not (is_later and int(parts[1]) > commit.version):
                path.unlink(missing_ok=True)
        for folder in self.folder.glob("versions/*"):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        for folder in self.folder.glob("lancedb/*.lance"):
            if not any(path.is_file() for path in folder.rglob("*")):
                shutil.rmtree(folder)

    def _find_files(self) -> list[Path]:
        found = (path for pattern in PATTERNS for path in self.folder.glob(pattern))
        return sorted(path for path in found if path.is_file() and not path.name.startswith("."))

    def fetch(self, name: str) -> None:
        """Fetch a file of the newest commit, if it is not here."""
        wanted = self._state.commit.files.get(name)
        if wanted is not None:
            self._fetch(name, wanted)

    def _fetch(self, name: str, wanted: StoredFile) -> None:
        path = self.folder / name
        if self._state.files.get(name) == wanted and path.is_file():
            return
        if not (path.is_file() and wanted.is_content_of(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._download(wanted, path)
        self._note(name, wanted, path)

    def _note(self, name: str, file: StoredFile, path: Path) -> None:
        self._state.files[name], self._state.times[name] = file, path.stat().st_mtime_ns

    def _download(self, file: StoredFile, path: Path) -> None:
        temporary = temporary_path(path)
        try:
            wait_for(lambda: self.bucket.download(file.object, temporary))
            if object_key(path, digest_file(temporary)) != file.object:
                raise TableError(
                    f"{self.bucket.url}/{file.object} is damaged or was cut off: try again, or "
                    "restore it."
                )
            temporary.replace(path)
        except FileNotFoundError:
            raise TableError(
                f"{self.bucket.url} has lost {file.object}: restore it, or run "
                "`graphrag-index run` with an empty output."
            ) from None
        finally:
            temporary.unlink(missing_ok=True)

    def push(self, version: int, keep: Iterable[str] | None = None) -> None:
        """Commit the files on this machine as a version; raise WorkflowError if another is faster.

        Of the files of the last commit that are not here, those in `keep` stay; None: all.
        """
        state, kept = self._state, None if keep is None else set(keep)
        here = {path.relative_to(self.folder).as_posix(): path for path in self._find_files()}
        here = {name: path for name, path in here.items() if not name.endswith("/steps.json")}
        stays = {
            name: file for name, file in state.commit.files.items() if kept is None or name in kept
        }
        with ThreadPoolExecutor(TRANSFERS_AT_ONCE) as threads:
            uploaded = dict(zip(here, threads.map(self._upload, here, here.values()), strict=True))
        if (self.folder / LEDGER_FILE).exists():
            uploaded[LEDGER_FILE] = self._upload_ledger()
        self._commit(version, {**stays, **uploaded})

    def push_ledger(self) -> None:
        """Commit the newest version again, with the ledger of this machine."""
        before = self._state.commit
        self._commit(before.version, {**before.files, LEDGER_FILE: self._upload_ledger()})

    def _commit(self, version: int, files: Mapping[str, StoredFile]) -> None:
        state, before = self._state, self._state.commit
        if (files, version) == (before.files, before.version):
            return
        number = before.number + 1
        commit = Commit(number, version, files, uuid.uuid4().hex)
        if not self._commits.create(commit):
            raise WorkflowError(
                f"Another run has changed {self.bucket.url} while this one was running, and its "
                "version stays. Run again: replies that were paid for are kept."
            )
        # From here on the commit is made: a writer that is killed now has finished.
        state.commit = commit
        state.etag = self._commits.move_current(number, state.etag)
        self._write_state()
        ledger = before.files.get(LEDGER_FILE)
        if ledger is not None and ledger != files.get(LEDGER_FILE):
            # Replies that were purged must not stay in the bucket.
            self.bucket.delete([ledger.object])

    def _upload(self, name: str, path: Path) -> StoredFile:
        """Upload a file, unless it is the file that was uploaded or fetched last."""
        known, details = self._state.files.get(name), path.stat()
        now = (details.st_size, details.st_mtime_ns)
        if known and (known.n_bytes, self._state.times.get(name)) == now:
            return known
        file = StoredFile(object_key(path, digest_file(path)), details.st_size)
        if file not in self._state.commit.files.values():
            self.bucket.upload(path, file.object)
        self._note(name, file, path)
        return file

    def _upload_ledger(self) -> StoredFile:

        path = self.folder / LEDGER_FILE
        with copy_ledger(path) as snapshot:
            file = StoredFile(object_key(path, digest_file(snapshot)), snapshot.stat().st_size)
            if file != self._state.files.get(LEDGER_FILE):
                self.bucket.upload(snapshot, file.object)
        self._state.files[LEDGER_FILE] = file
        return file

    def _take_ledger(self, file: StoredFile) -> None:
        """Add the replies of a ledger in the bucket to the one on this machine."""
        if self._state.files.get(LEDGER_FILE) == file and (self.folder / LEDGER_FILE).exists():
            return
        # The name of a file is part of the key of its object.
        snapshot = self.folder / ".fetched" / LEDGER_FILE
        snapshot.parent.mkdir(exist_ok=True)
        try:
            self._download(file, snapshot)
            merge_ledger(snapshot, self.folder / LEDGER_FILE)
        finally:
            shutil.rmtree(snapshot.parent)
        self._state.files[LEDGER_FILE] = file

    def collect_garbage(self, version: int, used: Iterable[str]) -> None:
        """Commit that only the files in `used` are kept, and delete objects that no file needs.

        Call it after the files on this machine have been deleted.
        """
        self.push(version, used)
        current = self._state.commit
        named = {file.object for file in current.files.values()}
        earlier, number = [], current.number - 1
        while (commit := self._commits.find(number)) is not None:
            earlier.append(commit)
            number -= 1
        unused = {file.object for commit in earlier for file in commit.files.values()}
        before = datetime.now(UTC) - MIN_AGE_OF_GARBAGE
        listed = self.bucket.list_objects(f"{OBJECTS}/")
        unused.update(one["path"] for one in listed if one["last_modified"] < before)
        self.bucket.delete(sorted(unused - named))
        # The oldest goes first: a commit is found from the one after it.
        self._commits.delete([commit.number for commit in reversed(earlier)])


def locate_output(root: Path, settings: "Settings") -> Path:
    """Return the output folder of a project: below `root`, or the working copy of a bucket."""
    if not is_bucket(settings.output):
        return root / settings.output
    return locate_working_copy(settings.output)


def locate_working_copy(address: str) -> Path:
    """Return the folder on this machine for the index at an address."""
    return WorkingCopy.create(copies_folder(address, "indexes"), address).folder
