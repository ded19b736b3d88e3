"""Questions over HTTP: as by the Python API; a client that disconnects ends its calls alone."""

import http.client
import json
import socket
from pathlib import Path

import httpx2
import pytest
from fastapi.testclient import TestClient

import graphrag_query
from graphrag_index.llm.ledger import Ledger
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_query.answer import Outcome
from graphrag_query.searches.router import METHODS
from graphrag_server.keys import KeyFile, Scope
from graphrag_server.routes.ask import AnswerReply
from graphrag_server.server_settings import ServerSettings
from tests.conftest import run_project
from tests.fixtures.commands import wait_for
from tests.fixtures.served import Served, project_with_embeddings, project_with_model, serve
from tests.model_server import Server

QUESTION = "Who was Tom Crean?"
BASE = "/v1/indexes/sample"


def read_events(text: str) -> list[tuple[str, dict]]:
    """Parse the events of a stream into (type, data)."""
    events = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines())
        events.append((lines["event"], json.loads(lines["data"])))
    return events


def test_an_answer_is_that_of_the_python_api(
    sample_client: TestClient, sample_project: Path
) -> None:
    reply = sample_client.post(f"{BASE}/search/local", json={"question": QUESTION}).json()
    with graphrag_query.open(sample_project / "output", load_settings(sample_project)) as index:
        expected = json.loads(json.dumps(index.local(QUESTION).to_dict()))
    del reply["usage"]["seconds"], expected["usage"]["seconds"]
    assert {name: reply[name] for name in expected} == expected


@pytest.mark.parametrize("method", [name for name in METHODS if name != "structured"])
@pytest.mark.parametrize("context", [False, True])
def test_an_answer_has_the_documented_fields(
    sample_client: TestClient, method: str, context: bool
) -> None:
    body = {"question": "How did scurvy affect the expeditions?", "context": context}
    body |= {"names": ["Tom Crean", "Discovery"]} if method == "path" else {}
    reply = sample_client.post(f"{BASE}/search/{method}", json=body).json()
    answer = AnswerReply.model_validate(reply)
    assert answer.outcome is not Outcome.INDEX_INCOMPLETE
    if context and method in ("global", "drift"):
        assert reply["reports"][0].keys() == {"community", "title", "score"}


def test_a_streamed_answer_ends_with_the_whole_answer(sample_client: TestClient) -> None:
    reply = sample_client.post(f"{BASE}/ask", json={"question": QUESTION, "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["x-accel-buffering"] == "no"
    events = read_events(reply.text)
    stages = [(data["stage"], data["message"]) for kind, data in events if kind == "status"]
    assert [stage for stage, _ in stages] == ["search", "search", "read", "write"]
    assert stages[1][1].startswith("Chose local search: ")
    assert "12 text units" in stages[2][1]
    kind, answer = events[-1]
    assert (kind, answer["outcome"]) == ("answer", "answered")
    assert "".join(data["text"] for kind, data in events if kind == "text") == answer["answer"]


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("ask", {"question": ""}, "invalid_request"),
        ("ask", {"question": QUESTION, "other": 1}, "invalid_request"),
        ("ask", {"question": QUESTION, "settings": {"x": 1}}, "settings_error"),
        ("ask", {"question": QUESTION, "as_of": 99}, "no_such_version"),
        ("ask", {"question": QUESTION, "filters": {"since": "soon"}}, "settings_error"),
        ("search/local", {"question": QUESTION, "settings": {"x": 1}}, "settings_error"),
        ("search/none", {"question": QUESTION}, "settings_error"),
        ("context", {"question": QUESTION, "method": "structured"}, "settings_error"),
    ],
)
def test_mistakes_are_explained(
    sample_client: TestClient, path: str, body: dict, code: str
) -> None:
    # A stream that cannot begin has the same status.
    for options in [{}] if path == "context" else [{}, {"stream": True}]:
        reply = sample_client.post(f"{BASE}/{path}", json=body | options)
        if path == "ask" and options and "settings" in body:
            # The chosen search decides which settings there are.
            assert read_events(reply.text)[-1][1]["code"] == code
            continue
        assert 400 <= reply.status_code < 500
        assert reply.json()["code"] == code


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            b'{"questoin": "Who?"}',
            "question is missing; unknown key 'questoin'; did you mean 'question'?",
        ),
        (b'{"question": 5}', "question: input should be a valid string."),
        (b'{"question": ', "the body is not valid JSON: Expecting value at character 13."),
        (b"[]", "the body must be a JSON object, with the header Content-Type: application/json."),
    ],
)
def test_a_wrong_body_is_described(sample_client: TestClient, body: bytes, said: str) -> None:
    headers = {"content-type": "application/json"}
    reply = sample_client.post(f"{BASE}/ask", content=body, headers=headers)
    assert (reply.status_code, reply.json()["detail"]) == (422, said)


def test_history_and_filters_decide_the_answer(sample_client: TestClient) -> None:
    turn = {"question": QUESTION, "answer": "An Irish seaman."}
    body = {"question": "Where was he born?", "conversation": [turn]}
    reply = sample_client.post(f"{BASE}/search/local", json=body).json()
    assert "Crean" in reply["question"]
    assert "Annascaul" in reply["answer"]
    body = {"question": QUESTION, "filters": {"documents": {"path": ["*amundsen*"]}}}
    reply = sample_client.post(f"{BASE}/search/local", json=body).json()
    assert {c["document"] for c in reply["citations"]} <= {"roald-amundsen.txt"}


