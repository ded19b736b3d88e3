"""Asks a model many things at once; what comes back is in the order of the requests.

Waiting happens here alone: inside is asyncio, in a thread of its own; outside is ordinary
code. A reply that the ledger has is not asked for again, and a reply is kept there only
when it has been read.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from hashlib import blake2b
from typing import Any, NoReturn

from graphrag_index.core.errors import ModelError
from graphrag_index.core.models.caller import Caller, LoopThread, estimate_tokens
from graphrag_index.core.models.endpoint import RejectedError
from graphrag_index.core.models.ledger import DONE, QUARANTINED, SKIPPED, Ledger
from graphrag_index.core.models.prices import Budget, cost_of
from graphrag_index.core.models.reply import read_reply
from graphrag_index.core.models.request import (
    Message,
    Outcome,
    Reading,
    Reply,
    ReplyError,
    Request,
    Usage,
)
from graphrag_index.core.models.settings import ModelSettings

# Requests that are under way or wait for those before them: bounds memory, not results.
AHEAD = 8


class ChatModel:
    """One model, as one step asks it."""

    def __init__(
        self,
        name: str,
        settings: ModelSettings,
        step: str,
        ledger: Ledger,
        loop: LoopThread,
        budget: Budget | None = None,
    ) -> None:
        self.name, self.settings, self.step = name, settings, step
        self.ledger, self._loop = ledger, loop
        self._caller = Caller(name, settings, ledger, budget or Budget(None))
        self._used: list[str] = []

    @property
    def max_prompt_tokens(self) -> int:
        """How long a prompt may be, in tokens."""
        return self.settings.context_window - self.settings.max_output_tokens

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Ask everything, and give the outcomes in the order of the requests.

        Raises
        ------
        ModelError
            The endpoint does not answer, or accepts no request. What was answered is kept.
        BudgetError
            The next call could cost more than the budget leaves.
        """
        waiting: deque[Outcome | Future[Outcome]] = deque()
        ahead = AHEAD * self.settings.concurrency
        try:
            for request in requests:
                outcome = self._from_ledger(request)
                waiting.append(outcome or self._loop.start(self._converse(request)))
                while len(waiting) > ahead or (waiting and _is_ready(waiting[0])):
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        except BaseException as error:
            self._stop(error, waiting)
            raise
        finally:
            self.ledger.use(self._used)
            self._used.clear()

    def close(self) -> None:
        """Close the connections."""
        self._loop.start(self._caller.endpoint.close()).result()

    def _stop(self, error: BaseException, waiting: "deque[Outcome | Future[Outcome]]") -> None:
        """Send nothing more; calls that were made are waited for, since they are paid for."""
        self._caller.stop(error if isinstance(error, Exception) else ModelError("stopped"))
        patient = not isinstance(error, KeyboardInterrupt)
        for future in waiting:
            if isinstance(future, Future):
                if not patient:
                    future.cancel()
                try:
                    future.result()
                except BaseException:  # noqa: BLE001 - the first failure is the one to tell
                    continue

    def _from_ledger(self, request: Request) -> Outcome | None:
        """Answer a request and those that follow from it with what is known; None if not all is."""
        values: list[Any] = []
        dropped = 0
        keys = []
        asked: Request | None = request
        while asked is not None:
            key = self._key(asked)
            entry = self.ledger.find(key)
            if entry is None:
                return None
            keys.append(key)
            if entry.state in (QUARANTINED, SKIPPED):
                self._used += keys
                return Outcome(request.unit, tuple(values), dropped, entry.reason)
            if entry.state != DONE:
                return None
            reading = read_reply(entry.reply, asked.format)
            values.append(reading.value)
            dropped += reading.dropped
            asked = asked.then(reading.value) if asked.then else None
        self._used += keys
        return Outcome(request.unit, tuple(values), dropped)

    async def _converse(self, request: Request) -> Outcome:
        """Ask a request and those that follow from it."""
        values: list[Any] = []
        dropped = 0
        asked: Request | None = request
        while asked is not None:
            key = self._key(asked)
            self._used.append(key)
            entry = self.ledger.find(key)
            try:
                if entry is not None and entry.state == DONE:
                    reading = read_reply(entry.reply, asked.format)
                elif entry is not None and entry.state in (QUARANTINED, SKIPPED):
                    return Outcome(request.unit, tuple(values), dropped, entry.reason)
                else:
                    reading = await self._ask(key, asked)
            except _PutAsideError as error:
                return Outcome(request.unit, tuple(values), dropped, str(error))
            values.append(reading.value)
            dropped += reading.dropped
            asked = asked.then(reading.value) if asked.then else None
        return Outcome(request.unit, tuple(values), dropped)

    async def _ask(self, key: str, request: Request) -> Reading:
        """Ask one request until its reply is good, or put it aside."""
        n_tokens = sum(estimate_tokens(message["content"]) for message in request.messages)
        max_tokens = request.max_output_tokens or self.settings.max_output_tokens
        if n_tokens > self.settings.context_window - 16:
            reason = f"the prompt of about {n_tokens} tokens does not fit the context window"
            self.ledger.send(key, self.step, request.unit, self.name)
            self._put_aside(key, SKIPPED, reason)
        messages: list[Message] = list(request.messages)
        corrected = longer = False
        while True:
            reply = await self._call(key, request, messages, n_tokens, max_tokens)
            cost = cost_of(reply.usage, self._caller.price)
            raw = self._caller.hide(reply.text)
            if reply.finish in ("content_filter", "refusal"):
                self.ledger.pay(key, self.step, self.name, reply.usage, cost)
                said = f": {raw[:200]}" if raw else ""
                reason = f"the model refused ({reply.finish}){said}"
                self._put_aside(key, QUARANTINED, reason)
            try:
                reading = read_reply(reply.text, request.format)
                if reply.finish == "length":
                    if not longer:
                        raise ReplyError("it was cut off at its longest")
                    reading = Reading(reading.value, reading.dropped + 1)
            except ReplyError as error:
                self.ledger.pay(key, self.step, self.name, reply.usage, cost)
                room = self.settings.context_window - n_tokens
                if reply.finish == "length" and not longer and max_tokens < room // 2:
                    longer, max_tokens = True, max_tokens * 2
                elif not corrected:
                    corrected = longer = True
                    # A model that said nothing is asked the same again.
                    wrong = _correction(reply, error) if reply.text.strip() else []
                    messages = [*request.messages, *wrong]
                else:
                    self._put_aside(key, QUARANTINED, f"the reply was no good: {error}", raw)
                continue
            self.ledger.finish(key, self.step, self.name, reply.text, reply.usage, cost)
            return reading

    async def _call(
        self, key: str, request: Request, messages: list[Message], n_tokens: int, max_tokens: int
    ) -> Reply:
        async def ask() -> tuple[Reply, Usage]:
            reply = await self._caller.endpoint.chat(messages, request.format, max_tokens)
            return reply, reply.usage

        try:
            return await self._caller.call(
                ask,
                n_tokens,
                max_tokens,
                lambda: self.ledger.send(key, self.step, request.unit, self.name),
            )
        except RejectedError as error:
            self._put_aside(key, QUARANTINED, self._caller.hide(str(error)))

    def _put_aside(self, key: str, state: str, reason: str, raw: str = "") -> NoReturn:
        self.ledger.put_aside(key, state, reason, raw)
        raise _PutAsideError(reason)

    def _key(self, request: Request) -> str:
        """Hash all that a reply depends on."""
        parts = [
            self.settings.identity(),
            request.max_output_tokens,
            [[message["role"], message["content"]] for message in request.messages],
            request.format.name,
            request.format.schema,
        ]
        text = json.dumps(parts, ensure_ascii=False, sort_keys=True)
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class _PutAsideError(Exception):
    """A request was quarantined or skipped; the message says why."""


def _correction(reply: Reply, error: ReplyError) -> list[Message]:
    """Show a model its reply and what is wrong with it."""
    return [
        Message(role="assistant", content=reply.text[:8_000]),
        Message(
            role="user",
            content=f"This reply cannot be used: {error}. Reply again, whole, in the format asked "
            "for, and with nothing else.",
        ),
    ]


def _is_ready(result: "Outcome | Future[Outcome]") -> bool:
    return isinstance(result, Outcome) or result.done()


def _result(result: "Outcome | Future[Outcome]") -> Outcome:
    return result if isinstance(result, Outcome) else result.result()
