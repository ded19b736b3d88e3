"""Errors of the HTTP API, all in one shape: problem details (RFC 9457)."""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
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
from graphrag_server.request_record import current_request_id, hide_roots

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
        parts = [
            f"{'.'.join(str(part) for part in item['loc'][1:]) or item['loc'][0]}: {item['msg']}"
            for item in error.errors()
        ]
        return RequestError(422, "invalid_request", "; ".join(parts[:5]))
    if isinstance(error, HTTPException):
        code = HTTPStatus(error.status_code).name.lower()
        return RequestError(error.status_code, code, str(error.detail), error.headers)
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            code = type(error).__name__.removesuffix("Error").lower() + "_error"
            return RequestError(status, code, str(error))
    logger.error("a request failed", exc_info=error)
    return RequestError(500, "internal_error", "The server failed; its log has the reason.")


# A function that writes the body of an error reply in the shape of another protocol.
ErrorShape = Callable[[RequestError], dict[str, Any]]


def add_problem_handlers(app: FastAPI, shapes: Mapping[str, ErrorShape]) -> None:
    """Answer every error of an application with problem details.

    `shapes` has the shapes of other protocols, by the beginnings of their paths.
    """

    async def respond(request: Request, error: Exception) -> JSONResponse:
        found = as_request_error(error)
        # The path of the mounted application, without the root path of a proxy.
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        for beginning, shape in shapes.items():
            if path.startswith(beginning):
                return JSONResponse(shape(found), found.status, found.headers)
        return found.response()

    # The middleware RequestRecorder answers all other exceptions.
    for kind in (RequestError, RequestValidationError, HTTPException, GraphRAGError):
        app.add_exception_handler(kind, respond)
