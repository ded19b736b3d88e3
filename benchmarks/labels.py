"""Passages with names marked by hand: parse the files of ``benchmarks/labelled``."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import graphrag_index

LABELLED = Path(__file__).parent / "labelled"
HALVES = ("dev", "report")
LANGUAGES = ("en", "de", "fr", "es")
KINDS = ("news", "chat", "manual", "law", "science")
TYPES = frozenset({"person", "organization", "geo", "event", "acronym", "name"})
# Marks a word that readers may or may not count as a name: without effect on the figures.
OPTIONAL = "?"

SETTINGS = """workflow: embedded
load_documents: {id_column: id, metadata_columns: [kind]}
"""

_MARK = re.compile(r"\[\[([^\[\]|]+)\|([a-z?/]+)\]\]")


@dataclass(frozen=True)
class Mark:
    """One marked name: its span of characters in the text without marks, and its types."""

    start: int
    end: int
    types: frozenset[str]

    @property
    def optional(self) -> bool:
        return OPTIONAL in self.types


@dataclass(frozen=True)
class Passage:
    """One labelled passage; ``id`` reads language-kind-number, ``terms`` are its key terms."""

    id: str
    date: str
    terms: tuple[str, ...]
    text: str
    marks: tuple[Mark, ...]

    @property
    def language(self) -> str:
        return self.id.split("-")[0]

    @property
    def kind(self) -> str:
        return self.id.split("-")[1]


def parse_marks(marked: str) -> tuple[str, tuple[Mark, ...]]:
    """Split a marked text into the plain text and its marks."""
    plain, marks, at, length = [], [], 0, 0
    for match in _MARK.finditer(marked):
        before, name = marked[at : match.start()], match[1]
        start = length + len(before)
        marks.append(Mark(start, start + len(name), frozenset(match[2].split("/"))))
        plain += [before, name]
        at, length = match.end(), start + len(name)
    plain.append(marked[at:])
    return "".join(plain), tuple(marks)


def read_half(half: str, folder: Path = LABELLED) -> list[Passage]:
    """Read the passages of one half, ordered by language and their place in its file."""
    passages = []
    for language in LANGUAGES:
        content = (folder / half / f"{language}.txt").read_text(encoding="utf-8")
        for block in re.split(r"^=== ", content, flags=re.MULTILINE)[1:]:
            header, marked = block.split("\n", 1)
            name_and_date, terms = header.split(" | ")
            id, date = name_and_date.split()
            text, marks = parse_marks(marked.strip())
            passages.append(Passage(id, date, tuple(terms.split(", ")), text, marks))
    return passages


def write_project(passages: list[Passage], folder: Path) -> None:
    """Write a project whose documents are the passages."""
    (folder / "input").mkdir(parents=True)
    records = (
        {"id": p.id, "title": p.id, "text": p.text, "date": p.date, "kind": p.kind}
        for p in passages
    )
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    (folder / "input" / "passages.jsonl").write_text(lines, encoding="utf-8")
    (folder / "settings.yaml").write_text(SETTINGS, encoding="utf-8")


def index_project(folder: Path) -> None:
    """Build the index of a project with the imported package and its workflows."""
    checkout = Path(graphrag_index.__file__).parent.parent
    shutil.copytree(checkout / "workflows", folder / "workflows")
    command = [sys.executable, "-m", "graphrag_index", "run", "--quiet", "--root", str(folder)]
    # In the folder: Python would prefer a package in the current one.
    subprocess.run(command, check=True, stdout=sys.stderr, cwd=folder)
