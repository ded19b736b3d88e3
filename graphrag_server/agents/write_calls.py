"""Calls of the tools that change an index: runs, and documents that are given as text."""

import io
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import anyio
import anyio.to_thread

from graphrag_server.agents.mcp_tools import MAX_TEXT_CHARS, DocumentArguments, RunArguments
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.jobs.job_runner import JobRunner
from graphrag_server.jobs.job_store import ENDED, Job, JobState, JobStore
from graphrag_server.jobs.uploads import InputFolder
from graphrag_server.problems import RequestError

# Seconds after which `watch` returns although the run goes on: clients give up on long calls.
_WATCH_SECONDS = 45.0
_POLL_SECONDS = 0.5
# States in which a run does nothing more by itself.
_AT_REST = (*ENDED, JobState.WAITING_BUDGET)


class IndexWriter:
    """The changes that agents may make to the indexes of a server."""

    def __init__(self, jobs: JobRunner) -> None:
        self._jobs = jobs

    async def control_run(
        self,
        index: HostedIndex,
        caller: str,
        arguments: RunArguments,
        progress: Callable[[str], Awaitable[None]],
    ) -> dict[str, Any]:
        """Start, watch or cancel a run; return its fields that are set."""
        store = self._jobs.store(index.name)
        job = await anyio.to_thread.run_sync(self._change_run, index, caller, arguments)
        if arguments.action == "watch":
            job = await self._watch(store, job, progress)
        return {name: value for name, value in asdict(job).items() if value is not None}

    def _change_run(self, index: HostedIndex, caller: str, arguments: RunArguments) -> Job:
        store = self._jobs.store(index.name)
        if arguments.action == "start":
            job, _ = store.create("run", arguments.budget, caller, "", "")
            self._jobs.wake(index.name)
            return job
        found = _find_run(store, arguments.job)
        if arguments.action == "cancel" and found.state not in ENDED:
            store.cancel(found.id)
            found = _find_run(store, found.id)
        return found

    async def _watch(
        self, store: JobStore, job: Job, progress: Callable[[str], Awaitable[None]]
    ) -> Job:
        until, told = time.monotonic() + _WATCH_SECONDS, ""
        while job.state not in _AT_REST and time.monotonic() < until and not self._jobs.is_stopping:
            message = f"{job.state}: step {job.step_number} of {job.n_steps}, {job.step or ''}"
            if message != told:
                await progress(message)
                told = message
            await anyio.sleep(_POLL_SECONDS)
            job = await anyio.to_thread.run_sync(_find_run, store, job.id)
        return job

    def change_document(self, index: HostedIndex, arguments: DocumentArguments) -> dict[str, Any]:
        """Store or delete a file of the input folder; return its path."""
        folder = InputFolder(index.settings, index.root, 4 * MAX_TEXT_CHARS)
        path = arguments.path
        if arguments.action == "remove":
            folder.remove(path)
        else:
            content = io.BytesIO(arguments.text.encode("utf-8", "replace"))
            path = folder.add(path, content, arguments.action == "replace").path
        return {"path": path, "message": "Start a run to update the index."}


def _find_run(store: JobStore, job: str) -> Job:
    """Return a run by its id, or the newest one if the id is empty. Raises RequestError."""
    newest = store.jobs(1) if not job else []
    found = store.get(job) if job else newest[0] if newest else None
    if found is None:
        raise RequestError(404, "no_such_job", f"This index has no run {job!r}.")
    return found
