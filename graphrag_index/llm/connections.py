"""Connections to one server that answers at once: HTTP/1.1 on asyncio, read by h11.

All calls are made in one thread. A client for every purpose takes five times as long for each,
which with many at once is longer than there is.
"""

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from time import monotonic

import h11
import httpx2

# Longer unused, a connection may be closed by the server just when the next request is sent.
MOST_IDLE_SECONDS = 5.0
MOST_CONNECT_SECONDS = 30.0
MOST_HEAD_BYTES = 100_000
# Before the other of a host's addresses, IPv4 or IPv6, is tried as well.
OTHER_ADDRESS_SECONDS = 0.25

Answered = tuple[int, dict[str, str], bytes]


class Connections:
    """Keeps the connections to one server open between requests. Lives in one event loop."""

    def __init__(self, base: httpx2.URL, context: ssl.SSLContext | None, timeout: float) -> None:
        self._base, self._timeout = base, timeout
        self._path = base.raw_path.rstrip(b"/")
        self._context = context if base.scheme == "https" else None
        self._idle: list[_Connection] = []

    async def post(self, path: str, headers: Mapping[str, str], content: bytes) -> Answered:
        """Post to a path below the base address.

        Returns
        -------
        status, headers, content
            The names of the headers are in lower case.

        Raises
        ------
        httpx2.TransportError
            There is no answer.
        """
        length = ("content-length", str(len(content)))
        return await self._ask("POST", path, [*headers.items(), length], content)

    async def get(self, path: str, headers: Mapping[str, str]) -> Answered:
        """Get what lies at a path below the base address; as `post` otherwise."""
        return await self._ask("GET", path, headers.items())

    async def _ask(
        self, method: str, path: str, headers: Iterable[tuple[str, str]], content: bytes = b""
    ) -> Answered:
        fields = [("host", self._base.netloc.decode()), *headers]
        try:
            request = h11.Request(method=method, target=self._path + path.encode(), headers=fields)
        except h11.LocalProtocolError as error:
            raise httpx2.LocalProtocolError(str(error)) from None
        connection = self._take() or await self._open()
        try:
            answered = await connection.ask(request, content, self._timeout)
        except BaseException:
            connection.close()
            raise
        if connection.is_ready():
            self._idle.append(connection)
        return answered

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _take(self) -> "_Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh():
                return connection
            connection.close()
        return None

    async def _open(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        default_port = 80 if self._context is None else 443
        seconds = min(MOST_CONNECT_SECONDS, self._timeout)
        try:
            async with asyncio.timeout(seconds):
                _, connection = await loop.create_connection(
                    _Connection,
                    self._base.raw_host.decode(),
                    self._base.port or default_port,
                    ssl=self._context,
                    happy_eyeballs_delay=OTHER_ADDRESS_SECONDS,
                )
        except TimeoutError:
            raise httpx2.ConnectError(f"no connection within {seconds:g} s") from None
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error
        return connection


class _Connection(asyncio.Protocol):
    """One connection: asked, it gives the answer, and may be asked again."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, MOST_HEAD_BYTES)
        self._waiting: asyncio.Future[None] | None = None
        self._deadline: asyncio.Timeout | None = None
        self._unused_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    async def ask(self, request: h11.Request, content: bytes, timeout: float) -> Answered:
        """Send a request, and wait for its answer: so many seconds for each part of it."""
        self._waiting = asyncio.get_running_loop().create_future()
        self._head: h11.Response | None = None
        self._parts: list[bytes] = []
        events = (request, h11.Data(content), h11.EndOfMessage())
        # In one piece: two would be two packets and two system calls.
        self._transport.write(b"".join(self._http.send(event) or b"" for event in events))
        self._seconds = timeout
        try:
            async with asyncio.timeout(timeout) as self._deadline:
                await self._waiting
        except TimeoutError:
            raise httpx2.ReadTimeout("no answer in time") from None
        finally:
            self._waiting = self._deadline = None
        assert self._head is not None
        headers = {name.decode(): value.decode("latin-1") for name, value in self._head.headers}
        content = b"".join(self._parts)
        self._parts.clear()
        if "content-encoding" in headers:
            content = httpx2.Response(200, headers=headers, content=content).content
        return self._head.status_code, headers, content

    def is_ready(self) -> bool:
        """Tell whether the connection can be used again, and make it ready for that."""
        if self._transport.is_closing() or self._http.their_state is not h11.DONE:
            self.close()
            return False
        self._http.start_next_cycle()
        self._unused_since = monotonic()
        return True

    def is_fresh(self) -> bool:
        is_old = monotonic() - self._unused_since > MOST_IDLE_SECONDS
        return not is_old and not self._transport.is_closing()

    def close(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._waiting is None or self._waiting.done():
            # What nobody has asked for can only say that the server will close.
            self.close()
            return
        if self._deadline is not None:
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._seconds)
        self._http.receive_data(data)
        self._read()

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiting is None or self._waiting.done():
            return
        if error is None and self._head is not None:
            # A body of no stated length ends with its connection.
            self._http.receive_data(b"")
            self._read()
        if not self._waiting.done():
            why = f": {error}" if error else ""
            self._waiting.set_exception(
                httpx2.RemoteProtocolError(f"the server closed the connection{why}")
            )

    def _read(self) -> None:
        assert self._waiting is not None
        try:
            event = self._http.next_event()
            while isinstance(event, h11.InformationalResponse | h11.Response | h11.Data):
                if isinstance(event, h11.Response):
                    self._head = event
                elif isinstance(event, h11.Data):
                    self._parts.append(bytes(event.data))
                event = self._http.next_event()
            if isinstance(event, h11.EndOfMessage):
                self._waiting.set_result(None)
        except h11.RemoteProtocolError as error:
            self._waiting.set_exception(httpx2.RemoteProtocolError(str(error)))
