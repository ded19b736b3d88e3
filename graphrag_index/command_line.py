"""What both command lines share: failures become one sentence and an exit code."""

import atexit
import errno
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from graphrag_index.errors import ExitCode, GraphRAGError


def run_program(app: Callable[[], Any]) -> None:
    """Run a command line as the whole of a process, which Ctrl-C ends with one exit code.

    People press it again where the end takes a moment. Python then dies of the signal: the
    interpreter gives it back to the system before it is gone.
    """
    # What is registered first is called last.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        run_app(app)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, _end_at_once)


def _end_at_once(signum: int, frame: object) -> None:
    # All that is to be written has been; a thread may be waited for, but need not be.
    os._exit(ExitCode.INTERRUPTED)


def run_app(app: Callable[[], Any]) -> None:
    """Run a command line, turning expected failures into one line and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Windows consoles of old code pages cannot print every name; a mark is better than a crash.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except GraphRAGError as error:
        print(f"Error: {_with_root(str(error), sys.argv)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has seen enough. What is still buffered must
        # go nowhere, or the interpreter would complain when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILED)
    except OSError as error:
        print(f"Error: {_describe_os_error(error)}", file=sys.stderr)
        sys.exit(ExitCode.FAILED)


def _with_root(message: str, arguments: Sequence[str]) -> str:
    """Let the command that a message names work on the folder that this one was given."""
    for option, value in pairwise(arguments):
        if option == "--root":
            root = f' "{value}"' if os.name == "nt" else f" {shlex.quote(value)}"
            return message.replace("`graphrag-index run`", f"`graphrag-index run --root{root}`")
    return message


def _describe_os_error(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"The disk is full{where}: make room and run again; finished steps are kept "
            "and the index is as it was."
        )
    return f"{error.strerror or error}{where}."
