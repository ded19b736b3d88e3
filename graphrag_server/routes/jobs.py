"""Runs over HTTP: started, watched, cancelled, and given a larger budget."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from graphrag_server.access import ReadIndex, WriteIndex
from graphrag_server.event_stream import stream_events, write_event
from graphrag_server.jobs.job_runner import JobRunner
from graphrag_server.jobs.job_store import ENDED, Job, JobStore
from graphrag_server.problems import RequestError

router = APIRouter(prefix="/v1/indexes/{index}/jobs", tags=["jobs"])

# Seconds between two looks at the events of a job.
_POLL_SECONDS = 0.2


class JobBody(BaseModel, extra="forbid"):
    """A run that is wanted."""

    kind: Literal["run", "retry"] = Field(
        "run", description="`retry` sends requests without a valid reply again."
    )
    budget: float | None = Field(
        None, ge=0, description="Stop before the calls of models exceed this cost, in dollars."
    )


class BudgetBody(BaseModel, extra="forbid"):
    """A new budget, in dollars. It counts all calls of the run, also those before."""

    budget: float = Field(ge=0)


class JobList(BaseModel):
    """The newest jobs of an index, the newest first."""

    jobs: list[Job]


@router.post("", status_code=202, response_model=Job)
def start_job(
    body: JobBody,
    index: WriteIndex,
    request: Request,
) -> Response:
    """Start a run, which updates the index to its documents."""
    runner = _runner(request)
    job = runner.store(index.name).create(body.kind, body.budget)
    runner.wake(index.name)
    location = f"{request.scope.get('root_path', '')}/v1/indexes/{index.name}/jobs/{job.id}"
    return JSONResponse(asdict(job), 202, {"Location": location})


@router.get("")
def list_jobs(index: ReadIndex, request: Request) -> JobList:
    """List the newest jobs of an index."""
    return JobList(jobs=_runner(request).store(index.name).jobs())


@router.get("/{job}")
def read_job(job: str, index: ReadIndex, request: Request) -> Job:
    """Return the state and the progress of a job."""
    return _find(_runner(request).store(index.name), job)


@router.post("/{job}/cancel")
def cancel_job(job: str, index: WriteIndex, request: Request) -> Job:
    """Cancel a job. Its finished steps are kept for the next run."""
    store = _runner(request).store(index.name)
    if _find(store, job).state not in ENDED:
        store.cancel(job)
    return _find(store, job)


@router.post("/{job}/budget")
def raise_budget(job: str, body: BudgetBody, index: WriteIndex, request: Request) -> Job:
    """Set the budget of a job. A job that has stopped at its budget goes on."""
    runner = _runner(request)
    store = runner.store(index.name)
    if _find(store, job).state in ENDED:
        raise RequestError(409, "job_has_ended", f"The job {job} has ended: start another one.")
    store.raise_budget(job, body.budget)
    runner.wake(index.name)
    return _find(store, job)


@router.get("/{job}/events", response_class=Response)
async def watch_job(
    job: str,
    index: ReadIndex,
    request: Request,
    last_event_id: Annotated[
        str, Header(description="The number of the last event that was received.")
    ] = "",
) -> Response:
    """Stream the events of a job as server-sent events, from the first or after the last seen.

    Types of events: `state` and `progress` have the fields of the job that changed. The stream
    ends with the job, or with an event `stopping` when the server stops: read on later, with the
    header Last-Event-ID.
    """
    runner = _runner(request)
    store = runner.store(index.name)
    await run_in_threadpool(_find, store, job)
    after = int(last_event_id) if last_event_id.isdecimal() else 0
    return stream_events(_write_events(runner, store, job, after))


async def _write_events(
    runner: JobRunner, store: JobStore, job: str, after: int
) -> AsyncIterator[bytes]:
    while True:
        found: list[tuple[int, str, dict[str, Any]]]
        found = await run_in_threadpool(store.events, job, after)
        for number, kind, data in found:
            after = number
            yield write_event(kind, data, str(number))
            if kind == "state" and data["state"] in ENDED:
                return
        if not found:
            current = await run_in_threadpool(store.get, job)
            if current is None or current.state in ENDED:
                return
            if runner.is_stopping:
                yield write_event("stopping", {"message": "The server stops; the job goes on."})
                return
            await asyncio.sleep(_POLL_SECONDS)


def _find(store: JobStore, job: str) -> Job:
    found = store.get(job)
    if found is None:
        raise RequestError(404, "no_such_job", f"This index has no job {job!r}.")
    return found


def _runner(request: Request) -> JobRunner:
    runner: JobRunner = request.app.state.jobs
    return runner
