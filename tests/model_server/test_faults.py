"""Faults of the server, as the official client sees them."""

import json
import time
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.model_server import OTHER_HOST, Faults, Server
from tests.model_server.asking import GRAPH, as_format, ask
from tests.model_server.connection import QUIRKS


def always(kind: str) -> Faults:
    return Faults(rate=1, kinds=[kind])


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("400", 400, None),
        ("400_content_filter", 400, "content_filter"),
        ("context_length", 400, "context_length_exceeded"),
        ("no_json_schema", 400, None),
        ("unsupported:temperature", 400, "unsupported_parameter"),
        ("401", 401, "invalid_api_key"),
        ("403", 403, "model_not_allowed"),
        ("404", 404, "model_not_found"),
        ("408", 408, None),
        ("409", 409, None),
        ("429", 429, "rate_limit_exceeded"),
        ("429_quota", 429, "insufficient_quota"),
        ("500", 500, None),
        ("503", 503, None),
    ],
)
def test_an_error_has_its_status_and_code(
    server: Server, client: OpenAI, kind: str, status: int, code: str | None
) -> None:
    server.faults = always(kind)
    with pytest.raises(openai.APIStatusError) as caught:
        ask(client, temperature=0, response_format=as_format(GRAPH))
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert server.requests[0].fault == kind


@pytest.mark.parametrize("kind", ["429_retry_after", "429_retry_date", "429_retry_ms"])
def test_a_429_can_say_when_to_come_back(server: Server, client: OpenAI, kind: str) -> None:
    server.faults = Faults(by_number=[kind], retry_after=1)
    start = time.monotonic()
    ask(client.with_options(max_retries=1))
    # A date has whole seconds.
    assert time.monotonic() - start > (0 if kind == "429_retry_date" else 0.9)
    assert [asked.attempt for asked in server.requests] == [1, 2]


