"""The process of one run: `python -m graphrag_server.jobs.run_process ROOT JOB`.

It does what `graphrag-index run` does, and writes its progress into the queue. It stops when its
standard input ends, which happens if the server ends in any way, or cancels the job.
"""

import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from graphrag_index.errors import BudgetError, GraphRAGError, WorkflowError, let_ctrl_c_end_waits
from graphrag_index.pipeline.estimate import estimate
from graphrag_index.pipeline.import_version import restore_imported
from graphrag_index.pipeline.run import RunSetup, Watcher, run_workflow
from graphrag_index.pipeline.workflow import (
    check_workflow,
    find_asking_steps,
    load_workflow,
    make_services,
    open_models,
)
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_index.step import Progress, Step
from graphrag_index.storage.lancedb_stubs import stub_unused_imports
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StepRecord
from graphrag_index.storage.working_copy import locate_output
from graphrag_server.jobs.job_store import Job, JobState, JobStore

# Seconds between two events of progress.
_EVENT_SECONDS = 0.5
# Seconds between two looks whether another run has finished.
_LOCK_SECONDS = 1.0
_SAMPLE_DOCUMENTS = 100
# The line that the server writes to the standard input of the process of a cancelled job.
CANCEL = b"cancel\n"


class _StepProgress:
    """A `Progress` that writes events, at most one each half second."""

    def __init__(self, write: Callable[..., None]) -> None:
        self._write, self._written = write, 0.0
        self._total: int | None = None
        self._unit, self._done, self._started = "", 0, time.monotonic()

    def start(self, total: int | None, unit: str) -> None:
        """Start counting `total` units."""
        self._total, self._unit, self._done, self._started = total, unit, 0, time.monotonic()
        self._report()

    def advance(self, n: int = 1) -> None:
        """Add `n` to the number of finished units."""
        self._done += n
        if time.monotonic() - self._written >= _EVENT_SECONDS:
            self._report()

    def _report(self) -> None:
        self._written = time.monotonic()
        left = None
        if self._total and self._done:
            left = (self._written - self._started) * (self._total - self._done) / self._done
        self._write(
            rows_done=self._done, rows_total=self._total, unit=self._unit, seconds_left=left
        )


class _JobWatcher(Watcher):
    """A watcher that writes the steps of a run into the queue."""

    def __init__(self, write: Callable[..., None], spent: Callable[[], dict[str, Any]]) -> None:
        self._write, self._spent = write, spent

    def step_started(self, step: Step, number: int, of: int) -> Progress:
        self._write(step=step.name, step_number=number, n_steps=of, rows_done=0, rows_total=None)
        return _StepProgress(lambda **values: self._write(**values, **self._spent()))

    def step_finished(self, record: StepRecord, reused: bool) -> None:
        self._write(quarantined=record.quarantined, seconds_left=None, **self._spent())


class _Stop:
    """The end of the standard input: by a cancelled job, or with the server."""

    def __init__(self) -> None:
        self.is_cancelled = False
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        self.is_cancelled = sys.stdin.buffer.readline() == CANCEL
        signal.raise_signal(signal.SIGINT)


def run_job(root: Path, job: Job, store: JobStore) -> None:
    """Run the workflow of a project, and write the end of the job."""
    stop = _Stop()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    let_ctrl_c_end_waits()
    try:
        version, quarantined, n_final = _run(root, job, store)
        advice = ": retry." if n_final < quarantined else ": the server would refuse them again."
        message = f"{quarantined} requests have no valid reply{advice}" if quarantined else ""
        store.finish(job.id, JobState.DONE, message, version=version, quarantined=quarantined)
    except KeyboardInterrupt:
        if stop.is_cancelled:
            store.finish(job.id, JobState.CANCELLED, "Finished steps are kept for the next run.")
        else:
            store.finish(job.id, JobState.QUEUED, "The server stopped; its next start goes on.")
    except BudgetError as error:
        store.finish(job.id, JobState.WAITING_BUDGET, str(error))
    except GraphRAGError as error:
        store.finish(job.id, JobState.FAILED, str(error))
    except OSError as error:
        reason = error.strerror or str(error)
        store.finish(job.id, JobState.FAILED, f"{reason}: make room, and start a run again.")


def _run(root: Path, job: Job, store: JobStore) -> tuple[int, int, int]:
    """Run the workflow; return the number of its version, of failed requests, and of final ones."""
    settings = load_settings(root)
    workflow = load_workflow(root, settings.workflow)
    tables = TableStore(locate_output(root, settings))
    write = partial(store.update, job.id)
    with closing(open_models(workflow, settings, root, job.budget)) as models:
        services = make_services(settings, models, root)
        check_workflow(workflow, settings, root, services)
        asking = bool(find_asking_steps(workflow, settings))
        if asking and job.estimate is None:
            found = estimate(workflow, settings, root, _SAMPLE_DOCUMENTS)
            costs = [line.cost for line in found.lines]
            known = [cost for cost in costs if cost is not None]
            write(
                estimate={
                    "requests": sum(line.n_to_ask for line in found.lines),
                    "cost": sum(known) if len(known) == len(costs) else None,
                }
            )

        def spent() -> dict[str, Any]:
            if not asking:
                return {}
            total = models.spent(tables.next_number())
            return {"calls": total.calls, "cost": total.cost}

        watcher = _JobWatcher(write, spent)
        restore_imported(workflow, settings, root, watcher)
        if job.kind == "retry":
            models.reopen_requests([step.name for step in workflow.steps])
        while True:
            try:
                setup = RunSetup(watcher=watcher, models=models)
                result = run_workflow(workflow, settings, root, services, setup)
                break
            except WorkflowError as error:
                if "Another run is writing" not in str(error):
                    raise
                write(message="Another run is writing to this index: this job goes on after it.")
                time.sleep(_LOCK_SECONDS)
        models.mark_finished()
        steps = [record.name for record in result.version.steps if record.quarantined]
        failed = models.quarantined_requests(steps)
        return result.version.number, len(failed), sum(row.is_final for row in failed)


def main() -> None:
    """Run the job of the command line."""
    stub_unused_imports()
    root = Path(sys.argv[1])
    store = JobStore(root / load_settings(root).output)
    job = store.get(sys.argv[2])
    if job is not None:
        run_job(root, job, store)


if __name__ == "__main__":
    main()
