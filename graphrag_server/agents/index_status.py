"""Description of one index for the tool `status`."""

from contextlib import suppress
from typing import Any

from graphrag_server.hosted_index import HostedIndex
from graphrag_server.jobs.job_store import JobStore
from graphrag_server.problems import RequestError
from graphrag_server.routes.indexes import summarize_index
from graphrag_server.routes.versions import list_versions

_MAX_VERSIONS, _MAX_RUNS = 20, 5
_RUN_FIELDS = ("id", "kind", "state", "created", "ended", "step", "cost", "version", "message")


def describe_index(hosted: HostedIndex) -> dict[str, Any]:
    """Return the sizes of an index, its newest versions and runs, and its health if checked."""
    summary: dict[str, Any] = summarize_index(hosted).model_dump()
    if summary["version"]:
        versions = list_versions(hosted).versions
        summary["versions"] = [
            version.model_dump(include={"number", "date", "is_current", "cost"})
            for version in versions[:_MAX_VERSIONS]
        ]
        # A check takes long on a large index: only its known result is told.
        if health := hosted.checks.known(summary["version"]):
            summary["health"] = health
    # A disk that is full or read-only has no queue of jobs.
    with suppress(RequestError):
        runs = JobStore(hosted.store.output).jobs(_MAX_RUNS)
        summary["runs"] = [{name: getattr(run, name) for name in _RUN_FIELDS} for run in runs]
    return summary
