"""Steps of answering a request: its cache key, attempts, validation of replies, follow-ups.

Shared by models that reply at once and by those that reply in batches.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from graphrag_index.llm.ledger import DONE, QUARANTINED, SKIPPED, Entry
from graphrag_index.llm.parsing.reply import read_reply
from graphrag_index.llm.request import (
    Message,
    Outcome,
    ParsedReply,
    Reply,
    ReplyError,
    Request,
    Spent,
    estimate_tokens,
)
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.text.tokens import count_tokens, load_encoding


class QuarantinedError(Exception):
    """A request is quarantined or skipped; the message is the reason, `raw` its last reply."""

    def __init__(self, state: str, reason: str, raw: str = "") -> None:
        super().__init__(reason)
        self.state, self.raw = state, raw


# A reply with room for fewer tokens is not worth a call.
MIN_REPLY_TOKENS = 16
# Characters of an invalid reply that are shown to its model.
MAX_SHOWN = 8_000
# Counts the tokens of prompts that may not fit; other encodings count much the same.
ENCODING = "o200k_base"


@dataclass(frozen=True)
class Attempt:
    """One way to send a request: as it is, with more room, or with its invalid reply shown."""

    max_tokens: int
    corrected: bool = False
    # No more room will be given, so that a truncated reply is accepted.
    is_last: bool = False
    correction: tuple[Message, ...] = ()

    @property
    def code(self) -> str:
        """All but the correction, encoded for `attempt_of`."""
        return f"{self.max_tokens}{'c' * self.corrected}{'l' * self.is_last}"

    def messages(self, request: Request) -> list[Message]:
        """Return the messages to send."""
        return [*request.messages, *self.correction]


def attempt_of(code: str) -> Attempt:
    """Decode an attempt, without its correction."""
    return Attempt(int(code.rstrip("cl")), "c" in code, "l" in code)


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


def first_attempt(request: Request, settings: ModelSettings, n_tokens: int) -> Attempt:
    """Return the first attempt at a request of about so many tokens.

    Raises
    ------
    QuarantinedError
        It does not fit the context window.
    """
    room = settings.context_window - n_tokens
    if room < MIN_REPLY_TOKENS:
        reason = (
            f"the prompt of about {n_tokens} tokens does not fit the context window of "
            f"{settings.context_window}"
        )
        raise QuarantinedError(QUARANTINED, reason)
    max_tokens = request.max_output_tokens or settings.max_output_tokens
    # A text that somebody has read already is not written again with more room.
    return Attempt(min(max_tokens, room), is_last=request.sink is not None)


def validate_reply(
    reply: Reply, request: Request, attempt: Attempt, room: int, redact: Callable[[str], str]
) -> ParsedReply | Attempt:
    """Parse a reply; if it is invalid, return the next attempt.

    `room` is what the context window leaves for a reply, in tokens; `redact` replaces the key
    in a text.

    Raises
    ------
    QuarantinedError
        There will be no further attempt.
    """
    if reply.finish in ("content_filter", "refusal"):
        raw = redact(reply.text)
        shown = f": {raw[:200]}" if raw else ""
        raise QuarantinedError(QUARANTINED, f"the model refused ({reply.finish}){shown}", raw)
    try:
        parsed = read_reply(reply.text, request.format)
        if reply.finish == "length":
            if not attempt.is_last:
                raise ReplyError("it was cut off at its longest")
            parsed = ParsedReply(parsed.value, parsed.dropped + 1)
        return parsed
    except ReplyError as error:
        max_tokens = attempt.max_tokens
        if reply.finish == "length" and not attempt.is_last and max_tokens < room // 2:
            return Attempt(max_tokens * 2, attempt.corrected, True, attempt.correction)
        if attempt.corrected:
            reason = f"the reply was no good: {error}"
            raise QuarantinedError(QUARANTINED, reason, redact(reply.text)) from None
        # After an empty reply the same request is sent again.
        correction = _correction(reply, error, request, room) if reply.text.strip() else ()
        room -= sum(estimate_tokens(message["content"]) for message in correction)
        return Attempt(max(min(max_tokens, room), MIN_REPLY_TOKENS), True, True, correction)


class RequestChain:
    """A request and its follow-ups, as far as they are answered."""

    def __init__(self, request: Request) -> None:
        self.unit = request.unit
        # The next request to answer; None when all are answered.
        self.pending: Request | None = request
        self._values: list[Any] = []
        self._keys: list[str] = []
        self._dropped = 0
        self.spent = Spent()

    def advance(self, parsed: ParsedReply, key: str) -> None:
        """Take the reply to the pending request, kept under this key, and its follow-up."""
        self._keys.append(key)
        self._values.append(parsed.value)
        self._dropped += parsed.dropped
        then = self.pending.then if self.pending else None
        self.pending = then(parsed.value) if then else None

    def outcome(self, failure: str = "") -> Outcome:
        """Return the outcome, of all requests or up to a failure."""
        values, keys = tuple(self._values), tuple(self._keys)
        return Outcome(self.unit, values, self._dropped, failure, self.spent, keys)


def read_cached(entry: Entry | None, request: Request) -> ParsedReply | None:
    """Parse a cached reply; None if there is none yet.

    Raises
    ------
    QuarantinedError
        The request is quarantined or skipped.
    """
    if entry is not None and entry.state in (QUARANTINED, SKIPPED):
        raise QuarantinedError(entry.state, entry.reason)
    if entry is None or entry.state != DONE:
        return None
    return read_reply(entry.reply, request.format)


def cached_values(
    find: Callable[[str], Entry | None], request: Request, settings: ModelSettings
) -> tuple[Any, ...]:
    """Return the values of the cached replies to a request and its follow-ups."""
    chain = RequestChain(request)
    while (pending := chain.pending) is not None:
        key = request_key(pending, settings)
        try:
            parsed = read_cached(find(key), pending)
        except QuarantinedError:
            break
        if parsed is None:
            break
        chain.advance(parsed, key)
    return chain.outcome().values


def request_key(request: Request, settings: ModelSettings) -> str:
    """Return the cache key of a request: a hash of all that its reply depends on."""
    identity = json.dumps(settings.identity(), sort_keys=True)
    parts = [identity, str(request.max_output_tokens), request.format.name]
    parts.append(_schema_text(request.format.schema))
    for message in request.messages:
        parts += (message["role"], message["content"])
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        # With its length, so that the borders of the parts count.
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


# JSON of schemas by their identity in memory: thousands of requests share one schema.
_schema_texts: dict[int, tuple[object, str]] = {}


def _schema_text(schema: Mapping[str, Any]) -> str:
    known = _schema_texts.get(id(schema))
    if known is None or known[0] is not schema:
        if len(_schema_texts) >= 100:
            _schema_texts.clear()
        known = _schema_texts[id(schema)] = (schema, json.dumps(schema, sort_keys=True))
    return known[1]


def _correction(
    reply: Reply, error: ReplyError, request: Request, room: int
) -> tuple[Message, ...]:
    """Return messages that show a model its reply, the error and the format in words.

    The words are for servers that accept a schema and ignore it.
    """
    instructions = request.format.instructions
    problem = f"This reply cannot be used: {error}. Reply again, whole.\n\n{instructions}".strip()
    # Half of the room stays for the new reply, if a character is no more than a token.
    left = max(room // 2 - estimate_tokens(problem), 0)
    return (
        Message(role="assistant", content=reply.text[: min(MAX_SHOWN, left)]),
        Message(role="user", content=problem),
    )
