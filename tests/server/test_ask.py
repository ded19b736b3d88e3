"""Questions over HTTP: the answers are those of the Python API."""

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import graphrag_query
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_query.answer import Outcome
from graphrag_query.searches.router import METHODS
from graphrag_server.routes.ask import AnswerReply

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
