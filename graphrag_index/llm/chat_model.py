"""Chat models: replies come from the ledger, or from requests sent concurrently.

Calls run in an asyncio event loop in a separate thread. The callers are ordinary synchronous
code: only this module waits for the results of calls. A valid reply is stored in the ledger,
and its request is never sent again.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from graphrag_index.errors import GraphRAGError, ModelError
from graphrag_index.llm.client import LLMClient
from graphrag_index.llm.ledger import DONE, QUARANTINED, TRUNCATED, Ledger, LedgerEntry
from graphrag_index.llm.limits import (
    Budget,
    ReplyLimit,
    TokenLimits,
    cost_of,
    max_cost_of,
)
from graphrag_index.llm.reply_parser import is_repetitive, read_reply
from graphrag_index.llm.request import (
    Attempt,
    Outcome,
    ParsedReply,
    QuarantinedError,
    Reply,
    ReplyError,
    Request,
    Spending,
    TooLongError,
    Usage,
    attempt_after_invalid_reply,
    attempt_after_timeout,
    estimate_tokens,
    prompt_tokens,
    request_key,
)
from graphrag_index.llm.retries import (
    LengthError,
    RefusedContentError,
    RejectedError,
    RetryError,
    SlowReplyError,
    redact,
)
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.spans import Span, span


class CancelledQuestionError(GraphRAGError):
    """The question was cancelled, so that its search does not go on."""

    def __init__(self) -> None:
        super().__init__("The question was cancelled before its answer was complete: ask again.")


class Cancellation:
    """A switch that ends the running calls of one question, and refuses further calls.

    `spent` counts all calls that have ended, also those that were lost. Any thread may use the
    switch.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Functions that end the running calls.
        self._calls: set[Callable[[], None]] = set()
        self.is_cancelled = False
        self.spent = Spending()

    def cancel(self) -> None:
        """End the running calls: their connections are closed."""
        with self._lock:
            self.is_cancelled = True
            calls = list(self._calls)
        for end in calls:
            end()

    @contextmanager
    def running_call(self, spent: Spending) -> Iterator[None]:
        """Let `cancel` end the task of the block, and count what the task has `spent`.

        Raises CancelledQuestionError if the question was cancelled already.
        """
        task = asyncio.current_task()
        assert task is not None
        loop = task.get_loop()

        def end() -> None:
            # A loop that is closed has ended the task already.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)

        with self.ending(end):
            try:
                yield
            finally:
                with self._lock:
                    self.spent.add(spent)

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """Let `cancel` call a function that ends the work of the block.

        Raises CancelledQuestionError if the question was cancelled already.
        """
        with self._lock:
            self.check()
            self._calls.add(end)
        try:
            yield
        finally:
            with self._lock:
                self._calls.discard(end)

    def check(self) -> None:
        """Raise CancelledQuestionError if the question was cancelled."""
        if self.is_cancelled:
            raise CancelledQuestionError


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def current_cancellation() -> Cancellation:
    """Return the cancellation that ends the calls of this thread.

    Raises CancelledQuestionError if the question was cancelled already.
    """
    cancellation = _current.get() or Cancellation()
    cancellation.check()
    return cancellation


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Iterator[None]:
    """Let a cancellation end the calls that this thread makes in the block."""
    token = _current.set(cancellation)
    try:
        yield
    finally:
        _current.reset(token)


class RequestChain:
    """A request and its follow-ups, with the replies received so far."""

    def __init__(self, request: Request, settings: ModelSettings) -> None:
        # The outcome so far.
        self.outcome = Outcome(request.unit)
        self._settings = settings
        self.is_answered = False
        self._set_request(request)

    def _set_request(self, request: Request) -> None:
        # The next request to send, its cache key, and the key of the same request in full.
        self.request = request
        self.key = self.full_key = request_key(request, self._settings)

    def shorten(self) -> bool:
        """Take some context from the next request; False if it cannot be shorter."""
        shorter = self.request.shorten() if self.request.shorten else None
        if shorter is None:
            self.request = replace(self.request, shorten=None)
            return False
        self.request, self.key = shorter, request_key(shorter, self._settings)
        return True

    def add_reply(self, parsed: ParsedReply) -> None:
        """Add the reply to the current request, and make its follow-up the current request."""
        known = self.outcome
        self.outcome = replace(
            known,
            values=(*known.values, parsed.value),
            dropped=known.dropped + parsed.dropped,
            keys=(*known.keys, self.key),
        )
        follow_up = self.request.then(parsed.value) if self.request.then else None
        self.is_answered = follow_up is None
        if follow_up is not None:
            self._set_request(follow_up)

    def add_cached_reply(self, find: Callable[[str], LedgerEntry | None]) -> bool:
        """Add the cached reply to the current request; False if there is none.

        Raises `QuarantinedError` if the request is quarantined.
        """
        entry = find(self.key)
        if entry is not None and entry.state == QUARANTINED:
            raise QuarantinedError(entry.reason)
        if entry is None or entry.state != DONE:
            return False
        parsed = read_reply(entry.reply, self.request.format)
        n_dropped = parsed.dropped + (entry.reason == TRUNCATED)
        self.add_reply(ParsedReply(parsed.value, n_dropped))
        return True

    def failed_outcome(self, reason: object) -> Outcome:
        """Return the outcome so far, with the reason of the failure."""
        return replace(self.outcome, failure=str(reason))


