"""The command line in this process, or in one of its own for signals, kills and limits."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.in_process import call_here

REPOSITORY = Path(__file__).parents[2]


def environment(**variables: str) -> dict[str, str]:
    """The environment of a command: that of the tests, where this repository is importable."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUTF8": "1", **variables}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "graphrag_index", *arguments]


@contextmanager
def start(root: Path, *arguments: str, **variables: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a command in a folder; it does not outlive the block."""
    with subprocess.Popen(
        command(*arguments),
        cwd=root,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def call_process(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder to its end, in a process that has imported nothing yet."""
    with start(root, *arguments) as process:
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def call(root: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder to its end, in this process."""
    return call_here("graphrag-index", arguments, root, variables)


def small_project(root: Path, settings: str = "") -> Path:
    """Write a project whose workflow is that of `small_steps`."""
    steps = "list_numbers square measure add_up".split()
    return write_project(root, [f"tests.index.small_steps:{name}" for name in steps], settings)


def write_project(
    root: Path, steps: list[str], settings: str = "", documents: Mapping[str, str] | None = None
) -> Path:
    """Write settings, a workflow of these steps, and documents."""
    (root / "workflows").mkdir(parents=True)
    text = "".join(f"- {step}\n" for step in steps)
    (root / "workflows" / "small.yaml").write_text(text, encoding="utf-8")
    (root / "settings.yaml").write_text(f"workflow: small\n{settings}", encoding="utf-8")
    for name, content in (documents or {}).items():
        path = root / "input" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return root


def wait_for(condition: Callable[[], Any], process: "subprocess.Popen[str] | None" = None) -> None:
    """Wait until a condition holds, or fail after a time that is never needed."""
    end = time.monotonic() + 60
    while not condition():
        assert process is None or process.poll() is None, "the command ended too early"
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
