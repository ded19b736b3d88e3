"""The output of `graphrag-index init --from`."""

import os
import shlex
from pathlib import Path

from graphrag_index.cli.options import root_option
from graphrag_index.microsoft.migrate import init_from


def init_from_microsoft(
    folder: Path, source: Path, input_folder: Path | None, *, prompts: bool, cache: bool
) -> list[str]:
    """Write a project of ours from one of Microsoft GraphRAG, and return the lines to print."""
    migration = init_from(folder, source, input_folder, prompts=prompts, cache=cache)
    lines = [f"Wrote {path}" for path in migration.written]
    for title, told in (
        ("Carried over:", migration.carried),
        ("Prompts taken over (with --no-prompts ours are used):", migration.prompts),
        ("Not carried over:", migration.left),
        ("Its cache of replies:", migration.cache),
        ("To do:", migration.to_do),
    ):
        if told:
            lines += ["", title, *(f"  {line}" for line in told)]
    root = root_option(folder)
    quoted = f'"{source}"' if os.name == "nt" else shlex.quote(str(source))
    return [
        *lines,
        "",
        f"Next: graphrag-index import {quoted}{root}, which makes its index ours;",
        f"or graphrag-index run{root}, which makes a new one from the documents.",
    ]
