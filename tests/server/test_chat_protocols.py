"""The chats of OpenAI, by its own client and as Open WebUI speaks it, and of Ollama."""

import json
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from fastapi.testclient import TestClient

from graphrag_server.server_settings import ServerSettings
from tests.fixtures.served import project_with_model, serve
from tests.model_server import Faults, Server

QUESTION = [{"role": "user", "content": "Who was Tom Crean?"}]
MODEL = "graphrag/sample/local"


@pytest.fixture(scope="module")
def client(
    sample_project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[openai.OpenAI]:
    state = tmp_path_factory.mktemp("state")
    settings = ServerSettings(indexes={"sample": sample_project}, state_folder=state)
    with (
        serve(settings) as served,
        openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client,
    ):
        yield client


def check_annotations(text: str, annotations: list[dict]) -> None:
    """Check that each annotation marks its citation, and opens a passage in the explorer."""
    assert annotations
    for annotation in annotations:
        mark = text[annotation["start_index"] : annotation["end_index"]]
        assert mark.startswith("[")
        assert mark.endswith("]")
        assert "/#/sample/document/" in annotation["url"]
        assert annotation["title"]


def test_each_search_of_each_index_is_a_model(client: openai.OpenAI) -> None:
    names = {model.id for model in client.models.list()}
    assert {MODEL, "graphrag/sample/ask", "graphrag/sample/global"} <= names
    assert client.models.retrieve(MODEL).id == MODEL


def test_a_completion_has_citations_outcome_and_usage(client: openai.OpenAI) -> None:
    reply = client.chat.completions.create(model=MODEL, messages=QUESTION)
    message = reply.choices[0].message
    assert "Irish seaman" in message.content
    found = [a.url_citation.model_dump() for a in message.annotations]
    check_annotations(message.content, found)
    assert reply.choices[0].finish_reason == "stop"
    assert (reply.usage.total_tokens, reply.graphrag["outcome"]) == (0, "answered")


def test_a_streamed_completion_is_the_whole_one(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model=MODEL, messages=QUESTION)
    text, annotations, outcome, usage, finish = "", [], None, None, None
    for chunk in client.chat.completions.create(
        model=MODEL, messages=QUESTION, stream=True, stream_options={"include_usage": True}
    ):
        usage = chunk.usage or usage
        outcome = getattr(chunk, "graphrag", None) or outcome
        for choice in chunk.choices:
            text += choice.delta.content or ""
            annotations += getattr(choice.delta, "annotations", None) or []
            finish = choice.finish_reason or finish
    assert text == whole.choices[0].message.content
    check_annotations(text, [annotation["url_citation"] for annotation in annotations])
    assert (outcome["outcome"], usage.total_tokens, finish) == ("answered", 0, "stop")


def test_history_becomes_a_conversation(client: openai.OpenAI) -> None:
    messages = [
        {"role": "system", "content": "Answer like a pirate."},
        *QUESTION,
        {"role": "assistant", "content": "An Irish seaman."},
        {"role": "user", "content": [{"type": "text", "text": "Where was he born?"}]},
    ]
    reply = client.chat.completions.create(model=MODEL, messages=messages)
    assert "Annascaul" in reply.choices[0].message.content


def test_no_evidence_is_a_normal_end(client: openai.OpenAI) -> None:
    asked = [{"role": "user", "content": "Who invented the telephone?"}]
    reply = client.chat.completions.create(model=MODEL, messages=asked)
    assert reply.choices[0].finish_reason == "stop"
    assert reply.graphrag["outcome"] == "no_evidence"


def test_filters_and_versions_are_extra_fields(client: openai.OpenAI) -> None:
    filters = {"documents": {"path": ["*amundsen*"]}}
    reply = client.chat.completions.create(
        model=MODEL, messages=QUESTION, extra_body={"filters": filters, "as_of": 1}
    )
    assert {c["document"] for c in reply.graphrag["citations"]} <= {"roald-amundsen.txt"}
    with pytest.raises(openai.NotFoundError, match="no version 9"):
        client.chat.completions.create(model=MODEL, messages=QUESTION, extra_body={"as_of": 9})


@pytest.mark.parametrize("model", ["gpt-5", "graphrag/other/local", "graphrag/sample/none"])
def test_an_unknown_model_is_explained(client: openai.OpenAI, model: str) -> None:
    with pytest.raises(openai.NotFoundError, match=r"GET /v1/models") as caught:
        client.chat.completions.create(model=model, messages=QUESTION)
    assert caught.value.code == "model_not_found"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": "Hello"}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
    ],
)
def test_a_chat_without_a_question_is_refused(client: openai.OpenAI, messages: list) -> None:
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model=MODEL, messages=messages)


def open_webui_prompt(wanted: str) -> str:
    """Return a hidden prompt of the kind that Open WebUI sends after a chat."""
    history = "USER: Who was Tom Crean?\nASSISTANT: An Irish seaman."
    return (
        f"### Task:\nGenerate what is described.\n### Output:\nJSON format: {wanted}\n"
        f"### Chat History:\n<chat_history>\n{history}\n</chat_history>"
    )


