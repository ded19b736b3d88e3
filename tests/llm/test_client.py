"""The client: retries, limits, redirects, certificates, and the forms of a server's answers."""

import asyncio
import gc
import gzip
import json
import re
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import ModelError
from graphrag_index.llm import client, retries
from graphrag_index.llm.chat_model import ChatModel, LoopThread
from graphrag_index.llm.client import LLMClient, proxy_for
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.limits import RateLimiter, reset_after
from graphrag_index.llm.registry import Models
from graphrag_index.llm.request import Usage
from graphrag_index.llm.retries import MAX_FAILING, RejectedError, RetryError
from graphrag_index.schema.settings.models import ModelSettings
from tests.fixtures.chat_requests import KEY, request, words_of_text
from tests.llm.conftest import OPENED
from tests.model_server import OTHER_HOST, Faults, Server
from tests.model_server.connection import QUIRKS

Ask = Callable[[], Awaitable[tuple[str, Usage]]]


def outcomes(
    *asks: Ask, retry_seconds: float = 60.0, once_answered: bool = True
) -> list[str | BaseException]:
    """Make concurrent calls, and return the result or error of each."""

    async def call(ledger: Ledger) -> list[str | BaseException]:
        settings = ModelSettings(model="m", concurrency=64, retry_seconds=retry_seconds)
        client = LLMClient("chat", settings, ledger)
        client.calls.first_delay = 0.01
        if once_answered:
            await client.calls.call_with_retries(answering(), 10, 10)
        calls = [client.calls.call_with_retries(ask, 10, 10) for ask in asks]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    with closing(Ledger(None)) as ledger:
        return asyncio.run(call(ledger))


def answering(after: int = 0, error: Exception | None = None) -> Ask:
    """A call that fails so many times before it succeeds."""
    times = 0

    async def ask() -> tuple[str, Usage]:
        nonlocal times
        times += 1
        if times <= after and error is not None:
            raise error
        await asyncio.sleep(0.01)
        return "answer", Usage()

    return ask


DENIED = ModelError("does not accept the key")
ALWAYS = 1_000_000


def test_a_denial_among_answers_is_retried() -> None:
    assert outcomes(answering(2, DENIED), *(answering() for _ in range(3))) == ["answer"] * 4


def test_a_request_always_denied_among_answers_is_rejected() -> None:
    denied, *others = outcomes(answering(ALWAYS, DENIED), *(answering() for _ in range(3)))
    assert isinstance(denied, RejectedError)
    assert others == ["answer"] * 3


def test_a_revoked_key_stops_all_with_one_message() -> None:
    found = outcomes(*(answering(ALWAYS, DENIED) for _ in range(20)))
    assert {str(error) for error in found} == {str(DENIED)}


def test_a_wrong_key_is_tried_three_times() -> None:
    n_sent = 0

    async def ask() -> tuple[str, Usage]:
        nonlocal n_sent
        n_sent += 1
        raise DENIED

    found = outcomes(*(ask for _ in range(20)), once_answered=False)
    assert {str(error) for error in found} == {str(DENIED)}
    assert n_sent == 3


def test_an_outage_rejects_no_request() -> None:
    # As many failures in a row as would make one request a faulty one.
    down = [answering(7, RetryError("HTTP 503")) for _ in range(MAX_FAILING + 1)]
    assert outcomes(*down, answering()) == ["answer"] * (MAX_FAILING + 2)


def test_a_request_that_fails_alone_at_the_end_is_rejected() -> None:
    failing, other = outcomes(answering(ALWAYS, RetryError("HTTP 500")), answering())
    assert isinstance(failing, RejectedError)
    assert str(failing) == "failed 6 times: HTTP 500"
    assert other == "answer"


def test_a_lasting_outage_ends_the_run() -> None:
    (error,) = outcomes(answering(ALWAYS, RetryError("HTTP 503")), retry_seconds=0.1)
    assert isinstance(error, ModelError)
    assert "has not answered for 0.1 s (HTTP 503)" in str(error)


