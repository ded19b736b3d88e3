"""The command lines, called inside this process: to start another takes a second."""

import gc
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from graphrag_index.__main__ import app as index_app
from graphrag_index.command_line import run_app
from graphrag_query.__main__ import app as query_app

APPS: dict[str, Callable[..., Any]] = {"graphrag-index": index_app, "graphrag-query": query_app}


def call_here(
    program: str, arguments: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder to its end. Signals, kills and limits need a process of its own."""
    out, err = StringIO(), StringIO()
    handlers, terminate = logging.root.handlers[:], signal.getsignal(signal.SIGTERM)
    with (
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
        patch.dict(os.environ, variables or {}),
        patch.object(sys, "argv", [program, *arguments]),
        # What a test leaves is to be collected.
        patch.object(gc, "freeze"),
    ):
        logging.root.handlers[:] = []
        try:
            run_app(lambda: APPS[program](list(arguments), prog_name=program))
            code: Any = 0
        except SystemExit as ended:
            code = ended.code
        finally:
            logging.root.handlers[:] = handlers
            signal.signal(signal.SIGTERM, terminate)
    return subprocess.CompletedProcess(arguments, int(code or 0), out.getvalue(), err.getvalue())
