"""The vectors that Microsoft GraphRAG paid for, out of its cache into our ledger.

There texts are embedded some at a time, and a reply is known by all of its texts; here each
text has a vector of its own. What is embedded is the same: the text of text units,
`title:description` of entities, and whole reports.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.llm.embeddings import text_key
from graphrag_index.llm.ledger import Ledger
from graphrag_index.microsoft.migrate.reply_cache import StepReplies, StoredReplies, is_by, texts_of
from graphrag_index.microsoft.migrate.settings_file import MicrosoftProject, UnsetVariableError
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.text.tokens import count_tokens, load_encoding

if TYPE_CHECKING:
    import numpy.typing as npt

# The name of the step in the cache.
EMBEDDING = "text_embedding"
# Texts and tokens of one request where the settings say nothing.
_BATCH, _BATCH_TOKENS = 16, 8_191


def read_vectors(
    project: MicrosoftProject,
    stored: StoredReplies,
    tables: Path,
    settings: Settings,
    model: ModelSettings,
    ledger: Ledger,
    result: StepReplies,
) -> None:
    """Keep the vectors of what was embedded together: text units, entities, reports."""
    described = pl.col("title") + ":" + pl.col("description")
    columns: list[tuple[str, str | pl.Expr]] = [
        ("text_units", "text"),
        ("entities", described.alias("text")),
        ("community_reports", pl.col("full_content").alias("text")),
    ]
    name = settings.generate_text_embeddings.model
    sizes = _batch_sizes(project)
    for table, column in columns:
        path = tables / f"{table}.parquet"
        if not path.is_file():
            continue
        for texts in texts_of(path, column, sizes.flush):
            for batch in _batches([text for _, text in texts], sizes):
                response = stored.find(EMBEDDING, _embedding_requests(batch))
                if response is None:
                    continue
                if not is_by(response, model):
                    result.n_other += 1
                    continue
                replies = _vectors(response, batch, model)
                if replies is None:
                    result.n_unread += 1
                    continue
                for text in batch:
                    unit = " ".join(text[:60].split())
                    ledger.send(text_key(text, model), "generate_text_embeddings", unit, name)
                ledger.finish_all(replies)
                result.n_used += 1


@dataclass(frozen=True)
class _Sizes:
    """Texts and tokens of one request, and how many texts are divided at a time."""

    texts: int
    tokens: int
    flush: int


def _batch_sizes(project: MicrosoftProject) -> _Sizes:
    def number(key: str, default: int) -> int:
        try:
            value = project.expand(project.get(key))
        except UnsetVariableError:
            value = None
        return value if isinstance(value, int) and value > 0 else default

    texts = number("embed_text.batch_size", _BATCH)
    tokens = number("embed_text.batch_max_tokens", _BATCH_TOKENS)
    return _Sizes(texts, tokens, texts * number("concurrent_requests", 25))


def _batches(texts: Sequence[str], sizes: _Sizes) -> Iterator[list[str]]:
    """Divide texts as they were divided there, as far as no text is longer than a request."""
    # Embedding models of OpenAI count so.
    encoding = load_encoding("cl100k_base")
    batch: list[str] = []
    n_batch = 0
    for text in texts:
        n_tokens = count_tokens(text, encoding)
        if n_tokens > sizes.tokens:
            # It was cut into pieces, of which nothing is known.
            return
        if not text:
            continue
        if batch and (len(batch) >= sizes.texts or n_batch + n_tokens > sizes.tokens):
            yield batch
            batch, n_batch = [], 0
        batch.append(text)
        n_batch += n_tokens
    if batch:
        yield batch


def _embedding_requests(batch: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    yield {"input": list(batch)}


def _vectors(
    response: Mapping[str, Any], batch: Sequence[str], model: ModelSettings
) -> dict[str, str] | None:
    """Return the vectors of a batch as the ledger keeps them, by key; None if they do not fit."""
    import numpy as np

    try:
        rows = sorted(response["data"], key=lambda row: row["index"])
        vectors: list[npt.NDArray[np.float32]] = [
            np.asarray(row["embedding"], np.float32) for row in rows
        ]
    except (KeyError, TypeError, ValueError):
        return None
    if len(vectors) != len(batch) or len({vector.shape for vector in vectors}) != 1:
        return None
    replies = {}
    for text, vector in zip(batch, vectors, strict=True):
        length = float(np.linalg.norm(vector))
        if vector.ndim != 1 or not np.isfinite(length) or not length:
            return None
        data = (vector / np.float32(length)).astype(np.float32).tobytes()
        replies[text_key(text, model)] = base64.b64encode(data).decode()
    return replies
