"""The application: its routes, its OpenAPI document, and the indexes that it opens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fastapi import Depends, FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

import graphrag_index
from graphrag_server.access import AccessControl, OriginGuard
from graphrag_server.asking import Asker
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.jobs.job_runner import JobRunner
from graphrag_server.problems import (
    MEDIA_TYPE,
    ErrorShape,
    ProblemDetails,
    add_problem_handlers,
    refuse_unknown_parameters,
)
from graphrag_server.request_recorder import Metrics, QuestionRecorder, RequestRecorder
from graphrag_server.routes import (
    ask,
    chat_protocols,
    communities,
    documents,
    entities,
    evaluations,
    files,
    graph,
    indexes,
    jobs,
    operation,
    resolutions,
)
from graphrag_server.routes.chat_protocols import ollama_error, openai_error
from graphrag_server.server_settings import ServerSettings
from graphrag_server.tracing import start_tracing

if TYPE_CHECKING:
    from graphrag_server.agents.mcp_server import AgentEndpoint

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
_PROTOCOLS = (chat_protocols.router, chat_protocols.ollama)
# The shapes of errors of other protocols, by the beginnings of the paths.
_ERROR_SHAPES: dict[str, ErrorShape] = {
    "/v1/chat/": openai_error,
    "/v1/models": openai_error,
    "/api/": ollama_error,
}
# Clients of other protocols, browsers and probes may add parameters of their own.
TOLERANT_ROUTERS = (operation.router, *_PROTOCOLS)
ROUTERS = (
    *(indexes.router, ask.router, entities.router, communities.router, documents.router),
    *(graph.router, indexes.version_router, graph.map_router, operation.router),
    *(files.router, jobs.router, resolutions.router, evaluations.router),
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
    from graphrag_server.agents.mcp_server import PATH, AgentEndpoint

    endpoint = AgentEndpoint(app)
    app.router.routes.append(Route(PATH, endpoint))
    return endpoint
