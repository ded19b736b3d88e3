"""The cache of model replies of Microsoft GraphRAG 3.

A reply is stored under a hash of its request, without the name of the model; the request itself
is not stored. So a reply is found only by building the very same request again.
"""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from graphrag_index.errors import GraphRAGError
from graphrag_index.microsoft.migrate_project import MicrosoftProject, UnsetVariableError
from graphrag_index.schema.settings.models import ModelSettings

_BATCH = 1_024  # rows
# The suffix names the hash function; earlier versions had others.
_KEY = re.compile(r"[0-9a-f]{64}_v4")


class ReplyCache:
    """The replies in a cache: files of one folder for each step, or a SQLite file."""

    def __init__(self, folder: Path, database: Path | None = None) -> None:
        self.folder, self.database = folder, database
        self._found: set[tuple[str, str]] = set()

    def steps(self) -> dict[str, tuple[int, int]]:
        """Return for each step the number of replies, and of those whose hash we can build."""
        if self.database is not None:
            rows = self._rows("SELECT namespace, key FROM cache_entries")
            named = [(str(step).split("/")[-1], str(key)) for step, key in rows]
        else:
            named = [(path.parent.name, path.name) for path in self.folder.glob("*/*")]
        n_replies = Counter(step for step, _ in named)
        n_known = Counter(step for step, key in named if _KEY.fullmatch(key))
        return {step: (n_replies[step], n_known[step]) for step in sorted(n_replies)}

    def find(self, step: str, requests: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Return the response to the first of some requests that has one.

        Each response is returned once: a second request for it is a duplicate.
        """
        for request in requests:
            key = f"{request_hash(request)}_v4"
            text = None if (step, key) in self._found else self._text(step, key)
            try:
                response = json.loads(text)["result"]["response"] if text else None
            except (ValueError, KeyError, TypeError):
                # A truncated file is no reply.
                continue
            if isinstance(response, Mapping):
                self._found.add((step, key))
                return response
        return None

    def _text(self, step: str, key: str) -> str | None:
        if self.database is not None:
            query = "SELECT value_json FROM cache_entries WHERE namespace = ? AND key = ?"
            rows = self._rows(query, step, key)
            return str(rows[0][0]) if rows else None
        try:
            return (self.folder / step / key).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def _rows(self, query: str, *values: str) -> Sequence[Any]:
        assert self.database is not None
        if not self.database.is_file():
            return ()
        try:
            address = f"{self.database.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True)) as database:
                return database.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise GraphRAGError(
                f"The cache {self.database} cannot be read ({error}): mend it, or leave it with "
                "--no-cache."
            ) from error


def request_hash(request: Mapping[str, Any]) -> str:
    """Hash a request as Microsoft GraphRAG does: SHA-256 of its YAML."""
    return sha256(yaml.dump(dict(request), sort_keys=True).encode()).hexdigest()


def open_cache(project: MicrosoftProject) -> ReplyCache | None:
    """Open the cache of a project; None if it is not in local files."""
    try:
        kind = project.expand(project.get("cache.type")) or "json"
        base = project.expand(project.get("cache.storage.base_dir", "cache.base_dir")) or "cache"
        name = project.expand(project.get("cache.database_name")) or "cache.db"
        storage = project.expand(project.get("cache.storage.type")) or "file"
    except UnsetVariableError:
        return None
    folder = project.root / str(base)
    if kind in ("json", "file") and storage == "file":
        return ReplyCache(folder)
    if kind == "sqlite":
        return ReplyCache(folder, folder / str(name))
    return None


@dataclass
class StepReplies:
    """Counts of the replies to one step, and why those that are left are of no use."""

    n_replies: int
    n_used: int = 0
    n_other: int = 0  # written by another model
    n_invalid: int = 0
    why: str = ""

    def describe(self, step: str) -> str:
        """Return the counts as one sentence."""
        said = [f"{step}: {self.n_used:,} of {self.n_replies:,} replies are in the ledger"]
        if self.n_other:
            said.append(f"written by another model than the settings name: {self.n_other:,}")
        if self.n_invalid:
            said.append(f"unreadable: {self.n_invalid:,}")
        if self.n_replies > self.n_used + self.n_other + self.n_invalid and self.why:
            said.append(f"the others could not be used, since {self.why}")
        return "; ".join(said)


def is_written_by(response: Mapping[str, Any], model: ModelSettings) -> bool:
    """Compare the model that a response names with that of the settings.

    Their cache ignores the model: after a change of model it returns replies of the old one.
    """
    wrote = str(response.get("model") or "").rpartition("/")[2].casefold()
    known = {model.model.rpartition("/")[2].casefold(), (model.deployment or "").casefold()}
    return not wrote or any(name and (wrote == name or _is_dated(wrote, name)) for name in known)


def _is_dated(wrote: str, name: str) -> bool:
    """Tell whether a name is another one with a date behind, such as gpt-4.1-2025-04-14."""
    rest = wrote.removeprefix(f"{name}-")
    return rest != wrote and rest.replace("-", "").isdigit()


def text_batches(path: Path, column: pl.Expr, size: int = _BATCH) -> Iterator[list[str]]:
    """Yield the texts of a table, `size` at a time; null is the empty text."""
    frame = pl.scan_parquet(path).select(column.fill_null(""))
    offset = 0
    while texts := frame.slice(offset, size).collect().to_series().to_list():
        yield texts
        offset += size
