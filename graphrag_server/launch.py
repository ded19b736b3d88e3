"""Start a server: check its port, print its address, write its log, limit slow clients."""

import asyncio
import json
import logging
import math
import socket
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from graphrag_index.errors import SettingsError
from graphrag_index.pipeline.workflow import find_asking_steps, load_workflow
from graphrag_server.app import create_app
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.jobs.job_runner import JobRunner
from graphrag_server.problems import RequestError
from graphrag_server.server_settings import ServerSettings

# Seconds in which streams can end after they were told to.
_LAST_SECONDS = 5
# Attributes that every record has; all others are fields of this program.
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# Seconds that a new connection may take to send its first headers. uvicorn limits the time
# between requests, but not the time before the first one.
HEADER_SECONDS = 20.0
# Seconds that a client may leave the whole buffer of a reply unread.
UNREAD_SECONDS = 60.0
# Maximum number of open connections: fewer than the 1,024 files that a process usually may open.
MAX_CONNECTIONS = 800


def run_server(settings: ServerSettings) -> None:
    """Serve until Ctrl-C or SIGTERM. Raises SettingsError if the address cannot be used."""
    app = create_app(settings)
    app.state.access.check_exposure()
    with bind(settings.host, settings.port) as listener:
        start_log()
        indexes = app.state.indexes.values()
        remarks = [start_first_run(index, app.state.jobs) for index in indexes]
        print(f"Open {_address(settings, listener)} in a browser.", flush=True)
        for index, remark in zip(indexes, remarks, strict=True):
            print(f"  {quote(index.name)}: {index.root}{remark}", flush=True)
        make_server(app, settings.grace_seconds).run(sockets=[listener])


def start_first_run(index: HostedIndex, jobs: JobRunner) -> str:
    """Queue a run for an index that has not been built, if it costs nothing; return a remark."""
    if index.store.read_pointer() is not None:
        return ""
    workflow = load_workflow(index.root, index.settings.workflow)
    if find_asking_steps(workflow, index.settings):
        # A run would cost money: the user has to want it.
        return " (not built yet: start a run)"
    jobs.store(index.name).create_first()
    return " (being built now)"


def make_server(app: FastAPI, grace_seconds: float) -> uvicorn.Server:
    """Return a server that stops running questions some seconds after it was told to stop."""
    config = uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(grace_seconds) + _LAST_SECONDS,
    )
    return _Server(config, app, grace_seconds)


class _Server(uvicorn.Server):
    """A server that lets running questions end for some time, and then tells them to stop.

    Streams of the events of jobs end at once: their clients can read on from the next server.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI, grace_seconds: float) -> None:
        super().__init__(config)
        self.app, self.grace_seconds = app, grace_seconds

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.app.state.jobs.is_stopping = True
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.grace_seconds, self.app.state.asker.stop)
        await super().shutdown(sockets)
        timer.cancel()


def _address(settings: ServerSettings, listener: socket.socket) -> str:
    """Return an address that a browser on this computer can open."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{listener.getsockname()[1]}{settings.root_path}/"


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises SettingsError if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # asyncio sends small replies at once (TCP_NODELAY) only if the protocol is named here.
        # Otherwise each further reply of a connection would wait 40 milliseconds.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        raise SettingsError(
            f"The server cannot listen on {host}, port {port} "
            f"({error.strerror}): choose another with --port."
        ) from None
    listener.listen(512)
    return listener


class JsonFormatter(logging.Formatter):
    """Formatter that writes a record, and its extra fields that are not None, as one line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = vars(record).items()
        line |= {name: value for name, value in fields if name not in _USUAL and value is not None}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        # ASCII, so that no character of a client can change a terminal or begin a line.
        return json.dumps(line, default=str)


def start_log() -> None:
    """Write the log of all loggers to standard error; requests are logged at the level INFO."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("graphrag_server").setLevel(logging.INFO)


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
