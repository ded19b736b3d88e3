"""HTTP/1.1 with keep-alive over asyncio, with faults of the connection."""

import asyncio
import gzip
import json
from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote

from tests.model_server.chat import Json, pieces
from tests.model_server.errors import HTML

# Behaviours of servers and proxies that a client must bear: compressed bodies, a connection for
# each answer, HTTP/1.0, and a byte-order mark before the body.
QUIRKS = ("gzip", "close", "http_1_0", "bom")
REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(slots=True)
class Request:
    """One request; the names of its headers are in lower case."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


class Connection(asyncio.Protocol):
    """A connection whose requests `serve` answers through the methods below."""

    def __init__(
        self,
        serve: Callable[[Request, "Connection"], Awaitable[None]],
        opened: "set[Connection]",
        quirks: Collection[str],
    ) -> None:
        self.serve, self.opened, self.quirks = serve, opened, quirks
        self.buffer = bytearray()
        self.head: Request | None = None
        self.length = 0
        self.task: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport
        # Called with the status just before the last of an answer is written.
        self.before_answer: Callable[[int], None] = lambda status: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.opened.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self.opened.discard(self)
        if self.task:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self._next_request()

    def _next_request(self, done: "asyncio.Task[None] | None" = None) -> None:
        if done:
            self.task = None
            if not done.cancelled() and (error := done.exception()):
                self.close()
                raise error
        if self.task or self.transport.is_closing():
            return
        if not self.head:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self.head = _head(self.buffer[:end].decode("latin-1"))
            self.length = int(self.head.headers.get("content-length", 0))
            del self.buffer[: end + 4]
            if "transfer-encoding" in self.head.headers:
                self.send(411, b"")
                self.close()
                return
        if len(self.buffer) >= self.length:
            request, self.head = self.head, None
            request.body = bytes(self.buffer[: self.length])
            del self.buffer[: self.length]
            self.task = asyncio.get_running_loop().create_task(self._serve(request))
            self.task.add_done_callback(self._next_request)

    async def _serve(self, request: Request) -> None:
        await self.serve(request, self)
        if request.headers.get("connection", "").lower() == "close":
            self.close()

    def send(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        *,
        content_type: str = "application/json",
        cut_at: int | None = None,
    ) -> None:
        """Send an answer in one write; `cut_at` truncates the body below its stated length."""
        if "bom" in self.quirks:
            body = BOM_UTF8 + body
        headers = dict(headers or {})
        if "gzip" in self.quirks:
            body = gzip.compress(body)
            headers["content-encoding"] = "gzip"
        fields = {"content-type": content_type, "content-length": str(len(body)), **headers}
        self.before_answer(status)
        self.transport.write(self._start(status, fields) + body[:cut_at])
        self._close_after_answer()

    def start_stream(self, headers: dict[str, str]) -> None:
        """Begin an answer of server-sent events, sent in chunks as they come."""
        fields = {"content-type": "text/event-stream; charset=utf-8"}
        if "http_1_0" not in self.quirks:
            fields["transfer-encoding"] = "chunked"
        self.transport.write(self._start(200, fields | headers))
        if "bom" in self.quirks:
            self.send_chunk(BOM_UTF8)

    def send_chunk(self, data: bytes) -> None:
        """Send one piece of a stream; an empty one ends it."""
        if not data:
            self.before_answer(200)
        if "http_1_0" in self.quirks:
            # Without chunks, the end of the connection ends the answer.
            self.transport.write(data)
        else:
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        if not data:
            self._close_after_answer()

    def _start(self, status: int, headers: dict[str, str]) -> bytes:
        """Return the status line and the headers of an answer."""
        version = "1.0" if "http_1_0" in self.quirks else "1.1"
        if "close" in self.quirks:
            headers = headers | {"connection": "close"}
        lines = [f"HTTP/{version} {status} {REASONS.get(status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _close_after_answer(self) -> None:
        if {"close", "http_1_0"} & set(self.quirks):
            self.close()

    def close(self) -> None:
        self.transport.close()


def _head(text: str) -> Request:
    first, *lines = text.split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    path, _, query = target.partition("?")
    return Request(method, unquote(path), query, headers, b"")


async def forever() -> None:
    """Wait until the client leaves or the server stops, which cancels this."""
    await asyncio.Event().wait()


def send_answer(
    connection: Connection,
    status: int,
    answer: Json | list[Json] | bytes,
    headers: dict[str, str],
    fault: str | None = None,
) -> None:
    """Send an answer whole, as far as the fault allows."""
    if fault == "502_html":
        connection.send(status, HTML, headers, content_type="text/html")
        return
    if fault and fault.startswith("silent:"):
        connection.send(status, b"Internal Server Error", headers, content_type="text/plain")
        return
    content_type = "application/octet-stream"
    if not isinstance(answer, bytes):
        content_type = "application/json"
        answer = json.dumps(answer, ensure_ascii=False).encode()
    if fault == "truncated_json":
        answer = answer[: len(answer) // 2]
    half = len(answer) // 2 if fault == "close_half" else None
    connection.send(status, answer, headers, content_type=content_type, cut_at=half)
    if fault == "close_half":
        connection.close()


async def send_stream(
    connection: Connection,
    completion: Json,
    headers: dict[str, str],
    fault: str | None,
    *,
    with_usage: bool,
    chunk_delay: float,
) -> None:
    """Send a completion as server-sent events."""
    events = [
        b"data: %b\n\n" % json.dumps(piece, ensure_ascii=False).encode()
        for piece in pieces(completion, with_usage=with_usage)
    ]
    events.append(b"data: [DONE]\n\n")
    if fault in ("stream_hang", "close_half", "truncated_json"):
        events = events[: (len(events) + 1) // 2]
    if fault == "truncated_json":
        events.append(events.pop()[:-20] + b"\n\n")
    if fault == "close_done":
        events.pop()
    connection.start_stream(headers)
    if chunk_delay:
        for event in events:
            connection.send_chunk(event)
            await asyncio.sleep(chunk_delay)
    else:
        connection.send_chunk(b"".join(events))
    if fault == "stream_hang":
        await forever()
    if fault in ("close_half", "close_done"):
        connection.close()
    else:
        connection.send_chunk(b"")
