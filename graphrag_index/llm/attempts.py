"""Attempts at one request, the next one after an invalid or slow reply, and quarantine."""

from dataclasses import dataclass, replace

from graphrag_index.llm.request import (
    MIN_REPLY_TOKENS,
    Message,
    ReplyError,
    Request,
    estimate_tokens,
    expected_tokens,
)

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