class CachedModel:
    """A model of one step that takes replies from the ledger; base of the chat models."""

    def __init__(self, name: str, settings: ModelSettings, step: str, ledger: Ledger) -> None:
        self.name, self.settings, self.step, self.ledger = name, settings, step, ledger
        self.get_meta, self.reply_hashes = ledger.get_meta, ledger.reply_hashes
        # Cache keys of the requests that this version of the index uses.
        self._used: list[str] = []
        self.tokens = TokenLimits(settings, ledger)
        # Whether an outcome counts cached replies at what they cost when they were paid for.
        self.counts_cached_replies = False

    @property
    def max_prompt_tokens(self) -> int:
        """Maximum number of tokens of a prompt, by the settings: it does not change in a run."""
        return self.settings.context_window - self.settings.max_output_tokens

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        """Return the cached values of a request and its follow-ups, without sending requests."""
        chain = RequestChain(request, self.settings)
        with suppress(QuarantinedError):
            while not chain.is_answered and chain.add_cached_reply(self.ledger.find_entry):
                pass
        return chain.outcome.values

    def set_meta(self, name: str, value: str) -> None:
        """Store a value in the ledger's metadata, for the next run."""
        self.ledger.set_meta(name, value)

    def mark_used(self, keys: Iterable[str]) -> None:
        """Mark cached requests as used by this version of the index."""
        self._used += keys

    def _save_used_keys(self) -> None:
        self.ledger.mark_used(self._used)
        self._used.clear()

    def _advance_over_cache(self, chain: RequestChain) -> Outcome | None:
        """Add cached replies to a chain; returns its outcome, or None if a reply is missing."""
        while not chain.is_answered:
            key = chain.key
            self._used.append(key)
            try:
                if not chain.add_cached_reply(self.ledger.find_entry):
                    return None
                if self.counts_cached_replies:
                    chain.outcome.spent.add(self.ledger.spent_on(key))
            except QuarantinedError as error:
                self.ledger.update_label(chain.key, chain.request.unit)
                return chain.failed_outcome(error)
        return chain.outcome

    def _is_too_long(self, request: Request, n_tokens: int) -> bool:
        """Return whether a request of about `n_tokens` should be shortened before it is sent."""
        return request.shorten is not None and n_tokens > self.tokens.max_prompt

    def _may_be_too_long(self, error: RejectedError, request: Request, n_tokens: int) -> bool:
        """Return whether a request may be refused because of its length, of which nothing is said.

        It is not if the server has answered requests of this length, or refuses the content.
        """
        is_long = request.shorten is not None and 2 * n_tokens > self.tokens.n_answered
        return is_long and not isinstance(error, RefusedContentError)

    def _shorten_after(self, error: QuarantinedError, chain: RequestChain) -> bool:
        """Shorten a request that was too long; else record its failure, and return False.

        The failure is recorded under the key of the full request, which the next run looks up.
        """
        if chain.key != chain.full_key or isinstance(error, TooLongError):
            self.ledger.forget_request(chain.key)
            if isinstance(error, TooLongError) and chain.shorten():
                return True
            if chain.key != chain.full_key:
                # What is refused at every length is not refused because of its length.
                self.tokens.set_refused(None)
            self.ledger.record_sent(chain.full_key, self.step, chain.request.unit, self.name)
        self.ledger.record_failure(chain.full_key, str(error), error.raw)
        return False

    def _is_sent(self, key: str) -> bool:
        """Return whether a request is sent, and waits for its reply."""
        return False

    def _prepare_request(self, chain: RequestChain) -> tuple[Outcome | None, int]:
        """Advance over cached replies, and shorten the next request as far as is known to help.

        Returns the outcome, None if a reply is missing, and about the tokens of the next prompt.
        """
        while True:
            outcome = self._advance_over_cache(chain)
            if outcome is not None:
                return outcome, 0
            n_tokens = prompt_tokens(chain.request, self.settings, self.tokens.window)
            is_long = self._is_too_long(chain.request, n_tokens)
            if not is_long or self._is_sent(chain.key) or not chain.shorten():
                return None, n_tokens

    def _validate_reply(
        self, reply: Reply, request: Request, attempt: Attempt, n_tokens: int
    ) -> ParsedReply | Attempt:
        """Parse a reply to a prompt of about `n_tokens`; if invalid, return the next attempt.

        Raises `QuarantinedError` if there is no further attempt.
        """
        if reply.finish in ("content_filter", "refusal"):
            raw = redact(reply.text, self.settings.key)
            shown = f": {raw[:200]}" if raw else ""
            raise QuarantinedError(f"the model refused ({reply.finish}){shown}", raw)
        is_truncated = reply.finish == "length"
        # More tokens would not help a model that repeats itself.
        if is_truncated and not attempt.is_last and not is_repetitive(reply.text):
            return replace(attempt, max_tokens=attempt.raised_tokens, is_last=True)
        try:
            parsed = read_reply(reply.text, request.format)
        except ReplyError as error:
            if attempt.corrected:
                raw = redact(reply.text, self.settings.key)
                raise QuarantinedError(f"the reply is invalid: {error}", raw) from None
            room = self.settings.context_window - n_tokens
            return attempt_after_invalid_reply(attempt, reply.text, error, request, room)
        return replace(parsed, dropped=parsed.dropped + is_truncated)


