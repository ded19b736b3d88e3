"""The OpenAPI document of the HTTP API; `docs/openapi.json` is a copy of it."""

from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from graphrag_server.problems import MEDIA_TYPE, ProblemDetails

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


def operation_id(route: APIRoute) -> str:
    """Return the name of a route's function: the stable name of an operation for clients."""
    return route.name
