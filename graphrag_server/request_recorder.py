"""Records of requests and questions: the log, the limits, and Prometheus' metrics.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

import asyncio
import logging
import math
import re
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphrag_index.errors import GraphRAGError
from graphrag_server.asking import AskedQuestion, QuestionEnd
from graphrag_server.keys import DailyCostError, KeyFile, RateError
from graphrag_server.problems import RequestError, as_request_error
from graphrag_server.server_settings import ServerSettings
from graphrag_server.tracing import (
    CURRENT,
    UPLOAD_PATH_END,
    RequestRecord,
    current_request_id,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "graphrag_"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Sample(NamedTuple):
    """The value of a metric for some labels."""

    name: str
    value: float
    labels: dict[str, object]


# Help texts by the kind and name of each metric.
COUNTERS = {
    "requests_total": "Requests that were answered.",
    "request_seconds_total": "Time from requests to the ends of their replies.",
    "questions_total": "Questions that have ended, by their outcome.",
    "question_seconds_total": "Time that searches took.",
    "model_calls_total": "Calls of models for answers.",
    "tokens_total": "Tokens of models for answers.",
    "cost_dollars_total": "Dollars for models for answers, as far as prices are known.",
}
GAUGES = {
    "questions_running": "Questions that are being answered.",
    "questions_waiting": "Questions that wait for others.",
    "jobs": "Runs by their state.",
    "index_version": "Current version of an index; 0 before the first run.",
    "build_info": "Version of the program.",
}


class Metrics:
    """The counters of a server. Several threads may use them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: dict[tuple[str, ...], Sample] = {}

    def add(self, name: str, amount: float = 1, **labels: object) -> None:
        """Increase a counter."""
        key = (name, *map(str, labels.values()))
        with self._lock:
            before = self._totals[key].value if key in self._totals else 0
            self._totals[key] = Sample(name, before + amount, labels)

    def as_text(self, gauges: Iterable[Sample]) -> str:
        """Return all metrics as text; the values of gauges are given."""
        with self._lock:
            samples = [self._totals[key] for key in sorted(self._totals)]
        samples += gauges
        lines: list[str] = []
        for kind, metrics in (("counter", COUNTERS), ("gauge", GAUGES)):
            for name, description in metrics.items():
                lines.append(f"# HELP {PREFIX}{name} {description}")
                lines.append(f"# TYPE {PREFIX}{name} {kind}")
                lines += [_format_sample(sample) for sample in samples if sample.name == name]
        return "\n".join(lines) + "\n"


def _format_sample(sample: Sample) -> str:
    labels = (f'{key}="{str(text).translate(_ESCAPES)}"' for key, text in sample.labels.items())
    text = ",".join(labels)
    return f"{PREFIX}{sample.name}{f'{{{text}}}' if text else ''} {sample.value:.15g}"


logger = logging.getLogger(__name__)

# Seconds that a client may take to send the next part of a body.
BODY_SECONDS = 30.0
_MAX_LOGGED_PATH_CHARS = 300
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
# An id of the client is kept if it can stand in logs and headers as it is.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Nothing of a reply may run, be framed, or tell other sites its address. The page of the explorer
# has a policy of its own.
_SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # A reply depends on the key, so no cache may show it to others.
    "Cache-Control": "no-store",
}


