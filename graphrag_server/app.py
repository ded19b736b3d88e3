"""The application: routes, OpenAPI document, the indexes that it opens, and its start.

The routes of the whole server are here: the explorer, health, readiness and metrics.
"""

import asyncio
import json
import logging
import math
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

import graphrag_index
from graphrag_evaluation.report.evaluation_page import read_frame
from graphrag_index.errors import GraphRAGError, SettingsError
from graphrag_index.export import explorer_page
from graphrag_index.pipeline.workflow import find_asking_steps, load_workflow
from graphrag_server.access import AccessControl, CurrentCaller, OriginGuard, require_scope
from graphrag_server.asking import Asker
from graphrag_server.hosted_index import HostedIndex, name_paths
from graphrag_server.jobs.job_runner import JobRunner
from graphrag_server.keys import Scope
from graphrag_server.problems import (
    MEDIA_TYPE,
    ErrorShape,
    ProblemDetails,
    RequestError,
    add_problem_handlers,
    refuse_unknown_parameters,
)
from graphrag_server.request_recorder import (
    CONTENT_TYPE,
    Metrics,
    QuestionRecorder,
    RequestRecorder,
    Sample,
)
from graphrag_server.routes import (
    ask,
    chat_protocols,
    communities,
    documents,
    entities,
    files,
    graph,
    indexes,
    jobs,
    queries,
    resolutions,
)
from graphrag_server.routes.chat_protocols import ollama_error, openai_error
from graphrag_server.server_settings import ServerSettings
from graphrag_server.tracing import start_tracing

if TYPE_CHECKING:
    from graphrag_server.mcp_server import AgentEndpoint

logger = logging.getLogger(__name__)
# The description of every error reply; `DocumentedApp` adds the schema.
PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "Problem details (RFC 9457).",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    }
}
_SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
operation = APIRouter(tags=["operation"])
_PROTOCOLS = (chat_protocols.router, chat_protocols.ollama)
# The shapes of errors of other protocols, by the beginnings of the paths.
_ERROR_SHAPES: dict[str, ErrorShape | None] = {
    "/v1/indexes": None,
    "/v1/": openai_error,
    "/api/": ollama_error,
}
# Clients of other protocols, browsers and probes may add parameters of their own.
TOLERANT_ROUTERS = (operation, *_PROTOCOLS)
ROUTERS = (
    *(indexes.router, ask.router, entities.router, communities.router, documents.router),
    *(queries.router, graph.router, indexes.version_router, graph.map_router, operation),
    *(files.router, jobs.router, resolutions.router, indexes.evaluation_router),
    *_PROTOCOLS,
)
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


class DocumentedApp(FastAPI):
    """An application whose OpenAPI document has the errors and the keys of this server."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document. It is built at the first call."""
        if self.openapi_schema is None:
            document = super().openapi()
            components = document.setdefault("components", {})
            schemas = components.setdefault("schemas", {})
            schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
            components["schemas"] = dict(sorted(schemas.items()))
            components["securitySchemes"] = _SECURITY_SCHEMES
            # Each key alone is enough, and a server without keys needs none.
            document["security"] = [{name: []} for name in _SECURITY_SCHEMES] + [{}]
            self.openapi_schema = document
        return self.openapi_schema


