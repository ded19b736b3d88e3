"""The process that runs one query: it reads a task and writes the result.

The task is JSON at the standard input, the reply JSON at the standard output. The operating system
ends the process after its time limit and limits its memory; it can write no file. On a system
without such limits, `sandbox` ends it.
"""

import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_index.errors import QueryError


class DamagedError(QueryError):
    """A graph database that cannot be opened."""


class Limits(NamedTuple):
    """Limits of a query: rows of its result, seconds, and megabytes of memory."""

    max_rows: int = 1_000
    timeout: float = 30.0
    max_memory: int = 1_024

    @property
    def max_bytes(self) -> int:
        """Length of the rows as text, so that their reader needs no more memory than the query."""
        return self.max_memory << 18


# The names of the columns, and the rows: one more than the limit tells that there are more.
Rows = tuple[Sequence[str], Iterable[Sequence[Any]]]
# Called when everything is open: the limits apply from then on.
Ready = Callable[[], None]


def main() -> None:
    """Run one task."""
    # The waiting process ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries print too, such as a progress bar: send that to the standard error.
    output = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    task = json.load(sys.stdin)
    limits = Limits(*task["limits"])
    module, _, function = task["engine"].partition(".")
    run = getattr(import_module(f"graphrag_query.structured.{module}"), function)
    try:
        columns, found = run(task["tables"], task["query"], limits, lambda: _apply(limits))
        rows = [[_as_json(value) for value in row] for row in found]
        text = json.dumps({"columns": _unique(columns), "rows": rows})
        if len(text) > limits.max_bytes:
            raise QueryError(
                f"The rows of the query are larger than {limits.max_bytes >> 20:,} MB: ask for "
                "fewer or shorter ones, or raise structured_search.max_memory."
            )
    except QueryError as error:
        text = json.dumps({"error": str(error), "damaged": isinstance(error, DamagedError)})
    except OSError as error:
        text = json.dumps({"os": [error.errno, error.strerror, error.filename]})
    except MemoryError:
        text = json.dumps({"memory": True})
    # Writing the rows does not count in the query's time.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    with output:
        output.write(text)


def _apply(limits: Limits) -> None:
    """Set the limits; memory in use so far does not count."""
    if hasattr(signal, "setitimer"):
        # The default action ends the process, also inside of a library.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limits.timeout)
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        if sys.platform == "linux":
            most = _data_bytes() + (limits.max_memory << 20)
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _data_bytes() -> int:
    """Return the memory that the process has reserved, as the limit counts it."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmData")


def _as_json(value: Any) -> Any:
    """Convert a value to JSON types; dates are written as ISO 8601."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {str(name): _as_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set):
        return [_as_json(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "to_list"):
        return _as_json(value.to_list())
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _unique(names: Sequence[str]) -> list[str]:
    """Number repeated names: name, name_2."""
    taken: list[str] = []
    for name in names:
        new, n = name, 1
        while new in taken:
            n += 1
            new = f"{name}_{n}"
        taken.append(new)
    return taken


if __name__ == "__main__":
    main()
