"""Models for estimates: the models count requests instead of sending them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.llm.chat_model import CachedModel, RequestChain
from graphrag_index.llm.embeddings import text_key
from graphrag_index.llm.ledger import DONE, FILE, QUARANTINED, Ledger
from graphrag_index.llm.limits import max_reply_tokens
from graphrag_index.llm.prompts import find_quoted_texts
from graphrag_index.llm.protocol import Capabilities
from graphrag_index.llm.request import (
    ENCODING,
    Outcome,
    QuarantinedError,
    ReplyError,
    Request,
    prompt_tokens,
)
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.models import ModelSettings, find_model

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Number of tokens that mark the start and the end of one message of a prompt.
DELIMITER_TOKENS_PER_MESSAGE = 4
# Mean tokens of a reply, by name of the reply format, until the step has `MIN_PAST_CALLS`: per
# token of the passage in the prompt, or per reply. The values are rough, because they depend on
# the model and the text.
TOKENS_PER_PASSAGE_TOKEN = {"extraction": 2.0, "claims": 0.5}
TOKENS_PER_REPLY = {"description": 160, "community_report": 700}
DEFAULT_TOKENS_PER_REPLY = 60
# Dimension of the dummy vectors, if the settings do not set a dimension.
DUMMY_DIMENSION = 8
# If a step has fewer past calls than this number, no average length of its replies is computed.
MIN_PAST_CALLS = 20
# A text of about the mean length of a description. It stands for every text of a missing reply.
PLACEHOLDER = "This sentence has as many words as a model needs to describe one name in a passage."


class PastReplies(Ledger):
    """The ledger (cache of replies) of an output folder, read-only; empty if the file is absent."""

    def __init__(self, output: Path) -> None:
        self.is_empty = not (output / FILE).exists()
        super().__init__(None if self.is_empty else output, read_only=not self.is_empty)

    def average_past_replies(self, step: str, model: str) -> tuple[float | None, float]:
        """Return the average tokens of a reply, and the share (0–1) of cached prompt tokens.

        Return None and 0 if the step has fewer than `MIN_PAST_CALLS` replies.
        """
        n_calls, *averages = self.fetch_rows(
            "SELECT count(*), total(completion_tokens) / count(*), "
            "total(cached_tokens) / max(1, total(prompt_tokens)) FROM calls "
            "WHERE step = ? AND model = ? AND completion_tokens > 0",
            step,
            model,
        )[0]
        return (averages[0], averages[1]) if n_calls >= MIN_PAST_CALLS else (None, 0.0)


@dataclass
class RequestCount:
    """Counts of the requests of one step to one model.

    `n_answered` requests have a reply in the ledger, the cache of replies. `n_to_ask` requests have
    no reply yet.
    """

    step: str
    model: str
    is_chat: bool
    n_answered: int = 0
    n_to_ask: int = 0
    # Token counts of the requests without a reply.
    prompt_tokens: int = 0
    reply_tokens: int = 0
    seen: set[str] = field(default_factory=set, repr=False)

    def scale(self, growth: float) -> "RequestCount":
        """Return the counts multiplied by a number."""
        names = ("n_answered", "n_to_ask", "prompt_tokens", "reply_tokens")
        return replace(self, **{name: round(getattr(self, name) * growth) for name in names})


class CountingModels:
    """The counting models of one estimate, with the interface of `Models`."""

    def __init__(
        self,
        settings: Mapping[str, ModelSettings],
        past: PastReplies,
        dimension: int | None = None,
        counted: Sequence[RequestCount] = (),
    ) -> None:
        self._dimension = dimension
        self.settings, self.past = settings, past
        self.counts: list[RequestCount] = []
        # Keys of the requests that were counted already, by step.
        self._seen = {count.step: count.seen for count in counted}

    def open_chat_model(self, name: str, step: str) -> "CountingChatModel":
        settings = find_model(self.settings, name, step)
        return CountingChatModel(settings, self.past, self._add_count(step, name, True))

    def open_embedding_model(self, name: str, step: str) -> "CountingEmbeddingModel":
        settings, count = find_model(self.settings, name, step), self._add_count(step, name, False)
        return CountingEmbeddingModel(settings, self.past, count, self._dimension)

    def _add_count(self, step: str, model: str, is_chat: bool) -> RequestCount:
        count = RequestCount(step, model, is_chat, seen=set(self._seen.get(step, ())))
        self.counts.append(count)
        return count


class CountingChatModel(CachedModel):
    """A chat model that counts requests, and returns a cached reply or a placeholder."""

    def __init__(self, settings: ModelSettings, past: PastReplies, count: RequestCount) -> None:
        super().__init__(count.model, settings, count.step, past)
        self.count = count
        known = self.get_meta(Capabilities.cache_key(settings))
        self._response_format = Capabilities.from_json(settings, known).response_format

    def set_meta(self, name: str, value: str) -> None:
        """Store nothing, because an estimate does not change the ledger."""

    def mark_used(self, keys: Iterable[str]) -> None:
        """Count the requests with these keys as answered, because their rows are reused."""
        new = set(keys) - self.count.seen
        self.count.seen |= new
        self.count.n_answered += len(new)

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Yield the outcome of each request, in order."""
        for request in requests:
            chain, n_missing, known = RequestChain(request, self.settings), 0, Outcome(request.unit)
            try:
                while not chain.is_answered:
                    n_missing += self._advance_chain(chain, n_missing)
                    known = known if n_missing else chain.outcome
                outcome = chain.outcome
                if request.format.name in TOKENS_PER_PASSAGE_TOKEN:
                    # No names and no claims are made up.
                    outcome = replace(outcome, values=known.values)
            except (QuarantinedError, ReplyError) as error:
                outcome = chain.failed_outcome(error)
            yield outcome

    def _advance_chain(self, chain: RequestChain, n_missing: int) -> int:
        """Count the next request of a chain, and add its cached reply or a placeholder.

        `n_missing` are the tokens of the missing replies that the request contains. Return the
        tokens of its own reply; 0 if the reply is in the ledger.
        """
        is_new = chain.key not in self.count.seen
        self.count.seen.add(chain.key)
        try:
            is_stored = chain.add_cached_reply(self.ledger.find_entry)
        except QuarantinedError:
            self.count.n_answered += is_new
            raise
        if is_stored:
            self.count.n_answered += is_new
            return 0
        request = chain.request
        max_reply_tokens(request, self.settings, prompt_tokens(request, self.settings))
        n_reply = self._count_reply(request)
        if is_new:
            self.count.n_to_ask += 1
            self.count.prompt_tokens += self._count_prompt(request) + n_missing
            self.count.reply_tokens += n_reply
        chain.add_reply(request.format.read(_make_placeholder(request.format.schema)))
        return max(1, n_reply)

    def _count_prompt(self, request: Request) -> int:
        n_prompt = sum(
            _count_tokens(message["content"]) + DELIMITER_TOKENS_PER_MESSAGE
            for message in request.messages
        )
        if self._response_format in ("json_schema", "tool"):
            n_prompt += _count_tokens(json.dumps(request.format.schema, ensure_ascii=False))
        if self._response_format in ("json_object", "text"):
            n_prompt += _count_tokens(request.format.instructions)
        return n_prompt

    def _count_reply(self, request: Request) -> int:
        longest = request.max_output_tokens or self.settings.max_output_tokens
        n_reply = TOKENS_PER_REPLY.get(request.format.name, DEFAULT_TOKENS_PER_REPLY)
        if share := TOKENS_PER_PASSAGE_TOKEN.get(request.format.name):
            # A gleaning request has no passage, and counts as if nothing were found.
            passage = "".join(find_quoted_texts(request.messages[-1]["content"]))
            n_reply = round(share * _count_tokens(passage))
        return min(longest, n_reply)


