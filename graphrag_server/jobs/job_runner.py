"""The threads that run the jobs of a server: one for each index, one job at a time."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from graphrag_server.hosted_index import HostedIndex
from graphrag_server.jobs.job_store import JobState, JobStore
from graphrag_server.jobs.run_process import CANCEL
from graphrag_server.problems import RequestError

logger = logging.getLogger(__name__)

# A job whose process was killed so often is not started again.
MAX_ATTEMPTS = 3
_RUN_PROCESS = "graphrag_server.jobs.run_process"
# Seconds that a process has to stop after its standard input has ended.
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.2
_IDLE_SECONDS = 5.0


class JobRunner:
    """The jobs of all indexes of a server."""

    def __init__(self, indexes: Iterable[HostedIndex]) -> None:
        self._queues = {index.name: _IndexQueue(index) for index in indexes}
        # Set when the server begins to stop: streams of events end then.
        self.is_stopping = False

    def start(self) -> None:
        """Start the threads; jobs that were interrupted go on."""
        for queue in self._queues.values():
            queue.start()

    def stop(self) -> None:
        """Stop the running jobs; the next start goes on with them."""
        self.is_stopping = True
        for queue in self._queues.values():
            queue.ask_to_stop()
        for queue in self._queues.values():
            queue.join()

    def store(self, index: str) -> JobStore:
        """Return the jobs of an index."""
        return self._queues[index].jobs

    def wake(self, index: str) -> None:
        """Run the waiting jobs of an index now, not after the next pause."""
        self._queues[index].wake()


class _IndexQueue(threading.Thread):
    def __init__(self, index: HostedIndex) -> None:
        super().__init__(name=f"jobs-{index.name}", daemon=True)
        self._index, self._root = index.name, index.root
        self._folder: Path = index.store.output
        self.jobs = JobStore(self._folder)
        self._wake, self._stop_wanted = threading.Event(), threading.Event()

    def wake(self) -> None:
        self._wake.set()

    def ask_to_stop(self) -> None:
        self._stop_wanted.set()
        self._wake.set()

    def run(self) -> None:
        failure = ""
        while not self._stop_wanted.is_set():
            self._wake.clear()
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                # Of several processes that serve a project, one runs its jobs.
                with FileLock(self._folder / ".jobs.lock", timeout=0):
                    self._run_jobs()
            except Timeout:
                self._wake.wait(_IDLE_SECONDS)
            except (OSError, RequestError) as error:
                # The folder may become writable again; until then, one line is enough.
                if str(error) != failure:
                    logger.error("%s cannot run jobs: %s", self.name, error)
                failure = str(error)
                self._wake.wait(_IDLE_SECONDS)
            except Exception:
                logger.exception("the queue of %s failed", self.name)
                self._wake.wait(_IDLE_SECONDS)

    def _run_jobs(self) -> None:
        """Run jobs until the server stops."""
        self.jobs.requeue_interrupted()
        while not self._stop_wanted.is_set():
            self._wake.clear()
            if (job := self.jobs.claim()) is not None:
                self._run_process(job.id)
            else:
                # A process of another server may have added a job.
                self._wake.wait(_IDLE_SECONDS)

    def _run_process(self, job: str) -> None:
        command = [sys.executable, "-P", "-m", _RUN_PROCESS, str(self._root), job]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stderr is not None
        errors: list[bytes] = []
        reader = threading.Thread(
            target=lambda stream: errors.append(stream.read()[-4_000:]),
            args=(process.stderr,),
            daemon=True,
        )
        reader.start()
        try:
            while process.poll() is None:
                if self._stop_wanted.is_set() or self.jobs.is_cancelled(job):
                    self._end(process, self.jobs.is_cancelled(job))
                    break
                self._stop_wanted.wait(_POLL_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            reader.join(timeout=5)
            process.stderr.close()
            with suppress(OSError):
                process.stdin.close()
        self._note_end(job, process.returncode, b"".join(errors).decode("utf-8", "replace"))

    def _end(self, process: "subprocess.Popen[bytes]", is_cancelled: bool) -> None:
        assert process.stdin is not None
        with suppress(OSError):
            if is_cancelled:
                process.stdin.write(CANCEL)
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)

    def _note_end(self, job: str, code: int, errors: str) -> None:
        """Log a failed run; queue a killed one again, or end it if it was killed too often."""
        found = self.jobs.get(job)
        if found is not None and found.state is JobState.FAILED:
            # Whoever started the server may look at its terminal and at no page.
            logger.error("The run of the index %s failed: %s", self._index, found.message)
        if found is None or found.state is not JobState.RUNNING:
            return
        if self.jobs.is_cancelled(job):
            self.jobs.finish(job, JobState.CANCELLED, "Finished steps are kept for the next run.")
        elif self._stop_wanted.is_set() or self.jobs.attempts(job) < MAX_ATTEMPTS:
            self.jobs.finish(job, JobState.QUEUED, "The process of the run ended; it goes on.")
        else:
            logger.error("the process of job %s ended with code %d: %s", job, code, errors)
            self.jobs.finish(
                job,
                JobState.FAILED,
                f"The process of the run ended {MAX_ATTEMPTS} times (exit code {code}); the "
                "log of the server has the reason.",
            )
