"""Options that several commands take."""

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

Root = Annotated[Path, typer.Option("--root", help="Folder of settings.yaml.", metavar="DIR")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting: section.key=value.", metavar="KEY=VALUE"),
]


def root_option(root: Path) -> str:
    """What a command must be given to work in this folder, ready to be pasted into a shell."""
    if root.resolve() == Path.cwd():
        return ""
    return f' --root "{root}"' if os.name == "nt" else f" --root {shlex.quote(str(root))}"
