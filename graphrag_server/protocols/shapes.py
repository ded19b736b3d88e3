"""The routers of other protocols, and the shapes of their errors."""

from typing import Any

from fastapi import APIRouter, Request

from graphrag_server.problems import ErrorShape, RequestError
from graphrag_server.protocols import chat_completions, dify, ollama, responses_api
from graphrag_server.protocols.chat_completions import openai_error

wrong_bases = APIRouter(include_in_schema=False)


@wrong_bases.api_route("/v1/v1/{path:path}", methods=["GET", "POST"])
@wrong_bases.api_route("/v1/chat/completions/{path:path}", methods=["GET", "POST"])
@wrong_bases.api_route("/chat/completions", methods=["GET", "POST"])
@wrong_bases.api_route("/models", methods=["GET"])
def explain_base(request: Request, path: str = "") -> None:
    """Refuse a request with the wrong base address, which users of front ends often enter."""
    base = f"{str(request.base_url).rstrip('/')}/v1"
    raise RequestError(404, "wrong_base_url", f"Set the base URL of the client to {base}.")


def _ollama_error(error: RequestError) -> dict[str, Any]:
    return {"error": error.detail}


ROUTERS = (chat_completions.router, responses_api.router, ollama.router, dify.router, wrong_bases)
# The shapes of errors, by the beginnings of the paths.
ERROR_SHAPES: dict[str, ErrorShape] = {
    "/v1/chat/": openai_error,
    "/v1/models": openai_error,
    "/v1/responses": openai_error,
    "/v1/v1/": openai_error,
    "/chat/completions": openai_error,
    "/models": openai_error,
    "/api/": _ollama_error,
    "/dify/": dify.dify_error,
}