@pytest.mark.parametrize(
    ("wanted", "reply"),
    [
        ('{ "title": "your concise title here" }', {"title": "Who was Tom Crean"}),
        ('{ "tags": ["tag1", "tag2"] }', {"tags": ["Documents"]}),
        ('{ "follow_ups": ["Question 1?"] }', {"follow_ups": []}),
        ('{ "queries": ["query1"] }', {"queries": ["Who was Tom Crean?"]}),
        ('{ "text": "<completion>" }', {"text": ""}),
    ],
)
def test_hidden_prompts_are_answered_without_a_search(
    sample_client: TestClient, wanted: str, reply: dict
) -> None:
    """The exchange of Open WebUI: the prompt as a user message, streamed or not."""
    messages = [{"role": "user", "content": open_webui_prompt(wanted)}]
    body = {"model": MODEL, "messages": messages, "stream": False}
    found = sample_client.post("/v1/chat/completions", json=body).json()
    assert json.loads(found["choices"][0]["message"]["content"]) == reply
    assert "graphrag" not in found
    streamed = sample_client.post("/v1/chat/completions", json={**body, "stream": True}).text
    assert streamed.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize(
    "end", ["Who was Tom Crean?", "<user_query>\nWho was Tom Crean?\n</user_query>"]
)
def test_a_question_with_attached_texts_is_searched_for(
    sample_client: TestClient, end: str
) -> None:
    """Open WebUI puts attached files and web pages before the question, in a prompt of its own."""
    attached = "word " * 10_000
    prompt = f"### Task:\nRespond to the query.\n<context>\n{attached}\n</context>\n\n{end}"
    body = {"model": MODEL, "messages": [{"role": "user", "content": prompt}]}
    found = sample_client.post("/v1/chat/completions", json=body).json()
    assert found["graphrag"]["question"] == "Who was Tom Crean?"


def test_a_hidden_prompt_may_hold_a_long_chat(sample_client: TestClient) -> None:
    prompt = open_webui_prompt('{ "title": "" }').replace("seaman.", "seaman. " * 5_000)
    body = {"model": MODEL, "messages": [{"role": "user", "content": prompt}]}
    found = sample_client.post("/v1/chat/completions", json=body).json()
    reply = json.loads(found["choices"][0]["message"]["content"])
    assert reply == {"title": "Who was Tom Crean"}


def test_open_webui_sees_status_sources_and_usage(sample_client: TestClient) -> None:
    """Read a stream as the middleware of Open WebUI does: line by line, event by event."""
    body = {"model": MODEL, "messages": QUESTION, "stream": True, "metadata": {"chat_id": "1"}}
    body |= {"stream_options": {"include_usage": True}, "params": {}, "features": {}}
    lines = sample_client.post("/v1/chat/completions", json=body).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    events = [chunk["event"] for chunk in chunks if "event" in chunk]
    statuses = [event["data"] for event in events if event["type"] == "status"]
    assert [status["done"] for status in statuses][-1] is True
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    sources = [source for delta in deltas for source in delta.get("annotations", [])]
    assert sources
    assert all(source["type"] == "url_citation" for source in sources)
    assert chunks[-1]["usage"]["total_tokens"] == 0


def test_a_failure_after_the_first_byte_is_an_error_chunk(
    sample_project: Path, tmp_path: Path
) -> None:
    with Server(faults=Faults(rate=1, kinds=["close_half"])) as server:
        root = project_with_model(tmp_path / "project", sample_project, server.url)
        settings = ServerSettings(indexes={"sample": root}, state_folder=tmp_path)
        with (
            serve(settings) as served,
            openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client,
        ):
            with pytest.raises(openai.APIError):
                list(client.chat.completions.create(model=MODEL, messages=QUESTION, stream=True))
            with pytest.raises(openai.APIStatusError) as caught:
                client.chat.completions.create(model=MODEL, messages=QUESTION)
    assert (caught.value.status_code, caught.value.code) == (502, "provider_error")


OLLAMA = f"{MODEL}:latest"


def chat(client: TestClient, content: str, **more: object) -> dict:
    body = {"model": OLLAMA, "messages": [{"role": "user", "content": content}], "stream": False}
    return client.post("/api/chat", json={**body, **more}).json()


def test_the_models_of_ollama_are_the_searches(sample_client: TestClient) -> None:
    names = {model["name"] for model in sample_client.get("/api/tags").json()["models"]}
    assert OLLAMA in names
    assert sample_client.get("/api/version").json()["version"]


def test_a_chat_is_answered_whole_and_line_by_line(sample_client: TestClient) -> None:
    whole = chat(sample_client, "Who was Tom Crean?")
    assert "Irish seaman" in whole["message"]["content"]
    assert (whole["done"], whole["graphrag"]["outcome"]) == (True, "answered")
    body = {"model": OLLAMA, "messages": QUESTION}
    lines = sample_client.post("/api/chat", json=body).text.splitlines()
    parts = [json.loads(line) for line in lines]
    assert "".join(p["message"]["content"] for p in parts) == whole["message"]["content"]
    assert [part["done"] for part in parts] == [False] * (len(parts) - 1) + [True]


def test_an_unknown_model_is_an_error_of_ollama(sample_client: TestClient) -> None:
    assert "There is no model" in chat(sample_client, "Who was Tom Crean?", model="llama3")["error"]
