"""Tiny requests that find out which parts of a request a server supports."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphrag_index.errors import ModelError
from graphrag_index.llm.protocol import (
    REQUIRED_PARTS,
    RESPONSE_FORMATS,
    TOKEN_LIMIT_KEYS,
    Capabilities,
    RequestWriter,
    format_parts,
    parse_json,
    part_names,
    read_chat,
    read_usage,
)
from graphrag_index.llm.request import PLAIN_TEXT, Message, ParsedReply, ReplyFormat, object_schema
from graphrag_index.llm.retries import (
    MAX_DELAY,
    RejectedError,
    RetriedCalls,
    RetryError,
    ServerError,
    UnsupportedError,
    backoff_seconds,
)

# Some servers refuse a JSON format if no message has the word JSON. The question does not ask for
# JSON, so a reply in JSON shows that the server applies the format.
PROBE_MESSAGE = Message(role="user", content="Is fire hot? Answer in one word. (JSON is allowed.)")
PROBE_FORMAT = ReplyFormat(
    "probe", object_schema({"answer": {"type": "string"}}), ParsedReply, 'JSON: {"answer": "..."}'
)
PROBE_TOKENS = 32
# Number of failures, without a reason, after which a part of a request counts as refused.
MAX_TRIES = 3

Body = dict[str, Any]
# The parts of a request that are alternatives to each other, best first: (name, part).
Alternatives = list[tuple[str, Body]]


class UnansweredError(Exception):
    """The server does not answer even the plainest request. The message is its last answer."""


@dataclass(frozen=True)
class Trial:
    """A tiny request with one more part. `reason` says why it is refused; "" if it is answered."""

    name: str
    reason: str
    seconds: float
    n_requests: int
    answer: Any = None


class ServerProbe:
    """Tiny requests to the server of one model, for use in one event loop only.

    `send` sends a body to a path, and returns the data of the answer.
    """

    def __init__(
        self,
        writer: RequestWriter,
        calls: RetriedCalls,
        send: Callable[[str, Body], Awaitable[Any]],
    ) -> None:
        self._writer, self._calls, self._send = writer, calls, send
        self._lock = asyncio.Lock()
        self._ended_at = 0.0
        # Why the last probe could not end; None if it ended.
        self._failure: RetryError | None = None
        # Parts of requests that were tried already.
        self._tried: set[str] = set()

    async def adapt_to_error(
        self,
        error: UnsupportedError | ServerError,
        body: Body,
        format: ReplyFormat | None,
        sent: Capabilities,
        sent_at: float,
    ) -> bool:
        """Drop the parts of a request that the server refuses; True if a retry may succeed.

        A part may be named in the error. Otherwise, and only if the server has not answered a
        request with these parts yet, tiny requests find it out. `format` is None for a request of
        vectors. `sent` are the capabilities and `sent_at` is the time when the request was sent.
        """
        writer = self._writer
        is_new = not part_names(body) <= writer.answered
        if isinstance(error, ServerError) and not is_new:
            return False
        async with self._lock:
            if writer.adapt_to_error(error, body, sent):
                return True
            if self._failure is not None and self._ended_at > sent_at:
                # The probe that this call waited for failed for a time, not for good.
                raise RetryError(str(self._failure), self._failure.after, self._failure.rate)
            after = error.after if isinstance(error, ServerError) else None
            if not is_new or after is not None or self._ended_at > sent_at:
                return False
            is_tried = part_names(body) <= self._tried
            if is_tried and isinstance(error, UnsupportedError):
                return False
            self._failure = None
            try:
                if is_tried:
                    await self._find_plain_body(format is not None)
                elif format is None:
                    await self.probe_vectors()
                else:
                    await self.probe_chat(format, "stream" in body)
            except UnansweredError:
                return False
            except RetryError as failure:
                self._failure = failure
                raise
            finally:
                self._ended_at = time.monotonic()
            self._tried |= part_names(body)
            return writer.capabilities != sent

    async def probe_chat(
        self, format: ReplyFormat = PROBE_FORMAT, stream: bool = True, is_checked: bool = False
    ) -> list[Trial]:
        """Find out the parts of a chat request that the server supports, and remember them.

        With `is_checked`, a response format also counts as refused if the server ignores it.
        Raises `UnansweredError` if the server answers no request, and `RejectedError` if it
        refuses the response format of the settings.
        """
        writer = self._writer
        full = writer.chat_body([PROBE_MESSAGE], PLAIN_TEXT, PROBE_TOKENS, stream)
        groups = _optional_parts(full)
        known = writer.capabilities.response_format
        is_auto = writer.settings.structured == "auto"
        formats = RESPONSE_FORMATS[RESPONSE_FORMATS.index(known) : -1] if is_auto else [known]
        if format.schema and known != RESPONSE_FORMATS[-1]:
            alternatives = [(name, format_parts(name, format)) for name in formats]
            # The replies to streamed requests are not checked.
            position = next((i for i, g in enumerate(groups) if g[0][0] == "stream"), len(groups))
            groups.insert(position, alternatives)
        trials = await self._try_parts(True, groups, is_checked)
        reasons = {trial.name: trial.reason for trial in trials}
        left = [name for name in formats if not reasons.get(name)]
        if not left and not is_auto:
            raise RejectedError(
                f"{reasons[known]} (a request without {known} is answered: set structured of this "
                "model to auto)"
            )
        parameters = [name for name in reasons if reasons[name] and name not in RESPONSE_FORMATS]
        writer.update_capabilities(parameters, left[0] if left else RESPONSE_FORMATS[-1])
        return trials

    async def probe_vectors(self) -> list[Trial]:
        """Find out the parts of a request of vectors that the server supports, and remember them.

        Raises `UnansweredError` if the server answers no request.
        """
        writer = self._writer
        trials = await self._try_parts(False, _optional_parts(writer.embedding_body(["fire"])))
        writer.update_capabilities([trial.name for trial in trials if trial.reason])
        return trials

    async def _try_parts(
        self, is_chat: bool, groups: Sequence[Alternatives], is_checked: bool = False
    ) -> list[Trial]:
        """Add parts to a plain request one after the other, and keep each that is answered."""
        body, trials = await self._find_plain_body(is_chat)
        for group in groups:
            for name, part in group:
                trial = await self._try(name, {**body, **part}, MAX_TRIES)
                if is_checked and name in RESPONSE_FORMATS and _is_ignored(name, trial.answer):
                    trial = replace(trial, reason="the reply is in another format")
                trials.append(trial)
                if not trial.reason:
                    body |= part
                    break
        if trials[-1].reason:
            # All parts seem to be refused by a server that went down in the meantime.
            trial = await self._try("", body, 1)
            if trial.reason:
                raise UnansweredError(trial.reason)
        return trials

    async def _find_plain_body(self, is_chat: bool) -> tuple[Body, list[Trial]]:
        """Return the body of the plainest request that the server answers, and all trials.

        Raises `UnansweredError` if there is none.
        """
        writer, trials = self._writer, list[Trial]()
        base: Body = {"model": writer.model, "messages": [PROBE_MESSAGE]}
        bodies = {name: {**base, name: PROBE_TOKENS} for name in writer.limits} or {"chat": base}
        if not is_chat:
            bodies = {"vectors": {"model": writer.model, "input": ["fire"]}}
        for name, body in bodies.items():
            trials.append(await self._try(name, body, 1))
            if not trials[-1].reason:
                break
        else:
            raise UnansweredError(trials[-1].reason)
        for i, trial in enumerate(trials[:-1]):
            # The first failure may have been a temporary one.
            again = await self._try(trial.name, bodies[trial.name], MAX_TRIES)
            if not again.reason:
                return bodies[trial.name], [*trials[:i], again]
        return body, trials

    async def _try(self, name: str, body: Body, n_tries: int) -> Trial:
        """Send a tiny request, up to `n_tries` times if the server fails without a reason.

        Attempts that exceed a rate limit do not count; after `MAX_TRIES`, `RetryError` is raised.
        """
        path = "/embeddings" if "input" in body else "/chat/completions"
        began, reason, n_sent, n_limited = time.monotonic(), "", 0, 0
        while n_sent < n_tries + n_limited:
            n_sent += 1
            try:
                answer = await self._send(path, body)
            except ServerError as error:
                reason = str(error)
            except RetryError as error:
                n_limited += 1
                if not error.rate or n_limited == MAX_TRIES:
                    raise
                await asyncio.sleep(min(error.after or backoff_seconds(n_limited), MAX_DELAY))
            except (RejectedError, ModelError) as error:
                # The server may answer 404 if no model supports a part of the request.
                if isinstance(error, ModelError) and n_tries == 1:
                    raise
                reason = str(error)
                break
            else:
                usage = answer.get("usage") if isinstance(answer, dict) else None
                self._calls.note_probe(read_usage(usage))
                return Trial(name, "", time.monotonic() - began, n_sent, answer)
        return Trial(name, reason, time.monotonic() - began, n_sent)


def _optional_parts(body: Body) -> list[Alternatives]:
    """Return the parts of a request that a server may refuse; a limit is not one of them."""
    names = [name for name in body if name not in {*REQUIRED_PARTS, *TOKEN_LIMIT_KEYS}]
    return [[(name, {name: body[name]})] for name in names]


def _is_ignored(response_format: str, answer: Any) -> bool:
    """Return whether a complete reply is not in the format that the request asks for."""
    try:
        reply = read_chat(answer)
    except RetryError:
        return False
    if reply.finish == "length":
        return False
    try:
        data = parse_json(reply.text.encode())
    except RetryError:
        return True
    # Without a schema, the model is free to choose the keys.
    return not isinstance(data, dict) or not (
        data if response_format == "json_object" else "answer" in data
    )