class CountingEmbeddingModel:
    """An embedding model that counts each text as one request.

    `dimension` is the dimension of imported vectors. Imported vectors are not in the ledger.
    """

    def __init__(
        self, settings: ModelSettings, past: PastReplies, count: RequestCount, dimension: int | None
    ) -> None:
        self.settings, self.past, self.count = settings, past, count
        self.dimension = dimension or settings.dimensions or DUMMY_DIMENSION
        self.identity = settings.vector_identity()

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Count each text as one request, and return the same dummy vector for each text."""
        import numpy as np

        for text in texts:
            key = text_key(text, self.settings)
            if key in self.count.seen:
                continue
            self.count.seen.add(key)
            entry = self.past.find_entry(key)
            if entry is not None and entry.state in (DONE, QUARANTINED):
                self.count.n_answered += 1
            else:
                self.count.n_to_ask += 1
                self.count.prompt_tokens += _count_tokens(text)
        if advance:
            advance(len(texts))
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        vectors[:, 0] = 1
        return vectors


# Cache the counts, because many requests contain the same prompt and the same schema.
@lru_cache(maxsize=64)
def _count_tokens(text: str) -> int:
    return count_tokens(text, load_encoding(ENCODING))


def _make_placeholder(schema: Any) -> Any:
    """Return a value for a JSON Schema: lists of one item, and `PLACEHOLDER` as each text."""
    if not isinstance(schema, Mapping):
        return PLACEHOLDER
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        parts = schema.get("properties", {})
        return {name: _make_placeholder(part) for name, part in parts.items()}
    if kind == "array":
        return [_make_placeholder(schema.get("items"))]
    values = {"integer": 1, "number": 1, "boolean": False, "null": None}
    return values.get(str(kind), PLACEHOLDER)
