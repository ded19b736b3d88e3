"""Compare graphs that are made without a model with references: `evaluate graph --reference`.

    python benchmarks/graph_reference.py

The references: the passages of ``labelled/dev``, marked by hand; names and triples that a model
found in musique_train100, recorded by HippoRAG; and the index that Microsoft GraphRAG made of one
novella. The last two are in `../shared/data`; without them, the tables leave them out.

The recorded extractions are also replayed to the workflow `standard`, so that the index of a model
is compared with the same extractions.
"""

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from labels import OPTIONAL, index_project, read_half, write_project
from retrieval import HARNESS, REPOSITORY, index, replay

DATA = Path(__file__).parent.parent.parent / "shared/data"
MUSIQUE, MICROSOFT = DATA / "retrieval/musique_train100", DATA / "microsoft-index"
SETTINGS = "workflow: embedded\nload_documents: {id_column: id}\n"
RECORDED = """workflow: standard
load_documents: {id_column: id}
models: {chat: {model: replay, api_key: none}}
create_text_units: {max_tokens: 100000, overlap_tokens: 0}
summarize_descriptions: {max_tokens_without_call: 100000}
generate_text_embeddings: {model: static}
"""


# Writes a project into a folder and returns its reference; builds the index of a project.
Prepare = Callable[[Path], Path]
Index = Callable[[Path], None]


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


def index_recorded(project: Path) -> None:
    """Build the index of a set with the recorded extractions of a model, without claims."""
    (project / "settings.yaml").write_text(RECORDED, encoding="utf-8")
    shutil.copytree(REPOSITORY / "workflows", project / "workflows")
    workflow = project / "workflows/standard.yaml"
    steps = workflow.read_text(encoding="utf-8").replace("- extract_covariates\n", "")
    workflow.write_text(steps, encoding="utf-8")
    with replay(MUSIQUE.name) as address:
        index(project, f"models.chat.base_url={address}")


def measure(project: Path, *options: str) -> Mapping[str, Any]:
    """Return what `evaluate graph` says of the index of a project."""
    command = [sys.executable, "-m", "graphrag_index", "evaluate", "graph", "--json"]
    command += ["--resamples", "1", "--root", str(project), *options]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=project)
    (found,) = json.loads(told.stdout)["indexes"].values()
    return found  # type: ignore[no-any-return]


def show(name: str, found: Mapping[str, Any], measures: Iterable[str]) -> None:
    """Print one row of a table in Markdown."""
    figures = [found["measures"][measure] for measure in measures]
    cells = (f"{f['mean']:.3f} [{f['low']:.3f}, {f['high']:.3f}]" for f in figures)
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    cases: list[tuple[str, Prepare, Index]] = [("labelled/dev", prepare_labelled, index_project)]
    if MUSIQUE.is_dir():
        cases.append(("musique_train100", prepare_musique, index_project))
    if MUSIQUE.is_dir() and HARNESS.is_dir():
        cases.append(("musique_train100, replayed", prepare_musique, index_recorded))
    if MICROSOFT.is_dir():
        cases.append(("novella", prepare_novella, index_project))
    print("| index | documents | measure | precision | recall | F1 |")
    print("| --- | ---: | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, prepare, build) in enumerate(cases):
            project = Path(folder) / str(number)
            reference = prepare(project)
            build(project)
            found = measure(project, "--reference", str(reference))
            for kind in ("entity", "typed", "relationship"):
                measures = [f"{kind}_{part}" for part in ("precision", "recall", "f1")]
                if found["measures"].keys() >= {*measures}:
                    count = found["reference"]["documents"]
                    show(f"{name} | {count:,} | {kind}", found, measures)


if __name__ == "__main__":
    main()
