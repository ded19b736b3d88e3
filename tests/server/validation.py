"""Validation of requests, as by the real API."""

import json
from typing import Any

from tests.server.chat import ChatRequest, count_tokens

Json = dict[str, Any]
# Inputs in one request for embeddings, and tokens in one input.
MAX_INPUTS, MAX_INPUT_TOKENS = 2048, 8192


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
