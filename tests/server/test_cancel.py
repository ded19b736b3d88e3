"""Clients that disconnect: the calls of the model end, and other questions go on."""

import http.client
import json
from pathlib import Path

import pytest

from graphrag_server.server_settings import ServerSettings
from tests.fixtures.commands import wait_for
from tests.fixtures.served import project_with_model, serve
from tests.model_server import Server

QUESTION = "Who was Tom Crean?"
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("stream", [True, False])
def test_a_disconnect_ends_the_call_and_no_other_question(
    tmp_path: Path, sample_project: Path, model_server: Server, stream: bool
) -> None:
    root = project_with_model(tmp_path / "asked", sample_project, model_server.url)
    with serve(ServerSettings(indexes={"sample": root})) as served:
        model_server.latency = 60.0
        leaving = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        body = json.dumps({"question": QUESTION, "stream": stream})
        leaving.request("POST", "/v1/indexes/sample/search/basic", body, JSON)
        wait_for(lambda: model_server.requests)
        assert served.app.state.asker.n_open == 1
        if stream:
            leaving.sock.shutdown(2)
        leaving.close()
        # The thread is free long before the model would have replied.
        wait_for(lambda: served.app.state.asker.n_open == 0)
        wait_for(lambda: model_server.requests[0].status == 0)
        assert len(model_server.requests) == 1
        model_server.latency = 0.0
        staying = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        staying.request(
            "POST", "/v1/indexes/sample/search/basic", json.dumps({"question": QUESTION}), JSON
        )
        assert json.loads(staying.getresponse().read())["outcome"] == "answered"
        staying.close()
