"""What `graphrag-index init --from` prints."""

import os
import shlex
from pathlib import Path

from graphrag_index.cli.options import root_option
from graphrag_index.microsoft.migrate import Taken, init_from


def take_over(
    folder: Path, source: Path, input_folder: Path | None, *, prompts: bool, cache: bool
) -> list[str]:
    """Make a project of ours out of one of Microsoft GraphRAG; returns what is told about it."""
    taken = init_from(folder, source, input_folder, prompts=prompts, cache=cache)
    root = root_option(folder)
    return [
        *(f"Wrote {path}" for path in taken.written),
        *_told(taken),
        "",
        f"Next: graphrag-index import {_quoted(source)}{root}, which makes its index ours;",
        f"or graphrag-index run{root}, which makes a new one from the documents.",
    ]


def _told(taken: Taken) -> list[str]:
    """Return the lines of each part that has any, below its title."""
    lines: list[str] = []
    for title, told in (
        ("Carried over:", taken.carried),
        ("Prompts taken over (with --no-prompts ours are used):", taken.prompts),
        ("Not carried over:", taken.left),
        ("Its cache of replies:", taken.cache),
        ("To do:", taken.to_do),
    ):
        if told:
            lines += ["", title, *(f"  {line}" for line in told)]
    return lines


def _quoted(path: Path) -> str:
    return f'"{path}"' if os.name == "nt" else shlex.quote(str(path))
