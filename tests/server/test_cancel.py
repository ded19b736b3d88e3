"""Clients that disconnect: the calls of the model end, and other questions go on."""

import http.client
import json
import socket
from pathlib import Path

import httpx2
import pytest

from graphrag_index.llm.ledger import Ledger
from graphrag_server.keys import KeyFile, Scope
from graphrag_server.server_settings import ServerSettings
from tests.conftest import run_project
from tests.fixtures.commands import wait_for
from tests.fixtures.served import Served, project_with_embeddings, project_with_model, serve
from tests.model_server import Server

QUESTION = "Who was Tom Crean?"
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
        # The observers of questions see what the cancelled question has cost.
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
