"""Cancellation: the calls of models for one question end when nobody waits for its answer."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from graphrag_index.errors import GraphRAGError


class CancelledQuestionError(GraphRAGError):
    """The question was cancelled, so that its search does not go on."""

    def __init__(self) -> None:
        super().__init__("The question was cancelled before its answer was complete: ask again.")


class Cancellation:
    """A switch that ends the running calls of one question, and refuses further calls.

    Any thread may use it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: set[Future[Any]] = set()
        self.is_cancelled = False

    def cancel(self) -> None:
        """End the running calls: their connections are closed."""
        with self._lock:
            self.is_cancelled = True
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    def add_call(self, call: Future[Any]) -> None:
        """Add a running call, which `cancel` ends."""
        with self._lock:
            self._calls.add(call)
            is_late = self.is_cancelled
        call.add_done_callback(self._remove_call)
        if is_late:
            call.cancel()

    def _remove_call(self, call: Future[Any]) -> None:
        with self._lock:
            self._calls.discard(call)

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
