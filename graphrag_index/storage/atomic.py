"""Files that a reader sees whole or not at all."""

import json
import os
from pathlib import Path


def write_json(path: Path, content: object) -> None:
    """Write a small file so that a reader sees the old one or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def temporary_path(path: Path) -> Path:
    """Where a file is written before it takes its name; `remove_leftovers` knows these names."""
    return path.with_name(f".{path.name}.tmp")
