"""The requests of a batch, written to a file as they come."""

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from graphrag_index.llm.batch_ledger import Line


@dataclass
class BatchFile:
    """The requests that are written so far, and what they amount to."""

    path: Path
    out: IO[bytes]
    lines: dict[str, Line] = field(default_factory=dict)
    n_bytes: int = 0
    n_tokens: int = 0
    most: float = 0.0

    def add(self, line: Line, data: bytes, n_tokens: int, most: float) -> None:
        self.out.write(data)
        self.lines[line.key] = line
        self.n_bytes += len(data)
        self.n_tokens += n_tokens
        self.most += most


def new_file(folder: Path) -> BatchFile:
    """Begin a batch, under a key that no other has."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{secrets.token_hex(8)}.jsonl"
    return BatchFile(path, path.open("wb"))
