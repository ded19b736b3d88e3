"""Options of several commands, and loading of a project."""

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


def root_option(root: Path) -> str:
    """Return the option that makes a command work in this folder, quoted for a shell."""
    if root.resolve() == Path.cwd():
        return ""
    return f' --root "{root}"' if os.name == "nt" else f" --root {shlex.quote(str(root))}"


def load(root: Path, overrides: Sequence[str] | None) -> "tuple[Settings, Workflow]":
    """Load the settings of a project, with overrides, and its workflow."""
    from graphrag_index.pipeline.workflow import load_workflow
    from graphrag_index.schema.settings.settings import load_settings

    settings = load_settings(root, tuple(overrides or ()))
    return settings, load_workflow(root, settings.workflow)
