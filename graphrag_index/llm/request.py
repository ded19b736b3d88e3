"""Requests to a model: messages, reply formats, outcomes, attempts, cache keys, tokens."""

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NotRequired, Protocol, TypedDict, TypeVar

from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.tables import content_id

# The encoding that tokens are counted with. The counts of other encodings are similar.
ENCODING = "o200k_base"
# A low estimate of the number of bytes of ten tokens.
BYTES_OF_TEN_TOKENS = 35
# Minimum number of tokens for a reply: with less room no request is sent.
MIN_REPLY_TOKENS = 16
# Share of its context that a request keeps when it is shortened.
SHORTENED_SHARE = 0.8
# Minimum number of characters of a part of a text that is asked about by itself.
MIN_PART_CHARS = 200
# A reply is expected to have at most this many tokens, plus a multiple of the tokens of the text.
EXPECTED_TOKENS, EXPECTED_PER_TOKEN = 1_024, 8

# The start of the reason why a request is quarantined because of its length.
TOO_LONG = "too long"

T = TypeVar("T")


# Tokens of a picture: for each tile of so many pixels a side, after its shorter side has been
# scaled down to a limit, and for all (OpenAI, guide to vision, "Calculating costs", for GPT-4o).
# Other models count otherwise.
TILE_SIDE, MAX_SHORT_SIDE, TOKENS_PER_TILE, TOKENS_PER_PICTURE = 512, 768, 170, 85


@dataclass(frozen=True)
class Picture:
    """A picture of a message, as PNG or JPEG; `digest` is a hash of its pixels."""

    data: bytes = field(repr=False, compare=False)
    media_type: str
    width: int
    height: int
    digest: str

    @property
    def n_tokens(self) -> int:
        """About the tokens that the picture costs."""
        scale = min(1.0, MAX_SHORT_SIDE / min(self.width, self.height))
        n_tiles = math.prod(math.ceil(s * scale / TILE_SIDE) for s in (self.width, self.height))
        return TOKENS_PER_PICTURE + TOKENS_PER_TILE * n_tiles


class Message(TypedDict):
    """One message of a conversation: `role` is system, user or assistant."""

    role: str
    content: str
    picture: NotRequired[Picture]


def count_picture_tokens(messages: Iterable[Message]) -> int:
    """Return about the tokens of the pictures of messages."""
    return sum(message["picture"].n_tokens for message in messages if "picture" in message)


@dataclass(frozen=True)
class ParsedReply:
    """The value of a reply, and the number of its records that were dropped as invalid."""

    value: Any
    dropped: int = 0


class ReplyError(Exception):
    """An invalid reply. The message is the reason, shown to the model and to the user."""


def find_reply_field(data: Any, names: Iterable[str]) -> Any:
    """Return the first of these fields of an object, or of the only one in a list.

    Upper and lower case do not matter. Any other value is returned as it is.
    """
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if not isinstance(data, Mapping):
        return data
    fields = {str(key).strip().lower(): value for key, value in data.items()}
    return next((fields[name] for name in names if name in fields), None)


@dataclass(frozen=True)
class ReplyFormat:
    """The format of a reply.

    `schema` is a JSON Schema in OpenAI's strict subset; an empty schema means plain text. `read`
    converts an object of this schema to a value, dropping and counting invalid records; it
    raises `ReplyError` if the object is invalid. `instructions` describe the format to a model
    without schema support. `find` extracts the object from a text without JSON if its meaning
    is clear; otherwise it returns None.
    """

    name: str
    schema: Mapping[str, Any]
    read: Callable[[Any], ParsedReply]
    instructions: str
    find: Callable[[str], Any] | None = None

    @cached_property
    def schema_text(self) -> str:
        """The schema as JSON, with sorted keys."""
        return json.dumps(self.schema, sort_keys=True)

    @cached_property
    def record_lists(self) -> dict[str, Mapping[str, Any]]:
        """Map each key whose value is a list of records (objects) to the fields of a record."""
        return {
            name: part["items"]["properties"]
            for name, part in self.schema.get("properties", {}).items()
            if part.get("items", {}).get("properties")
        }

    def matches(self, value: Any) -> bool:
        """Tell whether a value is an object with all required keys, and lists are not quoted."""
        required = self.schema.get("required", self.schema.get("properties", {}))
        if not isinstance(value, dict) or not all(key in value for key in required):
            return False
        for name in self.record_lists:
            records = value.get(name)
            if isinstance(records, str) or (
                isinstance(records, list)
                and any(isinstance(part, str) and part.startswith("{") for part in records)
            ):
                return False
        return True


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object that has all of these properties and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _parse_plain_text(text: Any) -> ParsedReply:
    if not text:
        raise ReplyError("it is empty")
    return ParsedReply(text)


# The format of a plain text, which has no schema.
PLAIN_TEXT = ReplyFormat("text", {}, _parse_plain_text, "")


