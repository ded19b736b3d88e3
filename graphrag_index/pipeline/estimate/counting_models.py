"""Stand in for models: count what they are asked, and answer from the past or from the text."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from graphrag_index.llm.embeddings import identity, text_key
from graphrag_index.llm.ledger import DONE, QUARANTINED
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
from graphrag_index.pipeline.estimate.past_replies import Past
from graphrag_index.pipeline.estimate.simulated_replies import answer
from graphrag_index.schema.settings.models import ModelSettings, find_model
from graphrag_index.text.tokens import count_tokens, load_encoding

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Counts what is sent; other models count much the same.
ENCODING = "o200k_base"
# What marks the beginning and the end of a message takes, in tokens.
TOKENS_OF_MESSAGE = 4
# Tokens of a reply for each token of the passage that it is about, by format. Rough: what names
# recur, and at what length a model describes them, differ by the model and by the text.
REPLY_SHARE = {"extraction": 2.0, "claims": 0.5}
# Of vectors that nobody looks at.
DIMENSION = 8


@dataclass
class Count:
    """What one step asks one model: how much of it is answered already, and how much is not."""

    step: str
    model: str
    is_chat: bool
    n_answered: int = 0
    n_to_ask: int = 0
    # Of what is to be asked. `fixed_tokens` are those of the prompts that are the same each time.
    fixed_tokens: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    seen: set[str] = field(default_factory=set, repr=False)


class CountingModels:
    """The models of one estimate; to steps they are like those that answer."""

    def __init__(
        self, settings: Mapping[str, ModelSettings], past: Past, dimension: int | None = None
    ) -> None:
        self._dimension = dimension
        self.settings, self.past = settings, past
        self.counts: list[Count] = []

    def chat(self, name: str, step: str) -> "CountingChatModel":
        return CountingChatModel(*self._parts(name, step, True))

    def embedding(self, name: str, step: str) -> "CountingEmbeddingModel":
        return CountingEmbeddingModel(*self._parts(name, step, False), self._dimension)

    def _parts(self, name: str, step: str, is_chat: bool) -> tuple[ModelSettings, Past, Count]:
        settings = find_model(self.settings, name, step)
        self.counts.append(Count(step, name, is_chat))
        return settings, self.past, self.counts[-1]


class CountingChatModel:
    """Stands in for a chat model."""

    def __init__(self, settings: ModelSettings, past: Past, count: Count) -> None:
        self.settings, self.past, self.count = settings, past, count
        known = past.get_meta(Capabilities.cache_key(settings))
        self._response_format = Capabilities.of(settings, known).response_format

    @property
    def max_prompt_tokens(self) -> int:
        """How long a prompt may be, in tokens."""
        return self.settings.context_window - self.settings.max_output_tokens

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Give an outcome for each request, in their order."""
        return map(self._converse, requests)

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        """Return the values that are kept for a request and those that follow."""
        return cached_values(self.past.find, request, self.settings)

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        """Return a hash of the reply that is kept under each key; empty where none is."""
        return self.past.reply_hashes(keys)

    def get_meta(self, name: str) -> str | None:
        """Return what was remembered beside the replies."""
        return self.past.get_meta(name)

    def set_meta(self, name: str, value: str) -> None:
        """Keep nothing: an estimate leaves the ledger as it is."""

    def mark_used(self, keys: Iterable[str]) -> None:
        """Count what is not asked since what was made of it before stays."""
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
        """Read the reply that was paid for, or make one and count what it would take.

        Raises
        ------
        QuarantinedError
            The request was put aside, or is too long to be sent.
        ReplyError
            There is no answer to such a request.
        """
        is_new = key not in self.count.seen
        self.count.seen.add(key)
        entry = self.past.find(key)
        try:
            reading = read_cached(entry, request)
        except QuarantinedError:
            self.count.n_answered += is_new
            raise
        if reading is not None:
            self.count.n_answered += is_new
            return reading
        first_attempt(request, self.settings, prompt_tokens(request, self.settings))
        said = answer(request)
        if is_new:
            self._add(request, json.dumps(said, ensure_ascii=False))
        return request.format.read(said)

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
        # What follows a reply, for what was missed, tells nothing new.
        n_reply = round(share * _count(passage)) if share and passage else _count(reply)
        self.count.reply_tokens += min(longest, n_reply)


class CountingEmbeddingModel:
    """Stands in for an embedding model; one text is one request.

    `dimension` is that of vectors which were imported, and are in no ledger.
    """

    def __init__(
        self, settings: ModelSettings, past: Past, count: Count, dimension: int | None = None
    ) -> None:
        self.settings, self.past, self.count = settings, past, count
        self.dimension = dimension or settings.dimensions or DIMENSION
        self.identity = identity(settings)

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Count the texts, and give each the same vector."""
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
    """Count what is sent with each request only once."""
    return _count(text)
