"""Count the questions whose short answer stands in what a search read, and in what it says.

    python benchmarks/answers.py

Sets of `../shared/data` with a short answer to each question, one document a passage, the workflow
`embedded`, no model. `read`: the answer stands in the text units of the context; `said`: in the
answer; `first`: before the first citation. Questions whose answer is yes, no or longer than five
words are left out. Printed as Markdown, in per cent. Without the sets, this says so.

`--labelled` asks the questions of benchmarks/labelled/languages.jsonl about the labelled passages,
which are in four languages: those in the language of the passage, and those in another one.
`--reader` names the folder of an extractive model, as `search.reader_model` does.
"""

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labels import LABELLED, read_half, write_project
from labels import index_project as index_labelled

import graphrag_query
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_query.index import Index

DATA = Path(__file__).parent.parent.parent / "shared/data"
SETS = (
    "answers/lihua_dev200",
    "retrieval/hotpot_train100",
    "retrieval/musique_train100",
)
MAX_ANSWER_WORDS = 5
CITATION = re.compile(r"\[\d+\]")


def normalize(text: str) -> str:
    """Return the words of a text in lower case, without punctuation."""
    return " ".join(re.sub(r"[^\w ]", " ", text.lower()).split())


def read_questions(folder: Path) -> list[Mapping[str, Any]]:
    """Read the questions of a set that have a short answer."""
    with gzip.open(folder / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    answers = [normalize(str(row["answer"])) for row in rows]
    return [
        row
        for row, answer in zip(rows, answers, strict=True)
        if answer not in ("", "yes", "no") and len(answer.split()) <= MAX_ANSWER_WORDS
    ]


def index_corpus(folder: Path, project: Path) -> None:
    """Index the corpus of a set in a new project."""
    (project / "input").mkdir(parents=True)
    corpus = gzip.decompress((folder / "corpus.jsonl.gz").read_bytes())
    (project / "input/corpus.jsonl").write_bytes(corpus)
    index_project(project)


def index_project(project: Path) -> None:
    """Index the folder `input` of a project with the workflow `embedded`."""
    (project / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    (project / "workflows").symlink_to(Path(__file__).resolve().parent.parent / "workflows")
    command = [sys.executable, "-m", "graphrag_index", "run", "--quiet", "--root", str(project)]
    subprocess.run(command, check=True)


def measure(index: Index, questions: list[Mapping[str, Any]], method: str) -> str:
    """Ask all questions, and return the cells of a row of the table."""
    read = said = first = words = 0
    for row in questions:
        answer = index.search(method, row["question"])
        tables = index.context(row["question"], method=method).tables
        sources = " ".join(tables["Sources"]["text"]) if "Sources" in tables else ""
        answers = (row["answer"], *(row.get("aliases") or ()))
        wanted = {normalize(str(text)) for text in answers} - {""}
        texts = (sources, CITATION.sub(" ", answer.text), CITATION.split(answer.text)[0])
        held = [any(name in normalize(text) for name in wanted) for text in texts]
        read, said, first = read + held[0], said + held[1], first + held[2]
        words += len(answer.text.split())
    n = len(questions)
    shares = " | ".join(f"{100 * count / n:.1f}" for count in (read, said, first))
    return f"{n} | {shares} | {words / n:.0f}"


def open_index(project: Path, reader: str | None) -> Index:
    """Open the index of a project, with a reader."""
    reader_model = str(Path(reader).resolve()) if reader else "null"
    settings = load_settings(project, (f"search.reader_model={reader_model}",))
    return graphrag_query.open(project / "output", settings, project)


def measure_labelled(method: str, reader: str | None) -> None:
    """Ask the questions about the labelled passages, and print a row for each kind of question."""
    lines = (LABELLED / "languages.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [{"answer": "", "aliases": row["answers"], **row} for row in map(json.loads, lines)]
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        write_project(read_half("dev") + read_half("report"), project)
        index_labelled(project)
        with open_index(project, reader) as index:
            for is_other, name in ((False, "same language"), (True, "other language")):
                asked = [row for row in rows if row["other_language"] == is_other]
                print(f"| {name} | {measure(index, asked, method)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--method", default="local", help="search to measure")
    parser.add_argument("--labelled", action="store_true", help="ask about the labelled passages")
    parser.add_argument("--reader", help="folder of an extractive model")
    options = parser.parse_args()
    method = options.method
    if options.labelled:
        print("| set | questions | read | said | first | words |", "| --- " * 6 + "|", sep="\n")
        measure_labelled(method, options.reader)
        return
    if not DATA.exists():
        print(f"Nothing is measured: there is no folder {DATA}.")
        return
    print("| set | questions | read | said | first | words |", "| --- " * 6 + "|", sep="\n")
    for name in SETS:
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder) / "project"
            index_corpus(DATA / name, project)
            with open_index(project, options.reader) as index:
                cells = measure(index, read_questions(DATA / name), method)
        print(f"| {Path(name).name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
