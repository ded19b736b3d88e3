"""The server: its settings, its start, and the way of one request."""

import asyncio
import json
import re
import ssl
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from hashlib import blake2b
from pathlib import Path
from time import time
from typing import Any, Self

from tests.model_server.answers import answer_from_text
from tests.model_server.batches import Batches, manage
from tests.model_server.chat import CHUNK, Answer, ChatRequest, Json, PromptCache, complete
from tests.model_server.connection import Connection, Request, forever, send_answer, send_stream
from tests.model_server.embeddings import embed, embeddings, rerank, share_words, spoil_scores
from tests.model_server.errors import complaint, error, error_of, is_error, read_json, retry_headers
from tests.model_server.faults import (
    ASKS_MODEL,
    COMPLETIONS,
    SCORES,
    TRANSPORT,
    VECTORS,
    Faults,
    ignored,
    spoil_completion,
    spoil_vectors,
)
from tests.model_server.limits import Limits
from tests.model_server.request_log import Asked, RequestLog

ROUTE = re.compile(r"(?:/openai/deployments/(?P<deployment>[^/]+)|/openai/v1|/openai|/v1)(/.+)")
# A certificate, signed by itself, that is valid for models.example only.
OTHER_HOST = Path(__file__).with_name("certificate_of_another_host.pem")
DEFAULT_MODELS = ("test-model", "test-embedding")
# Fields that cannot be set over HTTP.
FIXED = ("answer", "vector", "score", "refuse", "log", "port", "certificate")


