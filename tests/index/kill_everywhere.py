"""Kill runs just before each of the changes that they make to the output folder.

    python -m tests.index.kill_everywhere FOLDER N

Leaves in FOLDER:

    base            the index of generation 0, from which every other starts
    undisturbed     brought to generation 1 without a kill
    killed/K        on the way to generation 1 killed before change number K
    resumed/K       from there brought to generation 1
    detour/K        for every Nth K: from there on the way to generation 2 killed before
                    change number K, and then brought to generation 1

Each run is a fork of this process, which has imported everything and computed nothing.
"""

import os
import shutil
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any

import filelock  # noqa: F401
import pyarrow.parquet  # noqa: F401

from graphrag_index.pipeline.run import run_workflow
from graphrag_index.pipeline.workflow import Workflow
from graphrag_index.schema.settings.settings import Settings
from tests.index.small_steps import list_numbers, square

WORKFLOW = Workflow("killed", (list_numbers, square))
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.link"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def run(folder: Path, generation: int, die_at: int = 0) -> bool:
    """Run in a fork; tell whether it came to its end."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        if die_at:
            die_before_change(die_at, folder)
        run_workflow(
            WORKFLOW, Settings(steps={"list_numbers": {"generation": generation}}), folder, {}
        )
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status not in (0, signal.SIGKILL):
        sys.exit(f"A run in {folder} ended with status {status}.")
    return status == 0


def die_before_change(number: int, folder: Path) -> None:
    """Kill this process when it is about to make its change of this number."""
    left = number

    def listen(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in _CHANGES or (
            event == "open"
            and str(arguments[0]).startswith(str(folder))
            and int(arguments[2]) & _WRITING
        ):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(listen)


def main(folder: Path, detour_at_every: int) -> None:
    def copy(source: str, target: str) -> Path:
        return Path(shutil.copytree(folder / source, folder / target, symlinks=True))

    run(folder / "base", 0)
    run(copy("base", "undisturbed"), 1)
    for number in count(1):
        if run(copy("base", f"killed/{number}"), 1, die_at=number):
            shutil.rmtree(folder / f"killed/{number}")
            return
        run(copy(f"killed/{number}", f"resumed/{number}"), 1)
        if number % detour_at_every == 0:
            detour = copy(f"killed/{number}", f"detour/{number}")
            run(detour, 2, die_at=number)
            run(detour, 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), int(sys.argv[2]))
