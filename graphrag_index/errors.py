"""Errors, and how a command reports them.

GraphRAGError
├── SettingsError    settings.yaml, .env or --set has an invalid value
├── WorkflowError    a workflow names an unknown step or an unmet table
├── InputError       there is nothing to read
├── TableError       a table is missing, damaged or of another schema
├── QueryError       a query in SQL or Cypher is refused or wrong
├── ExportError      the target of an export is taken, or a filter matches nothing
├── StepError        a step raised an error of another kind
├── ModelError       a model cannot be reached, is not installed, or refuses to work
│   └── OutageError  a model has not responded within the time limit
├── BudgetError      the next request could exceed the budget
└── WaitingError     requests are in a batch; a later run collects the replies

Every message is one sentence or two: what happened, where, and what would be right.
"""

import atexit
import errno
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from itertools import pairwise
from typing import Any


class ExitCode(IntEnum):
    """The exit status of a command."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    QUARANTINED = 3  # finished, but some requests failed and are listed
    BUDGET = 4
    WAITING = 5  # requests are in a batch; the same command collects the replies later
    INTERRUPTED = 130  # Ctrl-C: 128 + SIGINT, as shells report it


class GraphRAGError(Exception):
    """Any failure that the program explains to its user."""

    exit_code = ExitCode.FAILED


class SettingsError(GraphRAGError):
    """An invalid value in `settings.yaml`, `.env` or `--set`."""

    exit_code = ExitCode.WRONG_USE


class WorkflowError(GraphRAGError):
    """An unknown step, or a step that reads a table which no step before it writes."""

    exit_code = ExitCode.WRONG_USE


class InputError(GraphRAGError):
    """An input folder that is missing, empty, or holds nothing readable."""

    exit_code = ExitCode.WRONG_USE


class TableError(GraphRAGError):
    """A table that is missing, damaged, or lacks its columns."""


class QueryError(GraphRAGError):
    """A query in SQL or Cypher that is refused, is wrong, or exceeds a limit."""

    exit_code = ExitCode.WRONG_USE


class ExportError(GraphRAGError):
    """An export whose target is taken, or whose filter matches nothing."""

    exit_code = ExitCode.WRONG_USE


class StepError(GraphRAGError):
    """An unexpected failure of a step."""


class ModelError(GraphRAGError):
    """A model that cannot be reached, is not installed, or refuses to work."""


class OutageError(ModelError):
    """A model that has not responded for as long as the settings allow."""


class BudgetError(GraphRAGError):
    """A request that could cost more than the budget leaves."""

    exit_code = ExitCode.BUDGET


class WaitingError(GraphRAGError):
    """Requests in a batch, whose replies a later run collects."""

    exit_code = ExitCode.WAITING


def describe_error(error: BaseException) -> str:
    """Describe an error on one line: its type and the first paragraph of its message."""
    message = " ".join(str(error).strip().partition("\n\n")[0].split()).rstrip(".")
    name = type(error).__name__
    return f"{name}: {message}" if message else name


def run_program(app: Callable[[], Any]) -> None:
    """Run a command line as a whole process, which Ctrl-C ends with one exit code.

    A second Ctrl-C while the process ends must not change the code: the handler is replaced
    at the end of the command, and again when the interpreter shuts down.
    """
    # Functions registered first are called last.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        with explain_failures():
            app()
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    finally:
        # All output is written; threads that are still running need not be joined.
        signal.signal(signal.SIGINT, lambda *_: os._exit(ExitCode.INTERRUPTED))


@contextmanager
def explain_failures() -> Iterator[None]:
    """Turn expected failures into a message of one line and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Windows consoles with old code pages cannot print every name; "?" is better than a crash.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except GraphRAGError as error:
        print(f"Error: {_with_root(str(error), sys.argv)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has closed it. Discard the buffered rest, or
        # the interpreter would complain when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILED)
    except OSError as error:
        print(f"Error: {_describe_os_error(error)}", file=sys.stderr)
        sys.exit(ExitCode.FAILED)


def _with_root(message: str, arguments: Sequence[str]) -> str:
    """Add the `--root` of this command to the command that a message suggests."""
    for option, value in pairwise(arguments):
        if option == "--root":
            root = f' "{value}"' if os.name == "nt" else f" {shlex.quote(value)}"
            return message.replace("`graphrag-index run`", f"`graphrag-index run --root{root}`")
    return message


def listed(names: Iterable[str], at_most: int = 8) -> str:
    """Join the first few names for a message, and say how many more there are."""
    names = list(names)
    more = f", and {len(names) - at_most:,} more" if len(names) > at_most else ""
    return ", ".join(names[:at_most]) + more


def _describe_os_error(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"The disk is full{where}: make room and run again; finished steps are kept "
            "and the index is as it was."
        )
    return f"{error.strerror or error}{where}."
