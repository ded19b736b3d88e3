"""Compare graphs that are made without a model with those of a model: `evaluate graph --reference`.

    python benchmarks/graph_reference.py

The references: the index of the workflow `standard` of musique_train100, to which the names and
triples that a model found, recorded by HippoRAG, are replayed; and the index that Microsoft
GraphRAG made of one novella. Both are in `../shared/data`; what is not there is left out.
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

from labels import index_project
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


def prepare_musique(folder: Path) -> Path:
    """Write the project of the set; return the index with the recorded extractions of a model."""
    documents = folder / "input/passages.jsonl"
    documents.parent.mkdir(parents=True)
    with gzip.open(MUSIQUE / "corpus.jsonl.gz", "rb") as lines:
        documents.write_bytes(lines.read())
    (folder / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    recorded = folder.with_name(f"{folder.name}-recorded")
    shutil.copytree(folder, recorded)
    index_recorded(recorded)
    return recorded


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
    command += ["--root", str(project), *options]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=project)
    (found,) = json.loads(told.stdout)["indexes"].values()
    return found  # type: ignore[no-any-return]


def show(name: str, found: Mapping[str, Any], measures: Iterable[str]) -> None:
    """Print one row of a table in Markdown."""
    figures = [found["measures"][measure] for measure in measures]
    cells = (f"{f['mean']:.3f} [{f['low']:.3f}, {f['high']:.3f}]" for f in figures)
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    cases: dict[str, Callable[[Path], Path]] = {}
    if MUSIQUE.is_dir() and HARNESS.is_dir():
        cases["musique_train100"] = prepare_musique
    if MICROSOFT.is_dir():
        cases["novella"] = prepare_novella
    print("| index | documents | measure | precision | recall | F1 |")
    print("| --- | ---: | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, prepare in cases.items():
            project = Path(folder) / name
            reference = prepare(project)
            index_project(project)
            found = measure(project, "--reference", str(reference))
            for kind in ("entity", "relationship"):
                measures = [f"{kind}_{part}" for part in ("precision", "recall", "f1")]
                if found["measures"].keys() >= {*measures}:
                    count = found["reference"]["documents"]
                    show(f"{name} | {count:,} | {kind}", found, measures)


if __name__ == "__main__":
    main()
