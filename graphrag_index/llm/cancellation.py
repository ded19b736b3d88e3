"""Cancellation: the calls of models for one question end when nobody waits for its answer."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.request import Spending


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

        with self._lock:
            self.check()
            self._calls.add(end)
        try:
            yield
        finally:
            with self._lock:
                self._calls.discard(end)
                self.spent.add(spent)

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
