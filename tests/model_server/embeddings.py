"""Vectors that depend on the text alone."""

from __future__ import annotations

import base64
import math
import re
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


def share_words(question: str, passage: str) -> float:
    """Return the share of the question's words that a passage has."""
    words = set(re.findall(r"\w+", question.lower()))
    return len(words & set(re.findall(r"\w+", passage.lower()))) / max(1, len(words))


def rerank(
    body: dict[str, Any], is_tei: bool, score: Callable[[str, str], float]
) -> tuple[int, Any]:
    """Answer `/rerank`, the best passage first; a request in the other form is an error."""
    name = "texts" if is_tei else "documents"
    if name not in body:
        wrong = {"type": "missing", "loc": ["body", name], "msg": "Field required"}
        return 422, {"detail": [wrong]}
    scores = [score(body["query"], passage) for passage in body[name]]
    best = sorted(range(len(scores)), key=lambda index: -scores[index])
    if is_tei:
        return 200, [{"index": index, "score": scores[index]} for index in best]
    results = [{"index": index, "relevance_score": scores[index]} for index in best]
    tokens = sum(map(count_tokens, (body["query"], *body[name])))
    usage = {"total_tokens": tokens}
    return 200, {"model": body["model"], "results": results[: body["top_n"]], "usage": usage}


def spoil_scores(kind: str, answer: Any) -> None:
    """Change an answer to `/rerank` as a fault of `SCORES` does."""
    rows = answer if isinstance(answer, list) else answer["results"]
    if kind == "fewer_scores":
        rows.pop()
    elif kind == "doubled_scores":
        rows[-1] = rows[0]
    elif kind == "nan_scores":
        rows[0].update(dict.fromkeys(rows[0].keys() - {"index"}, float("nan")))
    elif kind == "wrong_index":
        rows[0]["index"] = len(rows)
