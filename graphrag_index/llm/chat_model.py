"""Asks a model many things at once; what comes back is in the order of the requests.

Waiting happens here alone: inside is asyncio, in a thread of its own; outside is ordinary
code. A reply that the ledger has is not asked for again, and a reply is kept there only
when it has been read.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NoReturn

from graphrag_index.errors import ModelError
from graphrag_index.llm.caller import Caller, LoopThread, estimate_tokens
from graphrag_index.llm.failures import RejectedError, RetryError
from graphrag_index.llm.ledger import QUARANTINED, Ledger
from graphrag_index.llm.prices import Budget, cost_of
from graphrag_index.llm.request import (
    Outcome,
    ParsedReply,
    Reply,
    Request,
    Spent,
    Usage,
)
from graphrag_index.llm.request_chain import (
    Attempt,
    QuarantinedError,
    RequestChain,
    cached_values,
    first_attempt,
    prompt_tokens,
    read_cached,
    request_key,
    validate_reply,
)
from graphrag_index.schema.settings.models import ModelSettings

# Requests that are under way or wait for those before them: bounds memory, not results.
AHEAD = 8
# Seconds that the first requests get to be sent, before further ones are prepared.
HEAD_START = 0.05


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
        n_started = 0
        try:
            for request in requests:
                known = self._from_ledger(request)
                if isinstance(known, RequestChain):
                    # Counted here, since it may take as long as to load an encoding.
                    n_tokens = prompt_tokens(known.asked or request, self.settings)
                    waiting.append(self._loop.start(self._converse(known, n_tokens)))
                    n_started += 1
                    if n_started == self.settings.concurrency:
                        # While the first are sent, preparing more would hold them up.
                        time.sleep(HEAD_START)
                else:
                    waiting.append(known)
                while len(waiting) > ahead or (waiting and _is_ready(waiting[0])):
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        except BaseException as error:
            self._stop(error, waiting)
            raise
        finally:
            self.ledger.mark_used(self._used)
            self._used.clear()

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        """Return the values that are kept for a request and those that follow; asks nothing."""
        return cached_values(self.ledger.find, request, self.settings)

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        """Return a hash of the reply that is kept under each key; empty where none is."""
        return self.ledger.reply_hashes(keys)

    def get_meta(self, name: str) -> str | None:
        """Return what was remembered beside the replies."""
        return self.ledger.get_meta(name)

    def set_meta(self, name: str, value: str) -> None:
        """Keep something beside the replies, for the next run."""
        self.ledger.set_meta(name, value)

    def stop(self, error: Exception) -> None:
        """Let every further request fail at once by this error."""
        self._caller.stop(error)

    def mark_used(self, keys: Iterable[str]) -> None:
        """Note that what was made of these requests before stays, though they are not asked."""
        self._used += keys

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

    def _from_ledger(self, request: Request) -> Outcome | RequestChain:
        """Answer a request and those that follow from it, as far as the ledger knows."""
        conversation = RequestChain(request)
        while (asked := conversation.asked) is not None:
            key = request_key(asked, self.settings)
            try:
                reading = read_cached(self.ledger.find(key), asked)
            except QuarantinedError as error:
                self._used.append(key)
                self.ledger.relabel(key, asked.unit)
                return conversation.outcome(str(error))
            if reading is None:
                return conversation
            self._used.append(key)
            conversation.advance(reading, key)
        return conversation.outcome()

    async def _converse(self, conversation: RequestChain, n_tokens: int) -> Outcome:
        """Ask what the ledger did not know, of so many tokens, and what follows from it."""
        first = True
        while (asked := conversation.asked) is not None:
            key = request_key(asked, self.settings)
            self._used.append(key)
            try:
                reading = None if first else read_cached(self.ledger.find(key), asked)
                if not first and reading is None:
                    n_tokens = prompt_tokens(asked, self.settings)
                spent = conversation.spent
                reading = reading or await self._ask(key, asked, n_tokens, spent)
                conversation.advance(reading, key)
            except QuarantinedError as error:
                return conversation.outcome(str(error))
            first = False
        return conversation.outcome()

    async def _ask(self, key: str, request: Request, n_tokens: int, spent: Spent) -> ParsedReply:
        """Ask one request until its reply is good, or put it aside."""
        room = self.settings.context_window - n_tokens
        try:
            attempt = first_attempt(request, self.settings, n_tokens)
        except QuarantinedError as error:
            self.ledger.record_sent(key, self.step, request.unit, self.name)
            self._put_aside(key, error)
        while True:
            reply = await self._call(key, request, attempt, n_tokens)
            # The place that this call had is free: whoever gets it sends first, then this is read.
            for _ in range(3):
                await asyncio.sleep(0)
            cost = cost_of(reply.usage, self._caller.price)
            spent.add(reply.usage, cost)
            try:
                judged = validate_reply(reply, request, attempt, room, self._caller.hide)
            except QuarantinedError as error:
                self.ledger.record_cost(key, self.step, self.name, reply.usage, cost)
                self._put_aside(key, error)
            if request.format.schema and not attempt.corrected:
                self._caller.endpoint.note_compliance(
                    isinstance(judged, ParsedReply), reply.response_format
                )
            if isinstance(judged, ParsedReply):
                self.ledger.record_reply(key, self.step, self.name, reply.text, reply.usage, cost)
                return judged
            self.ledger.record_cost(key, self.step, self.name, reply.usage, cost)
            attempt = judged

    async def _call(self, key: str, request: Request, attempt: Attempt, n_tokens: int) -> Reply:
        n_tokens += sum(estimate_tokens(message["content"]) for message in attempt.correction)

        async def ask() -> tuple[Reply, Usage]:
            try:
                reply = await self._caller.endpoint.chat(
                    attempt.messages(request), request.format, attempt.max_tokens, request.sink
                )
            except RetryError as error:
                if error.lost:
                    most = self._caller.most(n_tokens, attempt.max_tokens)
                    self.ledger.record_cost(key, self.step, self.name, Usage(n_tokens), most)
                raise
            if reply.usage == Usage():
                # Not every server counts, and none that was interrupted.
                reply = replace(reply, usage=Usage(n_tokens, 0, estimate_tokens(reply.text)))
            return reply, reply.usage

        try:
            return await self._caller.call(
                ask,
                n_tokens,
                attempt.max_tokens,
                lambda: self.ledger.record_sent(key, self.step, request.unit, self.name),
            )
        except RejectedError as error:
            self._put_aside(key, QuarantinedError(QUARANTINED, self._caller.hide(str(error))))

    def _put_aside(self, key: str, error: QuarantinedError) -> NoReturn:
        self.ledger.record_failure(key, error.state, str(error), error.raw)
        raise error from None


def _is_ready(result: "Outcome | Future[Outcome]") -> bool:
    return isinstance(result, Outcome) or result.done()


def _result(result: "Outcome | Future[Outcome]") -> Outcome:
    return result if isinstance(result, Outcome) else result.result()
