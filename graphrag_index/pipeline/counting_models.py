"""Models that count requests instead of sending them, for estimates."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.embeddings import identity, text_key
from graphrag_index.llm.ledger import DONE, FILE, QUARANTINED, Entry, reply_hashes
from graphrag_index.llm.request import Message, Outcome, ParsedReply, ReplyError, Request
from graphrag_index.llm.request_body import Capabilities
from graphrag_index.llm.request_chain import (
    QuarantinedError,
    RequestChain,
    cached_values,
    first_attempt,
    prompt_tokens,
    read_cached,
    request_key,
)
from graphrag_index.pipeline.simulated_replies import simulate_reply
from graphrag_index.schema.settings.models import ModelSettings, find_model
from graphrag_index.text.tokens import count_tokens, load_encoding

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# The tokenizer of the counts; those of other models give similar counts.
ENCODING = "o200k_base"
# Tokens that delimit a message.
TOKENS_OF_MESSAGE = 4
# Tokens of a reply per token of its passage, by format. Rough: it depends on model and text.
REPLY_SHARE = {"extraction": 2.0, "claims": 0.5}
# Dimension of the dummy vectors.
DIMENSION = 8
# Calls of a step after which the average length of its replies is used.
MIN_CALLS = 20


class PastReplies:
    """The ledger of an output folder, opened read-only; empty if there is none."""

    def __init__(self, output: Path) -> None:
        self.path = output.absolute() / FILE
        self._database: sqlite3.Connection | None = None
        if self.path.exists():
            # Without a write-ahead log, SQLite would create one unless the file is immutable.
            is_written = self.path.with_name(f"{FILE}-wal").exists()
            options = "mode=ro" if is_written else "mode=ro&immutable=1"
            self._database = self._try(
                sqlite3.connect, f"{self.path.as_uri()}?{options}", uri=True, timeout=30
            )

    @property
    def is_empty(self) -> bool:
        """Whether the output folder has no ledger."""
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
        """Return the average tokens of a reply to a step; None if there were too few."""
        return self._mean(step, model, "total(completion_tokens) / count(*)")

    def cached_share(self, step: str, model: str) -> float:
        """Return the share of cached prompt tokens of a step; 0 if unknown."""
        return self._mean(step, model, "total(cached_tokens) / max(1, total(prompt_tokens))") or 0.0

    def _mean(self, step: str, model: str, mean: str) -> float | None:
        rows = self._rows(
            f"SELECT count(*), {mean} FROM calls WHERE step = ? AND model = ? "
            "AND completion_tokens > 0",
            step,
            model,
        )
        return float(rows[0][1]) if rows and rows[0][0] >= MIN_CALLS else None

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


@dataclass
class Count:
    """The requests of one step to one model, with and without a reply in the ledger."""

    step: str
    model: str
    is_chat: bool
    n_answered: int = 0
    n_to_ask: int = 0
    # Of the requests without a reply. `fixed_tokens` are those that all prompts share.
    fixed_tokens: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    seen: set[str] = field(default_factory=set, repr=False)


class CountingModels:
    """The models of one estimate, with the interface of `Models`."""

    def __init__(
        self, settings: Mapping[str, ModelSettings], past: PastReplies, dimension: int | None = None
    ) -> None:
        self._dimension = dimension
        self.settings, self.past = settings, past
        self.counts: list[Count] = []

    def chat(self, name: str, step: str) -> "CountingChatModel":
        return CountingChatModel(*self._parts(name, step, True))

    def embedding(self, name: str, step: str) -> "CountingEmbeddingModel":
        return CountingEmbeddingModel(*self._parts(name, step, False), self._dimension)

    def _parts(
        self, name: str, step: str, is_chat: bool
    ) -> tuple[ModelSettings, PastReplies, Count]:
        settings = find_model(self.settings, name, step)
        self.counts.append(Count(step, name, is_chat))
        return settings, self.past, self.counts[-1]


class CountingChatModel:
    """A chat model that counts requests, with replies from the ledger or simulated ones."""

    def __init__(self, settings: ModelSettings, past: PastReplies, count: Count) -> None:
        self.settings, self.past, self.count = settings, past, count
        known = past.get_meta(Capabilities.cache_key(settings))
        self._response_format = Capabilities.of(settings, known).response_format

    @property
    def max_prompt_tokens(self) -> int:
        """Longest prompt, in tokens."""
        return self.settings.context_window - self.settings.max_output_tokens

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Yield the outcome of each request, in order."""
        return map(self._converse, requests)

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        """Return the values of the stored replies to a request and its follow-ups."""
        return cached_values(self.past.find, request, self.settings)

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        """Return a hash of the stored reply of each key; empty if there is none."""
        return self.past.reply_hashes(keys)

    def get_meta(self, name: str) -> str | None:
        """Return a value that is stored beside the replies."""
        return self.past.get_meta(name)

    def set_meta(self, name: str, value: str) -> None:
        """Store nothing: an estimate does not change the ledger."""

    def mark_used(self, keys: Iterable[str]) -> None:
        """Count requests whose rows are reused."""
        new = set(keys) - self.count.seen
        self.count.seen |= new
        self.count.n_answered += len(new)

    def _converse(self, request: Request) -> Outcome:
        chain = RequestChain(request)
        while (pending := chain.pending) is not None:
            try:
                key = request_key(pending, self.settings)
                chain.advance(self._parse(pending, key), key)
            except (QuarantinedError, ReplyError) as error:
                return chain.outcome(str(error))
        return chain.outcome()

    def _parse(self, request: Request, key: str) -> ParsedReply:
        """Parse the stored reply, or simulate one and count its tokens.

        Raises
        ------
        QuarantinedError
            The request is quarantined, or too long.
        ReplyError
            The simulated reply does not fit the request.
        """
        is_new = key not in self.count.seen
        self.count.seen.add(key)
        entry = self.past.find(key)
        try:
            parsed = read_cached(entry, request)
        except QuarantinedError:
            self.count.n_answered += is_new
            raise
        if parsed is not None:
            self.count.n_answered += is_new
            return parsed
        first_attempt(request, self.settings, prompt_tokens(request, self.settings))
        reply = simulate_reply(request)
        if is_new:
            self._add(request, json.dumps(reply, ensure_ascii=False))
        return request.format.read(reply)

    def _add(self, request: Request, reply: str) -> None:
        first, *rest = request.messages
        fixed = _count_often(first["content"]) if rest else _count_message(first)
        fixed += len(request.messages) * TOKENS_OF_MESSAGE
        if self._response_format in ("json_schema", "tool"):
            fixed += _count_often(json.dumps(request.format.schema, ensure_ascii=False))
        if self._response_format in ("json_object", "text"):
            fixed += _count_often(request.format.instructions)
        self.count.n_to_ask += 1
        self.count.fixed_tokens += fixed
        self.count.prompt_tokens += fixed + sum(map(_count_message, rest))
        longest = request.max_output_tokens or self.settings.max_output_tokens
        passage = request.messages[-1]["content"].partition("Passage:\n")[2]
        share = REPLY_SHARE.get(request.format.name)
        # The reply to a gleaning request has nothing new.
        n_reply = round(share * _count(passage)) if share and passage else _count(reply)
        self.count.reply_tokens += min(longest, n_reply)


class CountingEmbeddingModel:
    """An embedding model that counts texts, each as one request.

    `dimension` is that of imported vectors, which are in no ledger.
    """

    def __init__(
        self, settings: ModelSettings, past: PastReplies, count: Count, dimension: int | None = None
    ) -> None:
        self.settings, self.past, self.count = settings, past, count
        self.dimension = dimension or settings.dimensions or DIMENSION
        self.identity = identity(settings)

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Count the texts, and return the same vector for each."""
        import numpy as np

        for text in texts:
            key = text_key(text, self.settings)
            if key in self.count.seen:
                continue
            self.count.seen.add(key)
            entry = self.past.find(key)
            if entry is not None and entry.state in (DONE, QUARANTINED):
                self.count.n_answered += 1
            else:
                self.count.n_to_ask += 1
                self.count.prompt_tokens += _count(text)
        if advance is not None:
            advance(len(texts))
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        vectors[:, 0] = 1
        return vectors


def _count(text: str) -> int:
    return count_tokens(text, load_encoding(ENCODING))


def _count_message(message: Message) -> int:
    return _count(message["content"])


@lru_cache(maxsize=64)
def _count_often(text: str) -> int:
    """Count the tokens of a text that many requests repeat."""
    return _count(text)
