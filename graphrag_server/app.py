"""The application: its routes, its OpenAPI document, and the indexes that it opens.

The routes of the whole server are here: the explorer, health, readiness and metrics.
"""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

import graphrag_index
from graphrag_evaluation.report.evaluation_page import read_frame
from graphrag_index.errors import GraphRAGError
from graphrag_index.export import explorer_page
from graphrag_server.access import AccessControl, CurrentCaller, OriginGuard, require_scope
from graphrag_server.asking import Asker
from graphrag_server.hosted_index import HostedIndex
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
_ERROR_SHAPES: dict[str, ErrorShape] = {
    "/v1/chat/": openai_error,
    "/v1/models": openai_error,
    "/api/": ollama_error,
}
# Clients of other protocols, browsers and probes may add parameters of their own.
TOLERANT_ROUTERS = (operation, *_PROTOCOLS)
ROUTERS = (
    *(indexes.router, ask.router, entities.router, communities.router, documents.router),
    *(graph.router, indexes.version_router, graph.map_router, operation),
    *(files.router, jobs.router, resolutions.router, indexes.evaluation_router),
    *_PROTOCOLS,
)


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
        # The name of a function is the stable name of an operation for clients.
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
    app.add_middleware(RequestRecorder, metrics=app.state.metrics, settings=settings)
    strict = [Depends(refuse_unknown_parameters)]
    for router in ROUTERS:
        is_tolerant = any(router is tolerant for tolerant in TOLERANT_ROUTERS)
        app.include_router(router, dependencies=[] if is_tolerant else strict)
    app.state.agents = _add_agents(app)
    return app


def _add_agents(app: FastAPI) -> "AgentEndpoint | None":
    """Serve agents at `/mcp` if the package `mcp` is installed."""
    if find_spec("mcp") is None:
        return None
    from graphrag_server.mcp_server import PATH, AgentEndpoint

    endpoint = AgentEndpoint(app)
    app.router.routes.append(Route(PATH, endpoint))
    return endpoint


@operation.get("/health")
async def read_health() -> dict[str, str]:
    """Say that the server answers. No key is needed, and nothing else is told."""
    return {"status": "ok"}


@operation.get("/ready")
def read_readiness(request: Request) -> dict[str, str]:
    """Open all indexes, and say that the server can answer questions; else reply with 503.

    An index that has not been built yet is ready for its first documents.
    """
    try:
        for index in request.app.state.indexes.values():
            _open_version(index)
    except GraphRAGError as error:
        # Nobody was identified, so the reply does not tell which index, nor where.
        logger.error("%s", error)
        raise RequestError(
            503, "not_ready", "An index cannot be opened; the log has the reason."
        ) from None
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
