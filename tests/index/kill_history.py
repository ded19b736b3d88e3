"""Stop `gc` and `rollback` just before each of the changes that they make.

    python -m tests.index.kill_history FOLDER N

Leaves in FOLDER `base`, an index of three versions, and for each command and every Nth change
number K `COMMAND/K`, a copy of it in which the command was stopped before that change.
"""

import os
import shutil
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from graphrag_index.pipeline.history.garbage import collect_garbage
from graphrag_index.pipeline.history.rollback import roll_back
from graphrag_index.pipeline.run import run_workflow
from graphrag_index.pipeline.workflow import Workflow
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.storage.table_store import TableStore
from tests.index.small_steps import embed, list_numbers, measure, square

WITH_VECTORS = Workflow("vectors", (list_numbers, square, measure, embed))
COMMANDS: dict[str, Callable[[TableStore], object]] = {
    "gc": lambda store: collect_garbage(store, 2),
    "rollback": lambda store: roll_back(store, 1),
}
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "shutil.rmtree"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Stopped(BaseException):
    """Nothing that the program does after this counts."""


class Watch:
    """Raises before a change of a number that is set."""

    left = 0

    def __init__(self) -> None:
        sys.addaudithook(self.listen)

    def listen(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.left and (event in _CHANGES or (event == "open" and int(arguments[2]) & _WRITING)):
            self.left -= 1
            if not self.left:
                raise Stopped


def numbers_of(generation: int, **values: object) -> Settings:
    """Settings of `WITH_VECTORS`."""
    return Settings(steps={"list_numbers": {"generation": generation, **values}})


def make(root: Path, generation: int) -> None:
    run_workflow(WITH_VECTORS, numbers_of(generation), root, {})


def main(folder: Path, every: int) -> None:
    for generation in range(1, 4):
        make(folder / "base", generation)
    watch = Watch()
    for name, command in COMMANDS.items():
        for number in count(1, every):
            root = Path(
                shutil.copytree(folder / "base", folder / name / str(number), symlinks=True)
            )
            watch.left = number
            try:
                command(TableStore(root / "output"))
            except Stopped:
                continue
            watch.left = 0
            break


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), int(sys.argv[2]))