@dataclass
class Server:
    """An OpenAI-compatible server on loopback; used as a context, it runs in a thread.

    All fields but the last six may be set while it runs.

    Parameters
    ----------
    faults
        What goes wrong.
    latency, jitter
        Seconds before an answer, and up to how many more; drawn by the hash of the body.
    chunk_delay
        Seconds between the events of a stream.
    limits
        What is answered with 429.
    models, api_keys
        What is accepted, anything when empty.
    context_window
        Tokens of prompt and `max_tokens` together, over which a request is refused.
    tokens_per_second
        How fast the model writes, apart from `latency`; None is at once.
    quirks
        Behaviours of the connection, from `connection.QUIRKS`.
    redirect, redirect_to
        Status with which requests to `/v1` are sent on to `/openai/v1`, and the origin of another
        server that they are sent to; "" is this one.
    streams_at_once
        Over so many streams the oldest is ended before its end; None is without limit.
    dimensions
        Of vectors, where the request names none.
    is_tei
        Whether `/rerank` has the form of Text Embeddings Inference.
    batch_seconds
        How long a batch takes; None is until `finish_batches`.
    answer
        Gives the text, or the object, that answers a chat.
    vector
        Gives the vector of a text, of so many numbers.
    score
        Gives the score of a passage for a question.
    refuse
        Gives status and body of the answer to a request that the model does not see.
    log
        File that gets a line for each arrival and each answer.
    """

    faults: Faults = field(default_factory=Faults)
    latency: float = 0.0
    jitter: float = 0.0
    chunk_delay: float = 0.0
    limits: Limits = field(default_factory=Limits)
    models: Sequence[str] = ()
    api_keys: Sequence[str] = ()
    context_window: int | None = None
    tokens_per_second: float | None = None
    quirks: Collection[str] = ()
    redirect: int | None = None
    redirect_to: str = ""
    streams_at_once: int | None = None
    dimensions: int = 64
    is_tei: bool = False
    batch_seconds: float | None = 0.0
    answer: Answer = answer_from_text
    vector: Callable[[str, int], "array[float]"] = embed
    score: Callable[[str, str], float] = share_words
    refuse: Callable[[str, Json], tuple[int, Any] | None] = lambda endpoint, body: None
    log: Path | None = None
    port: int = 0
    # A file with a certificate and its key: the server then speaks TLS.
    certificate: Path | None = None

    def __post_init__(self) -> None:
        self._log = RequestLog(self.log)
        self._cache = PromptCache()
        self._opened: set[Connection] = set()
        self._streams: list[Connection] = []
        self.batches = Batches(self._answer_line)
        self.n_running = self.max_running = 0

    @property
    def url(self) -> str:
        """The `base_url` for a client."""
        return f"{self.origin}/v1"

    @property
    def origin(self) -> str:
        """The `azure_endpoint` for an Azure client."""
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[Asked]:
        """All requests so far, in the order of arrival."""
        return self._log.requests

    def counts(self) -> Counter[str]:
        """Count the requests of each body, by key."""
        return Counter(self._log.attempts)

    def finish_batches(self, status: str = "completed") -> None:
        """End all batches that run: completed, expired or cancelled."""
        for batch_id in list(self.batches.batches):
            self.batches.finish(batch_id, status)

    async def run(self, ready: Callable[[], None]) -> None:
        """Listen until stopped; `ready` is called as soon as the port is known."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        tls = None
        if self.certificate:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(self.certificate)
        listening = await self._loop.create_server(
            lambda: Connection(self.serve, self._opened, self.quirks),
            "127.0.0.1",
            self.port,
            backlog=1024,
            ssl=tls,
        )
        self.port = listening.sockets[0].getsockname()[1]
        ready()
        await self._stop.wait()
        listening.close()
        for connection in list(self._opened):
            connection.transport.abort()
        while self._opened:
            await asyncio.sleep(0)
        self._log.close()

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self.run(ready.set)), daemon=True
        )
        self._thread.start()
        ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def serve(self, request: Request, connection: Connection) -> None:
        """Answer one request."""
        if request.path == "/control":
            connection.send(200, json.dumps(control(self, request.body)).encode())
            return
        asked = self._log.arrived(request.path, request.headers, request.body)
        self.n_running += 1
        self.max_running = max(self.max_running, self.n_running)
        # Logged before it is sent: who has an answer finds it in the log.
        connection.before_answer = partial(self._log.answered, asked)
        try:
            await self._serve(asked, request, connection)
        finally:
            self.n_running -= 1
            if asked.status is None:
                self._log.answered(asked, 0)

    async def _serve(self, asked: Asked, request: Request, connection: Connection) -> None:
        headers = {"x-request-id": f"req_{asked.number}"}
        body: Json | None = {}
        if not request.headers.get("content-type", "").startswith("multipart/"):
            body = read_json(request.body)
        route = ROUTE.fullmatch(request.path)
        if not route or (route["deployment"] and "api-version=" not in request.query):
            wrong = error(404, f"Invalid URL ({request.method} {request.path})")
            send_answer(connection, *wrong, headers)
            return
        if body is None:
            send_answer(connection, *error(400, "The body is no JSON object."), headers)
            return
        if self.redirect and request.path.startswith("/v1/"):
            headers["location"] = f"{self.redirect_to}/openai{request.path}"
            send_answer(connection, self.redirect, {}, headers)
            return
        endpoint = route[2]
        if route["deployment"]:
            body.setdefault("model", route["deployment"])
        refused = self._refuse(endpoint, request, body)
        headers |= self.limits.headers()
        if refused:
            status, why, more = refused
            send_answer(connection, status, why, headers | more)
            return
        fault = self._choose_fault(asked, endpoint, body)
        if is_error(fault):
            headers |= retry_headers(fault, self.faults.retry_after)
        answer: Json | bytes
        if endpoint in ASKS_MODEL or is_error(fault):
            status, answer = self._ask_model(asked, endpoint, body, api_key(request))
        else:
            models = self.models or DEFAULT_MODELS
            status, answer = manage(
                self.batches, models, self.batch_seconds, endpoint, request, body
            )
        # What it took to write the answer is part of the latency.
        streamed = (
            bool(ignored(fault, body).get("stream"))
            and endpoint == "/chat/completions"
            and status == 200
        )
        delay = self._delay(asked)
        if self.tokens_per_second and status == 200 and "usage" in answer and not streamed:
            delay += answer["usage"].get("completion_tokens", 0) / self.tokens_per_second
        if (seconds := asked.arrival + delay - time()) > 0:
            await asyncio.sleep(seconds)
        if fault == "hang":
            await forever()
        if fault == "close":
            connection.close()
            return
        if streamed and isinstance(answer, dict):
            self._streams.append(connection)
            while self.streams_at_once and len(self._streams) > self.streams_at_once:
                self._streams.pop(0).close()
            pace = CHUNK / 4 / self.tokens_per_second if self.tokens_per_second else 0.0
            chunk_delay = max(self.chunk_delay, pace)
            options = body.get("stream_options") or {}
            await send_stream(
                connection, answer, headers, fault,
                with_usage=bool(options.get("include_usage")), chunk_delay=chunk_delay,
            )  # fmt: skip
            self._streams = [other for other in self._streams if other is not connection]
        else:
            send_answer(connection, status, answer, headers, fault)

    def _choose_fault(self, asked: Asked, endpoint: str, body: Json) -> str | None:
        asked.fault = self.faults.choose(endpoint, body, asked.body, asked.key, asked.attempt)
        return asked.fault

    def _delay(self, asked: Asked) -> float:
        if not self.jitter:
            return self.latency
        draw = blake2b(f"{asked.key} {asked.attempt}".encode(), digest_size=4).digest()
        return self.latency + self.jitter * int.from_bytes(draw, "big") / 2**32

    def _refuse(
        self, endpoint: str, request: Request, body: Json
    ) -> tuple[int, Json, dict[str, str]] | None:
        """Check key, model, size and limits; return the error, or None."""
        key = api_key(request)
        if self.api_keys and key not in self.api_keys:
            return (*error_of("401", body, key), {})
        if endpoint not in ASKS_MODEL:
            return None
        if wrong := complaint(endpoint, body):
            return (*error(400, wrong[0], param=wrong[1]), {})
        if self.models and body["model"] not in self.models:
            return (*error_of("404", body), {})
        if answer := self.refuse(endpoint, body):
            return (*answer, {})
        tokens = 0
        if endpoint == "/chat/completions":
            chat = ChatRequest(body)
            tokens = chat.n_tokens + (chat.max_tokens or 0)
            if self.context_window and tokens > self.context_window:
                return (*error_of("context_length", body), {})
        if over := self.limits.refuse(self.n_running, tokens):
            return (*error(429, over[0], "requests", "rate_limit_exceeded"), over[1])
        return None

    def _ask_model(
        self, asked: Asked, endpoint: str, body: Json, key: str = ""
    ) -> tuple[int, Json]:
        """Answer a request for a chat or for vectors, with a fault in it."""
        fault = asked.fault
        if is_error(fault):
            return error_of(fault, body, key)
        body = ignored(fault, body)
        if endpoint == "/embeddings":
            answer = embeddings(body, self.dimensions, self.vector)
            if fault in VECTORS:
                spoil_vectors(fault, answer)
            return 200, answer
        if endpoint == "/rerank":
            status, answer = rerank(body, self.is_tei, self.score)
            if fault in SCORES and status == 200:
                spoil_scores(fault, answer)
            return status, answer
        chat = ChatRequest(body)
        cached = self._cache.look_up(chat.texts)
        completion = complete(chat, self.answer, asked.key, cached, int(asked.arrival))
        if fault in COMPLETIONS:
            spoil_completion(fault, completion, chat.max_tokens)
        return 200, completion

    def _answer_line(self, url: str, body: Json) -> tuple[int, Json]:
        """Answer one line of a batch, and log it as a request of its own."""
        raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        asked = self._log.arrived(url, {}, raw)
        endpoint = url.removeprefix("/v1")
        fault = self._choose_fault(asked, endpoint, body)
        if wrong := complaint(endpoint, body):
            status, answer = error(400, wrong[0], param=wrong[1])
        elif fault in TRANSPORT:
            # There is no connection here that could break.
            status, answer = error_of("500", body)
        else:
            status, answer = self._ask_model(asked, endpoint, body)
        self._log.answered(asked, status)
        return status, answer


def api_key(request: Request) -> str:
    """Return the key of a request, from either of the two headers."""
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    return request.headers.get("api-key") or bearer


def control(server: "Server", body: bytes) -> dict[str, Any]:
    """Set the fields of the server that the body names; return the settings and the counts.

    `faults` and `limits` are objects with the fields of those classes. `finish_batches` is the
    status that the running batches get. `list_requests` adds the requests, without headers.
    """
    change: dict[str, Any] = json.loads(body or b"{}")
    if status := change.pop("finish_batches", None):
        server.finish_batches(status)
    listed = change.pop("list_requests", False)
    settable = {field.name for field in fields(server)} - set(FIXED)
    if unknown := set(change) - settable:
        return {"error": f"unknown: {sorted(unknown)}; known: {sorted(settable)}"}
    kinds = {"faults": Faults, "limits": Limits}
    for name, value in change.items():
        setattr(server, name, kinds[name](**value) if name in kinds else value)
    state: dict[str, Any] = {name: getattr(server, name) for name in sorted(settable)}
    state |= {name: asdict(state[name]) for name in kinds}
    counts = server.counts()
    state |= {"n_requests": len(server.requests), "n_running": server.n_running}
    state |= {"max_running": server.max_running, "counts": counts}
    if listed:
        names = ("number", "path", "key", "attempt", "arrival", "answered", "status", "fault")
        state["requests"] = [
            {name: getattr(asked, name) for name in names} | {"body": asked.body.decode("latin-1")}
            for asked in server.requests
        ]
    return state
