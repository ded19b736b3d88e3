"""How one request is asked: what it is known by, how its reply is judged, what is asked next.

Shared by models that are asked at once and those that are asked in batches.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from graphrag_index.llm.caller import estimate_tokens
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
)
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.text.tokens import count_tokens, load_encoding


class QuarantinedError(Exception):
    """A request is quarantined or skipped; the message says why, `raw` is its last reply."""

    def __init__(self, state: str, reason: str, raw: str = "") -> None:
        super().__init__(reason)
        self.state, self.raw = state, raw


# A reply with room for fewer tokens is not worth asking for.
LEAST_REPLY = 16
# Of a bad reply no more characters are shown to the model that gave it.
LONGEST_SHOWN = 8_000
# Counts what may not fit; other models count much the same.
ENCODING = "o200k_base"


@dataclass(frozen=True)
class Attempt:
    """How a request is asked once: as it is, with more room, or with its bad reply shown."""

    max_tokens: int
    corrected: bool = False
    # No more room will be given, so that a reply which was cut off counts.
    longer: bool = False
    correction: tuple[Message, ...] = ()

    @property
    def code(self) -> str:
        """All but the correction, in a word that `attempt_of` reads."""
        return f"{self.max_tokens}{'c' * self.corrected}{'l' * self.longer}"

    def messages(self, request: Request) -> list[Message]:
        return [*request.messages, *self.correction]


def attempt_of(code: str) -> Attempt:
    """Return the attempt that has this code, without its correction."""
    return Attempt(int(code.rstrip("cl")), "c" in code, "l" in code)


def prompt_tokens(request: Request, settings: ModelSettings) -> int:
    """Say how many tokens a request takes: guessed, and counted as well where it may not fit."""
    texts = [message["content"] for message in request.messages]
    texts += [request.format.instructions, _schema_text(request.format.schema)]
    guess = sum(map(estimate_tokens, texts))
    longest = request.max_output_tokens or settings.max_output_tokens
    # No text has more tokens than bytes, and the guess is more than a quarter of these.
    if 4 * guess + longest <= settings.context_window:
        return guess
    encoding = load_encoding(ENCODING)
    return max(guess, sum(count_tokens(text, encoding) for text in texts))


def first_attempt(request: Request, settings: ModelSettings, n_tokens: int) -> Attempt:
    """Return how a request of about so many tokens is asked at first.

    Raises
    ------
    QuarantinedError
        It does not fit the context window.
    """
    room = settings.context_window - n_tokens
    # A text that somebody has read already is not written anew with more room.
    is_last = request.sink is not None
    if room < LEAST_REPLY:
        reason = (
            f"the prompt of about {n_tokens} tokens does not fit the context window of "
            f"{settings.context_window}"
        )
        raise QuarantinedError(QUARANTINED, reason)
    most = request.max_output_tokens or settings.max_output_tokens
    return Attempt(min(most, room), longer=is_last)


def validate_reply(
    reply: Reply, request: Request, attempt: Attempt, room: int, hide: Callable[[str], str]
) -> ParsedReply | Attempt:
    """Read a reply; if it is no good, say how the request is asked again.

    `room` is what the context window leaves for a reply, in tokens; `hide` takes the key out
    of a text.

    Raises
    ------
    QuarantinedError
        It will not be asked again.
    """
    if reply.finish in ("content_filter", "refusal"):
        raw = hide(reply.text)
        said = f": {raw[:200]}" if raw else ""
        raise QuarantinedError(QUARANTINED, f"the model refused ({reply.finish}){said}", raw)
    try:
        reading = read_reply(reply.text, request.format)
        if reply.finish == "length":
            if not attempt.longer:
                raise ReplyError("it was cut off at its longest")
            reading = ParsedReply(reading.value, reading.dropped + 1)
        return reading
    except ReplyError as error:
        max_tokens = attempt.max_tokens
        if reply.finish == "length" and not attempt.longer and max_tokens < room // 2:
            return Attempt(max_tokens * 2, attempt.corrected, True, attempt.correction)
        if attempt.corrected:
            reason = f"the reply was no good: {error}"
            raise QuarantinedError(QUARANTINED, reason, hide(reply.text)) from None
        # A model that said nothing is asked the same again.
        correction = _correction(reply, error, request, room) if reply.text.strip() else ()
        room -= sum(estimate_tokens(message["content"]) for message in correction)
        return Attempt(max(min(max_tokens, room), LEAST_REPLY), True, True, correction)


class RequestChain:
    """A request and those that follow from it, as far as they are answered."""

    def __init__(self, request: Request) -> None:
        self.unit = request.unit
        # The request that is to be answered next; None when all are.
        self.asked: Request | None = request
        self._values: list[Any] = []
        self._keys: list[str] = []
        self._dropped = 0
        self.spent = Spent()

    def advance(self, reading: ParsedReply, key: str) -> None:
        """Take the reply to what was asked, known by this key, and ask what follows from it."""
        self._keys.append(key)
        self._values.append(reading.value)
        self._dropped += reading.dropped
        then = self.asked.then if self.asked else None
        self.asked = then(reading.value) if then else None

    def outcome(self, failure: str = "") -> Outcome:
        values, keys = tuple(self._values), tuple(self._keys)
        return Outcome(self.unit, values, self._dropped, failure, self.spent, keys)


def read_cached(entry: Entry | None, request: Request) -> ParsedReply | None:
    """Read the reply that the ledger has; None if it has none yet.

    Raises
    ------
    QuarantinedError
        The request was put aside.
    """
    if entry is not None and entry.state in (QUARANTINED, SKIPPED):
        raise QuarantinedError(entry.state, entry.reason)
    if entry is None or entry.state != DONE:
        return None
    return read_reply(entry.reply, request.format)


def cached_values(
    find: Callable[[str], Entry | None], request: Request, settings: ModelSettings
) -> tuple[Any, ...]:
    """Return the values of the replies that there are, to a request and those that follow."""
    conversation = RequestChain(request)
    while (asked := conversation.asked) is not None:
        key = request_key(asked, settings)
        try:
            reading = read_cached(find(key), asked)
        except QuarantinedError:
            break
        if reading is None:
            break
        conversation.advance(reading, key)
    return conversation.outcome().values


def request_key(request: Request, settings: ModelSettings) -> str:
    """Hash all that a reply depends on."""
    identity = json.dumps(settings.identity(), sort_keys=True)
    parts = [identity, str(request.max_output_tokens), request.format.name]
    parts.append(_schema_text(request.format.schema))
    for message in request.messages:
        parts += (message["role"], message["content"])
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        # With its length, so that no two requests run together to one text.
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


# Schemas by their place in memory, with what they are as text: thousands of requests share one.
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
    """Show a model its reply, what is wrong with it, and the format in words.

    The words are for servers that take a format and do not heed it.
    """
    wrong = (
        f"This reply cannot be used: {error}. Reply again, whole.\n\n{request.format.instructions}"
    )
    wrong = wrong.strip()
    # Half of the room stays for the new reply, if a character is no more than a token.
    left = max(room // 2 - estimate_tokens(wrong), 0)
    return (
        Message(role="assistant", content=reply.text[: min(LONGEST_SHOWN, left)]),
        Message(role="user", content=wrong),
    )
