"""Routes of the whole server: the page of the explorer, health, readiness and metrics."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse

import graphrag_index
from graphrag_evaluation.report.evaluation_page import read_frame
from graphrag_index.errors import GraphRAGError
from graphrag_index.export import explorer_page
from graphrag_server.access import CurrentCaller, require_scope
from graphrag_server.asking import Asker
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.jobs.job_runner import JobRunner
from graphrag_server.keys import Scope
from graphrag_server.problems import RequestError
from graphrag_server.request_recorder import CONTENT_TYPE, Metrics, Sample

logger = logging.getLogger(__name__)
router = APIRouter(tags=["operation"])


@router.get("/health")
async def read_health() -> dict[str, str]:
    """Say that the server answers. No key is needed, and nothing else is told."""
    return {"status": "ok"}


@router.get("/ready")
def read_readiness(request: Request) -> dict[str, str]:
    """Open all indexes, and say that the server can answer questions; else reply with 503.

    An index that has not been built yet is ready for its first documents.
    """
    try:
        for index in request.app.state.indexes.values():
            _open_version(index)
    except GraphRAGError as error:
        # Nobody was identified, so the reply does not tell which index, nor where.
        logger.error("%s", error)
        raise RequestError(
            503, "not_ready", "An index cannot be opened; the log has the reason."
        ) from None
    return {"status": "ready"}


@router.get("/metrics", response_class=PlainTextResponse)
def read_metrics(request: Request, caller: CurrentCaller) -> PlainTextResponse:
    """Return the metrics of the server in Prometheus' text format (scope admin)."""
    require_scope(caller, Scope.ADMIN)
    metrics: Metrics = request.app.state.metrics
    return PlainTextResponse(metrics.as_text(_gauges(request)), media_type=CONTENT_TYPE)


def _gauges(request: Request) -> Iterator[Sample]:
    asker: Asker = request.app.state.asker
    jobs: JobRunner = request.app.state.jobs
    n_running = min(asker.n_open, request.app.state.settings.max_concurrent_questions)
    yield Sample("questions_running", n_running, {})
    yield Sample("questions_waiting", asker.n_open - n_running, {})
    for index in request.app.state.indexes.values():
        # A damaged index has no version; the metrics of the others are still wanted.
        with suppress(GraphRAGError):
            yield Sample("index_version", _open_version(index), {"index": index.name})
        # A disk that is full or read-only has no queue of jobs.
        with suppress(RequestError):
            for state, count in jobs.store(index.name).counts().items():
                yield Sample("jobs", count, {"index": index.name, "state": state})
    yield Sample("build_info", 1, {"version": graphrag_index.__version__})


def _open_version(index: HostedIndex) -> int:
    """Return the current version of an index; 0 if it has not been built yet."""
    try:
        return index.open().store.version.number
    except RequestError:
        return 0


@router.get("/", include_in_schema=False)
def read_explorer() -> HTMLResponse:
    """Return the page of the explorer. It holds no data, so it needs no key."""
    page, policy = _read_page()
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


@cache
def _read_page() -> tuple[str, str]:
    """Return the page, and a security policy that allows only its own scripts and styles.

    The policy also allows those of the report of an evaluation: the explorer opens a report,
    which it must fetch with its key, in a new tab, and the tab inherits the policy.
    """
    page = explorer_page.read_explorer()
    policy = explorer_page.security_policy(page + read_frame(), connections="'self'")
    return page, f"{policy}; frame-ancestors 'none'"
