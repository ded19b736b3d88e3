"""Answers of the server, through the official client."""

import asyncio
import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, AzureOpenAI, OpenAI

from tests.model_server import ChatRequest, Limits, Server, counts, read_log
from tests.model_server.asking import GRAPH, TEXT, as_format, ask, record, said, table
from tests.model_server.small_model_replies import SMALL_MODEL_REPLIES, SmallModelReply


def test_a_schema_of_entities_and_relationships_is_filled_from_the_text(client: OpenAI) -> None:
    completion = ask(client, response_format=as_format(GRAPH))
    graph = said(completion)
    names = ["Tom Crean", "Ernest Shackleton", "Frank Wild", "South Georgia"]
    assert [entity["name"] for entity in graph["entities"]] == names
    assert {"source": "Tom Crean", "target": "Ernest Shackleton"} in graph["relationships"]
    assert len(graph["relationships"]) == 4
    assert completion.choices[0].finish_reason == "stop"
    assert completion.system_fingerprint
    assert completion._request_id == "req_1"
    assert completion.usage.total_tokens > completion.usage.prompt_tokens > 20


def test_a_forced_tool_is_called_with_the_same_answer(client: OpenAI) -> None:
    tool = {"type": "function", "function": {"name": "save", "parameters": GRAPH, "strict": True}}
    choice = {"type": "function", "function": {"name": "save"}}
    message = ask(client, tools=[tool], tool_choice=choice).choices[0].message
    assert message.content is None
    (call,) = message.tool_calls
    assert call.function.name == "save"
    assert len(json.loads(call.function.arguments)["entities"]) == 4
    assert ask(client, tools=[tool], tool_choice="none").choices[0].message.tool_calls is None


def test_json_mode_takes_the_names_that_the_prompt_shows(client: OpenAI) -> None:
    system = 'Answer in JSON: {"nodes": [{"label": "..."}], "edges": [{"from": "", "to": ""}]}'
    graph = said(ask(client, system=system, response_format={"type": "json_object"}))
    assert graph["nodes"][0]["label"] == "Tom Crean"
    assert graph["edges"][0]["from"] == "Tom Crean"
    assert graph["edges"][0]["to"] == "Ernest Shackleton"


def test_a_line_format_is_taken_from_the_prompt(client: OpenAI) -> None:
    system = (
        "One line each:\nentity | <name> | <type> | <description>\n"
        'relationship | <source> | <target> | <strength 1-10>\nEnd with "DONE".'
    )
    lines = ask(client, system=system).choices[0].message.content.splitlines()
    sentence = "Tom Crean sailed with Ernest Shackleton."
    assert lines[0] == f"entity | Tom Crean | person | {sentence}"
    assert lines[4] == "relationship | Tom Crean | Ernest Shackleton | 1"
    assert lines[-1] == "DONE"


@pytest.mark.parametrize(
    ("again", "n_entities"), [("Many were missed. Add them.", 1), ("That was no valid JSON.", 4)]
)
def test_asked_for_what_it_missed_it_gives_only_that(
    client: OpenAI, again: str, n_entities: int
) -> None:
    messages: Any = [
        {"role": "user", "content": TEXT},
        {"role": "assistant", "content": "Tom Crean, Ernest Shackleton, South Georgia"},
        {"role": "user", "content": again},
    ]
    completion = client.chat.completions.create(
        model="m", messages=messages, response_format=as_format(GRAPH)
    )
    names = [entity["name"] for entity in said(completion)["entities"]]
    assert "Frank Wild" in names
    assert len(names) == n_entities


def test_claims_reports_summaries_scores_and_answers_come_from_the_text(client: OpenAI) -> None:
    claims = table(claims=record("subject", "object", "status", "description"))
    text = "Acme Inc was fined by Bank Corp in 1999. It rained."
    (claim,) = said(ask(client, text, response_format=as_format(claims)))["claims"]
    assert (claim["subject"], claim["object"], claim["status"]) == ("Acme Inc", "Bank Corp", "TRUE")

    rows = "# Entities\n1,Tom Crean,a sailor\n2,Frank Wild,an explorer\n# Relationships\n7,A,B"
    finding = record("summary", "explanation")
    report = record("title", "summary", "rating", "findings")
    report["properties"] |= {
        "rating": {"type": "number"}, "findings": {"type": "array", "items": finding},
    }  # fmt: skip
    written = said(ask(client, rows, response_format=as_format(report)))
    assert written["title"] == "Tom Crean and Frank Wild"
    assert written["rating"] == 2.5
    assert written["findings"][0]["explanation"].endswith("[Data: Entities (1)]")

    described = as_format(record("description"))
    asked = "Entity: Tom Crean\nDescriptions:\n- A sailor\n- An Irishman.\n- A sailor"
    assert said(ask(client, asked, response_format=described)) == {
        "description": "A sailor. An Irishman."
    }
    question = "Who was the explorer?"
    answer = ask(client, question, system=f"Answer from the data.\n{rows}")
    assert answer.choices[0].message.content == "Frank Wild,an explorer [Data: Entities (2)]"
    points = table(points=record("description", "score"))
    (point,) = said(ask(client, question, system=rows, response_format=as_format(points)))["points"]
    assert point["score"] == "100"


def test_an_answer_over_the_limit_is_cut_and_says_so(client: OpenAI) -> None:
    completion = ask(client, max_tokens=5, response_format=as_format(GRAPH))
    assert completion.choices[0].finish_reason == "length"
    assert len(completion.choices[0].message.content) == 20
    assert completion.usage.completion_tokens == 5
    assert len(ask(client, max_completion_tokens=5, n=3).choices) == 3


