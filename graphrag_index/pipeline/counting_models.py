"""Models that count requests instead of sending them, for estimates."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_index.llm.chat_model import (
    CachedModel,
    QuarantinedError,
    RequestChain,
    first_attempt,
)
from graphrag_index.llm.embeddings import text_key
from graphrag_index.llm.ledger import DONE, FILE, QUARANTINED, Ledger
from graphrag_index.llm.protocol import Capabilities
from graphrag_index.llm.request import (
    ENCODING,
    Message,
    Outcome,
    ReplyError,
    Request,
    prompt_tokens,
)
from graphrag_index.pipeline.simulated_replies import simulate_reply
from graphrag_index.schema.settings.models import ModelSettings, find_model
from graphrag_index.text.tokens import count_tokens, load_encoding

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Tokens that delimit a message.
TOKENS_OF_MESSAGE = 4
# Tokens of a reply per token of its passage, by format. Rough: it depends on model and text.
REPLY_SHARE = {"extraction": 2.0, "claims": 0.5}
# Dimension of the dummy vectors.
DIMENSION = 8
# Calls of a step after which the average length of its replies is used.
MIN_CALLS = 20


class PastReplies(Ledger):
    """The ledger of an output folder, opened read-only; empty if there is none."""

    def __init__(self, output: Path) -> None:
        self.is_empty = not (output / FILE).exists()
        super().__init__(None if self.is_empty else output, read_only=not self.is_empty)

    def reply_tokens(self, step: str, model: str) -> float | None:
        """Return the average tokens of a reply to a step; None if there were too few."""
        return self._mean(step, model, "total(completion_tokens) / count(*)")

    def cached_share(self, step: str, model: str) -> float:
        """Return the share of cached prompt tokens of a step; 0 if unknown."""
        return self._mean(step, model, "total(cached_tokens) / max(1, total(prompt_tokens))") or 0.0

    def _mean(self, step: str, model: str, mean: str) -> float | None:
        n_calls, value = self.rows(
            f"SELECT count(*), {mean} FROM calls WHERE step = ? AND model = ? "
            "AND completion_tokens > 0",
            step,
            model,
        )[0]
        return float(value) if n_calls >= MIN_CALLS else None


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


class CountingChatModel(CachedModel):
    """A chat model that counts requests, with replies from the ledger or simulated ones."""

    def __init__(self, settings: ModelSettings, past: PastReplies, count: Count) -> None:
        super().__init__(count.model, settings, count.step, past)
        self.count = count
        known = self.get_meta(Capabilities.cache_key(settings))
        self._response_format = Capabilities.of(settings, known).response_format

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Yield the outcome of each request, in order."""
        return map(self._converse, requests)

    def set_meta(self, name: str, value: str) -> None:
        """Store nothing: an estimate does not change the ledger."""

    def mark_used(self, keys: Iterable[str]) -> None:
        """Count requests whose rows are reused."""
        new = set(keys) - self.count.seen
        self.count.seen |= new
        self.count.n_answered += len(new)

    def _converse(self, request: Request) -> Outcome:
        chain = RequestChain(request, self.settings)
        try:
            while not chain.is_answered:
                self._answer(chain)
        except (QuarantinedError, ReplyError) as error:
            return chain.outcome(str(error))
        return chain.outcome()

    def _answer(self, chain: RequestChain) -> None:
        """Advance a chain by the stored reply, or by a simulated one whose tokens are counted.

        Raises
        ------
        QuarantinedError
            The request is quarantined, or too long.
        ReplyError
            The simulated reply does not fit the request.
        """
        is_new = chain.key not in self.count.seen
        self.count.seen.add(chain.key)
        try:
            is_stored = chain.advance_cached(self.ledger.find)
        except QuarantinedError:
            self.count.n_answered += is_new
            raise
        if is_stored:
            self.count.n_answered += is_new
            return
        request = chain.request
        first_attempt(request, self.settings, prompt_tokens(request, self.settings))
        reply = simulate_reply(request)
        if is_new:
            self._add(request, json.dumps(reply, ensure_ascii=False))
        chain.advance(request.format.read(reply))

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
        self.identity = settings.vector_identity()

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
