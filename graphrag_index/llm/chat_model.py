"""Chat models: requests are sent concurrently, and valid replies are cached in the ledger.

Calls run in an asyncio event loop in a separate thread. The callers are ordinary synchronous
code: only this module waits for the results of calls. A valid reply is stored in the ledger,
and its request is never sent again.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from graphrag_index.errors import ModelError
from graphrag_index.llm.cached_model import CachedModel, RequestChain
from graphrag_index.llm.cancellation import (
    Cancellation,
    CancelledQuestionError,
    current_cancellation,
)
from graphrag_index.llm.client import LLMClient
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.limits import Budget, ReplyLimit, cost_of, max_cost_of
from graphrag_index.llm.request import (
    Attempt,
    Outcome,
    ParsedReply,
    QuarantinedError,
    Reply,
    Request,
    Spending,
    Usage,
    attempt_after_timeout,
    estimate_tokens,
    prompt_tokens,
)
from graphrag_index.llm.retries import RejectedError, RetryError, SlowReplyError
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.spans import span

# Number of prepared requests for each concurrent call. It limits memory, not results.
PREPARED_PER_CALL = 8


class LoopThread:
    """An event loop in a separate thread, for callers that are not asynchronous."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="models", daemon=True)
        self._thread.start()

    def start_coroutine(self, coroutine: Any) -> "Future[Any]":
        """Start a coroutine in the loop, without waiting for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run_coroutine(self, coroutine: Any) -> Any:
        """Run a coroutine in the loop, wait for it, and return its result."""
        future = self.start_coroutine(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop; running tasks are cancelled."""

        async def cancel_others() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run_coroutine(cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class RemoteModel(CachedModel):
    """A model on a server. Its calls run in the event loop of the run."""

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

    def stop(self, error: BaseException) -> None:
        """Make every further request fail with this error."""
        self._client.calls.stop_calls(
            error if isinstance(error, Exception) else ModelError("stopped")
        )

    def close(self) -> None:
        self._loop.run_coroutine(self._client.close())


def _wait_for_calls(calls: Iterable[Future[Outcome]], is_interrupted: bool) -> None:
    """Wait for running calls, which are paid for already; after Ctrl-C cancel them.

    Raises `KeyboardInterrupt` if Ctrl-C is pressed while waiting.
    """
    pressed: KeyboardInterrupt | None = None
    for call in calls:
        if is_interrupted or pressed is not None:
            call.cancel()
        try:
            # Further failures are ignored: the first failure is raised.
            with suppress(Exception):
                call.result()
        except KeyboardInterrupt as error:
            call.cancel()
            pressed = error
    if pressed is not None:
        raise pressed


class ChatModel(RemoteModel):
    """The chat model of one step."""

    @cached_property
    def _limit(self) -> ReplyLimit:
        return ReplyLimit(is_lifted=self.get_meta(self._limit_key) is not None)

    @property
    def _limit_key(self) -> str:
        return f"long replies: {self.settings.model} at {self.settings.base_url}"

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Send all requests that are not cached; yield outcomes in the order of the requests.

        Equal requests are sent once. Replies that have arrived are kept in the ledger. Raises
        `ModelError` if the server does not answer or rejects all requests, and `BudgetError` if
        the next call could exceed the budget. A cancelled question raises
        `CancelledQuestionError`.
        """
        cancellation = current_cancellation()
        waiting: deque[Future[Outcome]] = deque()
        # By key, the calls in `waiting`: later, the ledger has their replies.
        sent: WeakValueDictionary[str, Future[Outcome]] = WeakValueDictionary()
        ahead = PREPARED_PER_CALL * self.settings.concurrency
        try:
            for request in requests:
                chain = RequestChain(request, self.settings)
                outcome = self._advance_over_cache(chain)
                future: Future[Outcome] = Future()
                if outcome is None:
                    # Count tokens in this thread: loading an encoding would block the event loop.
                    n_tokens = prompt_tokens(chain.request, self.settings)
                    key, equal = chain.key, sent.get(chain.key)
                    call = self._finish_chain(chain, n_tokens, cancellation, equal)
                    future = self._loop.start_coroutine(call)
                    sent.setdefault(key, future)
                else:
                    future.set_result(outcome)
                waiting.append(future)
                while len(waiting) > ahead or (waiting and waiting[0].done()):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BaseException as error:
            if cancellation.is_cancelled:
                # The calls have been ended, and the model serves other questions.
                _wait_for_calls(waiting, isinstance(error, KeyboardInterrupt))
                raise CancelledQuestionError from None
            self.stop(error)
            _wait_for_calls(waiting, isinstance(error, KeyboardInterrupt))
            raise
        finally:
            self._save_used_keys()

    async def _finish_chain(
        self,
        chain: RequestChain,
        n_tokens: int,
        cancellation: Cancellation,
        equal: Future[Outcome] | None,
    ) -> Outcome:
        """Send the next request of a chain, with about `n_tokens`, and then its follow-ups.

        `equal` is the call of an equal request: its reply is awaited instead, if it gets one.
        """
        settings = self.settings
        if equal is not None:
            with suppress(Exception):
                await asyncio.wrap_future(equal)
            if (outcome := self._advance_over_cache(chain)) is not None:
                return outcome
        with (
            cancellation.running_call(chain.outcome.spent),
            span(
                "chat",
                model=settings.model,
                provider=settings.provider,
                step=self.step,
                messages=chain.request.messages,
            ) as chat,
        ):
            outcome = await self._send_chain(chain, n_tokens)
            usage = outcome.spent.usage
            chat.set(
                prompt_tokens=usage.prompt,
                completion_tokens=usage.completion,
                cost=outcome.spent.cost,
                failure=outcome.failure,
                reply=outcome.values,
            )
            return outcome

    async def _send_chain(self, chain: RequestChain, n_tokens: int) -> Outcome:
        while True:
            try:
                parsed = await self._send_until_valid(chain, n_tokens)
            except QuarantinedError as error:
                self.ledger.record_failure(chain.key, str(error), error.raw)
                return chain.failed_outcome(error)
            chain.add_reply(parsed)
            outcome = self._advance_over_cache(chain)
            if outcome is not None:
                return outcome
            n_tokens = prompt_tokens(chain.request, self.settings)

    async def _send_until_valid(self, chain: RequestChain, n_tokens: int) -> ParsedReply:
        """Send a request until its reply is valid.

        Raises `QuarantinedError` after too many attempts, or if the server rejects the request.
        """
        key, request, client = chain.key, chain.request, self._client
        try:
            attempt = self._limit.first_attempt(request, self.settings, n_tokens)
        except QuarantinedError:
            self.ledger.record_sent(key, self.step, request.unit, self.name)
            raise
        while True:
            try:
                reply = await self._send_until_answered(chain, attempt, n_tokens)
            except SlowReplyError:
                self._limit.note_timeout(attempt, request)
                attempt = attempt_after_timeout(attempt, request, self.settings.timeout)
                continue
            if self._limit.note_reply(attempt, reply, request):
                self.set_meta(self._limit_key, "1")
            client.writer.note_length(reply.usage.completion, attempt.max_tokens)
            cost = cost_of(reply.usage, client.calls.price)
            chain.outcome.spent.add(Spending(1, reply.usage, cost))
            call = (key, self.step, self.name, reply.usage, cost)
            try:
                result = self._validate_reply(reply, request, attempt, n_tokens)
            except QuarantinedError:
                self.ledger.record_call(*call)
                raise
            is_valid, is_truncated = isinstance(result, ParsedReply), reply.finish == "length"
            # A reply that our own limit truncates does not tell whether the server obeys a schema.
            if request.format.schema and not attempt.corrected and (is_valid or not is_truncated):
                client.writer.note_compliance(is_valid, reply.response_format)
            self.ledger.record_call(*call, reply.text if is_valid else None, is_truncated)
            if isinstance(result, ParsedReply):
                return result
            attempt = result

    async def _send_until_answered(
        self, chain: RequestChain, attempt: Attempt, n_tokens: int
    ) -> Reply:
        """Send a request until the server answers.

        Raises `QuarantinedError` if the server rejects the request, and `SlowReplyError` if its
        reply is too slow.
        """
        key, request, client = chain.key, chain.request, self._client
        n_tokens += sum(estimate_tokens(message["content"]) for message in attempt.correction)

        async def send() -> tuple[Reply, Usage]:
            self.ledger.record_sent(key, self.step, request.unit, self.name)
            try:
                messages = [*request.messages, *attempt.correction]
                reply = await client.send_chat(
                    messages, request.format, attempt.max_tokens, request.sink
                )
            except (RetryError, SlowReplyError, asyncio.CancelledError) as error:
                # The provider may charge for a reply that nobody has received.
                if not isinstance(error, RetryError) or error.lost:
                    cost = max_cost_of(n_tokens, attempt.max_tokens, client.calls.price)
                    self.ledger.record_call(key, self.step, self.name, Usage(n_tokens), cost)
                    chain.outcome.spent.add(Spending(1, Usage(n_tokens), cost))
                raise
            if reply.usage == Usage():
                # Some servers count no tokens, and no server counts them for a stream that we end.
                reply = replace(reply, usage=Usage(n_tokens, 0, estimate_tokens(reply.text)))
            return reply, reply.usage

        try:
            return await client.calls.call_with_retries(send, n_tokens, attempt.max_tokens)
        except RejectedError as error:
            raise QuarantinedError(client.redact(str(error))) from None