def test_a_stream_carries_the_same_answer_and_its_usage(client: OpenAI) -> None:
    whole = ask(client, response_format=as_format(GRAPH))
    stream = ask(
        client, response_format=as_format(GRAPH), stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    *events, last = stream
    content = "".join(event.choices[0].delta.content or "" for event in events)
    assert content == whole.choices[0].message.content
    assert events[-1].choices[0].finish_reason == "stop"
    assert (last.choices, last.usage) == ([], whole.usage)
    with client.chat.completions.stream(
        model="m", messages=[{"role": "user", "content": TEXT}], response_format=as_format(GRAPH)
    ) as collected:
        assert (
            len(json.loads(collected.get_final_completion().choices[0].message.content or "")) == 2
        )


def test_a_long_beginning_that_was_sent_before_counts_as_cached(client: OpenAI) -> None:
    system = "Follow these instructions. " * 300
    first, second = ask(client, system=system), ask(client, "Another text.", system=system)
    assert first.usage.prompt_tokens_details.cached_tokens == 0
    assert 1900 < second.usage.prompt_tokens_details.cached_tokens <= len(system) // 4


def test_vectors_depend_on_the_text_alone(client: OpenAI) -> None:
    packed = client.embeddings.create(model="e", input=["a", "b"], dimensions=100)
    plain = client.embeddings.create(
        model="e", input=["b", "a"], dimensions=100, encoding_format="float"
    )
    assert [row.embedding for row in packed.data] == [row.embedding for row in plain.data][::-1]
    assert sum(value * value for value in plain.data[0].embedding) == pytest.approx(1)
    assert len(client.embeddings.create(model="e", input="a").data[0].embedding) == 64


def test_azure_paths_and_headers_are_served() -> None:
    with Server(api_keys=["k"]) as server:
        with AzureOpenAI(
            azure_endpoint=server.origin, api_key="k", api_version="2024-10-21", max_retries=0
        ) as client:
            assert ask(client).model == "m"
            assert client.embeddings.create(model="e", input="a").data
        assert server.requests[0].path == "/openai/deployments/m/chat/completions"
        assert "api-key" not in server.requests[0].headers


def test_models_are_listed(client: OpenAI, server: Server) -> None:
    assert [model.id for model in client.models.list()] == ["test-model", "test-embedding"]
    server.models = ["m"]
    assert client.models.retrieve("m").id == "m"


def test_the_async_client_gets_its_answers_in_parallel() -> None:
    async def ask_often(url: str) -> list[str]:
        async with AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            asked = [
                client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": f"{n}"}]
                )
                for n in range(50)
            ]
            return [completion.id for completion in await asyncio.gather(*asked)]

    with Server(latency=0.2, answer=lambda request: request.texts[0]) as server:
        assert len(set(asyncio.run(ask_often(server.url)))) == 50
        assert server.max_running > 25
        assert set(server.counts().values()) == {1}


def test_the_answer_is_a_function_of_the_request() -> None:
    def echo(request: ChatRequest) -> str:
        return f"{request.mode} {request.texts[-1]}"

    with (
        Server(answer=echo) as server,
        OpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
    ):
        assert ask(client, "hello").choices[0].message.content == "text hello"


def test_as_a_process_it_is_controlled_over_http_and_logs_each_request(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "tests.model_server", "--log", str(log), "--latency", "0.01"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        url = process.stdout.readline().strip()
        with OpenAI(base_url=url, api_key="sk-secret", max_retries=2) as client:
            change = json.dumps({"faults": {"by_number": ["429_retry_ms"], "retry_after": 0.01}})
            address = url.replace("/v1", "/control")
            with urllib.request.urlopen(address, change.encode()) as answer:
                assert json.load(answer)["latency"] == 0.01
            ask(client)
        first, second = read_log(log)
        assert (first["status"], first["fault"]) == (429, "429_retry_ms")
        assert (second["status"], second["attempt"]) == (200, 2)
        assert counts([first, second]) == {first["key"]: 2}
        assert "sk-secret" not in log.read_text()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def test_limits_are_kept_and_shown() -> None:
    limits = Limits(requests_per_minute=60, burst_seconds=2)
    with (
        Server(limits=limits, answer=lambda _: "ok") as server,
        OpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
    ):
        raw = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "a"}]
        )
        assert raw.headers["x-ratelimit-remaining-requests"] == "1"
        ask(client)
        response = client.with_options(max_retries=2)
        assert ask(response).choices
        assert [asked.status for asked in server.requests] == [200, 200, 429, 200]


def test_there_are_many_replies_in_each_form() -> None:
    assert len(SMALL_MODEL_REPLIES) >= 40
    assert len({reply.title for reply in SMALL_MODEL_REPLIES}) == len(SMALL_MODEL_REPLIES)
    assert {reply.form for reply in SMALL_MODEL_REPLIES} == {"json", "lines", "tuples"}


@pytest.mark.parametrize("reply", SMALL_MODEL_REPLIES, ids=lambda reply: reply.title)
def test_what_is_to_be_kept_stands_in_the_reply(reply: SmallModelReply) -> None:
    text = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), reply.text)
    text = " ".join(text.split())
    pairs = {name for pair in reply.relationships for name in pair}
    assert all(name in text for name in reply.entities | reply.maybe | pairs)


def test_most_replies_are_not_plain_json() -> None:
    plain = 0
    for reply in SMALL_MODEL_REPLIES:
        try:
            value = json.loads(reply.text)
            plain += bool(value["entities"][0]["name"] and value["relationships"][0]["source"])
        except (ValueError, KeyError, IndexError, TypeError):
            continue
    assert plain < 10