class TextSink(Protocol):
    """Receiver of a streamed text. Its methods are called from the thread of the event loop.

    A receiver may also have the method `status(stage, message)`, which is told what a search does.
    """

    def write(self, piece: str) -> None:
        """Receive the next piece of the text."""

    def restart(self) -> None:
        """Discard the text so far: the call failed, and a retry sends the text from the start."""


@dataclass(frozen=True)
class Request:
    """One request to a model.

    `unit` is a label for the user: a document and its passage, or a community.
    `then` maps the value of the reply to a follow-up request, or to None.
    With a `sink`, the reply is streamed into the sink. `shorten` returns the same request with a
    fifth less of its context, or in parts, or None if little is left; other threads call it.
    """

    unit: str
    messages: Sequence[Message]
    format: ReplyFormat
    max_output_tokens: int | None = None
    then: "Callable[[Any], Request | None] | None" = None
    sink: TextSink | None = None
    shorten: "Callable[[], Request | None] | None" = None


def cut_text(text: str, n_pieces: int) -> list[str]:
    """Cut a text into pieces of about equal length, after a line, a sentence or a word."""
    ends = []
    for i in range(1, n_pieces):
        start, end = ((2 * i + d) * len(text) // (2 * n_pieces) for d in (-1, 0))
        places = (text.rfind(mark, start, end) + len(mark) for mark in ("\n", "。", ". ", " "))
        ends.append(next((place for place in places if place > start), end))
    bounds = [0, *ends, len(text)]
    pieces = (text[start:end] for start, end in pairwise(bounds))
    return [piece for piece in pieces if piece.strip()]


def ask_in_parts(build: "Callable[[str], Request]", text: str) -> Request:
    """Return the request about a text; where it is too long, about each half in turn."""

    def shorten() -> Request | None:
        parts = cut_text(text, 2)
        if len(parts) < 2 or len(text) < 2 * MIN_PART_CHARS:
            return None
        first, rest = (partial(ask_in_parts, build, part) for part in parts)
        return _followed_by(first(), rest)

    return replace(build(text), shorten=shorten)


def _followed_by(request: Request, build_next: "Callable[[], Request]") -> Request:
    """Let another request come after a request and all its follow-ups."""

    def then(value: Any) -> Request:
        follow_up = request.then(value) if request.then else None
        return build_next() if follow_up is None else _followed_by(follow_up, build_next)

    def shorten() -> Request | None:
        shorter = request.shorten() if request.shorten else None
        return None if shorter is None else _followed_by(shorter, build_next)

    return replace(request, then=then, shorten=shorten if request.shorten else None)


@dataclass(frozen=True)
class Usage:
    """Numbers of tokens of one call, or of several calls."""

    prompt: int = 0
    cached: int = 0  # tokens of the prompt that the provider took from its cache
    completion: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        prompt, cached = self.prompt + other.prompt, self.cached + other.cached
        return Usage(prompt, cached, self.completion + other.completion)


@dataclass
class Spending:
    """Number of calls so far, their tokens and their cost."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0  # in dollars; None if a price is not known

    def add(self, other: "Spending") -> None:
        """Add the calls, the tokens and the cost of other calls."""
        self.calls += other.calls
        self.usage += other.usage
        self.cost = None if self.cost is None or other.cost is None else self.cost + other.cost


@dataclass(frozen=True)
class Outcome:
    """The result of a request and its follow-ups.

    `values` are the values of the replies, in order. After a `failure`, further replies are
    missing. `spent` counts the calls of this run: a reply from the ledger costs nothing.
    """

    unit: str
    values: tuple[Any, ...] = ()
    dropped: int = 0  # number of invalid records in the replies
    failure: str = ""  # reason of the failure
    spent: Spending = field(default_factory=Spending, compare=False)
    # Ledger keys of the answered requests.
    keys: tuple[str, ...] = field(default=(), compare=False)


class RequestSender(Protocol):
    """A chat model, or a substitute for one."""

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]: ...


def pair_outcomes(
    model: RequestSender, requests: Iterable[tuple[T, Request]]
) -> Iterator[tuple[T, Outcome]]:
    """Send requests from pairs (item, request); yield pairs (item, outcome)."""
    waiting: deque[T] = deque()

    def remember_items() -> Iterator[Request]:
        for item, request in requests:
            waiting.append(item)
            yield request

    for outcome in model.replies(remember_items()):
        yield waiting.popleft(), outcome


@dataclass(frozen=True)
class Reply:
    """One reply of a model."""

    text: str
    finish: str = "stop"  # why the reply ends: stop, length, content_filter or refusal
    usage: Usage = field(default_factory=Usage)
    response_format: str = ""  # one of `protocol.RESPONSE_FORMATS`


def estimate_tokens(text: str) -> int:
    """Return a high estimate of the tokens of a text from its length; counting is slower."""
    n_bytes = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return n_bytes * 10 // BYTES_OF_TEN_TOKENS + 8


def prompt_tokens(request: Request, settings: ModelSettings, window: int | None = None) -> int:
    """Estimate the tokens of a request; count them if it may not fit the context window.

    `window` is the context window of the server; None: that of the settings.
    """
    texts = [message["content"] for message in request.messages]
    texts += [request.format.instructions, request.format.schema_text]
    of_pictures = count_picture_tokens(request.messages)
    estimate = of_pictures + sum(map(estimate_tokens, texts))
    max_reply = request.max_output_tokens or settings.max_output_tokens
    # A text has at most one token per byte, and the estimate is over a quarter of the bytes.
    if 4 * estimate + max_reply <= (window or settings.context_window):
        return estimate
    encoding = load_encoding(ENCODING)
    return max(estimate, of_pictures + sum(count_tokens(text, encoding) for text in texts))


def expected_tokens(request: Request) -> int:
    """Return the number of tokens that a complete reply is expected not to exceed."""
    texts = [message["content"] for message in request.messages if message["role"] != "system"]
    return EXPECTED_TOKENS + EXPECTED_PER_TOKEN * sum(map(estimate_tokens, texts))


def request_key(request: Request, settings: ModelSettings) -> str:
    """Return the cache key of a request: a hash of the model, the format and the messages."""
    identity = json.dumps(settings.identity(), sort_keys=True)
    format = request.format
    parts = [identity, str(request.max_output_tokens), format.name, format.schema_text]
    for message in request.messages:
        parts += (message["role"], message["content"])
        if "picture" in message:
            parts.append(message["picture"].digest)
    return content_id(*parts)


# Maximum number of characters of an invalid reply that are shown to the model.
MAX_SHOWN_CHARS = 8_000


class QuarantinedError(Exception):
    """A request is quarantined. The message is the reason, `raw` is its last reply."""

    def __init__(self, reason: str, raw: str = "") -> None:
        super().__init__(reason)
        self.raw = raw


class TooLongError(QuarantinedError):
    """A request is quarantined because of its length, unless a shorter one is answered."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{TOO_LONG}: {reason}")


