"""Reads the answers of an OpenAI-compatible server, as OpenAI or as others write them."""

import base64
import json
from typing import Any

from graphrag_index.llm.failures import RetryError
from graphrag_index.llm.request import Reply, Usage


def read_chat(data: Any) -> Reply:
    """Read the answer of `/chat/completions`, as OpenAI or as others write it."""
    try:
        choice = data["choices"][0]
        message = choice.get("message") or {}
    except (KeyError, IndexError, TypeError, AttributeError):
        raise RetryError("the answer has no choice") from None
    calls = message.get("tool_calls") or []
    text = message.get("content") or ""
    if isinstance(text, list):  # in parts
        text = "".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
    # Some models call once for each part of what they have to say.
    text = "\n".join(filter(None, map(_arguments, calls))) or text
    finish = str(choice.get("finish_reason") or "stop")
    if message.get("refusal"):
        text, finish = str(message["refusal"]), "refusal"
    return Reply(text, finish, read_usage(data.get("usage")))


def _arguments(call: Any) -> str:
    """Return what a function was called with, as text."""
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments)


def read_usage(usage: Any) -> Usage:
    """Read the tokens of a call; 0 where the server does not count."""
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        int(usage.get("prompt_tokens") or 0),
        int(details.get("cached_tokens") or 0) if isinstance(details, dict) else 0,
        int(usage.get("completion_tokens") or 0),
    )


def read_embeddings(data: Any, n_texts: int) -> tuple[list[list[float]], Usage]:
    import numpy as np

    try:
        rows = sorted(data["data"], key=lambda row: row["index"])
        vectors = [
            np.frombuffer(base64.b64decode(row["embedding"]), "<f4").tolist()
            if isinstance(row["embedding"], str)
            else [float(value) for value in row["embedding"]]
            for row in rows
        ]
    except (KeyError, TypeError, ValueError):
        raise RetryError("the answer holds no vectors") from None
    if len(vectors) != n_texts:
        raise RetryError(f"the answer holds {len(vectors)} vectors for {n_texts} texts")
    return vectors, read_usage(data.get("usage"))
