"""What runs a query in a process of its own: it reads a task and writes what came of it.

The task is JSON at the standard input, the reply JSON at the standard output. The system ends
the process when its time is over, whatever it is at, and grants it no more memory than it may
have; it can write no file. Where a system knows no such limits, `sandbox` ends it.
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
from typing import Any

from graphrag_index.errors import QueryError
from graphrag_query.structured.limits import Limits


class DamagedError(QueryError):
    """A database that was made of the tables cannot be opened."""


# The names of the columns, and rows: one more than may be returned tells that there are more.
Rows = tuple[Sequence[str], Iterable[Sequence[Any]]]
# Called when all is open: from then on the limits hold.
Ready = Callable[[], None]


def main() -> None:
    """Do one task."""
    # Whoever waits for the reply ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries print too, such as a bar of progress: that goes elsewhere.
    output = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    task = json.load(sys.stdin)
    limits = Limits(*task["limits"])
    engine = import_module(f"graphrag_query.structured.{task['engine']}")
    try:
        columns, found = engine.run(task["tables"], task["query"], limits, lambda: _hold(limits))
        rows = [[_plain(value) for value in row] for row in found]
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
    _let_go()
    with output:
        output.write(text)


def _hold(limits: Limits) -> None:
    """Set the limits; what has been opened so far does not count."""
    if hasattr(signal, "setitimer"):
        # Its default ends the process, also in the middle of a library's work.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limits.timeout)
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        if sys.platform == "linux":
            most = _data_bytes() + (limits.max_memory << 20)
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _let_go() -> None:
    """The rows are there: writing them is not the query's work."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)


def _data_bytes() -> int:
    """How much memory the process has reserved so far, as the limit counts it."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmData")


def _plain(value: Any) -> Any:
    """Return a value as JSON knows it."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "to_list"):
        return _plain(value.to_list())
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _unique(names: Sequence[str]) -> list[str]:
    """Number names that come again: name, name_2."""
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
