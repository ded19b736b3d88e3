"""Faults on request: in responses, in completions, in vectors and in scores."""

import base64
import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from tests.model_server.chat import Json, count_tokens, set_text, text_of, usage
from tests.model_server.embeddings import embed, encode
from tests.model_server.errors import ERRORS, REFUSALS

# What the connection does. `hang` sends nothing, `stream_hang` stops in the middle of a stream,
# `close_done` closes between the end of a streamed reply and the end of the stream, `close` and
# `close_half` close before and in the middle of the body, `truncated_json` is a whole HTTP body
# that holds half of the JSON.
TRANSPORT = ("hang", "stream_hang", "close_done", "close", "close_half", "truncated_json")
# `ignores:NAME` answers as if the request had no such parameter or response format.
IGNORES = "ignores:"
ASKS_MODEL = ("/chat/completions", "/embeddings", "/rerank")
# What an answer is repeated to when nothing limits it.
ENDLESS_TOKENS = 4096
THOUGHT = (
    "Okay, let me see. The text names some {things}. I should list them [and their relations]."
)


def _malformed(text: str) -> str:
    return text.replace('"', "'").rstrip().rstrip("]}") + ",\n"


def _prose(text: str) -> str:
    return f"Sure! Here is the result that you asked for:\n\n{text}\n\nLet me know if I can help!"


