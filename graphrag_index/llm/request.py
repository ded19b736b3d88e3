"""Requests to a model with their cache keys, formats of replies, outcomes and token counts."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict, TypeVar

from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.tables import content_id
from graphrag_index.text.tokens import count_tokens, load_encoding

# Counts the tokens of prompts that may not fit; other encodings count much the same.
ENCODING = "o200k_base"
# Bytes of ten tokens, a low estimate.
BYTES_OF_TEN_TOKENS = 35

T = TypeVar("T")


class Message(TypedDict):
    """One message of a conversation: `role` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True)
class ParsedReply:
    """The value of a reply, and the number of its records that were invalid."""

    value: Any
    dropped: int = 0


class ReplyError(Exception):
    """An invalid reply; the message gives the reason, to the model as well as to people."""


@dataclass(frozen=True)
class ReplyFormat:
    """The format of a reply.

    `schema` is a JSON Schema in OpenAI's strict subset. `read` turns an object of that schema
    into a value, dropping and counting invalid records, or raises `ReplyError`.
    `instructions` describe the format to a model that knows no schemas. `find` extracts the
    object from a text without any JSON, if it is there beyond doubt; else it returns None.
    """

    name: str
    schema: Mapping[str, Any]
    read: Callable[[Any], ParsedReply]
    instructions: str
    find: Callable[[str], Any] | None = None


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object that has all of these properties and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _read_text(text: Any) -> ParsedReply:
    if not text:
        raise ReplyError("it is empty")
    return ParsedReply(text)


# The format of a text for people, which has no schema.
PLAIN_TEXT = ReplyFormat("text", {}, _read_text, "")


class TextSink(Protocol):
    """Receiver of a text while it is streamed. Called from the thread of the calls."""

    def write(self, piece: str) -> None:
        """Receive the next piece."""

    def restart(self) -> None:
        """Discard the text so far: the call broke off, and the text begins again."""


@dataclass(frozen=True)
class Request:
    """One request to a model.

    `unit` is a label for people: a document and its passage, a community.
    `then` returns the follow-up request to the value of the reply, if there is one.
    With a `sink` the reply is streamed into it.
    """

    unit: str
    messages: Sequence[Message]
    format: ReplyFormat
    max_output_tokens: int | None = None
    then: "Callable[[Any], Request | None] | None" = None
    sink: TextSink | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, or of several."""

    prompt: int = 0
    cached: int = 0  # of the prompt
    completion: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        prompt, cached = self.prompt + other.prompt, self.cached + other.cached
        return Usage(prompt, cached, self.completion + other.completion)


@dataclass
class Spent:
    """Calls, tokens and cost of a request so far."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0  # in dollars; None where a price is not known

    def add(self, usage: Usage, cost: float | None) -> None:
        """Count one call."""
        self.calls += 1
        self.usage += usage
        self.cost = None if self.cost is None or cost is None else self.cost + cost


@dataclass(frozen=True)
class Outcome:
    """The result of a request and its follow-ups.

    `values` are those of the replies, in order; with a `failure` the rest is missing.
    `spent` counts the calls of this run: a reply from the ledger costs nothing.
    """

    unit: str
    values: tuple[Any, ...] = ()
    dropped: int = 0
    failure: str = ""
    spent: Spent = field(default_factory=Spent, compare=False)
    # Ledger keys of the answered requests.
    keys: tuple[str, ...] = field(default=(), compare=False)


class Answering(Protocol):
    """A chat model, or a substitute for one."""

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]: ...


def pair_outcomes(
    model: Answering, requests: Iterable[tuple[T, Request]]
) -> Iterator[tuple[T, Outcome]]:
    """Send requests, each with an item of its own; yield the items with the outcomes."""
    waiting: deque[T] = deque()

    def sent() -> Iterator[Request]:
        for item, request in requests:
            waiting.append(item)
            yield request

    for outcome in model.replies(sent()):
        yield waiting.popleft(), outcome


@dataclass(frozen=True)
class Reply:
    """The text of one reply, the reason for its end, its tokens and its response format."""

    text: str
    finish: str = "stop"  # or length, content_filter, refusal
    usage: Usage = field(default_factory=Usage)
    response_format: str = ""  # one of `protocol.RESPONSE_FORMATS`


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text from its length, a high estimate: counting takes longer."""
    n_bytes = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return n_bytes * 10 // BYTES_OF_TEN_TOKENS + 8


def prompt_tokens(request: Request, settings: ModelSettings) -> int:
    """Estimate the tokens of a request; count them where it may not fit the context window."""
    texts = [message["content"] for message in request.messages]
    texts += [request.format.instructions, _schema_text(request.format.schema)]
    estimate = sum(map(estimate_tokens, texts))
    max_reply = request.max_output_tokens or settings.max_output_tokens
    # No text has more tokens than bytes, and the estimate is more than a quarter of these.
    if 4 * estimate + max_reply <= settings.context_window:
        return estimate
    encoding = load_encoding(ENCODING)
    return max(estimate, sum(count_tokens(text, encoding) for text in texts))


def request_key(request: Request, settings: ModelSettings) -> str:
    """Return the cache key of a request: a hash of all that its reply depends on."""
    identity = json.dumps(settings.identity(), sort_keys=True)
    parts = [identity, str(request.max_output_tokens), request.format.name]
    parts.append(_schema_text(request.format.schema))
    for message in request.messages:
        parts += (message["role"], message["content"])
    return content_id(*parts)


# JSON of schemas by their identity in memory: thousands of requests share one schema.
_schema_texts: dict[int, tuple[object, str]] = {}


def _schema_text(schema: Mapping[str, Any]) -> str:
    known = _schema_texts.get(id(schema))
    if known is None:
        if len(_schema_texts) >= 100:
            _schema_texts.clear()
        # The entry keeps the schema alive, so that no other one gets its identity.
        known = _schema_texts[id(schema)] = (schema, json.dumps(schema, sort_keys=True))
    return known[1]
