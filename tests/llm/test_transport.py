"""Redirects, certificates, and the forms in which servers and proxies send their answers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import ModelError
from graphrag_index.llm import client
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.client import LLMClient
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.registry import Models
from graphrag_index.schema.settings.models import ModelSettings
from tests.fixtures.chat_requests import KEY, request, words_of_text
from tests.llm.conftest import OPENED
from tests.model_server import OTHER_HOST, Faults, Server
from tests.model_server.connection import QUIRKS

Open = Callable[..., ChatModel]


def ask(chat: ChatModel, text: str) -> Any:
    (outcome,) = chat.replies([request(text)])
    return outcome.values[0]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("quirk", QUIRKS)
def test_an_answer_is_read_in_each_form(quirk: str, stream: bool, open_model: Open) -> None:
    with Server(answer=words_of_text, quirks=[quirk]) as server:
        chat = open_model(server, stream=stream)
        assert ask(chat, "a b") == ["a", "b"]
        assert ask(chat, "c") == ["c"]
        assert len(server.requests) == 2


@pytest.mark.parametrize("quirk", QUIRKS)
def test_an_error_is_read_in_each_form(quirk: str, open_model: Open) -> None:
    faults = Faults(rate=1, kinds=["no_json_schema"])
    with Server(answer=words_of_text, quirks=[quirk], faults=faults) as server:
        assert ask(open_model(server), "a b") == ["a", "b"]
        assert len(server.requests) == 2


def test_a_server_that_does_not_stream_is_understood(open_model: Open) -> None:
    faults = Faults(rate=1, kinds=["ignores:stream"])
    with Server(answer=words_of_text, faults=faults) as server:
        assert ask(open_model(server, stream=True), "a b") == ["a", "b"]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_followed_with_the_same_request(status: int, open_model: Open) -> None:
    with Server(answer=words_of_text, redirect=status, api_keys=[KEY]) as server:
        assert ask(open_model(server), "a b") == ["a", "b"]
        first, second = server.requests
    assert first.path == "/v1/chat/completions"
    assert second.path == "/openai/v1/chat/completions"
    assert second.body == first.body


@pytest.mark.parametrize("status", [302, 307])
def test_a_key_is_not_sent_to_another_server(status: int, open_model: Open) -> None:
    with (
        Server() as other,
        Server(redirect=status, redirect_to=other.origin) as server,
        pytest.raises(ModelError) as caught,
    ):
        ask(open_model(server), "a")
    said = str(caught.value)
    assert f"{server.url} redirects (HTTP {status}) to {other.origin}/openai/v1, and" in said
    assert "set base_url of this model" in said
    assert KEY not in said
    assert (len(server.requests), len(other.requests)) == (1, 0)


@pytest.mark.parametrize(
    ("old", "location", "status", "target"),
    [
        ("http://a/v1/x", "https://a/v1/x", 308, "https://a/v1/x"),
        ("https://a/v1/x", "https://a:443/y", 307, "https://a:443/y"),
        ("https://a/v1/x", "http://a/v1/x", 307, None),
        ("https://a/v1/x", "https://b/v1/x", 307, None),
        ("https://a/v1/x", "https://a:8443/v1/x", 307, None),
        ("https://a/v1/x", "/y", 303, None),
        ("https://a/v1/x", "", 307, None),
        ("https://a/v1/x", "https://[", 307, None),
    ],
)
def test_only_a_redirect_to_the_same_server_is_followed(
    old: str, location: str, status: int, target: str | None
) -> None:
    settings = ModelSettings(model="m", base_url="https://a/v1")
    llm_client = LLMClient("chat", settings, Ledger(None))
    redirect = partial(llm_client._redirect_target, status, old, location, "/x")
    if target is not None:
        assert redirect() == target
        return
    with pytest.raises(ModelError, match="set base_url"):
        redirect()


def test_a_redirect_without_an_end_is_an_error(open_model: Open) -> None:
    with Server() as server:
        server.redirect, server.redirect_to = 307, f"{server.url}/again?"
        with pytest.raises(ModelError, match="more than 5 times"):
            ask(open_model(server), "a")


def test_a_certificate_of_another_host_is_an_error_at_once(
    open_model: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(OTHER_HOST))
    client.ssl_context.cache_clear()
    try:
        with Server(certificate=OTHER_HOST) as server:
            chat = open_model(server, retry_seconds=600)
            with pytest.raises(ModelError) as caught:
                ask(chat, "a")
            assert server.requests == []
    finally:
        client.ssl_context.cache_clear()
    said = str(caught.value)
    assert f"the certificate of 127.0.0.1:{server.port} is not valid" in said
    assert "'127.0.0.1'" in said
    assert "set base_url" in said
    assert "SSL_CERT_FILE" in said


def test_a_run_is_told_of_a_certificate_before_the_first_request(tmp_path: Path) -> None:
    with Server(certificate=OTHER_HOST) as server:
        settings = ModelSettings(model="test-model", base_url=server.url)
        OPENED.append(Models({"chat": settings}, tmp_path))
        with pytest.raises(ModelError, match=r"certificate of 127\.0\.0\.1"):
            OPENED[-1].open_chat_model("chat", "step")
