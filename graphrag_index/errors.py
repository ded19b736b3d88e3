"""The exceptions of the program, and their messages and exit codes on the command line.

GraphRAGError
├── SettingsError    settings.yaml, .env or --set has an invalid value
├── WorkflowError    a workflow names an unknown step, or no step writes a table that it needs
├── InputError       there is no document to read
├── TableError       a table is missing, damaged or has another schema
├── QueryError       a query in SQL or Cypher is invalid or not allowed
├── ExportError      the target of an export exists already, or a filter matches nothing
├── StepError        a step raised an exception that is not a GraphRAGError
├── ModelError       a model cannot be reached, is not installed, or rejects all requests
│   └── OutageError  a model has not responded within the time limit
├── BudgetError      the next request could exceed the budget
└── WaitingError     requests are in a batch; a later run collects the replies

Every message has one or two sentences: what happened, where, and what the user should do.
"""

import atexit
import errno
import os
import re
import shlex
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from itertools import pairwise
from typing import Any, TextIO


class ExitCode(IntEnum):
    """The exit status of a command."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    QUARANTINED = 3  # the run is finished, but some requests failed and are listed
    BUDGET = 4  # the next request could exceed the budget
    WAITING = 5  # requests are in a batch; the same command collects the replies later
    INTERRUPTED = 130  # the user pressed Ctrl-C; shells use this code (128 + 2) too


class GraphRAGError(Exception):
    """Base class of all failures that the program explains to its user."""

    exit_code = ExitCode.FAILED


class SettingsError(GraphRAGError):
    """An invalid value in `settings.yaml`, `.env` or `--set`."""

    exit_code = ExitCode.WRONG_USE


class WorkflowError(GraphRAGError):
    """An unknown step, or a step that reads a table that no earlier step writes."""

    exit_code = ExitCode.WRONG_USE


class InputError(GraphRAGError):
    """An input folder that is missing, is empty, or has no readable document."""

    exit_code = ExitCode.WRONG_USE


class TableError(GraphRAGError):
    """A table that is missing, damaged, or lacks its columns."""


class QueryError(GraphRAGError):
    """A query in SQL or Cypher that is invalid, is not allowed, or exceeds a limit."""

    exit_code = ExitCode.WRONG_USE


class ExportError(GraphRAGError):
    """An export whose target exists already, or whose filter matches nothing."""

    exit_code = ExitCode.WRONG_USE


class StepError(GraphRAGError):
    """An unexpected failure of a step."""


class ModelError(GraphRAGError):
    """A model that cannot be reached, is not installed, or rejects all requests."""


class OutageError(ModelError):
    """A model that has not responded within the time limit of the settings."""


class BudgetError(GraphRAGError):
    """A request that could cost more than the rest of the budget."""

    exit_code = ExitCode.BUDGET


class WaitingError(GraphRAGError):
    """A run that ends while its requests are in a batch; a later run collects the replies."""

    exit_code = ExitCode.WAITING


def describe_error(error: BaseException) -> str:
    """Return one line with the type of an error and the first paragraph of its message."""
    message = " ".join(str(error).strip().partition("\n\n")[0].split()).rstrip(".")
    name = type(error).__name__
    return f"{name}: {message}" if message else name


def why_unread(error: Exception) -> str:
    """Return why a file cannot be read, without the name of the file."""
    return getattr(error, "strerror", None) or str(error)


def run_program(app: Callable[[], Any]) -> None:
    """Run a command-line program, and exit with the code INTERRUPTED after Ctrl-C.

    A second Ctrl-C while the process exits must not change the exit code. For this, the signal
    handler is replaced when the command ends, and again when the interpreter shuts down.
    """
    # Register this call first, because `atexit` calls functions in reverse order: it is the last.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        with explain_failures():
            app()
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    finally:
        # After Ctrl-C, exit without waiting for threads, because all output has been written.
        signal.signal(signal.SIGINT, lambda *_: os._exit(ExitCode.INTERRUPTED))


def let_ctrl_c_end_waits() -> None:
    """Make Ctrl-C end a wait for input or for another thread. Call it after polars is imported.

    The signal handler of polars lets the wait go on, until something arrives.
    """
    if hasattr(signal, "siginterrupt"):  # not on Windows
        signal.siginterrupt(signal.SIGINT, True)


@contextmanager
def explain_failures() -> Iterator[None]:
    """Print a GraphRAGError or an OSError as one line, and exit with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Old code pages of Windows consoles lack some characters: print "?" instead of crashing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except GraphRAGError as error:
        print_lines(f"Error: {_add_index_options(str(error), sys.argv)}", sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # A program that reads the output, such as `head`, has closed the pipe. Redirect the output,
        # because the interpreter would fail again when it flushes the output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILED)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        message = f"{error.strerror or error}{where}."
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            message = (
                f"The disk is full{where}: make room and run again; finished steps are kept "
                "and the index is as it was."
            )
        print_lines(f"Error: {message}", sys.stderr)
        sys.exit(ExitCode.FAILED)


def print_lines(text: str, out: TextIO | None = None, indent: int = 0) -> None:
    """Print prose; in a terminal, break its lines at words, and indent the lines that follow.

    The lines that follow keep the indentation of their line and get `indent` columns more.
    """
    out = out or sys.stdout
    if out.isatty():
        width = max(shutil.get_terminal_size().columns, indent + 20)
        text = "\n".join(_break_line(line, width, indent) for line in text.split("\n"))
    print(text, file=out, flush=True)


def _break_line(line: str, width: int, indent: int) -> str:
    hanging = " " * (len(line) - len(line.lstrip()) + indent)
    return textwrap.fill(
        line,
        width,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


def _add_index_options(message: str, arguments: Sequence[str]) -> str:
    """Add the options that name the index of the current command to a suggested command."""
    options = "".join(
        f" {option} {quote_argument(value)}"
        for option, value in pairwise(arguments)
        if option == "--root" or (option == "--set" and value.startswith("output="))
    )
    return message.replace("`graphrag-index run`", f"`graphrag-index run{options}`")


def quote_argument(value: str) -> str:
    """Quote an argument of a command for the shell."""
    return f'"{value}"' if os.name == "nt" else shlex.quote(value)


def format_count(name: str, n: int) -> str:
    """Write a number of things with their name, in the singular for 1: "1 text unit"."""
    words = name.replace("_", " ")
    if n == 1:
        words = re.sub(r"s\b", "", re.sub(r"ies\b", "y", words))
    return f"{n:,} {words}"


def join_counts(**counts: int) -> str:
    """Join numbers of things, without those that are 0: "2 text units, 1 claim"."""
    return ", ".join(format_count(name, n) for name, n in counts.items() if n)


def join_names(names: Iterable[str], at_most: int = 8) -> str:
    """Join at most `at_most` names by commas, and add the number of further names."""
    names = list(names)
    more = f", and {len(names) - at_most:,} more" if len(names) > at_most else ""
    return ", ".join(names[:at_most]) + more
