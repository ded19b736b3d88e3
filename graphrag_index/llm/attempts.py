"""Attempts at one request: token limits, corrections of invalid replies, and quarantine."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from graphrag_index.llm.reply_parser import read_reply
from graphrag_index.llm.request import (
    Message,
    ParsedReply,
    Reply,
    ReplyError,
    Request,
    estimate_tokens,
)
from graphrag_index.schema.settings.models import ModelSettings

# Minimum number of tokens for a reply: with less room no request is sent.
MIN_REPLY_TOKENS = 16
# Maximum number of characters of an invalid reply that are shown to the model.
MAX_SHOWN_CHARS = 8_000


class QuarantinedError(Exception):
    """A request is quarantined. The message is the reason, `raw` is its last reply."""

    def __init__(self, reason: str, raw: str = "") -> None:
        super().__init__(reason)
        self.raw = raw


@dataclass(frozen=True)
class Attempt:
    """One attempt at a request: its token limit, and messages that correct an invalid reply."""

    max_tokens: int
    # Whether an earlier reply was invalid.
    corrected: bool = False
    # Whether a truncated reply is accepted, because `max_tokens` cannot be raised any more.
    is_last: bool = False
    correction: tuple[Message, ...] = ()

    def encode(self) -> str:
        """Encode the attempt as a text for the ledger, without `correction`."""
        return f"{self.max_tokens}{'c' * self.corrected}{'l' * self.is_last}"

    @classmethod
    def decode(cls, code: str) -> "Attempt":
        """Decode an attempt from a text of `encode`; `correction` is empty."""
        return cls(int(code.rstrip("cl")), "c" in code, "l" in code)

    def messages(self, request: Request) -> list[Message]:
        return [*request.messages, *self.correction]


def first_attempt(request: Request, settings: ModelSettings, n_tokens: int) -> Attempt:
    """Return the first attempt at a request.

    Raises `QuarantinedError` if the prompt does not fit the context window.
    """
    room = settings.context_window - n_tokens
    if room < MIN_REPLY_TOKENS:
        raise QuarantinedError(
            f"the prompt of about {n_tokens} tokens does not fit the context window of "
            f"{settings.context_window}"
        )
    max_tokens = request.max_output_tokens or settings.max_output_tokens
    # A streamed reply has been shown already, so it is not requested again with more tokens.
    return Attempt(min(max_tokens, room), is_last=request.sink is not None)


def validate_reply(
    reply: Reply, request: Request, attempt: Attempt, room: int, redact: Callable[[str], str]
) -> ParsedReply | Attempt:
    """Parse a reply; if it is invalid, return the next attempt at the request.

    `room` is the rest of the context window after the prompt, in tokens. `redact` replaces the
    API key in a text. Raises `QuarantinedError` if there is no further attempt.
    """
    if reply.finish in ("content_filter", "refusal"):
        raw = redact(reply.text)
        shown = f": {raw[:200]}" if raw else ""
        raise QuarantinedError(f"the model refused ({reply.finish}){shown}", raw)
    is_cut = reply.finish == "length" and not attempt.is_last
    try:
        parsed = read_reply(reply.text, request.format)
        if is_cut:
            raise ReplyError("it was cut off at the token limit")
        return replace(parsed, dropped=parsed.dropped + 1) if reply.finish == "length" else parsed
    except ReplyError as error:
        max_tokens = attempt.max_tokens
        if is_cut and max_tokens < room // 2:
            return replace(attempt, max_tokens=max_tokens * 2, is_last=True)
        if attempt.corrected:
            raw = redact(reply.text)
            raise QuarantinedError(f"the reply is invalid: {error}", raw) from None
        # After an empty reply the same request is sent again, without a correction.
        correction = _correction_messages(reply, error, request, room) if reply.text.strip() else ()
        room -= sum(estimate_tokens(message["content"]) for message in correction)
        return Attempt(max(min(max_tokens, room), MIN_REPLY_TOKENS), True, True, correction)


def _correction_messages(
    reply: Reply, error: ReplyError, request: Request, room: int
) -> tuple[Message, ...]:
    """Return messages with the invalid reply, the error, and a description of the format."""
    # The description is for servers that accept a schema and ignore it.
    instructions = request.format.instructions
    problem = f"This reply cannot be used: {error}. Reply again, whole.\n\n{instructions}".strip()
    # Show so little of the reply that half of the room is left for the new reply. A character
    # is counted as one token.
    left = max(room // 2 - estimate_tokens(problem), 0)
    return (
        Message(role="assistant", content=reply.text[: min(MAX_SHOWN_CHARS, left)]),
        Message(role="user", content=problem),
    )
