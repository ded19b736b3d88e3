"""A server that sends given bytes: what the connections make of them."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Sequence

import httpx2
import pytest

from graphrag_index.llm.client import Client
from graphrag_index.llm.connections import Connections
from graphrag_index.schema.settings.models import ModelSettings

HI = gzip.compress(b"hi", mtime=0)
OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = OK + b"content-length: 2\r\n\r\nhi"
# In place of an answer: wait until the client leaves.
SILENCE = b""


class RawServer:
    """Answers each request with the next of some bytes; then `closes` or stays open."""

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
    server: RawServer, ask: Callable[[Connections], Awaitable[object]], timeout: float = 5.0
) -> object:
    async def main() -> object:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        base = httpx2.URL(f"http://127.0.0.1:{port}/v1/")
        connections = Connections(base, httpx2.create_ssl_context(), timeout)
        try:
            return await ask(connections)
        finally:
            connections.close()
            listening.close()
            await asyncio.sleep(0.01)

    return asyncio.run(main())


async def content(connections: Connections) -> bytes:
    _, _, content = await connections.post("/chat", {"x-a": "b"}, b"body")
    return content


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN,
        b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN,
        OK + b"transfer-encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
        OK + b"Content-Encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(HI)
        + HI,
    ],
)  # fmt: skip
def test_an_answer_is_read_in_all_its_forms_and_the_connection_kept(answer: bytes) -> None:
    server = RawServer([answer, answer])

    async def ask(connections: Connections) -> list[bytes]:
        return [await content(connections), await content(connections)]

    assert talk(server, ask) == [b"hi", b"hi"]
    assert server.n_connections == 1
    first, _, rest = server.requests[0].partition(b"\r\n")
    assert first == b"POST /v1/chat HTTP/1.1"
    assert rest.endswith(b"x-a: b\r\ncontent-length: 4\r\n\r\nbody")


@pytest.mark.parametrize("answer", [PLAIN, OK + b"\r\nhi", OK + b"connection: close\r\n\r\nhi"])
def test_after_a_server_has_closed_a_new_connection_is_made(answer: bytes) -> None:
    server = RawServer([answer, answer], closes=True)

    async def ask(connections: Connections) -> list[bytes]:
        first = await content(connections)
        await asyncio.sleep(0.05)
        return [first, await content(connections)]

    assert talk(server, ask) == [b"hi", b"hi"]
    assert server.n_connections == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", httpx2.RemoteProtocolError),
        (OK + b"content-length: 9\r\n\r\nhi", httpx2.RemoteProtocolError),
        (b"no HTTP at all\r\n\r\n", httpx2.RemoteProtocolError),
    ],
)
def test_half_an_answer_is_none(answer: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        talk(RawServer([answer], closes=True), content)


def test_who_hears_nothing_for_long_is_told_so() -> None:
    with pytest.raises(httpx2.ReadTimeout):
        talk(RawServer([SILENCE]), content, timeout=0.05)


def test_no_server_is_told_from_a_lost_answer() -> None:
    async def ask() -> None:
        base = httpx2.URL("http://127.0.0.1:1/v1")
        await content(Connections(base, httpx2.create_ssl_context(), 5.0))

    with pytest.raises(httpx2.ConnectError):
        asyncio.run(ask())


def test_a_call_that_is_given_up_leaves_no_connection_that_would_get_its_answer() -> None:
    server = RawServer([SILENCE, PLAIN])

    async def ask(connections: Connections) -> bytes:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(content(connections), 0.05)
        return await content(connections)

    assert talk(server, ask) == b"hi"
    assert server.n_connections == 2


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirection_is_followed(method: str) -> None:
    there = b"HTTP/1.1 307 There\r\nlocation: /v1/there\r\ncontent-length: 0\r\n\r\n"
    answer = OK + b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    server = RawServer([there, there, answer])

    async def main() -> int:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        client = Client(ModelSettings(model="m", base_url=f"http://127.0.0.1:{port}/v1"))
        try:
            get = method == "GET"
            return (await (client.get("/chat") if get else client.post("/chat", {}))).status
        finally:
            await client.close()
            listening.close()
            await asyncio.sleep(0.01)

    assert asyncio.run(main()) == 200
    assert server.requests[0].startswith(f"{method} /v1/chat ".encode())
    assert server.requests[-1].startswith(f"{method} /v1/there ".encode())
