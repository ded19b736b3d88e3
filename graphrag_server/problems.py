"""Errors of the HTTP API, all in one shape: problem details (RFC 9457)."""

import errno
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from graphrag_index.errors import (
    BudgetError,
    GraphRAGError,
    InputError,
    ModelError,
    QueryError,
    SettingsError,
    TableError,
    WorkflowError,
)
from graphrag_server.tracing import current_request_id, hide_roots

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
# The status of each kind of error; the first class that fits counts.
_STATUSES: tuple[tuple[type[GraphRAGError], int], ...] = (
    (QueryError, 400),
    (SettingsError, 400),
    (InputError, 400),
    (WorkflowError, 409),
    (BudgetError, 402),
    (ModelError, 502),
    (TableError, 503),
    (GraphRAGError, 500),
)


class ProblemDetails(BaseModel):
    """The body of every error reply (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    # Kind of the error, such as `no_such_entity`, for programs.
    code: str
    # The id of the request, as in the header X-Request-ID and in the log.
    request_id: str = ""


class RequestError(Exception):
    """A failure with an HTTP status; `detail` says what, where and what to do."""

    def __init__(
        self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        # A client can send half of a character, which no reply can hold.
        detail = hide_roots(detail).encode("utf-8", "replace").decode("utf-8")
        super().__init__(detail)
        self.status, self.code, self.detail, self.headers = status, code, detail, headers

    def body(self) -> dict[str, Any]:
        """Return the problem details as values for JSON."""
        title = HTTPStatus(self.status).phrase
        details = ProblemDetails(
            title=title,
            status=self.status,
            detail=self.detail,
            code=self.code,
            request_id=current_request_id(),
        )
        return details.model_dump()

    def response(self) -> JSONResponse:
        """Return the reply to the request that failed."""
        return JSONResponse(self.body(), self.status, self.headers, MEDIA_TYPE)


def as_request_error(error: Exception) -> RequestError:
    """Map an exception to a `RequestError`, without the text of an unexpected exception."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, RequestValidationError):
        return RequestError(422, "invalid_request", describe_invalid_request(error.errors()))
    if isinstance(error, HTTPException) and error.status_code == 404:
        detail = (
            "The server has no such path: /openapi.json lists its paths; chats are answered at "
            "/v1/chat/completions and /api/chat."
        )
        return RequestError(404, "not_found", detail)
    if isinstance(error, HTTPException):
        code = HTTPStatus(error.status_code).name.lower()
        return RequestError(error.status_code, code, str(error.detail), error.headers)
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            code = type(error).__name__.removesuffix("Error").lower() + "_error"
            return RequestError(status, code, str(error))
    logger.error("a request failed", exc_info=error)
    return RequestError(500, "internal_error", "The server failed; its log has the reason.")


def describe_invalid_request(mistakes: Sequence[Mapping[str, Any]]) -> str:
    """Describe the first mistakes of parameters and body, each by the name of its field."""
    missing = [str(mistake["loc"][-1]) for mistake in mistakes if mistake["type"] == "missing"]
    text = "; ".join(_describe_mistake(mistake, missing) for mistake in mistakes[:5])
    return text if text.endswith("?") else f"{text}."


def _describe_mistake(mistake: Mapping[str, Any], missing: Sequence[str]) -> str:
    where, *path = map(str, mistake["loc"])
    name, kind = ".".join(path), mistake["type"]
    if kind == "extra_forbidden":
        return f"unknown key {name!r}{suggest_name(path[-1], missing)}"
    if kind == "json_invalid":
        return f"the body is not valid JSON: {mistake['ctx']['error']} at character {name}"
    if where == "body" and not path:
        return "the body must be a JSON object, with the header Content-Type: application/json"
    if kind == "missing":
        return f"{name} is missing"
    return f"{name or where}: {mistake['msg'][0].lower()}{mistake['msg'][1:]}"


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'limit'?" with the known name that is most similar, if one is."""
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse a query parameter that the route does not have.

    A filter with a misspelt name would otherwise be ignored, and everything be returned.
    It is a coroutine so that it needs no thread.
    """
    route = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return
    known = dict.fromkeys(_list_parameters(route.dependant))
    for name in request.query_params:
        if name not in known:
            hint = suggest_name(name, known) or f"; known: {', '.join(known) or 'none'}."
            raise RequestError(422, "invalid_request", f"unknown parameter {name!r}{hint}")


def _list_parameters(dependant: Dependant) -> Iterator[str]:
    """Yield the query parameters of a route and of what it depends on."""
    yield from (field.alias for field in dependant.query_params)
    for part in dependant.dependencies:
        yield from _list_parameters(part)


def reason_not_stored(error: OSError) -> str:
    """Return why a file was not written, for a message."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "the disk is full"
    return error.strerror or "it cannot be written"


# A function that writes the body of an error reply in the shape of another protocol.
ErrorShape = Callable[[RequestError], dict[str, Any]]


def add_problem_handlers(app: FastAPI, shapes: Mapping[str, ErrorShape | None]) -> None:
    """Answer every error of an application with problem details.

    `shapes` has the shapes of other protocols, by the beginnings of their paths; the first counts.
    """

    async def respond(request: Request, error: Exception) -> JSONResponse:
        found = as_request_error(error)
        # The path of the mounted application, without the root path of a proxy.
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        shape = next((shape for start, shape in shapes.items() if path.startswith(start)), None)
        if shape is None:
            return found.response()
        return JSONResponse(shape(found), found.status, found.headers)

    # The middleware RequestRecorder answers all other exceptions.
    for kind in (RequestError, RequestValidationError, HTTPException, GraphRAGError):
        app.add_exception_handler(kind, respond)
