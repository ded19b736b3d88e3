"""HTTP of the server: limits for slow clients, and errors of HTTP itself in the usual shape."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from graphrag_server.problems import RequestError

# Seconds that a new connection may take to send its first headers. uvicorn limits the time
# between requests, but not the time before the first one.
HEADER_SECONDS = 20.0
# Seconds that a client may leave the whole buffer of a reply unread.
UNREAD_SECONDS = 60.0
# Maximum number of open connections: fewer than the 1,024 files that a process usually may open.
MAX_CONNECTIONS = 800


class LimitedProtocol(H11Protocol):
    """A connection whose headers must arrive, and whose replies must be read, in time."""

    def __init__(self, *arguments: Any, **values: Any) -> None:
        super().__init__(*arguments, **values)
        self._first_request: asyncio.TimerHandle | None = None
        self._unread_reply: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            self._refuse(
                RequestError(503, "too_many_connections", "The server is busy: try again later.")
            )
        else:
            self._first_request = self.loop.call_later(HEADER_SECONDS, self._end_slow_client)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and self._first_request is not None:
            self._first_request.cancel()
            self._first_request = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_reply = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread_reply is not None:
            self._unread_reply.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._first_request, self._unread_reply):
            if timer is not None:
                timer.cancel()

    def send_400_response(self, msg: str) -> None:
        self._refuse(RequestError(400, "invalid_http", "The request is not valid HTTP/1.1."))

    def _end_slow_client(self) -> None:
        self._refuse(
            RequestError(
                408, "slow_headers", f"No request arrived within {HEADER_SECONDS:g} seconds."
            )
        )

    def _refuse(self, error: RequestError) -> None:
        """Write an error reply, and close the connection."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            # The bytes would land in the middle of the reply that is being written.
            self.transport.close()
            return
        reply = error.response()
        headers = {**reply.headers, "connection": "close", "x-content-type-options": "nosniff"}
        lines = [f"HTTP/1.1 {error.status} {error.body()['title']}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.transport.write("\r\n".join([*lines, "", ""]).encode("latin-1") + bytes(reply.body))
        self.transport.close()