def test_a_path_takes_names_and_gives_its_graph(sample_client: TestClient) -> None:
    body = {"question": "Tom Crean", "names": ["Fridtjof Nansen"], "context": True}
    reply = sample_client.post(f"{BASE}/search/path", json=body).json()
    titles = {entity["title"] for entity in reply["graph"]["entities"]}
    assert {"Tom Crean", "Fridtjof Nansen"} <= titles


def test_a_context_has_its_rows_and_tokens(sample_client: TestClient) -> None:
    reply = sample_client.post(f"{BASE}/context", json={"question": QUESTION}).json()
    assert reply["n_tokens"] > 100
    assert reply["tables"]["Sources"]


JSON = {"Content-Type": "application/json"}


def ledger_of(served: Served) -> Ledger:
    """Return the ledger of the calls for questions to the index `sample`."""
    models = served.app.state.indexes.get("sample").open()._llms._models
    assert models is not None
    return models.ledger


def leave(served: Served, model_server: Server, path: str, body: dict, headers: dict) -> None:
    """Send a question, and disconnect when the model has got its call."""
    before = len(model_server.requests)
    leaving = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    leaving.request("POST", path, json.dumps(body), JSON | headers)
    wait_for(lambda: len(model_server.requests) > before)
    assert served.app.state.asker.n_open == 1
    leaving.sock.shutdown(socket.SHUT_RDWR)
    leaving.close()
    # The thread is free long before the model would have replied.
    wait_for(lambda: served.app.state.asker.n_open == 0)


def test_a_disconnect_ends_the_call_for_the_vector_of_the_question(
    tmp_path: Path, model_server: Server
) -> None:
    root = project_with_embeddings(tmp_path / "docs", model_server.url)
    run_project(root)
    path = "/v1/indexes/docs/search/basic"
    with (
        serve(ServerSettings(indexes={"docs": root})) as served,
        httpx2.Client(base_url=served.url, timeout=30) as client,
    ):
        # The first question opens the connection to the model.
        assert client.post(path, json={"question": "Who was Scott?"}).status_code == 200
        n_before = len(model_server.requests)
        model_server.latency = 60.0
        leave(served, model_server, path, {"question": QUESTION}, {})
        wait_for(lambda: model_server.requests[n_before].status == 0)
        assert len(model_server.requests) == n_before + 1
        models = served.app.state.indexes.get("docs").open().store.embedder._models
        # The ledger has the call, with the tokens that the provider may charge for.
        calls = models.ledger.fetch_rows("SELECT prompt_tokens, cost FROM calls ORDER BY rowid")
        # The others are for the dimension, for the first question, and for sentences.
        assert len(calls) == 4
        assert min(calls[-1]) > 0
        model_server.latency = 0.0
        assert client.post(path, json={"question": QUESTION}).json()["outcome"] == "answered"


@pytest.mark.parametrize("stream", [True, False])
def test_a_disconnect_ends_the_call_and_no_other_question(
    tmp_path: Path, sample_project: Path, model_server: Server, stream: bool
) -> None:
    root = project_with_model(tmp_path / "asked", sample_project, model_server.url)
    with serve(ServerSettings(indexes={"sample": root})) as served:
        model_server.latency = 60.0
        body = {"question": QUESTION, "stream": stream}
        leave(served, model_server, "/v1/indexes/sample/search/basic", body, {})
        wait_for(lambda: model_server.requests[0].status == 0)
        assert len(model_server.requests) == 1
        # The ledger has the call, as one whose reply was lost, and no other call.
        calls = ledger_of(served).fetch_rows("SELECT step, completion_tokens, cost FROM calls")
        assert [(step, completion) for step, completion, _ in calls] == [("search", 0)]
        [cost] = [cost for *_, cost in calls]
        assert cost > 0
        # The metrics see what the cancelled question has cost.
        metrics = served.app.state.metrics.as_text([])
        assert 'questions_total{index="sample",method="basic",outcome="cancelled"} 1' in metrics
        assert f'cost_dollars_total{{index="sample"}} {cost:.15g}' in metrics
        model_server.latency = 0.0
        staying = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        staying.request(
            "POST", "/v1/indexes/sample/search/basic", json.dumps({"question": QUESTION}), JSON
        )
        assert json.loads(staying.getresponse().read())["outcome"] == "answered"
        staying.close()


def test_a_client_that_always_leaves_reaches_its_daily_limit(
    tmp_path: Path, sample_project: Path, model_server: Server
) -> None:
    root = project_with_model(tmp_path / "asked", sample_project, model_server.url)
    settings = ServerSettings(indexes={"sample": root}, state_folder=tmp_path)
    keys = KeyFile(tmp_path)
    token = keys.add("ana", frozenset({Scope.ASK}), daily_cost=1e-6)
    keys.close()
    key = {"Authorization": f"Bearer {token}"}
    messages = [{"role": "user", "content": QUESTION}]
    with serve(settings) as served:
        model_server.latency = 60.0
        # The same holds for the protocols of others.
        body = {"model": "graphrag/sample/basic", "messages": messages}
        leave(served, model_server, "/v1/chat/completions", body, key)
        again = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        again.request("POST", "/v1/chat/completions", json.dumps(body), JSON | key)
        assert json.loads(again.getresponse().read())["error"]["code"] == "daily_cost_limit"
        again.close()
