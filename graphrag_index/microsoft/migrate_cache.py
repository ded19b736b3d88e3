"""The cache of model replies of Microsoft GraphRAG 3, by the requests that they answer.

A reply lies there under a hash of the request, without the name of the model, and the request
itself lies nowhere: a reply is found by whoever makes the very same request again.
"""

import json
import re
import sqlite3
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

# Rows of a table that are read at once.
_AT_ONCE = 1_024
# The end of a name tells how requests are hashed; earlier versions did it otherwise.
_NAME = re.compile(r"[0-9a-f]{64}_v4")


class StoredReplies:
    """The replies in a cache: files of one folder for each step, or a SQLite file."""

    def __init__(self, folder: Path, database: Path | None = None) -> None:
        self.folder, self.database = folder, database
        self._given: set[tuple[str, str]] = set()

    def steps(self) -> dict[str, tuple[int, int]]:
        """Return the steps that have replies: how many, and how many can be looked for."""
        if self.database is not None:
            rows = self._rows("SELECT namespace, key FROM cache_entries")
            named = [(str(step).split("/")[-1], str(key)) for step, key in rows]
        elif self.folder.is_dir():
            named = [
                (step.name, file.name)
                for step in sorted(self.folder.iterdir())
                if step.is_dir()
                for file in step.iterdir()
            ]
        else:
            named = []
        counts: dict[str, tuple[int, int]] = {}
        for step, key in named:
            n_there, n_known = counts.get(step, (0, 0))
            counts[step] = n_there + 1, n_known + bool(_NAME.fullmatch(key))
        return dict(sorted(counts.items()))

    def find(self, step: str, requests: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Return the response to the first of some requests that has one; None if none has.

        Each is returned once: who asks again asks the same.
        """
        for request in requests:
            key = f"{request_hash(request)}_v4"
            text = None if (step, key) in self._given else self._text(step, key)
            try:
                response = json.loads(text)["result"]["response"] if text else None
            except (ValueError, KeyError, TypeError):
                # A file that was cut off is no reply, there as here.
                continue
            if isinstance(response, Mapping):
                self._given.add((step, key))
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
    """Hash a request as they do: SHA-256 of its YAML."""
    return sha256(yaml.dump(dict(request), sort_keys=True).encode()).hexdigest()


def stored_replies(project: MicrosoftProject) -> StoredReplies | None:
    """Return the cache of a project; None if it keeps none in files of this machine."""
    try:
        kind = project.expand(project.get("cache.type")) or "json"
        base = project.expand(project.get("cache.storage.base_dir", "cache.base_dir")) or "cache"
        name = project.expand(project.get("cache.database_name")) or "cache.db"
        storage = project.expand(project.get("cache.storage.type")) or "file"
    except UnsetVariableError:
        return None
    folder = project.root / str(base)
    if kind in ("json", "file") and storage == "file":
        return StoredReplies(folder)
    if kind == "sqlite":
        return StoredReplies(folder, folder / str(name))
    return None


@dataclass
class StepReplies:
    """What became of the replies to one step."""

    n_there: int
    n_used: int = 0
    # Found, and no good: another model wrote them, or they cannot be read.
    n_other: int = 0
    n_unread: int = 0
    why: str = ""

    def line(self, step: str) -> str:
        """Say it in one sentence."""
        said = [f"{step}: {self.n_used:,} of {self.n_there:,} replies are in the ledger"]
        if self.n_other:
            said.append(f"written by another model than the settings name: {self.n_other:,}")
        if self.n_unread:
            said.append(f"not to be read: {self.n_unread:,}")
        if self.n_there > self.n_used + self.n_other + self.n_unread and self.why:
            said.append(f"the others could not be used, since {self.why}")
        return "; ".join(said)


def is_by(response: Mapping[str, Any], model: ModelSettings) -> bool:
    """Tell whether a model wrote a reply, by the name that its server gave.

    Their cache does not tell them apart: after a change of the model it gives the replies of
    the earlier one.
    """
    wrote = str(response.get("model") or "").rpartition("/")[2].casefold()
    known = {model.model.rpartition("/")[2].casefold(), (model.deployment or "").casefold()}
    return not wrote or any(name and (wrote == name or _dated(wrote, name)) for name in known)


def _dated(wrote: str, name: str) -> bool:
    """Tell whether a name is another with a date behind, as in gpt-4.1-2025-04-14."""
    rest = wrote.removeprefix(f"{name}-")
    return rest != wrote and rest.replace("-", "").isdigit()


def texts_of(
    path: Path, column: str | pl.Expr, size: int = _AT_ONCE
) -> Iterator[list[tuple[int, str]]]:
    """Stream the texts of a table with their numbers, so many at a time."""
    frame = pl.scan_parquet(path).select(column if isinstance(column, pl.Expr) else pl.col(column))
    offset = 0
    while True:
        texts = frame.slice(offset, size).collect().to_series().to_list()
        if texts:
            yield [(offset + number, text or "") for number, text in enumerate(texts)]
        if len(texts) < size:
            return
        offset += size
