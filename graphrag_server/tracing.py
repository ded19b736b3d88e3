"""The record of the current request, and traces: spans of questions and runs.

OpenTelemetry sends the spans.

The environment says where to, as OpenTelemetry defines it: `OTEL_EXPORTER_OTLP_ENDPOINT` and its
like. Without it nothing is traced, and the SDK (extra `otel`) is not imported.
"""

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import graphrag_index
from graphrag_index.spans import Span, trace_to

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

# End of the paths to which files are uploaded.
UPLOAD_PATH_END = "/files"
# Values that hold texts of documents, questions or answers.
CONTENTS = frozenset(("question", "answer", "messages", "reply"))
# Names of providers in the settings of models.
_PROVIDERS = {"openai": "openai", "azure": "azure.ai.openai"}
logger = logging.getLogger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
# Values that name a span, by its kind.
_TARGETS = {"invoke_workflow": "index", "retrieval": "method", "chat": "model"}
_TARGETS |= {"embeddings": "model", "rerank": "model"}
_TARGETS |= {"run": "workflow", "step": "step"}


# OpenTelemetry's conventions for generative AI are not stable yet: their names stand here alone.
# A name for one kind of span has the kind before a dot.
# https://opentelemetry.io/docs/specs/semconv/gen-ai/
_OPERATIONS = frozenset(("invoke_workflow", "retrieval", "chat", "embeddings", "rerank"))
_NAMES = {
    "index": "gen_ai.workflow.name",
    "model": "gen_ai.request.model",
    "provider": "gen_ai.provider.name",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "messages": "gen_ai.input.messages",
    "reply": "gen_ai.output.messages",
    "retrieval.question": "gen_ai.retrieval.query.text",
    "invoke_workflow.question": "gen_ai.input.messages",
    "invoke_workflow.answer": "gen_ai.output.messages",
}


@dataclass
class RequestRecord:
    """One request that is being answered."""

    id: str
    started: float = field(default_factory=time.perf_counter)
    caller: str = ""  # name of the key; "local" without keys
    # Header of a client that traces its request.
    traceparent: str = ""
    trace_id: str = ""  # set when the first span of the request begins
    # Names of the indexes by the paths of their projects, which replies must not tell.
    roots: Mapping[str, str] = field(default_factory=dict)


CURRENT: ContextVar[RequestRecord | None] = ContextVar("request_record", default=None)


def current_record() -> RequestRecord | None:
    """Return the record of the request that is being answered; None outside of requests."""
    return CURRENT.get()


def hide_roots(text: str) -> str:
    """Replace the paths of projects in a message to a client by the names of the indexes."""
    record = CURRENT.get()
    for path, name in record.roots.items() if record else ():
        text = text.replace(path, name)
    return text


def current_request_id() -> str:
    """Return the id of the request that is being answered; empty outside of requests."""
    record = CURRENT.get()
    return record.id if record else ""


def attribute_of(name: str, value: Any) -> str | int | float | bool:
    """Return the value of an attribute, which is a text or a number."""
    if name == "gen_ai.provider.name":
        return _PROVIDERS.get(value, str(value))
    if name == "gen_ai.input.messages":
        given = [{"role": "user", "content": value}] if isinstance(value, str) else value
        return _as_json([_message(part["role"], part["content"]) for part in given])
    if name == "gen_ai.output.messages":
        texts = [value] if isinstance(value, str) else value
        return _as_json([_message("assistant", text) for text in texts])
    return value if isinstance(value, str | int | float | bool) else _as_json(value)


def _message(role: str, content: Any) -> dict[str, Any]:
    text = content if isinstance(content, str) else _as_json(content)
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def start_tracing(with_contents: bool = False) -> Callable[[], None] | None:
    """Trace all spans of this process, and return the function that ends this.

    Returns None if nothing says where spans shall go.
    """
    if not any(os.environ.get(name) for name in _ENDPOINTS):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        logger.warning(
            "No traces are sent, since the package %s is missing: "
            'pip install "graphrag-index[otel]".',
            error.name,
        )
        return None
    name = os.environ.get("OTEL_SERVICE_NAME") or "graphrag-index"
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace_with(provider, with_contents)

    def stop() -> None:
        trace_to(None)
        provider.shutdown()

    return stop


def trace_with(provider: "TracerProvider", with_contents: bool) -> None:
    """Send all spans of this process to a provider of OpenTelemetry."""
    from opentelemetry.trace import SpanKind, Status, StatusCode, format_trace_id
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    tracer = provider.get_tracer("graphrag-index", graphrag_index.__version__)

    def attributes_of(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
        kept = {
            _NAMES.get(f"{kind}.{name}", _NAMES.get(name, f"graphrag.{name}")): value
            for name, value in values.items()
            if value not in (None, "", ()) and (with_contents or name not in CONTENTS)
        }
        return {name: attribute_of(name, value) for name, value in kept.items()}

    class OpenSpan:
        def __init__(self, kind: str, span: Any) -> None:
            self.kind, self.span = kind, span

        def set(self, **values: Any) -> None:
            if failure := values.get("failure"):
                text = str(failure) if with_contents else None
                self.span.set_status(Status(StatusCode.ERROR, text))
                values["failure"] = None
            self.span.set_attributes(attributes_of(self.kind, values))

    @contextmanager
    def start(kind: str, values: Mapping[str, Any]) -> Iterator[Span]:
        record, parent = current_record(), None
        is_root = kind == "invoke_workflow" and record is not None
        if is_root and record is not None and record.traceparent:
            carrier = {"traceparent": record.traceparent}
            parent = TraceContextTextMapPropagator().extract(carrier)
        with tracer.start_as_current_span(
            f"{kind} {values.get(_TARGETS.get(kind, ''), '')}".strip(),
            context=parent,
            kind=SpanKind.CLIENT if "model" in values else SpanKind.INTERNAL,
            attributes={
                **({"gen_ai.operation.name": kind} if kind in _OPERATIONS else {}),
                **attributes_of(kind, values),
            },
            # The message of an exception can quote a document.
            record_exception=with_contents,
            set_status_on_exception=False,
        ) as span:
            if is_root and record is not None:
                record.trace_id = format_trace_id(span.get_span_context().trace_id)
            try:
                yield OpenSpan(kind, span)
            except BaseException as error:
                span.set_status(Status(StatusCode.ERROR))
                span.set_attribute("error.type", type(error).__qualname__)
                raise

    trace_to(start)
