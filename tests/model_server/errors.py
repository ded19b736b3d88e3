"""The errors of the API: status, body and headers for each kind; validation of requests."""

import json
from email.utils import formatdate
from time import time
from typing import Any, TypeGuard

from tests.model_server.chat import ChatRequest, Json, count_tokens
from tests.model_server.seeing import complain

# Inputs in one request for embeddings, and tokens in one input.
MAX_INPUTS, MAX_INPUT_TOKENS = 2048, 8192
# `unsupported:NAME`, `422:NAME` and `500:NAME` reject every request that has the parameter or the
# response format, with a body that names it: as OpenAI, FastAPI and llama-cpp-python write it.
# `silent:NAME` rejects it with a 500 that names nothing.
UNSUPPORTED = "unsupported:"
REFUSALS = (UNSUPPORTED, "422:", "500:", "silent:")

INVALID = "invalid_request_error"
FILTERED = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management "
    "policy. Please modify your prompt and retry."
)
TOO_LONG = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in "
    "9000 tokens. Please reduce the length of the messages."
)
RATE = "Rate limit reached for requests. Please try again later."

# kind: status, message, type, code, param
ERRORS: dict[str, tuple[int, str, str, str | None, str | None]] = {
    "400": (400, "The request could not be read.", INVALID, None, None),
    "400_content_filter": (400, FILTERED, INVALID, "content_filter", "prompt"),
    "context_length": (400, TOO_LONG, INVALID, "context_length_exceeded", "messages"),
    "no_json_schema": (
        400,
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this "
        "model.",
        INVALID,
        None,
        "response_format",
    ),
    "no_json_object": (
        400,
        "Invalid parameter: 'response_format' of type 'json_object' is not supported with this "
        "model.",
        INVALID,
        None,
        "response_format",
    ),
    "401": (401, "Incorrect API key provided.", INVALID, "invalid_api_key", None),
    "403": (403, "You have no access to this model.", INVALID, "model_not_allowed", None),
    "404": (404, "The model does not exist.", INVALID, "model_not_found", "model"),
    "408": (408, "The request timed out.", "timeout", None, None),
    "409": (409, "The request conflicts with another one.", "conflict", None, None),
    "429": (429, RATE, "requests", "rate_limit_exceeded", None),
    "429_retry_after": (429, RATE, "requests", "rate_limit_exceeded", None),
    "429_retry_date": (429, RATE, "requests", "rate_limit_exceeded", None),
    "429_retry_ms": (429, RATE, "requests", "rate_limit_exceeded", None),
    "429_quota": (
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
        "insufficient_quota",
        None,
    ),
    "500": (500, "The server had an error.", "server_error", None, None),
    "502_html": (502, "", "server_error", None, None),
    "503": (503, "The engine is overloaded, please try again later.", "server_error", None, None),
}
HTML = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


def error(
    status: int,
    message: str,
    kind: str = INVALID,
    code: str | None = None,
    param: str | None = None,
) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"message": message, "type": kind, "param": param, "code": code}}


def is_error(kind: str | None) -> TypeGuard[str]:
    """Tell whether a kind of fault is an answer with a status of its own."""
    return kind is not None and (kind in ERRORS or kind.startswith(REFUSALS))


def error_of(kind: str, body: dict[str, Any], key: str = "") -> tuple[int, dict[str, Any]]:
    """Return status and body of a kind of error; the message names the parts of the request.

    That of 401 holds the whole `key`, as some servers do it: a client must not pass it on.
    """
    if kind.startswith(UNSUPPORTED):
        name = kind.removeprefix(UNSUPPORTED)
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        if name == "max_tokens":
            message += " Use 'max_completion_tokens' instead."
        return error(400, message, INVALID, "unsupported_parameter", name)
    if kind.startswith(REFUSALS):
        prefix, _, name = kind.partition(":")
        return _validation_error(prefix, name)
    status, message, type_, code, param = ERRORS[kind]
    if code == "model_not_found":
        message = f"The model `{body.get('model', '')}` does not exist or you do not have access."
    if status == 401:
        message = f"Incorrect API key provided: {key}."
    return error(status, message, type_, code, param)