class RequestRecorder:
    """Middleware around all others. It also answers exceptions that nothing has expected."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, settings: ServerSettings, roots: Mapping[str, str]
    ) -> None:
        self.app, self.metrics, self.settings, self._roots = app, metrics, settings, roots

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self._add_root_path(scope)
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        record = RequestRecord(
            request_id, traceparent=headers.get("traceparent", ""), roots=self._roots
        )
        token = CURRENT.set(record)
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = record.id
                if record.trace_id:
                    headers["X-Trace-ID"] = record.trace_id
                for name, value in _SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            try:
                await self.app(scope, self._limit_body(scope, receive), send_with_headers)
            except Exception as error:  # noqa: BLE001 - reported to the client, and logged
                problem = as_request_error(error)
                if status == 0:
                    await problem.response()(scope, receive, send_with_headers)
        finally:
            CURRENT.reset(token)
            self._finish(scope, record, status)

    def _finish(self, scope: Scope, record: RequestRecord, status: int) -> None:
        """Log a request and count it. The status 0 means that the client was gone."""
        seconds = time.perf_counter() - record.started
        # The path would make a series of metrics for each entity.
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.metrics.add("requests_total", route=route, method=method, status=status)
        self.metrics.add("request_seconds_total", seconds, route=route)
        logger.info(
            "request",
            # The query is left out, since it can hold a question.
            extra={
                "request_id": record.id,
                "trace_id": record.trace_id or None,
                "caller": record.caller or None,
                "method": scope["method"],
                "path": scope["path"][:_MAX_LOGGED_PATH_CHARS],
                "status": status,
                "seconds": round(seconds, 4),
            },
        )

    def _add_root_path(self, scope: Scope) -> None:
        """Accept paths with and without the root path, since some proxies cut it off."""
        root_path = self.settings.root_path
        if root_path and not scope.get("root_path"):
            scope["root_path"] = root_path
            if not scope["path"].startswith(f"{root_path}/"):
                scope["path"] = root_path + scope["path"]

    def _limit_body(self, scope: Scope, receive: Receive) -> Receive:
        """Limit the size of a body, and the time in which each part of it must arrive."""
        is_upload = scope["path"].endswith(UPLOAD_PATH_END)
        max_bytes = self.settings.max_upload_bytes if is_upload else self.settings.max_body_bytes
        n_bytes, is_complete = 0, False

        async def receive_part() -> Message:
            nonlocal n_bytes, is_complete
            if is_complete:
                # Only the end of the connection can follow; an open stream waits for it.
                return await receive()
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    message = await receive()
            except TimeoutError:
                text = f"The body paused for {BODY_SECONDS:g} seconds: send it without pauses."
                raise HTTPException(408, text, {"Connection": "close"}) from None
            n_bytes += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if n_bytes > max_bytes:
                text = f"The body is larger than {max_bytes:,} bytes: send less at once."
                raise HTTPException(413, text, {"Connection": "close"})
            return message

        return receive_part


class QuestionRecorder:
    """Admits questions by the limits of their keys, and counts how they end."""

    def __init__(self, keys: KeyFile, metrics: Metrics, log_questions: bool) -> None:
        self.keys, self.metrics, self.log_questions = keys, metrics, log_questions

    def admit(self, asked: AskedQuestion) -> None:
        """Count a question. Raises RequestError if a limit of its key does not allow it."""
        if asked.caller.key is None:
            return
        try:
            self.keys.count_question(asked.caller.key)
        except RateError as error:
            wait = {"Retry-After": str(math.ceil(error.wait))}
            raise RequestError(429, "rate_limit", str(error), wait) from None
        except DailyCostError as error:
            # Clients repeat a 429 by themselves, which would not help before midnight.
            raise RequestError(402, "daily_cost_limit", str(error)) from None
        except GraphRAGError as error:
            logger.error("%s", error)
            raise RequestError(
                503, "keys_unavailable", "The server cannot count this question: try again."
            ) from None

    def record(self, asked: AskedQuestion, end: QuestionEnd) -> None:
        """Count a question that has ended, and its cost, also if nobody got an answer."""
        usage, index = end.usage, asked.hosted.name
        self._add_cost(asked, usage.cost)
        metrics = self.metrics
        metrics.add("questions_total", index=index, method=end.method, outcome=end.outcome)
        metrics.add("question_seconds_total", usage.seconds, method=end.method)
        if usage.calls:
            metrics.add("model_calls_total", usage.calls, index=index)
            metrics.add("tokens_total", usage.prompt_tokens, index=index, kind="prompt")
            metrics.add("tokens_total", usage.completion_tokens, index=index, kind="completion")
            metrics.add("cost_dollars_total", usage.cost or 0.0, index=index)
        logger.info(
            "question",
            extra={
                "request_id": current_request_id(),
                "caller": asked.caller.name,
                "index": index,
                "search": end.method,
                "outcome": end.outcome,
                "calls": usage.calls,
                "tokens": usage.prompt_tokens + usage.completion_tokens,
                "cost": usage.cost,
                "seconds": round(usage.seconds, 4),
                "question": asked.question if self.log_questions else None,
            },
        )

    def _add_cost(self, asked: AskedQuestion, cost: float | None) -> None:
        key = asked.caller.key
        if key is None:
            return
        if cost is None and key.daily_cost is not None:
            logger.warning(
                "The cost of a question of the key %s is unknown, so its daily limit does not "
                "count it: set the prices of the models of %s.",
                key.name,
                asked.hosted.name,
            )
        try:
            self.keys.add_cost(key, cost or 0.0)
        except GraphRAGError as error:
            # The answer is paid: its reader gets it.
            logger.error("%s", error)
