"""Spans: the timed parts of a question or a run, for a tracer that is set from outside.

Without a tracer, a span costs one comparison, and no library is imported.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Span(Protocol):
    """A part that is being timed."""

    def set(self, **values: Any) -> None:
        """Add values to the span."""


# A function of the kind of a span and its values, such as ("chat", {"model": "gpt-5"}).
Tracer = Callable[[str, Mapping[str, Any]], AbstractContextManager[Span]]


class _NoSpan(AbstractContextManager[Span]):
    def __enter__(self) -> Span:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def set(self, **values: Any) -> None:
        pass


_NO_SPAN = _NoSpan()
_tracer: Tracer | None = None


def trace_to(tracer: Tracer | None) -> None:
    """Send all spans of this process to a tracer; None: to nothing."""
    global _tracer
    _tracer = tracer


def span(kind: str, **values: Any) -> AbstractContextManager[Span]:
    """Return a context that times its block as a span.

    The kinds are `invoke_workflow` (a question), `retrieval` (its search), `chat`, `embeddings` and
    `rerank` (requests to a model), `run`, `step` and `batch`. Values with contents of documents or
    questions are only kept by tracers that were told to.
    """
    return _NO_SPAN if _tracer is None else _tracer(kind, values)