def _validation_error(prefix: str, name: str) -> tuple[int, dict[str, Any]]:
    """Return a refusal as the validation of a server's own framework writes it."""
    place, said = ["body", name], "Extra inputs are not permitted"
    if name in ("json_schema", "json_object"):
        place, said = ["body", "response_format", "type"], "Input should be 'text'"
    if prefix == "silent":
        return 500, {}
    if prefix == "422":
        return 422, {"detail": [{"type": "literal_error", "loc": place, "msg": said}]}
    message = f"[{{'type': 'literal_error', 'loc': {tuple(place)}, 'msg': \"{said}\"}}]"
    return error(500, message, "internal_server_error")


def retry_headers(kind: str, seconds: float) -> dict[str, str]:
    """Return the headers of an error that ask to wait; empty for most."""
    if kind == "429_retry_after":
        return {"retry-after": f"{seconds:g}"}
    if kind == "429_retry_date":
        return {"retry-after": formatdate(time() + seconds, usegmt=True)}
    if kind == "429_retry_ms":
        return {"retry-after-ms": f"{1000 * seconds:.0f}"}
    return {}


def complaint(endpoint: str, body: Json) -> tuple[str, str] | None:
    """Return the error of a request, as a message and a parameter, or None."""
    if endpoint == "/chat/completions":
        return _about_chat(body)
    return _about_embeddings(body) if endpoint == "/embeddings" else None


def _about_chat(body: Json) -> tuple[str, str] | None:
    if not body.get("model"):
        return "you must provide a model parameter", "model"
    if not body.get("messages"):
        return "Invalid type for 'messages': expected a list of messages.", "messages"
    if why := complain(body["messages"]):
        return why, "messages"
    response_format = body.get("response_format") or {}
    if response_format.get("type") == "json_object":
        said = " ".join(ChatRequest(body).texts).lower()
        if "json" not in said:
            message = (
                "'messages' must contain the word 'json' in some form, to use "
                "'response_format' of type 'json_object'."
            )
            return message, "messages"
    if response_format.get("type") == "json_schema":
        given = response_format["json_schema"]
        wrong = not given.get("name") or (given.get("strict") and not_strict(given["schema"]))
        if wrong:
            return f"Invalid schema for response_format: {wrong}", "response_format"
    for tool in body.get("tools") or []:
        function = tool["function"]
        if function.get("strict") and (wrong := not_strict(function["parameters"])):
            return f"Invalid schema for function '{function['name']}': {wrong}", "tools"
    return None


def not_strict(schema: Any, path: str = "()") -> str | None:
    """Return the reason why a schema is not strict: objects must require all properties."""
    if isinstance(schema, list):
        return next(filter(None, (not_strict(part, path) for part in schema)), None)
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            return f"In context={path}, 'additionalProperties' is required to be false."
        missing = set(schema.get("properties", {})) - set(schema.get("required", []))
        if missing:
            return f"In context={path}, 'required' must hold every property: {sorted(missing)}."
    for name in ("properties", "$defs", "definitions"):
        for key, part in schema.get(name, {}).items():
            if wrong := not_strict(part, f"{path}.{key}"):
                return wrong
    parts = [schema.get(name) for name in ("items", "anyOf", "allOf", "oneOf")]
    return next(filter(None, (not_strict(part, path) for part in parts)), None)


def _about_embeddings(body: Json) -> tuple[str, str] | None:
    if not body.get("model"):
        return "you must provide a model parameter", "model"
    texts = body.get("input")
    if isinstance(texts, str):
        texts = [texts]
    if not texts or len(texts) > MAX_INPUTS or any(text == "" for text in texts):
        return "'$.input' is invalid. Please check the API reference.", "input"
    longest = max(count_tokens(text) if isinstance(text, str) else 1 for text in texts)
    if longest > MAX_INPUT_TOKENS:
        message = f"This model's maximum context length is {MAX_INPUT_TOKENS} tokens."
        return f"{message} Please reduce your prompt: {longest} tokens.", "input"
    return None


def read_json(raw: bytes) -> Json | None:
    """Parse the body as an object; None if it is none."""
    try:
        body = json.loads(raw or b"{}")
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
