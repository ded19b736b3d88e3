"""Chat models: many requests at once, each reply validated and kept in the ledger.

Waiting happens here alone: inside is asyncio, in a thread of its own; outside is ordinary
code. A reply is kept once it is valid, and never requested again.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NoReturn

from graphrag_index.errors import ModelError
from graphrag_index.llm.call_errors import RejectedError, RetryError
from graphrag_index.llm.client import LLMClient
from graphrag_index.llm.http_session import LoopThread
from graphrag_index.llm.ledger import QUARANTINED, Ledger
from graphrag_index.llm.prices import Budget, cost_of
from graphrag_index.llm.request import (
    Outcome,
    ParsedReply,
    Reply,
    Request,
    Spent,
    Usage,
    estimate_tokens,
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

# Requests prepared ahead, for each that is under way: bounds memory, not results.
AHEAD = 8


class CachedChatModel:
    """A chat model of one step in front of the ledger; subclasses send what is not cached."""

    def __init__(self, name: str, settings: ModelSettings, step: str, ledger: Ledger) -> None:
        self.name, self.settings, self.step, self.ledger = name, settings, step, ledger
        self._used: list[str] = []

    @property
    def max_prompt_tokens(self) -> int:
        """The longest prompt, in tokens."""
        return self.settings.context_window - self.settings.max_output_tokens

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        """Return the cached values of a request and its follow-ups, without sending any."""
        return cached_values(self.ledger.find, request, self.settings)

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        """Return a hash of the reply that is kept under each key; empty where none is."""
        return self.ledger.reply_hashes(keys)

    def get_meta(self, name: str) -> str | None:
        """Return a value that was kept beside the replies."""
        return self.ledger.get_meta(name)

    def set_meta(self, name: str, value: str) -> None:
        """Keep a value beside the replies, for the next run."""
        self.ledger.set_meta(name, value)

    def mark_used(self, keys: Iterable[str]) -> None:
        """Mark cached requests as used by this version."""
        self._used += keys

    def _save_used(self) -> None:
        self.ledger.mark_used(self._used)
        self._used.clear()

    def _follow_cached(self, chain: RequestChain) -> Outcome | None:
        """Advance a chain over cached replies; its outcome if no other is needed."""
        while (request := chain.pending) is not None:
            key = request_key(request, self.settings)
            self._used.append(key)
            try:
                parsed = read_cached(self.ledger.find(key), request)
            except QuarantinedError as error:
                self.ledger.relabel(key, request.unit)
                return chain.outcome(str(error))
            if parsed is None:
                return None
            chain.advance(parsed, key)
        return chain.outcome()


class ChatModel(CachedChatModel):
    """The chat model of one step."""

    def __init__(
        self,
        name: str,
        settings: ModelSettings,
        step: str,
        ledger: Ledger,
        loop: LoopThread,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(name, settings, step, ledger)
        self._loop = loop
        self._client = LLMClient(name, settings, ledger, budget)

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Send all requests that are not cached; outcomes in the order of the requests.

        Raises
        ------
        ModelError
            The server does not answer, or accepts no request. What was answered is kept.
        BudgetError
            The next call could cost more than the budget leaves.
        """
        waiting: deque[Outcome | Future[Outcome]] = deque()
        ahead = AHEAD * self.settings.concurrency
        try:
            for request in requests:
                chain = RequestChain(request)
                outcome = self._follow_cached(chain)
                if outcome is not None:
                    waiting.append(outcome)
                else:
                    # Counted here, since it may take as long as to load an encoding.
                    n_tokens = prompt_tokens(chain.pending or request, self.settings)
                    waiting.append(self._loop.start(self._finish(chain, n_tokens)))
                while len(waiting) > ahead or (waiting and _is_ready(waiting[0])):
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        except BaseException as error:
            self._stop(error, waiting)
            raise
        finally:
            self._save_used()

    def stop(self, error: Exception) -> None:
        """Let every further request fail with this error."""
        self._client.stop(error)

    def close(self) -> None:
        """Close the connections."""
        self._loop.wait(self._client.close())

    def _stop(self, error: BaseException, waiting: "deque[Outcome | Future[Outcome]]") -> None:
        """Send nothing more, and wait for the calls under way, since they are paid for."""
        self._client.stop(error if isinstance(error, Exception) else ModelError("stopped"))
        patient = not isinstance(error, KeyboardInterrupt)
        for future in waiting:
            if isinstance(future, Future):
                if not patient:
                    future.cancel()
                try:
                    future.result()
                except BaseException:  # noqa: BLE001 - the first failure is the one to tell
                    continue

    async def _finish(self, chain: RequestChain, n_tokens: int) -> Outcome:
        """Send the pending request of a chain, of about so many tokens, and its follow-ups."""
        while (request := chain.pending) is not None:
            key = request_key(request, self.settings)
            try:
                parsed = await self._ask(key, request, n_tokens, chain.spent)
            except QuarantinedError as error:
                return chain.outcome(str(error))
            chain.advance(parsed, key)
            outcome = self._follow_cached(chain)
            if outcome is not None:
                return outcome
            if chain.pending is not None:
                n_tokens = prompt_tokens(chain.pending, self.settings)
        return chain.outcome()

    async def _ask(self, key: str, request: Request, n_tokens: int, spent: Spent) -> ParsedReply:
        """Send one request until its reply is valid, or quarantine it."""
        room = self.settings.context_window - n_tokens
        try:
            attempt = first_attempt(request, self.settings, n_tokens)
        except QuarantinedError as error:
            self.ledger.record_sent(key, self.step, request.unit, self.name)
            self._quarantine(key, error)
        while True:
            reply = await self._call(key, request, attempt, n_tokens)
            cost = cost_of(reply.usage, self._client.price)
            spent.add(reply.usage, cost)
            try:
                result = validate_reply(reply, request, attempt, room, self._client.redact)
            except QuarantinedError as error:
                self.ledger.record_cost(key, self.step, self.name, reply.usage, cost)
                self._quarantine(key, error)
            if request.format.schema and not attempt.corrected:
                is_valid = isinstance(result, ParsedReply)
                self._client.writer.note_compliance(is_valid, reply.response_format)
            if isinstance(result, ParsedReply):
                self.ledger.record_reply(key, self.step, self.name, reply.text, reply.usage, cost)
                return result
            self.ledger.record_cost(key, self.step, self.name, reply.usage, cost)
            attempt = result

    async def _call(self, key: str, request: Request, attempt: Attempt, n_tokens: int) -> Reply:
        n_tokens += sum(estimate_tokens(message["content"]) for message in attempt.correction)

        async def send() -> tuple[Reply, Usage]:
            try:
                reply = await self._client.chat(
                    attempt.messages(request), request.format, attempt.max_tokens, request.sink
                )
            except RetryError as error:
                if error.lost:
                    cost = self._client.max_cost(n_tokens, attempt.max_tokens)
                    self.ledger.record_cost(key, self.step, self.name, Usage(n_tokens), cost)
                raise
            if reply.usage == Usage():
                # Not every server counts, and none that was interrupted.
                reply = replace(reply, usage=Usage(n_tokens, 0, estimate_tokens(reply.text)))
            return reply, reply.usage

        try:
            return await self._client.call(
                send,
                n_tokens,
                attempt.max_tokens,
                lambda: self.ledger.record_sent(key, self.step, request.unit, self.name),
            )
        except RejectedError as error:
            self._quarantine(key, QuarantinedError(QUARANTINED, self._client.redact(str(error))))

    def _quarantine(self, key: str, error: QuarantinedError) -> NoReturn:
        self.ledger.record_failure(key, error.state, str(error), error.raw)
        raise error from None


def _is_ready(result: "Outcome | Future[Outcome]") -> bool:
    return isinstance(result, Outcome) or result.done()


def _result(result: "Outcome | Future[Outcome]") -> Outcome:
    return result if isinstance(result, Outcome) else result.result()