def test_a_long_outage_is_mentioned_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "MAX_SILENT_SECONDS", 0.0)
    down = [answering(4, RetryError("HTTP 503")) for _ in range(3)]
    assert outcomes(*down) == ["answer"] * 3
    (record,) = caplog.records
    assert "Model chat has not answered for 0 s (HTTP 503)." in record.getMessage()


def test_a_used_up_rate_limit_is_waited_for() -> None:
    spent = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2s"}
    tokens = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}
    assert reset_after(spent) == 2
    assert reset_after(tokens) == pytest.approx(0.12)
    assert reset_after({**spent, **tokens}) == 2
    assert reset_after({**spent, "x-ratelimit-remaining-requests": "1"}) is None
    assert reset_after({"x-ratelimit-remaining-tokens": "0"}) is None

    async def enter() -> float:
        pace = RateLimiter(ModelSettings(model="m", concurrency=4))
        pace.note_success(tokens)
        began = time.monotonic()
        async with pace.wait_for_slot(1):
            return time.monotonic() - began

    assert asyncio.run(enter()) >= 0.1


BODY = b'{"data": [{"index": 0, "embedding": [1.0, 2.0]}]}'
ZIPPED = gzip.compress(BODY, mtime=0)
OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = OK + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
# In place of an answer: wait until the client leaves.
SILENCE = b""


class RawServer:
    """A server that answers each request with given bytes, then `closes` or stays open."""

    def __init__(self, answers: Sequence[bytes], closes: bool = False) -> None:
        self._answers, self._closes = list(answers), closes
        self.requests: list[bytes] = []
        self.n_connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.n_connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                self.requests.append(head + await reader.readexactly(int(length or 0)))
                answer = self._answers.pop(0)
                # In pieces, so that each part of an answer is seen to arrive by itself.
                for start in range(0, len(answer), 7):
                    writer.write(answer[start : start + 7])
                    await writer.drain()
                    await asyncio.sleep(0)
                if self._closes:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


def talk(
    server: RawServer, ask: Callable[[LLMClient], Awaitable[object]], timeout: float = 5.0
) -> object:
    """Run some calls of a client against a server."""

    async def main() -> object:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        settings = ModelSettings(
            model="m", base_url=f"http://127.0.0.1:{port}/v1/", timeout=timeout, api_key="key"
        )
        with closing(Ledger(None)) as ledger:
            client = LLMClient("chat", settings, ledger)
            try:
                return await ask(client)
            finally:
                await client.close()
                listening.close()
                await asyncio.sleep(0.01)

    return asyncio.run(main())


async def embed(client: LLMClient) -> list[float]:
    (vector,), _ = await client.request_vectors(["text"])
    return vector


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN,
        b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN,
        OK + b"transfer-encoding: chunked\r\n\r\n"
        + b"8\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (BODY[:8], len(BODY) - 8, BODY[8:]),
        OK + b"Content-Encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(ZIPPED)
        + ZIPPED,
    ],
)  # fmt: skip
def test_a_response_is_read_in_all_its_forms_and_the_connection_kept(answer: bytes) -> None:
    server = RawServer([answer, answer])

    async def ask(client: LLMClient) -> list[list[float]]:
        return [await embed(client), await embed(client)]

    assert talk(server, ask) == [[1.0, 2.0], [1.0, 2.0]]
    assert server.n_connections == 1
    first, _, rest = server.requests[0].partition(b"\r\n")
    assert first == b"POST /v1/embeddings HTTP/1.1"
    assert json.loads(rest.partition(b"\r\n\r\n")[2])["input"] == ["text"]
    assert b"authorization: bearer key" in rest.lower()


@pytest.mark.parametrize(
    "answer", [PLAIN, OK + b"\r\n" + BODY, OK + b"connection: close\r\n\r\n" + BODY]
)
def test_a_new_connection_follows_one_that_the_server_closed(answer: bytes) -> None:
    server = RawServer([answer, answer], closes=True)

    async def ask(client: LLMClient) -> list[list[float]]:
        first = await embed(client)
        await asyncio.sleep(0.05)
        return [first, await embed(client)]

    assert talk(server, ask) == [[1.0, 2.0], [1.0, 2.0]]
    assert server.n_connections == 2


