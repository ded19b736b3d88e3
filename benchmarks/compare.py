"""Compare an index of this program with a plain vector index of the same passages.

    python benchmarks/compare.py

The plain index is what many programs do: each passage is embedded by all-MiniLM-L6-v2, which must
be installed, and stored in LanceDB; a question finds the nearest passages. The passages and the
questions are those of `benchmarks/retrieval.py`. Each index is built in a process of its own, and
its CPU time includes the start of Python and the loading of the model. Printed as Markdown.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import retrieval

from graphrag_index.llm.local.local_models import MINILM, load_embedding_model

TOP_K = 10
COLUMNS = "| set | passages | system | CPU s to build | CPU ms a question | ms | R@5 | R@10 |"


def plain(dataset: retrieval.Dataset) -> retrieval.Retrieve:
    """Embed the passages of a set with all-MiniLM-L6-v2 into a table of LanceDB."""
    import lancedb

    folder = retrieval.cache() / f"{dataset.name}-plain"
    folder.mkdir(parents=True)
    rows = [
        {"id": str(passage["id"]), "text": f"{passage['title']}\n{passage['text']}".strip()}
        for passage in dataset.corpus
    ]
    (folder / "passages.json").write_text(json.dumps(rows), encoding="utf-8")
    command = [sys.executable, str(Path(__file__)), "--embed", str(folder)]
    subprocess.run(command, check=True)
    model = load_embedding_model(MINILM.model)
    table = lancedb.connect(folder).open_table("passages")
    ids = {str(passage["id"]): passage["id"] for passage in dataset.corpus}

    def retrieve(query: str, k: int) -> list[str]:
        [vector] = model.embed([query])
        found = (
            table.search(vector).distance_type("dot").limit(k).select(["id", "_distance"]).to_list()
        )
        return [ids[row["id"]] for row in found]

    return retrieve


def embed_passages(folder: Path) -> None:
    """Embed the passages in a folder, and write them to a table of LanceDB there."""
    import lancedb

    rows = json.loads((folder / "passages.json").read_text(encoding="utf-8"))
    vectors = load_embedding_model(MINILM.model).embed([row["text"] for row in rows])
    data = [{**row, "vector": vector} for row, vector in zip(rows, vectors, strict=True)]
    lancedb.connect(folder).create_table("passages", data)


# Factories of `retrieval.py`, and the plain index.
SYSTEMS: dict[str, Callable[[Any], retrieval.Retrieve]] = {
    "graphrag-index, `embedded`": retrieval.embedded,
    "LanceDB, all-MiniLM-L6-v2": plain,
}


def cpu_seconds_of_children() -> float:
    """Return the CPU time of all finished child processes."""
    times = os.times()
    return times.children_user + times.children_system


def measure(system: str, dataset: Any, score: Callable[..., dict[str, Any]]) -> str:
    """Build an index, ask all questions of a set, and return a row of the table."""
    before = cpu_seconds_of_children()
    retrieve = SYSTEMS[system](dataset)
    built = cpu_seconds_of_children() - before
    questions = dataset.questions
    # The first question loads what later questions share.
    retrieve(questions[0]["question"], TOP_K)
    started, cpu = time.perf_counter(), time.process_time()
    ranked = [retrieve(question["question"], TOP_K) for question in questions]
    cpu, seconds = time.process_time() - cpu, time.perf_counter() - started
    scores = [score(dataset, *pair) for pair in zip(questions, ranked, strict=True)]
    recall = [100 * sum(row[name] for row in scores) / len(scores) for name in ("R@5", "R@10")]
    milliseconds = [1000 * value / len(questions) for value in (cpu, seconds)]
    numbers = (f"{value:.1f}" for value in (built, *milliseconds, *recall))
    return f"| {dataset.name} | {len(dataset.corpus):,} | {system} | {' | '.join(numbers)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", nargs="+", help="names of sets; all of them")
    parser.add_argument("--embed", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.embed:
        embed_passages(chosen.embed)
        return
    if not (retrieval.HARNESS / "harness.py").exists() or not retrieval.SETS.exists():
        print(f"Nothing is measured: {retrieval.HARNESS} and {retrieval.SETS} are not both there.")
        return
    sys.path.insert(0, str(retrieval.HARNESS))
    import harness

    print(COLUMNS, "| --- " * 8 + "|", sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RETRIEVAL_CACHE"] = folder
        for name in chosen.sets or harness.names():
            dataset = harness.Dataset(name)
            for system in SYSTEMS:
                print(measure(system, dataset, harness.per_question), flush=True)


if __name__ == "__main__":
    main()
