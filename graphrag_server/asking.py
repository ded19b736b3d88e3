"""Questions to the indexes of a server: the one way by which every protocol runs a search.

A search runs in a thread of its own pool; at most `max_concurrent_questions` run at once, and at
most `max_waiting_questions` wait. Its events are passed to the event loop of the server.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from graphrag_index.llm.chat_model import Cancellation, CancelledQuestionError, cancelled_by
from graphrag_index.spans import span
from graphrag_query.answer import Answer, Usage
from graphrag_query.index import Index
from graphrag_query.llm import usage_of
from graphrag_query.question.conversation import Conversation, Turn
from graphrag_query.searches.router import check_method
from graphrag_server.access import Caller
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.problems import RequestError, as_request_error

# Seconds after which a client that was refused may ask again.
RETRY_AFTER = 2
# Arguments of the methods of `Index`, which the settings of a request must not replace.
_ARGUMENTS = frozenset(("self", "method", "question", "names", "sink", "conversation"))


@dataclass(frozen=True)
class AskedQuestion:
    """A question to an index, with everything that decides its answer.

    `settings` override the section of the search. `filters` are the arguments of `Index.where`.
    """

    hosted: HostedIndex
    caller: Caller
    question: str
    method: str = "ask"
    names: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, Any] = field(default_factory=dict)
    as_of: int | None = None
    conversation: tuple[Turn, ...] = ()

    def __post_init__(self) -> None:
        """Raise SettingsError or RequestError for an unknown search or a forbidden setting."""
        check_method(self.method)
        wrong = sorted(_ARGUMENTS & self.settings.keys())
        if wrong:
            # It would replace an argument of `Index.search`.
            raise RequestError(400, "settings_error", f"No search has a setting {wrong[0]!r}.")

    def open(self) -> Index:
        """Open the index at the asked version, restricted by the filters.

        Raises RequestError or GraphRAGError if the question asks for what does not exist.
        """
        index = self.hosted.open(self.as_of)
        if self.method != "ask":
            getattr(index.settings, f"{self.method}_search").with_values(self.settings)
        return index.where(**self.filters) if self.filters else index


@dataclass(frozen=True)
class TextEvent:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True)
class RestartEvent:
    """The text so far is to be discarded: the answer begins again."""


@dataclass(frozen=True)
class StatusEvent:
    """A message on what the search does. `stage` is `search`, `read` or `write`."""

    stage: str
    message: str


@dataclass(frozen=True)
class AnswerEvent:
    """The whole answer. It is the last event of a question."""

    answer: Answer


@dataclass(frozen=True)
class ErrorEvent:
    """A failure. It is the last event of a question."""

    error: RequestError


AskEvent = TextEvent | RestartEvent | StatusEvent | AnswerEvent | ErrorEvent
# A function that is called with each question before it runs; it raises RequestError to refuse it.
Admission = Callable[[AskedQuestion], None]


@dataclass(frozen=True)
class QuestionEnd:
    """The outcome of a question that has ended, and its cost.

    `outcome` is that of the answer, `cancelled` or `failed`. `usage` also counts calls that were
    lost, because the client was gone or the model was too slow.
    """

    method: str
    outcome: str
    usage: Usage


# A function that is called with the end of each question that has begun, for limits and metrics.
Observer = Callable[[AskedQuestion, QuestionEnd], None]
_T = TypeVar("_T")


class Asker:
    """The threads that run searches, and the limits of their number."""

    def __init__(
        self,
        max_concurrent: int,
        max_waiting: int,
        admit: Admission | None = None,
        observe: Observer | None = None,
    ) -> None:
        self._threads = ThreadPoolExecutor(max_concurrent, "question")
        self._max_open = max_concurrent + max_waiting
        self.n_open = 0  # questions that run or wait
        self._streams: set[asyncio.Queue[AskEvent]] = set()
        self._admit, self._observe = admit, observe

    async def answer(self, asked: AskedQuestion, request: Request) -> Answer:
        """Answer a question. If the client of the request disconnects, the question is cancelled.

        Raises RequestError if the search fails or too many others wait.
        """
        return await _while_connected(self._answer(asked), request)

    async def _answer(self, asked: AskedQuestion) -> Answer:
        async with aclosing(self.events(asked)) as events:
            async for event in events:
                if isinstance(event, ErrorEvent):
                    raise event.error
                if isinstance(event, AnswerEvent):
                    return event.answer
        raise AssertionError("the last event is an answer or an error")

    async def read(self, asked: AskedQuestion, request: Request, work: Callable[[Index], _T]) -> _T:
        """Call a function that reads the index of a question, such as for its context.

        Reading counts as an open question, but not for the limits of a key. If the client
        disconnects, a query is ended. Raises RequestError if too many others wait.
        """
        cancellation = Cancellation()

        def read() -> _T:
            with cancelled_by(cancellation):
                return work(asked.open())

        self._count_open()
        future = self._start(read)
        try:
            return await _while_connected(asyncio.wrap_future(future), request)
        finally:
            cancellation.cancel()

    async def begin(self, asked: AskedQuestion) -> AsyncIterator[AskEvent]:
        """Begin to answer a question, and return its events, of which the first has happened.

        Raises RequestError for a refused question, so that its reply can have that status.
        """
        events = self.events(asked)
        first = await anext(events)

        async def all_events() -> AsyncIterator[AskEvent]:
            async with aclosing(events):
                yield first
                async for event in events:
                    yield event

        return all_events()

    async def events(self, asked: AskedQuestion) -> AsyncGenerator[AskEvent, None]:
        """Answer a question, and yield what happens.

        Closing the iterator cancels the question. Raises RequestError at the first event if too
        many others wait, or if the version, a filter or a setting does not exist.
        """
        self._count_open()
        # Counted before it is admitted, so that others that are admitted meanwhile see it.
        try:
            if self._admit is not None:
                await run_in_threadpool(self._admit, asked)
        except BaseException:
            self.n_open -= 1
            raise
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[AskEvent] = asyncio.Queue()
        stream = _EventSink(lambda event: loop.call_soon_threadsafe(events.put_nowait, event))
        cancellation = Cancellation()
        future = self._start(lambda: self._run(asked, stream, cancellation))
        self._streams.add(events)
        try:
            event = await events.get()
            if isinstance(event, ErrorEvent):
                # Nothing was sent yet, so that the reply can have the status of the error.
                raise event.error
            yield event
            while not isinstance(event, AnswerEvent | ErrorEvent):
                event = await events.get()
                yield event
        finally:
            cancellation.cancel()
            # A question that still waits leaves its place at once.
            future.cancel()
            self._streams.discard(events)

    def _count_open(self) -> None:
        if self.n_open >= self._max_open:
            raise RequestError(
                429,
                "too_many_questions",
                f"The server answers {self.n_open} questions already: ask again in a moment.",
                {"Retry-After": str(RETRY_AFTER)},
            )
        self.n_open += 1

    def _start(self, work: Callable[[], _T]) -> Future[_T]:
        """Run a function, which is counted as open, in a thread that sees the request's context."""
        loop = asyncio.get_running_loop()

        def count_closed() -> None:
            self.n_open -= 1

        def note_end(future: Future[_T]) -> None:
            # The loop of a server that has stopped is closed.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(count_closed)

        future = self._threads.submit(copy_context().run, work)
        future.add_done_callback(note_end)
        return future

    def _run(self, asked: AskedQuestion, sink: "_EventSink", cancellation: Cancellation) -> None:
        """Search for the answer, tell the observer, and send the last event."""
        started = time.perf_counter()
        last: AskEvent
        try:
            answer = _search(asked, sink, cancellation)
            method, outcome, last = answer.method, answer.outcome.value, AnswerEvent(answer)
        except Exception as error:  # noqa: BLE001 - reported to the client, and logged
            is_cancelled = isinstance(error, CancelledQuestionError)
            method, outcome = asked.method, "cancelled" if is_cancelled else "failed"
            last = ErrorEvent(as_request_error(error))
        try:
            seconds = round(time.perf_counter() - started, 3)
            usage = replace(usage_of(cancellation.spent), seconds=seconds)
            if self._observe is not None:
                self._observe(asked, QuestionEnd(method, outcome, usage))
        finally:
            sink.send(last)

    def stop(self) -> None:
        """End the open questions with an error, since the server stops."""
        error = RequestError(503, "server_stopping", "The server was stopped: ask again later.")
        for events in self._streams:
            events.put_nowait(ErrorEvent(error))

    def close(self) -> None:
        """Refuse further questions, and do not wait for those that run."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class _EventSink:
    """The receiver of the text of an answer, and of messages on the search."""

    def __init__(self, send: Callable[[AskEvent], object]) -> None:
        self.send = send

    def write(self, piece: str) -> None:
        self.send(TextEvent(piece))

    def restart(self) -> None:
        self.send(RestartEvent())

    def status(self, stage: str, message: str) -> None:
        self.send(StatusEvent(stage, message))


def _search(asked: AskedQuestion, sink: _EventSink, cancellation: Cancellation) -> Answer:
    cancellation.check()
    with (
        cancelled_by(cancellation),
        span(
            "invoke_workflow",
            index=asked.hosted.name,
            method=asked.method,
            caller=asked.caller.name,
            question=asked.question,
        ) as question,
    ):
        try:
            index = asked.open()
            sink.send(StatusEvent("search", f"Searching {asked.hosted.name}."))
            answer = _ask(index, asked, sink)
        except CancelledQuestionError:
            question.set(outcome="cancelled", cost=cancellation.spent.cost)
            raise
        question.set(
            outcome=answer.outcome.value,
            version=answer.version,
            cost=answer.usage.cost,
            answer=answer.text,
        )
        return answer


def _ask(index: Index, asked: AskedQuestion, sink: _EventSink) -> Answer:
    if asked.conversation and not asked.names:
        conversation = Conversation()
        conversation.turns = list(asked.conversation)
        return index.converse(
            conversation, asked.question, asked.method, sink=sink, **asked.settings
        )
    return index.search(asked.method, asked.question, *asked.names, sink=sink, **asked.settings)


async def _while_connected(work: Awaitable[_T], request: Request) -> _T:
    """Wait for a result; cancel the work if the client disconnects."""
    task = asyncio.ensure_future(work)
    # The body was read, so that the next message says that the client has disconnected.
    left = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((task, left), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise CancelledQuestionError
        return task.result()
    finally:
        left.cancel()
        task.cancel()