def test_the_message_of_401_holds_the_key_as_some_servers_do(server: Server) -> None:
    server.api_keys = ["right"]
    with (
        OpenAI(base_url=server.url, api_key="wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError, match="wrong"),
    ):
        ask(client)


def test_a_proxy_answers_in_html(server: Server, client: OpenAI) -> None:
    server.faults = always("502_html")
    with pytest.raises(openai.InternalServerError) as caught:
        ask(client)
    assert "nginx" in caught.value.response.text


@pytest.mark.parametrize("kind", ["hang", "close", "close_half"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_that_breaks_is_an_error(
    server: Server, client: OpenAI, kind: str, stream: bool
) -> None:
    server.faults = always(kind)
    with pytest.raises((openai.APIConnectionError, openai.APITimeoutError)):
        list(ask(client.with_options(timeout=0.3), stream=stream))


def test_a_stream_can_stop_in_the_middle(server: Server, client: OpenAI) -> None:
    server.faults = always("stream_hang")
    assert ask(client).choices
    events = iter(ask(client.with_options(timeout=0.3), stream=True))
    assert next(events).choices
    with pytest.raises(openai.APIConnectionError):
        list(events)


def test_a_stream_can_be_slow_without_standing_still(server: Server, client: OpenAI) -> None:
    server.chunk_delay = 0.05
    assert list(ask(client.with_options(timeout=1), stream=True))


CONTENTS: dict[str, Callable[[Any, str | None], object]] = {
    "null_content": lambda choice, text: text is None,
    "empty_content": lambda choice, text: text == "",
    "refusal": lambda choice, text: text is None and choice.message.refusal,
    "content_filter": lambda choice, text: choice.finish_reason == "content_filter",
    "length": lambda choice, text: text and choice.finish_reason == "length",
    "endless": lambda choice, text: len(text or "") == 400 and choice.finish_reason == "length",
    "malformed_content": lambda choice, text: text and "'entities'" in text,
    "wrong_schema": lambda choice, text: text and "entities" not in json.loads(text),
    "think": lambda choice, text: text and text.startswith("<think>") and text.endswith("}"),
    "unclosed_think": lambda choice, text: text and "</think>" in text and "<think>" not in text,
    "prose": lambda choice, text: text and text.startswith("Sure!"),
    "fences": lambda choice, text: text and text.startswith("```json") and text.endswith("```"),
    "reasoning_content": lambda choice, text: choice.message.reasoning_content and text,
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_an_answer_can_be_wrong_in_its_content(server: Server, client: OpenAI, kind: str) -> None:
    server.faults = always(kind)
    limit: Any = {"max_tokens": 100} if kind == "endless" else {}
    (choice,) = ask(client, response_format=as_format(GRAPH), **limit).choices
    assert CONTENTS[kind](choice, choice.message.content)


def test_choices_can_be_empty(server: Server, client: OpenAI) -> None:
    server.faults = always("empty_choices")
    assert ask(client).choices == []
    assert not any(event.choices for event in ask(client, stream=True))


def test_the_arguments_of_a_call_can_be_malformed(server: Server, client: OpenAI) -> None:
    server.faults = always("malformed_content")
    tool = {"type": "function", "function": {"name": "save", "parameters": GRAPH}}
    (call,) = ask(client, tools=[tool]).choices[0].message.tool_calls
    with pytest.raises(ValueError):
        json.loads(call.function.arguments)


def statuses(server: Server, client: OpenAI, texts: list[str]) -> list[int | None]:
    start = len(server.requests)
    for text in texts:
        try:
            ask(client, text)
        except openai.APIStatusError:
            continue
    return [asked.status for asked in server.requests[start:]]


def test_a_rate_hits_the_same_bodies_in_any_order(server: Server, client: OpenAI) -> None:
    texts = [f"text {number}" for number in range(60)]
    server.faults = Faults(rate=0.3, kinds=["500", "503"], seed=1)
    first = statuses(server, client, texts)
    assert 8 <= sum(status != 200 for status in first) <= 28
    assert statuses(server, client, texts[::-1])[::-1] == first
    server.faults = Faults(rate=0.3, kinds=["500", "503"], seed=1, redraw=True)
    assert statuses(server, client, texts) != statuses(server, client, texts)


def test_a_fault_can_pass_after_some_attempts(server: Server, client: OpenAI) -> None:
    server.faults = Faults(rate=1, kinds=["500"], attempts=2)
    assert statuses(server, client, ["a", "a", "a", "a"]) == [500, 500, 200, 200]
    server.faults = Faults(by_text={'é "b"': "503*1", "seal": "409"})
    asked = ['é "b"', 'é "b"', "seal", "seals", "d"]
    assert statuses(server, client, asked) == [503, 200, 409, 409, 200]
    server.faults = Faults(by_number=[None, "500"])
    assert statuses(server, client, ["x", "x", "x"]) == [200, 500, 200]


def test_a_server_can_lack_a_parameter_for_good(server: Server, client: OpenAI) -> None:
    server.faults = Faults(rate=1, kinds=["no_json_schema", "unsupported:tools"])
    with pytest.raises(openai.BadRequestError, match="json_schema"):
        ask(client, response_format=as_format(GRAPH))
    with pytest.raises(openai.BadRequestError, match="tools"):
        ask(client, tools=[{"type": "function", "function": {"name": "f", "parameters": GRAPH}}])
    assert ask(client, "In JSON.", response_format={"type": "json_object"}).choices


def test_what_the_api_refuses_by_itself_is_refused(server: Server, client: OpenAI) -> None:
    server.models, server.context_window = ["m"], 100
    with pytest.raises(openai.NotFoundError, match="`e` does not exist"):
        client.embeddings.create(model="e", input="a")
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, "long " * 100)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match="must contain the word 'json'"):
        ask(client, "hello", response_format={"type": "json_object"})
    loose = {"type": "object", "properties": {"a": {"type": "string"}}}
    with pytest.raises(openai.BadRequestError, match="additionalProperties"):
        ask(client, response_format=as_format(loose))
    with pytest.raises(openai.BadRequestError, match="input"):
        client.embeddings.create(model="m", input=["a", ""])
    with (
        OpenAI(base_url=server.origin, api_key="k", max_retries=0) as lost,
        pytest.raises(openai.NotFoundError, match="Invalid URL"),
    ):
        ask(lost)


@pytest.mark.parametrize("quirk", QUIRKS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_official_client_bears_every_quirk_of_a_connection(
    server: Server, client: OpenAI, quirk: str, stream: bool
) -> None:
    expected = ask(client).choices[0].message.content
    server.quirks = [quirk]
    for _ in range(2):
        if stream:
            events = ask(client, stream=True)
            found = "".join(event.choices[0].delta.content or "" for event in events)
        else:
            found = ask(client).choices[0].message.content
        assert found == expected


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("500:json_schema", 500, "Input should be 'text'"),
        ("422:response_format", 422, "Extra inputs"),
        ("silent:temperature", 500, "Internal Server Error"),
    ],
)
def test_a_parameter_or_a_format_is_refused_alone(
    server: Server, client: OpenAI, kind: str, status: int, words: str
) -> None:
    server.faults = always(kind)
    assert ask(client, response_format={"type": "text"} if "422" not in kind else openai.omit)
    with pytest.raises(openai.APIStatusError) as caught:
        ask(client, temperature=0, response_format=as_format(GRAPH))
    assert caught.value.status_code == status
    assert words in caught.value.response.text


def test_an_ignored_format_gives_plain_text(server: Server, client: OpenAI) -> None:
    server.faults = always("ignores:json_schema")
    text = ask(client, response_format=as_format(GRAPH)).choices[0].message.content
    with pytest.raises(ValueError):
        json.loads(text)


def test_a_babbling_model_takes_the_time_of_its_tokens(server: Server, client: OpenAI) -> None:
    server.faults, server.tokens_per_second = always("babble"), 1000
    start = time.monotonic()
    reply = ask(client, max_completion_tokens=400)
    assert (reply.choices[0].finish_reason, reply.usage.completion_tokens) == ("length", 400)
    assert time.monotonic() - start >= 0.4


def test_requests_are_redirected(server: Server, client: OpenAI) -> None:
    server.redirect = 307
    assert ask(client).choices
    assert [asked.status for asked in server.requests] == [307, 200]


def test_a_certificate_of_another_host_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(OTHER_HOST))
    with Server(certificate=OTHER_HOST) as server:
        assert server.url.startswith("https")
        with (
            OpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
            pytest.raises(openai.APIConnectionError) as caught,
        ):
            ask(client)
    assert "mismatch" in str(caught.value.__cause__)
