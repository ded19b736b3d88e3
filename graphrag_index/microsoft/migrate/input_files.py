"""Where the documents of a project of Microsoft GraphRAG lie, and which of them are read."""

import os
import re
from pathlib import Path

from graphrag_index.microsoft.migrate.migration_notes import Carried, shown
from graphrag_index.microsoft.migrate.settings_file import MicrosoftProject, UnsetVariableError

# What was read there of each type, where no pattern is given.
_PATTERNS = {
    "text": ["**/*.txt"],
    "csv": ["**/*.csv"],
    "json": ["**/*.json"],
    "jsonl": ["**/*.jsonl"],
    "parquet": ["**/*.parquet"],
}
# `.*\.txt$`, `.*\.(md|txt)$` and the like.
_BY_ENDING = re.compile(r"\^?(?:\.\*)?\\\.(?:(\w+)|\((?:\?:)?(\w+(?:\|\w+)*)\))\$?")


def carry_documents(project: MicrosoftProject, carried: Carried) -> None:
    """Take over where the documents lie, and which of them are read."""
    key = next(
        (
            key
            for key in ("input_storage.base_dir", "input.storage.base_dir", "input.base_dir")
            if project.get(key) is not None
        ),
        "",
    )
    kind = project.get("input_storage.type", "input.storage.type", "input.type")
    elsewhere = kind in ("blob", "cosmosdb", "memory")
    if key and elsewhere:
        carried.left(key, "documents are read from a local folder only: copy them into one")
    elif key:
        try:
            folder = str(project.expand(project.get(key)))
            path = Path(os.path.abspath(project.root / folder))
            carried.values["load_documents"] = {"folder": str(path)}
            carried.kept(key, "load_documents.folder", path)
        except UnsetVariableError as error:
            carried.left(key, f"it uses the variable {error}, which is not set")
    elif not elsewhere:
        path = Path(os.path.abspath(project.root / "input"))
        carried.values["load_documents"] = {"folder": str(path)}
    _patterns(project, carried)


def _patterns(project: MicrosoftProject, carried: Carried) -> None:
    pattern = project.get("input.file_pattern")
    kind = str(project.get("input.file_type") or project.get("input.type") or "")
    if kind == "file":
        kind = ""
    include = _PATTERNS.get(kind)
    if pattern is not None:
        try:
            expression = str(project.expand(pattern))
        except UnsetVariableError as error:
            carried.left("input.file_pattern", f"it uses the variable {error}, which is not set")
            return
        found = _BY_ENDING.fullmatch(expression)
        if found is None:
            carried.left(
                "input.file_pattern",
                f"the regular expression {expression} is no pattern: write load_documents.include",
            )
        else:
            include = [f"**/*.{ending}" for ending in (found[1] or found[2]).split("|")]
    if include:
        section = carried.values.setdefault("load_documents", {})
        section["include"] = include
        by = "input.file_pattern" if pattern is not None else "input.type"
        if by == "input.type" and project.get("input.file_type"):
            by = "input.file_type"
        carried.kept(by, "load_documents.include", shown(include))
