"""Attempts at one request: token limits, corrections of invalid replies, and quarantine."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from graphrag_index.llm.reply_parser import is_repetitive, read_reply
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
# A reply is expected to have at most this many tokens, plus a multiple of the tokens of the text.
EXPECTED_TOKENS, EXPECTED_PER_TOKEN = 1_024, 8
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
        """Encode the attempt of a batch as a text for the ledger, without `correction`."""
        return f"{self.max_tokens}{'c' * self.corrected}{'l' * self.is_last}"

    @classmethod
    def decode(cls, code: str) -> "Attempt":
        """Decode an attempt from a text of `encode`; `correction` is empty."""
        return cls(int(code.rstrip("cl")), "c" in code, "l" in code)

    def messages(self, request: Request) -> list[Message]:
        return [*request.messages, *self.correction]


class ReplyLimit:
    """Token limit of the first attempts at requests to one model; it adapts to the replies.

    The limit is in proportion to the request, because a model that does not stop would otherwise
    write up to `max_output_tokens`. A truncated reply is requested again with
    `max_output_tokens`: if that reply is complete, the model needs more tokens, for example to
    reason, and the limit is lifted, which saves requests and changes no reply. If that attempt
    times out, the model does not stop, and truncated replies are accepted from then on.
    """

    def __init__(self, is_lifted: bool = False) -> None:
        self.is_lifted, self.accepts_truncated = is_lifted, False

    def first_attempt(self, request: Request, settings: ModelSettings, n_tokens: int) -> Attempt:
        """Return the first attempt at a request; see the function of the same name."""
        attempt = first_attempt(request, settings, n_tokens)
        expected = expected_tokens(request)
        # A streamed answer is shown while it arrives, so it is not requested twice.
        is_limited = self.accepts_truncated or not self.is_lifted
        if not is_limited or request.sink is not None or expected >= attempt.max_tokens:
            return attempt
        raised = attempt.max_tokens
        return Attempt(expected, is_last=self.accepts_truncated, raised_tokens=raised)

    def note_reply(self, attempt: Attempt, reply: Reply, request: Request) -> None:
        """Note whether the reply to a second attempt, with a raised limit, is complete."""
        if attempt.is_last and not attempt.corrected and self._is_raised(attempt, request):
            self.is_lifted = self.is_lifted or reply.finish != "length"

    def note_timeout(self, attempt: Attempt, request: Request) -> None:
        """Note that an attempt timed out, although the server was answering."""
        self.accepts_truncated = self.accepts_truncated or self._is_raised(attempt, request)

    def _is_raised(self, attempt: Attempt, request: Request) -> bool:
        return request.sink is None and attempt.max_tokens > expected_tokens(request)


def expected_tokens(request: Request) -> int:
    """Return the number of tokens that a complete reply is expected not to exceed."""
    texts = [message["content"] for message in request.messages if message["role"] != "system"]
    return EXPECTED_TOKENS + EXPECTED_PER_TOKEN * sum(map(estimate_tokens, texts))


def first_attempt(request: Request, settings: ModelSettings, n_tokens: int) -> Attempt:
    """Return the first attempt at a request, with `max_output_tokens`.

    Raises `QuarantinedError` if the prompt does not fit the context window.
    """
    room = settings.context_window - n_tokens
    if room < MIN_REPLY_TOKENS:
        raise QuarantinedError(
            f"the prompt of about {n_tokens} tokens does not fit the context window of "
            f"{settings.context_window}"
        )
    max_tokens = request.max_output_tokens or settings.max_output_tokens
    return Attempt(min(max_tokens, room), is_last=True)


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
    # More tokens would not help a model that repeats itself.
    is_truncated = reply.finish == "length"
    is_cut = is_truncated and not attempt.is_last and not is_repetitive(reply.text)
    try:
        parsed = read_reply(reply.text, request.format)
        if is_cut:
            raise ReplyError("it was cut off at the token limit")
        return replace(parsed, dropped=parsed.dropped + 1) if is_truncated else parsed
    except ReplyError as error:
        if is_cut:
            return replace(attempt, max_tokens=attempt.raised_tokens, is_last=True)
        if attempt.corrected:
            raw = redact(reply.text)
            raise QuarantinedError(f"the reply is invalid: {error}", raw) from None
        correction: tuple[Message, ...] = ()
        # After an empty reply the same request is sent again, without a correction.
        if reply.text.strip():
            # The description of the format is for servers that accept a schema and ignore it.
            instructions = request.format.instructions
            problem = f"This reply cannot be used: {error}. Reply again, whole.\n\n{instructions}"
            # Show so little of the reply that half of the room is left for the new reply. A
            # character is counted as one token.
            left = max(room // 2 - estimate_tokens(problem.strip()), 0)
            correction = (
                Message(role="assistant", content=reply.text[: min(MAX_SHOWN_CHARS, left)]),
                Message(role="user", content=problem.strip()),
            )
        room -= sum(estimate_tokens(message["content"]) for message in correction)
        max_tokens = max(min(attempt.max_tokens, room), MIN_REPLY_TOKENS)
        return Attempt(max_tokens, True, True, correction)