# Reason why a request is not sent.
KNOWN_LIMIT = "it exceeds what the server is known to accept"
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
        self.tokens = self._client.tokens

    @contextmanager
    def _traced_call(
        self, kind: str, cancellation: Cancellation, spent: Spending, **values: Any
    ) -> Iterator[Span]:
        """Trace a call, which `cancellation` may end, with the tokens and the cost in `spent`."""
        known = {"model": self.settings.model, "provider": self.settings.provider}
        with (
            cancellation.running_call(spent),
            span(kind, **known, step=self.step, **values) as call,
        ):
            yield call
            call.set(prompt_tokens=spent.usage.prompt, cost=spent.cost)

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
                # Count tokens in this thread: loading an encoding would block the event loop.
                outcome, n_tokens = self._prepare_request(chain)
                future: Future[Outcome] = Future()
                if outcome is None:
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
        if equal is not None:
            with suppress(Exception):
                await asyncio.wrap_future(equal)
            if (outcome := self._advance_over_cache(chain)) is not None:
                return outcome
        messages = chain.request.messages
        with self._traced_call(
            "chat", cancellation, chain.outcome.spent, messages=messages
        ) as chat:
            outcome = await self._send_chain(chain, n_tokens)
            n_written = outcome.spent.usage.completion
            chat.set(completion_tokens=n_written, failure=outcome.failure, reply=outcome.values)
            return outcome

    async def _send_chain(self, chain: RequestChain, n_tokens: int) -> Outcome:
        outcome = None
        while outcome is None:
            try:
                chain.add_reply(await self._send_until_valid(chain, n_tokens))
            except QuarantinedError as error:
                if not self._shorten_after(error, chain):
                    return chain.failed_outcome(error)
                # Making a shorter request takes time, for which the event loop must not wait.
                outcome, n_tokens = await asyncio.to_thread(self._prepare_request, chain)
            else:
                outcome, n_tokens = self._prepare_request(chain)
        return outcome

    async def _send_until_valid(self, chain: RequestChain, n_tokens: int) -> ParsedReply:
        """Send a request until its reply is valid.

        Raises `QuarantinedError` after too many attempts, or if the server rejects the request.
        """
        key, request, client = chain.key, chain.request, self._client
        # Another call may have found a limit while this one waited.
        if self._is_too_long(request, n_tokens):
            raise TooLongError(KNOWN_LIMIT)
        try:
            attempt = self._limit.first_attempt(request, self.tokens, n_tokens)
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
            except LengthError as error:
                too_long = TooLongError(client.redact(str(error)))
                if self._is_too_long(request, n_tokens):
                    raise too_long from None
                # The prompt may fit, and its reply was given too much room.
                most = self.tokens.max_reply_tokens(request, n_tokens)
                if most >= attempt.max_tokens:
                    raise too_long from None
                attempt = replace(attempt, max_tokens=most, raised_tokens=most, is_last=True)
                continue
            if self._limit.note_reply(attempt, reply, request):
                self.set_meta(self._limit_key, "1")
            if not attempt.correction:
                self.tokens.note_answer(n_tokens, reply.usage.prompt)
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

        Raises `QuarantinedError` if the server rejects the request, `LengthError` if that may be
        because of its length, and `SlowReplyError` if its reply is too slow.
        """
        key, request, client = chain.key, chain.request, self._client
        n_tokens += sum(estimate_tokens(message["content"]) for message in attempt.correction)

        async def send() -> tuple[Reply, Usage]:
            if not attempt.correction and self._is_too_long(request, n_tokens):
                raise TooLongError(KNOWN_LIMIT)
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
        except LengthError as error:
            self.tokens.note_refusal(n_tokens, attempt.max_tokens, error.refusal)
            raise
        except RejectedError as error:
            if self._may_be_too_long(error, request, n_tokens):
                self.tokens.note_refusal(n_tokens, attempt.max_tokens, None)
                raise LengthError(str(error)) from None
            client.calls.note_refusal(error)
            raise QuarantinedError(client.redact(str(error))) from None