@pytest.mark.parametrize(
    "answer", [b"", OK + b"content-length: 9\r\n\r\nhi", b"no HTTP at all\r\n\r\n"]
)
def test_half_a_response_is_a_lost_one(answer: bytes) -> None:
    with pytest.raises(RetryError) as caught:
        talk(RawServer([answer], closes=True), embed)
    assert caught.value.lost


# White space before an answer that never comes keeps the connection alive.
BLANKS = OK + b"content-length: 9000000\r\n\r\n" + b" " * 9_000_000


@pytest.mark.parametrize("answer", [SILENCE, BLANKS])
def test_a_server_that_sends_no_answer_is_a_timeout(answer: bytes) -> None:
    with pytest.raises(RetryError, match=r"no answer within 0\.05 s") as caught:
        talk(RawServer([answer]), embed, timeout=0.05)
    assert caught.value.lost


def test_a_failed_connection_is_no_lost_response() -> None:
    async def ask() -> None:
        settings = ModelSettings(model="m", base_url="http://127.0.0.1:1/v1")
        with closing(Ledger(None)) as ledger:
            client = LLMClient("chat", settings, ledger)
            try:
                await embed(client)
            finally:
                await client.close()

    with pytest.raises(RetryError) as caught:
        asyncio.run(ask())
    assert not caught.value.lost


def test_a_cancelled_call_leaves_no_connection_that_would_get_its_response() -> None:
    server = RawServer([SILENCE, PLAIN])

    async def ask(client: LLMClient) -> list[float]:
        call = asyncio.ensure_future(embed(client))
        while not server.requests:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return await embed(client)

    assert talk(server, ask) == [1.0, 2.0]
    assert server.n_connections == 2


def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("http_proxy", "proxy:3128"), ("no_proxy", "localhost")):
        monkeypatch.setenv(name, value)
    assert proxy_for("http://example.org/v1") == "http://proxy:3128"
    assert proxy_for("http://localhost:11434/v1") is None
    monkeypatch.setenv("http_proxy", "socks5://proxy:1080")
    with pytest.raises(ModelError, match="kind socks5, which is not supported"):
        proxy_for("http://example.org/v1")


def test_a_client_that_is_dropped_closes_its_connections() -> None:
    loop = LoopThread()
    with Server() as server, closing(Ledger(None)) as ledger:
        settings = ModelSettings(model="m", base_url=server.url)
        client = LLMClient("chat", settings, ledger)
        loop.run_coroutine(client.request_vectors(["text"]))
        session = client._session
        assert session is not None
        del client
        gc.collect()
        loop.run_coroutine(asyncio.sleep(0.01))
        assert session.closed
    loop.close()


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


class PlainHandler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


def test_an_address_with_tls_that_the_server_has_not_is_told(tmp_path: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), PlainHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"127.0.0.1:{server.server_port}/v1"
    OPENED.append(Models({"chat": ModelSettings(model="m", base_url=f"https://{place}")}, tmp_path))
    said = f"the server at https://{place} does not use TLS: set base_url of this model to http://"
    with pytest.raises(ModelError, match=f"{re.escape(said)}{re.escape(place)}\\.$"):
        OPENED[-1].open_chat_model("chat", "step")
    server.shutdown()
    server.server_close()


def test_a_silent_server_is_told_with_the_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_LIST_SECONDS", 0.2)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        for scheme in ("http", "https"):
            models = {"chat": ModelSettings(model="m", base_url=f"{scheme}://{address}")}
            _, reason = asyncio.run(client.find_server(models))
            assert reason == f"no server answers at {scheme}://{address} (no answer within 0.2 s)"


def test_an_address_without_v1_is_told_with_it(tmp_path: Path) -> None:
    with Server(answer=words_of_text) as server:
        root = server.url.removesuffix("/v1")
        OPENED.append(Models({"chat": ModelSettings(model="m", base_url=root)}, tmp_path))
        with pytest.raises(ModelError, match=f"set model, or base_url to {server.url} \\(HTTP 404"):
            ask(OPENED[-1].open_chat_model("chat", "step"), "a")