def _half(text: str) -> str:
    return text[: len(text) // 2]


# The kinds that change the text of an answer only.
TEXTS: dict[str, Callable[[str], str | None]] = {
    "malformed_content": _malformed,
    "wrong_schema": lambda _: json.dumps({"result": {"ok": True}, "items": [1, 2]}),
    "null_content": lambda _: None,
    "empty_content": lambda _: "",
    "prose": _prose,
    "fences": lambda text: f"```json\n{text}\n```",
    "think": lambda text: f"<think>\n{THOUGHT}\n</think>\n\n{text}",
    "unclosed_think": lambda text: f"{THOUGHT}\n</think>\n\n{text}",
}
# The kinds that change more of a completion, see `spoil_completion`.
COMPLETIONS = (
    *TEXTS, "empty_choices", "refusal", "content_filter", "length", "endless", "babble",
    "reasoning_content",
)  # fmt: skip
VECTORS = ("wrong_size", "fewer_vectors", "reversed_vectors", "nan_vectors", "long_vectors")
SCORES = ("fewer_scores", "doubled_scores", "nan_scores", "wrong_index")
KINDS = (*ERRORS, *TRANSPORT, *COMPLETIONS, *VECTORS, *SCORES)


@dataclass
class Faults:
    """A plan: the first of `by_number`, `by_text` and `rate` that has a kind for a request.

    A kind is one of `KINDS`, one of `REFUSALS` with a name, such as `unsupported:temperature`,
    which rejects requests with that parameter or response format, or `ignores:NAME`.
    With ``*k`` after it, such as ``429*2``, it hits only the first k attempts for one body. A
    kind that does not fit a request, such as a wrong size of vectors for a chat, is passed over.

    Parameters
    ----------
    rate
        Share of the bodies that are hit, drawn by the hash of the body, so that neither the
        order of arrival nor another run changes which.
    kinds
        What `rate` draws from.
    attempts
        The drawn bodies are hit on so many attempts; None is always.
    redraw
        Draw anew at each attempt instead: the share of the replies, not of the bodies.
    by_text
        A kind for chats and requests for vectors that contain a text.
    by_number
        A kind, or None, for each request since the plan was set, in the order of arrival.
    retry_after
        What the kinds of 429 ask for, in seconds.
    """

    rate: float = 0.0
    kinds: Sequence[str] = ()
    seed: int = 0
    attempts: int | None = None
    redraw: bool = False
    by_text: Mapping[str, str] = field(default_factory=dict)
    by_number: Sequence[str | None] = ()
    retry_after: float = 1.0

    def __post_init__(self) -> None:
        for kind in (*self.kinds, *self.by_text.values(), *filter(None, self.by_number)):
            name = kind.partition("*")[0]
            if name not in KINDS and not name.startswith((*REFUSALS, IGNORES)):
                raise ValueError(f"unknown kind of fault: {kind}")
        self._needles = [
            ({json.dumps(text, ensure_ascii=ascii)[1:-1].encode() for ascii in (True, False)}, kind)
            for text, kind in self.by_text.items()
        ]
        self._n_requests = 0

    def choose(self, endpoint: str, body: Json, raw: bytes, key: str, attempt: int) -> str | None:
        """Return the kind of fault for this request, or None."""

        def hits(kind: str) -> str | None:
            name, _, limit = kind.partition("*")
            left = not limit or attempt <= int(limit)
            return name if left and fits(name, endpoint, body) else None

        number, self._n_requests = self._n_requests, self._n_requests + 1
        if number < len(self.by_number):
            kind = self.by_number[number]
            return hits(kind) if kind else None
        for needles, kind in self._needles if endpoint in ASKS_MODEL else ():
            if any(needle in raw for needle in needles) and (hit := hits(kind)):
                return hit
        if not self.rate or (self.attempts is not None and attempt > self.attempts):
            return None
        draw = blake2b(f"{self.seed} {key} {attempt if self.redraw else ''}".encode()).digest()
        if int.from_bytes(draw[:8], "big") >= self.rate * 2**64:
            return None
        fitting = [hit for kind in self.kinds if (hit := hits(kind))]
        return fitting[int.from_bytes(draw[8:16], "big") % len(fitting)] if fitting else None


def fits(kind: str, endpoint: str, body: Json) -> bool:
    """Tell whether a kind of fault applies to a request."""
    if kind.startswith((*REFUSALS, IGNORES)):
        name = kind.partition(":")[2]
        return name in body or name == _type_of_format(body)
    if kind in ("no_json_schema", "no_json_object"):
        return kind.removeprefix("no_") == _type_of_format(body)
    if kind in COMPLETIONS:
        return endpoint == "/chat/completions"
    if kind in VECTORS:
        return endpoint == "/embeddings"
    if kind in SCORES:
        return endpoint == "/rerank"
    return kind not in ("stream_hang", "close_done") or bool(body.get("stream"))


def _type_of_format(body: Json) -> str | None:
    return (body.get("response_format") or {}).get("type")


def ignored(kind: str | None, body: Json) -> Json:
    """Return the body without what a fault of `IGNORES` does not see."""
    if not kind or not kind.startswith(IGNORES):
        return body
    name = kind.removeprefix(IGNORES)
    return {
        key: value
        for key, value in body.items()
        if key != name and not (key == "response_format" and name == _type_of_format(body))
    }


def spoil_completion(kind: str, completion: Json, max_tokens: int | None) -> None:
    """Change a completion as a fault of `TEXTS` or `COMPLETIONS` does."""
    if kind == "empty_choices":
        completion["choices"] = []
    n_completion = n_reasoning = 0
    for choice in completion["choices"]:
        message = choice["message"]
        text = text_of(message) or ""
        if kind in TEXTS:
            set_text(message, TEXTS[kind](text))
        elif kind == "refusal":
            set_text(message, None)
            message["refusal"] = "I'm sorry, I can't help with that."
            choice["finish_reason"] = "stop"
        elif kind == "content_filter":
            set_text(message, None)
            choice["finish_reason"] = "content_filter"
        elif kind == "length":
            set_text(message, _half(text))
            choice["finish_reason"] = "length"
        elif kind == "endless":
            tokens = max_tokens or ENDLESS_TOKENS
            start = _half(text) or "the "
            loop = start[-80:]
            set_text(message, (start + loop * (4 * tokens // len(loop) + 1))[: 4 * tokens])
            choice["finish_reason"] = "length"
        elif kind == "babble":
            # A small model that never ends, and never says the same twice.
            tokens = max_tokens or ENDLESS_TOKENS
            babble = "".join(f" and then comes number {n}," for n in range(tokens))
            set_text(message, (_half(text) + babble)[: 4 * tokens])
            choice["finish_reason"] = "length"
        elif kind == "reasoning_content":
            message["reasoning_content"] = THOUGHT
            n_reasoning += count_tokens(THOUGHT)
        n_completion += count_tokens(text_of(message) or "")
    used = completion["usage"]
    cached = used["prompt_tokens_details"]["cached_tokens"]
    n_completion += n_reasoning
    completion["usage"] = usage(used["prompt_tokens"], n_completion, cached, n_reasoning)


def spoil_vectors(kind: str, answer: Json) -> None:
    """Change an answer to `/embeddings` as a fault of `VECTORS` does."""
    data: list[dict[str, Any]] = answer["data"]
    if kind == "fewer_vectors":
        data.pop()
    elif kind == "reversed_vectors":
        # Each still carries its index: a client must go by it.
        data.reverse()
    for row in data:
        as_base64 = isinstance(row["embedding"], str)
        if kind == "wrong_size":
            row["embedding"] = encode(embed("a vector of a wrong size", 7), as_base64)
        elif kind == "nan_vectors":
            size = len(row["embedding"]) * 3 // 16 if as_base64 else len(row["embedding"])
            vector = embed("not a number", size)[:]
            vector[0] = float("nan")
            row["embedding"] = encode(vector, as_base64)
        elif kind == "long_vectors":
            # Many models do not give their vectors the length 1.
            vector = _decoded(row["embedding"])
            row["embedding"] = encode(array("f", [5 * value for value in vector]), as_base64)


def _decoded(vector: str | list[float]) -> array:  # type: ignore[type-arg]
    if isinstance(vector, str):
        return array("f", base64.b64decode(vector))
    return array("f", vector)
