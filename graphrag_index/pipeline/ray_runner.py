"""Runner whose shards are made by the tasks of a Ray cluster [1]_.

References
----------
.. [1] Moritz et al., Ray: A Distributed Framework for Emerging AI Applications, OSDI 2018.
"""

import logging
import os
import signal
import socket
import sys
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from graphrag_index import __version__
from graphrag_index.errors import SettingsError, StepError, WorkflowError
from graphrag_index.pipeline.shards import (
    MIN_BYTES_FOR_WORKERS,
    make_part,
    measure_peak_memory,
    write_file,
)

# A shard whose processes were killed this often is not tried again.
MAX_ATTEMPTS = 3
# The number of CPUs of the cluster is asked for again after this many seconds.
SECONDS_BETWEEN_LOOKS = 5.0
MAX_CONNECT_SECONDS = 10.0


class _Part(NamedTuple):
    """A part that a task returns, with the versions, CPU time and memory of its process."""

    content: bytes
    program: dict[str, str]
    cpu_seconds: float
    peak_memory_bytes: int


class RayRunner:
    """The tasks of the cluster in RAY_ADDRESS, or of one with `n` CPUs that is started here.

    The connection is opened with the first shard.
    """

    min_bytes, seconds_alone = MIN_BYTES_FOR_WORKERS, 0.0

    def __init__(self, n: int) -> None:
        self._address, self._n_here = os.environ.get("RAY_ADDRESS"), n
        self._ray: Any = None
        self._task: Any = None
        self._functions: dict[Path, Any] = {}
        self._parts: dict[Any, Path] = {}
        self._n, self._looked_at = n, float("-inf")
        self._cpu_seconds, self._peak_memory_bytes = 0.0, 0

    @property
    def n(self) -> int:
        """The number of CPUs of the cluster, which may change while a step runs."""
        if self._ray is not None and time.monotonic() - self._looked_at > SECONDS_BETWEEN_LOOKS:
            self._looked_at = time.monotonic()
            self._n = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        return self._n

    def start(self, function: Path, shard: bytes, part: Path) -> Any:
        """Start to make a part."""
        ray = self._connect()
        if function not in self._functions:
            # Only the function of the current step is needed.
            self._functions = {function: ray.put(function.read_bytes())}
        # The function is in a list, so that a process fetches it once, not with each shard.
        started = self._task.remote(function.name, [self._functions[function]], shard)
        self._parts[started] = part
        return started

    def wait(self, started: Any) -> None:
        """Wait for a part, and write it; raises the exception of its function."""
        from ray.exceptions import NodeDiedError, OutOfMemoryError, RayError, RayTaskError

        try:
            made = _Part(*self._ray.get(started))
        except RayTaskError as error:
            raise error.cause from error
        except (NodeDiedError, OutOfMemoryError) as error:
            raise StepError(_describe_deaths()) from error
        except RayError as error:
            if type(error).__name__ == "WorkerCrashedError":
                raise StepError(_describe_deaths()) from error
            text = " ".join(str(error).split())
            raise WorkflowError(f"The Ray cluster has failed: {text} Run again.") from error
        own = describe_program()
        for name, version in own.items():
            if made.program[name] != version:
                raise SettingsError(
                    f"A node of the Ray cluster has {name} {made.program[name]}, and this machine "
                    f"has {version}: install the same versions on all nodes."
                )
        self._cpu_seconds += made.cpu_seconds
        self._peak_memory_bytes = max(self._peak_memory_bytes, made.peak_memory_bytes)
        write_file(self._parts.pop(started), made.content)

    def count_cpu_seconds(self) -> float:
        """Return the CPU time of this process and of all tasks, without that of Ray itself."""
        return time.process_time() + self._cpu_seconds

    def measure_peak_memory(self) -> int | None:
        """Return the peak memory of the largest process, in bytes."""
        peak = measure_peak_memory()
        return peak and max(peak, self._peak_memory_bytes)

    def close(self) -> None:
        """Leave the cluster, whose running tasks are cancelled; end one that was started here."""
        if self._ray is not None:
            self._functions, self._parts = {}, {}
            self._ray.shutdown()
            self._ray = self._task = None

    def _check_address(self) -> None:
        """Raise WorkflowError if nothing answers at the address: Ray waits for many minutes."""
        host, colon, port = (self._address or "").rpartition("//")[2].rpartition(":")
        if not colon:  # no address, or "auto"
            return
        try:
            with socket.create_connection((host, int(port)), MAX_CONNECT_SECONDS):
                pass
        except (OSError, ValueError) as error:
            raise WorkflowError(
                f"No Ray cluster answers at {self._address} (RAY_ADDRESS): {error}."
            ) from None

    def _connect(self) -> Any:
        if self._ray is None:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            try:
                import ray
            except ModuleNotFoundError:
                raise SettingsError(
                    'The runner ray is not installed: pip install "graphrag-index[ray]".'
                ) from None
            self._check_address()
            handler = signal.getsignal(signal.SIGTERM)
            options: dict[str, Any] = {"num_cpus": self._n_here, "include_dashboard": False}
            try:
                ray.init(
                    address=self._address or "local",
                    logging_level=logging.ERROR,
                    log_to_driver=False,
                    **({} if self._address else options),
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                text = " ".join(str(error).split())
                raise WorkflowError(f"The Ray cluster cannot be used: {text}") from None
            # Undo the handler that Ray sets, which ends this process without cleaning up.
            signal.signal(signal.SIGTERM, handler)
            self._ray = ray
            self._task = ray.remote(max_retries=MAX_ATTEMPTS - 1, num_cpus=1)(_make_part)
        return self._ray


def describe_program() -> dict[str, str]:
    """Return the versions that all nodes must share, since parts depend on them."""
    import polars

    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"program": __version__, "python": python, "polars": polars.__version__}


def _describe_deaths() -> str:
    return (
        f"A shard has ended {MAX_ATTEMPTS} processes of the Ray cluster, possibly because memory "
        "was short: use nodes with more memory, or start them with fewer CPUs. Finished parts are "
        "kept."
    )


def _make_part(name: str, function: list[Any], shard: bytes) -> tuple[Any, ...]:
    """Make a part in a process of the cluster."""
    # This process has not imported polars yet when it gets its first shard.
    os.environ["POLARS_MAX_THREADS"] = "1"
    began = time.process_time()
    folder = _own_folder()
    path, part = Path(folder.name, name), Path(folder.name, "part")
    if not path.exists():
        import ray

        write_file(path, ray.get(function[0]))
    make_part(path, shard, part)
    content = part.read_bytes()
    part.unlink()
    seconds = time.process_time() - began
    return tuple(_Part(content, describe_program(), seconds, measure_peak_memory() or 0))


@cache
def _own_folder() -> "TemporaryDirectory[str]":
    """Return the folder of this process for functions and parts."""
    return TemporaryDirectory(prefix="graphrag-index-")
