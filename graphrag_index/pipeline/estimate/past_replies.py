"""The ledger, opened for reading: nothing in the output folder changes, not even beside it."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.ledger import FILE, Entry, reply_hashes

# So many calls of a step tell how long its replies are.
ENOUGH_CALLS = 20


class Past:
    """What the ledger of an output folder has; all is unknown where there is none."""

    def __init__(self, output: Path) -> None:
        self.path = output.absolute() / FILE
        self._database: sqlite3.Connection | None = None
        if self.path.exists():
            # SQLite makes files beside one that has no log, unless it is told that none writes.
            is_written = self.path.with_name(f"{FILE}-wal").exists()
            options = "mode=ro" if is_written else "mode=ro&immutable=1"
            self._database = self._try(
                sqlite3.connect, f"{self.path.as_uri()}?{options}", uri=True, timeout=30
            )

    @property
    def is_empty(self) -> bool:
        """Whether no model was ever asked for this output folder."""
        return self._database is None

    def find(self, key: str) -> Entry | None:
        rows = self._rows("SELECT state, reply, reason FROM requests WHERE key = ?", key)
        return Entry(rows[0][0], rows[0][1] or "", rows[0][2]) if rows else None

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        return reply_hashes(self._rows, keys)

    def get_meta(self, name: str) -> str | None:
        rows = self._rows("SELECT value FROM metadata WHERE name = ?", name)
        return rows[0][0] if rows else None

    def reply_tokens(self, step: str, model: str) -> float | None:
        """Return the tokens of a reply to a step on average; None where too few are known."""
        return self._mean(step, model, "total(completion_tokens) / count(*)")

    def cached_share(self, step: str, model: str) -> float:
        """Return which share of the prompts of a step its provider had cached; 0 if not known."""
        return self._mean(step, model, "total(cached_tokens) / max(1, total(prompt_tokens))") or 0.0

    def _mean(self, step: str, model: str, mean: str) -> float | None:
        rows = self._rows(
            f"SELECT count(*), {mean} FROM calls WHERE step = ? AND model = ? "
            "AND completion_tokens > 0",
            step,
            model,
        )
        return float(rows[0][1]) if rows and rows[0][0] >= ENOUGH_CALLS else None

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def _rows(self, query: str, *values: Any) -> list[Any]:
        if self._database is None:
            return []
        return list(self._try(self._database.execute, query, values))

    def _try(self, function: Any, *values: Any, **options: Any) -> Any:
        try:
            return function(*values, **options)
        except sqlite3.DatabaseError as error:
            raise GraphRAGError(
                f"{self.path} cannot be read ({error}): it holds the replies that were paid for; "
                "restore it, or move it away to start without them."
            ) from error
