"""Compare graphs that are made without a model with references: `evaluate graph --reference`.

    python benchmarks/graph_reference.py

The references: the passages of ``labelled/dev``, marked by hand; names and triples that a model
found in musique_train100, recorded by HippoRAG; and the index that Microsoft GraphRAG made of one
novella. The last two are in `../shared/data`; without them, the table leaves them out.
"""

import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from labels import OPTIONAL, index_project, read_half, write_project

DATA = Path(__file__).parent.parent.parent / "shared/data"
MUSIQUE, MICROSOFT = DATA / "retrieval/musique_train100", DATA / "microsoft-index"
SETTINGS = "workflow: embedded\nload_documents: {id_column: id}\n"


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def prepare_labelled(folder: Path) -> Path:
    """Write the project of the labelled passages; return their marks."""
    passages = read_half("dev")
    write_project(passages, folder)
    return write_lines(
        folder / "marks.jsonl",
        (
            {
                "document": passage.id,
                "entities": [
                    {
                        "title": passage.text[mark.start : mark.end],
                        "type": sorted(mark.types - {OPTIONAL}),
                        "start_char": mark.start,
                        "end_char": mark.end,
                        "optional": mark.optional,
                    }
                    for mark in passage.marks
                ],
            }
            for passage in passages
        ),
    )


def prepare_musique(folder: Path) -> Path:
    """Write the project of the set; return the entities and the triples between them as marks."""
    with gzip.open(MUSIQUE / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        write_lines(folder / "input/passages.jsonl", map(json.loads, lines))
    (folder / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    marks = []
    with gzip.open(MUSIQUE / "extractions.jsonl.gz", "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            names = {name for name in record["entities"] if name.strip()}
            ends = [(t[0], t[2]) for t in record["triples"] if len(t) == 3]
            pairs = [pair for pair in ends if names.issuperset(pair)]
            marks.append(
                {"document": record["id"], "entities": sorted(names), "relationships": pairs}
            )
    return write_lines(folder / "marks.jsonl", marks)


def prepare_novella(folder: Path) -> Path:
    """Write a project of the novella; return the index of Microsoft GraphRAG."""
    (text,) = MICROSOFT.glob("Operation*.md")
    (folder / "input").mkdir(parents=True)
    (folder / "input/dulce.txt").write_bytes(text.read_bytes())
    (folder / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    return MICROSOFT


def compare(project: Path, reference: Path) -> Mapping[str, Any]:
    """Return what `evaluate graph --reference` says of the index of a project."""
    command = [sys.executable, "-m", "graphrag_index", "evaluate", "graph", "--json"]
    command += ["--resamples", "1", "--root", str(project), "--reference", str(reference)]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=project)
    (found,) = json.loads(told.stdout)["indexes"].values()
    return found  # type: ignore[no-any-return]


def main() -> None:
    references = {"labelled/dev": prepare_labelled}
    references |= {"musique_train100": prepare_musique} if MUSIQUE.is_dir() else {}
    references |= {"novella": prepare_novella} if MICROSOFT.is_dir() else {}
    print("| reference | documents | measure | precision | recall | F1 |")
    print("| --- | ---: | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, prepare in references.items():
            project = Path(folder) / Path(name).name
            reference = prepare(project)
            index_project(project)
            found = compare(project, reference)
            for kind in ("entity", "typed", "mention", "relationship"):
                figures = [
                    found["measures"].get(f"{kind}_{part}")
                    for part in ("precision", "recall", "f1")
                ]
                if all(figures):
                    cells = " | ".join(
                        "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**f) for f in figures
                    )
                    print(f"| {name} | {found['reference']['documents']:,} | {kind} | {cells} |")


if __name__ == "__main__":
    main()
