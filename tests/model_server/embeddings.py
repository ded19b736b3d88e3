"""Vectors that depend on the text alone."""

# array[float] can be written only as text before Python 3.12.
from __future__ import annotations

import base64
import math
from array import array
from collections.abc import Callable
from functools import lru_cache
from hashlib import shake_256
from typing import Any

from tests.model_server.chat import count_tokens

# The eight signs that a byte of a hash stands for.
SIGNS = [array("f", [1.0 if byte >> bit & 1 else -1.0 for bit in range(8)]) for byte in range(256)]


@lru_cache(maxsize=16)
def scaled_signs(dimensions: int) -> list[bytes]:
    """Encode signs as the bytes of a vector of length 1."""
    size = 1 / math.sqrt(dimensions)
    return [array("f", [size * sign for sign in signs]).tobytes() for signs in SIGNS]


def embed(text: str, dimensions: int) -> array[float]:
    """Return a vector of length 1 whose signs are the bits of the text's hash."""
    signs = scaled_signs(dimensions)
    bits = shake_256(text.encode()).digest((dimensions + 7) // 8)
    return array("f", b"".join([signs[byte] for byte in bits])[: 4 * dimensions])


def embeddings(
    body: dict[str, Any], dimensions: int, vector: Callable[[str, int], array[float]] = embed
) -> dict[str, Any]:
    """Answer `/embeddings`: one vector for each input, in their order."""
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    # One input may be a list of token numbers.
    if texts and isinstance(texts[0], int):
        texts = [texts]
    size = body.get("dimensions") or dimensions
    as_base64 = body.get("encoding_format") == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": encode(vector(str(text), size), as_base64),
        }
        for index, text in enumerate(texts)
    ]
    tokens = sum(count_tokens(str(text)) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body.get("model", ""), "usage": usage}


def encode(vector: array[float], as_base64: bool) -> str | list[float]:
    return base64.b64encode(vector.tobytes()).decode() if as_base64 else vector.tolist()