def create_app(settings: ServerSettings) -> FastAPI:
    """Build the application of a server. Raises SettingsError if a project cannot be opened."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        stop_tracing = start_tracing(settings.trace_contents)
        app.state.jobs.start()
        try:
            async with app.state.agents.run() if app.state.agents else nullcontext():
                yield
        finally:
            await run_in_threadpool(app.state.jobs.stop)
            app.state.asker.close()
            for index in app.state.indexes.values():
                index.close()
            app.state.access.keys.close()
            if stop_tracing is not None:
                stop_tracing()

    app = DocumentedApp(
        title="graphrag-index",
        version=graphrag_index.__version__,
        lifespan=lifespan,
        # The pages of FastAPI load their scripts from another host.
        docs_url=None,
        redoc_url=None,
        # A redirection would repeat the Host header, which the client chooses.
        redirect_slashes=False,
        responses=PROBLEM_RESPONSES,
        # Use the name of a route's function as operationId: generated clients rely on it.
        generate_unique_id_function=lambda route: route.name,
        # Traces of its own have a span for each question; those of FastAPI show whole queries.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.settings = settings
    app.state.metrics = Metrics()
    app.state.access = AccessControl(settings)
    app.state.indexes = {name: HostedIndex(name, root) for name, root in settings.indexes.items()}
    app.state.jobs = JobRunner(app.state.indexes.values())
    recorder = QuestionRecorder(app.state.access.keys, app.state.metrics, settings.log_questions)
    limits = settings.max_concurrent_questions, settings.max_waiting_questions
    app.state.asker = Asker(*limits, recorder.admit, recorder.record)
    add_problem_handlers(app, _ERROR_SHAPES)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=settings.allowed_origins,
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["*"],
    )
    app.add_middleware(OriginGuard, access=app.state.access)
    roots = name_paths(app.state.indexes.values())
    app.add_middleware(RequestRecorder, metrics=app.state.metrics, settings=settings, roots=roots)
    strict = [Depends(refuse_unknown_parameters)]
    for router in ROUTERS:
        is_tolerant = any(router is tolerant for tolerant in TOLERANT_ROUTERS)
        app.include_router(router, dependencies=[] if is_tolerant else strict)
    app.state.agents = _add_agents(app)
    return app


def _add_agents(app: FastAPI) -> "AgentEndpoint | None":
    """Serve agents at `/mcp`; without the package `mcp`, say there which extra is missing."""
    if find_spec("mcp") is None:
        app.router.routes.append(Route("/mcp", _refuse_agents, methods=["GET", "POST", "DELETE"]))
        return None
    from graphrag_server.mcp_server import PATH, AgentEndpoint

    endpoint = AgentEndpoint(app)
    app.router.routes.append(Route(PATH, endpoint))
    return endpoint


def _refuse_agents(request: Request) -> Response:
    text = 'This server lacks the package for agents: pip install "graphrag-index[mcp]".'
    raise RequestError(501, "extra_missing", text)


@operation.get("/health")
async def read_health() -> dict[str, str]:
    """Say that the server answers. No key is needed, and nothing else is told."""
    return {"status": "ok"}


@operation.get("/ready")
def read_readiness(request: Request) -> dict[str, str]:
    """Open all indexes, and say that the server can answer questions; else reply with 503."""
    # The caller needs no key here, so the reply names neither the index nor its path.
    try:
        versions = [_open_version(index) for index in request.app.state.indexes.values()]
    except GraphRAGError as error:
        logger.error("%s", error)
        raise RequestError(
            503, "not_ready", "An index cannot be opened; the log has the reason."
        ) from None
    if not all(versions):
        raise RequestError(503, "not_ready", "An index has not been built yet: start a run.")
    return {"status": "ready"}


@operation.get("/metrics", response_class=PlainTextResponse)
def read_metrics(request: Request, caller: CurrentCaller) -> PlainTextResponse:
    """Return the metrics of the server in Prometheus' text format (scope admin)."""
    require_scope(caller, Scope.ADMIN)
    metrics: Metrics = request.app.state.metrics
    return PlainTextResponse(metrics.as_text(_gauges(request)), media_type=CONTENT_TYPE)


def _gauges(request: Request) -> Iterator[Sample]:
    asker: Asker = request.app.state.asker
    jobs: JobRunner = request.app.state.jobs
    n_running = min(asker.n_open, request.app.state.settings.max_concurrent_questions)
    yield Sample("questions_running", n_running, {})
    yield Sample("questions_waiting", asker.n_open - n_running, {})
    for index in request.app.state.indexes.values():
        # A damaged index has no version; the metrics of the others are still wanted.
        with suppress(GraphRAGError):
            yield Sample("index_version", _open_version(index), {"index": index.name})
        # A disk that is full or read-only has no queue of jobs.
        with suppress(RequestError):
            for state, count in jobs.store(index.name).counts().items():
                yield Sample("jobs", count, {"index": index.name, "state": state})
    yield Sample("build_info", 1, {"version": graphrag_index.__version__})


def _open_version(index: HostedIndex) -> int:
    """Return the current version of an index; 0 if it has not been built yet."""
    try:
        return index.open().store.version.number
    except RequestError:
        return 0


@operation.get("/", include_in_schema=False)
def read_explorer() -> HTMLResponse:
    """Return the page of the explorer. It holds no data, so it needs no key."""
    page, policy = _read_page()
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


@cache
def _read_page() -> tuple[str, str]:
    """Return the page, and a security policy that allows only its own scripts and styles.

    The policy also allows those of the report of an evaluation: the explorer opens a report,
    which it must fetch with its key, in a new tab, and the tab inherits the policy.
    """
    page = explorer_page.read_explorer()
    policy = explorer_page.security_policy(page + read_frame(), connections="'self'")
    return page, f"{policy}; frame-ancestors 'none'"


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
