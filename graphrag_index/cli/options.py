"""What several commands take: options, and the project that they name."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graphrag_index.pipeline.workflow import Workflow
    from graphrag_index.schema.settings.settings import Settings

Root = Annotated[Path, typer.Option("--root", help="Folder of settings.yaml.", metavar="DIR")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting: section.key=value.", metavar="KEY=VALUE"),
]
# Documents that stand for all in an estimate.
SAMPLE = 100


def root_option(root: Path) -> str:
    """What a command must be given to work in this folder, ready to be pasted into a shell."""
    if root.resolve() == Path.cwd():
        return ""
    return f' --root "{root}"' if os.name == "nt" else f" --root {shlex.quote(str(root))}"


def load(root: Path, overrides: Sequence[str] | None) -> "tuple[Settings, Workflow]":
    """Load the settings of a project, with what the command line sets, and their workflow."""
    from graphrag_index.pipeline.workflow import load_workflow
    from graphrag_index.schema.settings.settings import load_settings

    settings = load_settings(root, tuple(overrides or ()))
    return settings, load_workflow(root, settings.workflow)
