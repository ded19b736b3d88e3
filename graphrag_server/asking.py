"""Questions to the indexes of a server: the one way by which every protocol runs a search.

A search runs in a thread of its own pool; at most `max_concurrent_questions` run at once, and at
most `max_waiting_questions` wait. Its events are passed to the event loop of the server.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from fastapi.concurrency import run_in_threadpool

from graphrag_index.llm.cancellation import Cancellation, CancelledQuestionError, cancelled_by
from graphrag_index.spans import span
from graphrag_query.answer import Answer
from graphrag_query.index import Index
from graphrag_query.question.conversation import Conversation, Turn
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
        """Raise RequestError if a setting has the name of an argument of `Index.search`."""
        wrong = sorted(_ARGUMENTS & self.settings.keys())
        if wrong:
            raise RequestError(400, "settings_error", f"No search has a setting {wrong[0]!r}.")

    def open(self) -> Index:
        """Open the index at the asked version, restricted by the filters."""
        index = self.hosted.open(self.as_of)
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
    """A message on what the search does. `stage` is a word for programs, such as `search`."""

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
# A function that is called with each question and its answer, for limits, metrics and traces.
Observer = Callable[[AskedQuestion, Answer], None]


class Asker:
    """The threads that run searches, and the limits of their number."""

    def __init__(self, max_concurrent: int, max_waiting: int) -> None:
        self._threads = ThreadPoolExecutor(max_concurrent, "question")
        self._max_open = max_concurrent + max_waiting
        self.n_open = 0  # questions that run or wait
        self._streams: set[asyncio.Queue[AskEvent]] = set()
        self.admissions: list[Admission] = []
        self.observers: list[Observer] = []

    async def answer(self, asked: AskedQuestion) -> Answer:
        """Answer a question. Raises RequestError if the search fails or too many others wait."""
        async with aclosing(self.events(asked)) as events:
            async for event in events:
                if isinstance(event, ErrorEvent):
                    raise event.error
                if isinstance(event, AnswerEvent):
                    return event.answer
        raise AssertionError("the last event is an answer or an error")

    async def events(self, asked: AskedQuestion) -> AsyncGenerator[AskEvent, None]:
        """Answer a question, and yield what happens. Raises RequestError if too many others wait.

        Closing the iterator cancels the question.
        """
        if self.n_open >= self._max_open:
            raise RequestError(
                429,
                "too_many_questions",
                f"The server answers {self.n_open} questions already: ask again in a moment.",
                {"Retry-After": str(RETRY_AFTER)},
            )
        # Counted before it is admitted, so that others that are admitted meanwhile see it.
        self.n_open += 1
        try:
            for admit in self.admissions:
                await run_in_threadpool(admit, asked)
        except BaseException:
            self.n_open -= 1
            raise
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[AskEvent] = asyncio.Queue()
        stream = _EventSink(lambda event: loop.call_soon_threadsafe(events.put_nowait, event))
        # The thread sees the context of the request, such as its id.
        run = copy_context().run
        cancellation = Cancellation()
        future = loop.run_in_executor(self._threads, run, self._run, asked, stream, cancellation)
        future.add_done_callback(self._count_closed)
        self._streams.add(events)
        try:
            while True:
                event = await events.get()
                yield event
                if isinstance(event, AnswerEvent | ErrorEvent):
                    return
        finally:
            cancellation.cancel()
            self._streams.discard(events)

    def _count_closed(self, future: object) -> None:
        self.n_open -= 1

    def _run(self, asked: AskedQuestion, sink: "_EventSink", cancellation: Cancellation) -> None:
        try:
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
                sink.send(StatusEvent("search", f"Searching {asked.hosted.name}."))
                answer = _search(asked, sink)
                question.set(
                    outcome=answer.outcome.value,
                    version=answer.version,
                    cost=answer.usage.cost,
                    answer=answer.text,
                )
            for observe in self.observers:
                observe(asked, answer)
            sink.send(AnswerEvent(answer))
        except CancelledQuestionError:
            pass  # Nobody waits for the answer.
        except Exception as error:  # noqa: BLE001 - reported to the client, and logged
            sink.send(ErrorEvent(as_request_error(error)))

    def stop(self) -> None:
        """End the open questions with an error, since the server stops."""
        error = RequestError(503, "server_stopping", "The server was stopped: ask again later.")
        for events in self._streams:
            events.put_nowait(ErrorEvent(error))

    def close(self) -> None:
        """Refuse further questions, and do not wait for those that run."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class _EventSink:
    """The receiver of the text of an answer."""

    def __init__(self, send: Callable[[AskEvent], object]) -> None:
        self.send = send

    def write(self, piece: str) -> None:
        self.send(TextEvent(piece))

    def restart(self) -> None:
        self.send(RestartEvent())


def _search(asked: AskedQuestion, sink: _EventSink) -> Answer:
    index = asked.open()
    if asked.conversation and not asked.names:
        conversation = Conversation()
        conversation.turns = list(asked.conversation)
        return index.converse(
            conversation, asked.question, asked.method, sink=sink, **asked.settings
        )
    return index.search(asked.method, asked.question, *asked.names, sink=sink, **asked.settings)
