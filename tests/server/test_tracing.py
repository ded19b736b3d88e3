"""Traces: one tree for each question and each run, without contents unless asked for."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from graphrag_index.schema.settings.project_settings import init_project
from graphrag_index.spans import trace_to
from graphrag_server.app import create_app
from graphrag_server.server_settings import ServerSettings
from graphrag_server.tracing import start_tracing, trace_with
from tests.conftest import run_project
from tests.fixtures.served import project_with_embeddings, project_with_model
from tests.model_server import Faults, Server
from tests.server.conftest import ADDRESS

ASK = "/v1/indexes/sample/search/local"
QUESTION = "Who was Tom Crean?"
TRACE = "0af7651916cd43dd8448eb211c80319c"
Trace = Callable[..., InMemorySpanExporter]


@pytest.fixture
def trace() -> Iterator[Trace]:
    """Start traces into memory: trace(with_contents)."""

    def start(with_contents: bool = False) -> InMemorySpanExporter:
        exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace_with(provider, with_contents)
        return exporter

    yield start
    trace_to(None)


@pytest.fixture
def client(tmp_path: Path, sample_project: Path, model_server: Server) -> Iterator[TestClient]:
    root = project_with_model(tmp_path / "traced", sample_project, model_server.url)
    with TestClient(
        create_app(ServerSettings(indexes={"sample": root})), base_url=ADDRESS
    ) as client:
        yield client


def tree(exporter: InMemorySpanExporter) -> list[tuple[str, str]]:
    """Return the names of all spans, each with that of its parent, in the order of their ends."""
    spans = exporter.get_finished_spans()
    names = {span.context.span_id: span.name for span in spans}
    return [
        (span.name, names.get(span.parent.span_id, "") if span.parent else "") for span in spans
    ]


def named(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    return next(span for span in exporter.get_finished_spans() if span.name == name)


def test_a_question_is_one_tree_in_the_trace_of_its_caller(
    client: TestClient, trace: Trace
) -> None:
    exporter = trace()
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    reply = client.post(ASK, json={"question": QUESTION}, headers=headers)
    assert tree(exporter) == [
        ("chat test-model", "retrieval local"),
        ("retrieval local", "invoke_workflow sample"),
        ("invoke_workflow sample", ""),
    ]
    spans = exporter.get_finished_spans()
    assert {f"{span.context.trace_id:032x}" for span in spans} == {TRACE}
    assert spans[-1].parent is not None
    assert reply.headers["x-trace-id"] == reply.json()["trace_id"] == TRACE
    chat = dict(spans[0].attributes)
    assert chat["gen_ai.operation.name"] == "chat"
    assert chat["gen_ai.request.model"] == "test-model"
    assert chat["gen_ai.usage.input_tokens"] == reply.json()["usage"]["prompt_tokens"]
    assert chat["graphrag.cost"] > 0
    assert dict(spans[-1].attributes)["graphrag.outcome"] == "answered"
    assert "Crean" not in str([dict(span.attributes) for span in spans])


def test_a_streamed_answer_names_its_trace(client: TestClient, trace: Trace) -> None:
    exporter = trace()
    reply = client.post(ASK, json={"question": QUESTION, "stream": True})
    found = f"{exporter.get_finished_spans()[0].context.trace_id:032x}"
    assert reply.headers["x-trace-id"] == found
    assert f'"trace_id":"{found}"' in reply.text


def test_contents_are_traced_if_asked_for(client: TestClient, trace: Trace) -> None:
    exporter = trace(with_contents=True)
    answer = client.post(ASK, json={"question": QUESTION}).json()["answer"]
    chat = dict(named(exporter, "chat test-model").attributes)
    whole = dict(named(exporter, "invoke_workflow sample").attributes)
    assert whole["gen_ai.operation.name"] == "invoke_workflow"
    assert QUESTION in str(chat["gen_ai.input.messages"])
    assert QUESTION in str(whole["gen_ai.input.messages"])
    assert answer[:20] in str(whole["gen_ai.output.messages"])


def test_a_failure_is_an_error_without_its_message(
    client: TestClient, model_server: Server, trace: Trace
) -> None:
    exporter = trace()
    model_server.faults = Faults(rate=1.0, kinds=["400"])
    client.post(ASK, json={"question": QUESTION})
    chat = named(exporter, "chat test-model")
    assert not chat.status.is_ok
    assert chat.status.description is None
    assert not chat.events


def test_a_run_is_one_tree(tmp_path: Path, trace: Trace) -> None:
    exporter = trace()
    init_project(tmp_path / "run")
    text = "Roald Amundsen met Ernest Shackleton in Oslo. Ernest Shackleton left Oslo in 1914."
    (tmp_path / "run" / "input" / "a.txt").write_text(text, encoding="utf-8")
    run_project(tmp_path / "run")
    found = tree(exporter)
    assert found[-1] == ("run embedded", "")
    steps = [name for name, parent in found if parent == "run embedded"]
    assert steps
    assert all(name.startswith("step ") for name in steps)
    assert {parent for name, parent in found if name == "batch"} <= set(steps)
    assert "batch" in {name for name, _ in found}


def test_requests_for_vectors_are_parts_of_their_step_and_of_their_search(
    tmp_path: Path, trace: Trace, model_server: Server
) -> None:
    root = project_with_embeddings(tmp_path / "docs", model_server.url)
    exporter = trace()
    run_project(root)
    embeddings = ("embeddings test-embedding", "step generate_text_embeddings")
    assert embeddings in tree(exporter)
    exporter.clear()
    app = create_app(ServerSettings(indexes={"sample": root}))
    with TestClient(app, base_url=ADDRESS) as client:
        assert client.post(ASK, json={"question": QUESTION}).status_code == 200
    assert ("embeddings test-embedding", "retrieval local") in tree(exporter)
    call = named(exporter, "embeddings test-embedding")
    assert call.kind is SpanKind.CLIENT
    assert dict(call.attributes)["gen_ai.operation.name"] == "embeddings"
    assert dict(call.attributes)["gen_ai.usage.input_tokens"] > 0


def test_nothing_is_traced_if_nothing_says_where_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)
    assert start_tracing() is None