@dataclass(frozen=True)
class Attempt:
    """One attempt at a request: its token limit, and messages that correct an invalid reply."""

    max_tokens: int
    # Whether an earlier reply was invalid.
    corrected: bool = False
    # Whether a truncated reply is accepted, because `max_tokens` cannot be raised any more.
    is_last: bool = False
    correction: tuple[Message, ...] = ()
    # The limit of the attempt after a truncated reply.
    raised_tokens: int = 0
    # Whether an earlier attempt timed out, although the server was answering.
    is_after_timeout: bool = False

    def encode(self) -> str:
        """Encode the last attempt of a batch as a text for the ledger, without `correction`."""
        return f"{self.max_tokens}{'c' * self.corrected}"

    @classmethod
    def decode(cls, code: str) -> "Attempt":
        """Decode an attempt from a text of `encode`; `correction` is empty."""
        return cls(int(code.rstrip("cl")), "c" in code, is_last=True)


def attempt_after_timeout(attempt: Attempt, request: Request, timeout: float) -> Attempt:
    """Return a second attempt, with fewer tokens, after an attempt that timed out.

    Raises `QuarantinedError` if the second attempt timed out too.
    """
    if attempt.is_after_timeout:
        raise QuarantinedError(
            f"no reply within {timeout:g} s, although the server answers other requests and this "
            f"one was limited to {attempt.max_tokens} tokens: raise timeout of this model, or "
            "use a faster model"
        )
    max_tokens = max(min(attempt.max_tokens // 2, expected_tokens(request)), MIN_REPLY_TOKENS)
    return replace(attempt, max_tokens=max_tokens, is_last=True, is_after_timeout=True)


def attempt_after_invalid_reply(
    attempt: Attempt, text: str, error: ReplyError, request: Request, room: int
) -> Attempt:
    """Return a second attempt, which shows the model its invalid reply and the error.

    `room` is the rest of the context window after the prompt, in tokens.
    """
    correction: tuple[Message, ...] = ()
    # After an empty reply, the messages stay the same.
    if text.strip():
        # The description of the format is for servers that accept a schema and ignore it.
        instructions = request.format.instructions
        problem = f"This reply cannot be used: {error}. Reply again, whole.\n\n{instructions}"
        # Show so little of the reply that half of the room is left for the new reply. A
        # character is counted as one token.
        left = max(room // 2 - estimate_tokens(problem.strip()), 0)
        correction = (
            Message(role="assistant", content=text[: min(MAX_SHOWN_CHARS, left)]),
            Message(role="user", content=problem.strip()),
        )
    room -= sum(estimate_tokens(message["content"]) for message in correction)
    most = attempt.max_tokens if attempt.is_last else attempt.raised_tokens
    max_tokens = max(min(most, room), MIN_REPLY_TOKENS)
    return Attempt(max_tokens, True, True, correction)
