"""Vectors of passages that searches have computed, in a file beside the index."""

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.local.local_models import EmbeddingModel
from graphrag_index.schema.tables import content_id

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    # Maps the key of a text to its vector.
    Vectors = dict[str, npt.NDArray[np.float32]]

# The name of the file in the output folder.
VECTOR_CACHE_FILE = "rerank_vectors.sqlite"
# Maximum time to wait for another process that writes to the file.
MAX_WAIT_SECONDS = 1.0
_CREATE = "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID"


def delete_vector_cache(output: Path) -> None:
    """Delete the vectors that searches have kept; raises `GraphRAGError` if that fails."""
    for name in (VECTOR_CACHE_FILE, f"{VECTOR_CACHE_FILE}-journal"):
        path = output / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise GraphRAGError(
                f"{path} cannot be deleted ({error.strerror}): end the programs that search the "
                "index, and run with --purge again."
            ) from error


class VectorCache:
    """Vectors of passages in an SQLite file, or in memory if `path` is None. It is thread-safe.

    The key of a vector is a hash of the model and the text, so that the vectors serve every
    version of the index. A file that cannot be opened is replaced by memory, and a failed write
    is ignored, because the vectors can be computed again.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        try:
            self._database = _open_database(path or ":memory:")
        except sqlite3.Error:
            self._database = _open_database(":memory:")

    def close(self) -> None:
        self._database.close()

    def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> "npt.NDArray[np.float32]":
        """Return a vector for each text, and compute only those that are not in the file."""
        import numpy as np

        keys = [content_id(*map(str, model.identity), text) for text in texts]
        vectors = self._read(keys, model.dimension)
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if new:
            made = dict(zip(new, model.embed(list(new.values())), strict=True))
            self._write(made)
            vectors |= made
        return np.array([vectors[key] for key in keys])

    def _read(self, keys: Sequence[str], dimension: int) -> "Vectors":
        import numpy as np

        query = f"SELECT key, vector FROM vectors WHERE key IN ({', '.join('?' * len(keys))})"
        with self._lock, suppress(sqlite3.Error):
            rows = self._database.execute(query, keys).fetchall()
            found = {key: np.frombuffer(vector, "<f4") for key, vector in rows}
            return {key: vector for key, vector in found.items() if len(vector) == dimension}
        return {}

    def _write(self, vectors: "Mapping[str, npt.NDArray[np.float32]]") -> None:
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        with self._lock, suppress(sqlite3.Error), self._database:
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)


def _open_database(path: Path | str) -> sqlite3.Connection:
    database = sqlite3.connect(path, check_same_thread=False, timeout=MAX_WAIT_SECONDS)
    try:
        database.execute(_CREATE)
    except sqlite3.Error:
        database.close()
        raise
    return database
