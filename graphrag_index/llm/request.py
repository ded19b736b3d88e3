"""What a step asks of a model, and what comes of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict


class Message(TypedDict):
    """One message of a conversation: `role` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True)
class ParsedReply:
    """What was read from a reply: its value, and how many records of it were no good."""

    value: Any
    dropped: int = 0


class ReplyError(Exception):
    """A reply that cannot be used; the message says why, to the model as well as to a person."""


@dataclass(frozen=True)
class ReplyFormat:
    """What a reply must hold.

    `schema` is a JSON Schema in OpenAI's strict subset; `read` turns the object that such a
    reply is into a value, dropping bad records and counting them, or raises `ReplyError`.
    `instructions` tells the format to a model that knows no schemas. `find` finds the answer in a
    text without any JSON, where one can be known for certain; None if there is none.
    """

    name: str
    schema: Mapping[str, Any]
    read: Callable[[Any], ParsedReply]
    instructions: str
    find: Callable[[str], Any] | None = None


def _read_text(text: Any) -> ParsedReply:
    if not text:
        raise ReplyError("it is empty")
    return ParsedReply(text)


# A reply that is a text for people, and read as it is.
PLAIN_TEXT = ReplyFormat("text", {}, _read_text, "")


class TextSink(Protocol):
    """Where a text goes while it is being written. Called from the thread of the calls."""

    def write(self, piece: str) -> None:
        """Take the next piece."""

    def restart(self) -> None:
        """The call broke off: what was written is void, and the text begins again."""


@dataclass(frozen=True)
class Request:
    """One question to a model.

    `unit` names what it is about, for people: a document and its passage, a community.
    `then` gives the question that follows from the value of the reply, if any does.
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
        return Usage(
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.completion + other.completion,
        )


@dataclass
class Spent:
    """What the calls for a request have used so far."""

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
    """What became of a request and of those that followed from it.

    `values` are those of the replies, in order; with a `failure` the rest is missing.
    `spent` counts the calls that were made now: a reply out of the ledger costs nothing.
    """

    unit: str
    values: tuple[Any, ...] = ()
    dropped: int = 0
    failure: str = ""
    spent: Spent = field(default_factory=Spent, compare=False)
    # What the ledger knows the answered requests by.
    keys: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Reply:
    """The text of one reply, why it ended, its tokens, and how it was made to fit."""

    text: str
    finish: str = "stop"  # or length, content_filter, refusal
    usage: Usage = field(default_factory=Usage)
    response_format: str = ""  # one of `endpoint.RESPONSE_FORMATS`
