"""Measure which passages local search finds, on questions whose gold passages are known.

    python benchmarks/retrieval.py
    python harness.py run retrieval:embedded      # where retrieval.py is on PYTHONPATH

Factories for the harness of `../shared/tools/retrieval`, each `make(dataset)` that returns
`retrieve(query, k)`, the ids of passages, best first: `embedded` indexes the passages with the
workflow `embedded`; `recorded` with the workflow `standard` and the extractions that a model once
gave, which a server replays. `embedded_untitled` takes the titles away. `embedded_minilm` and
`embedded_minilm_untitled` embed with all-MiniLM-L6-v2, which must be installed. `reranking` and
`reranking_untitled` embed with the static model, and all-MiniLM-L6-v2 reranks the best
passages; they print the CPU time of a question without and with cached vectors. One passage is one
document and one text unit. What is found is what the context of `index.local(...)` is made of.
Without the sets and the harness, this says so.
"""

import argparse
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol
from urllib.request import urlopen

import yaml

from graphrag_index.llm.local.local_models import VECTORS_FILE

REPOSITORY = Path(__file__).parent.parent
SHARED = REPOSITORY.parent / "shared"
HARNESS = SHARED / "tools/retrieval"
SETS = SHARED / "data/retrieval"
# Every passage is one text unit, however long.
WHOLE_DOCUMENTS = {"max_tokens": 100_000, "overlap_tokens": 0}

# Number of questions whose CPU time is measured with reranking.
TIMED_QUESTIONS = 20

# Exit code of a run that left something out.
INCOMPLETE = 3

Retrieve = Callable[[str, int], list[str]]


class Dataset(Protocol):
    """A set of the harness: passages with `id`, `title` and `text`."""

    @property
    def name(self) -> str: ...

    @property
    def corpus(self) -> Sequence[Mapping[str, str]]: ...

    @property
    def questions(self) -> Sequence[Mapping[str, Any]]: ...

    @property
    def extractions(self) -> list[Any] | None: ...


def embedded(dataset: Dataset) -> Retrieve:
    """Index the passages with rules and the static embedding model."""
    project = write_project(dataset, "embedded", {"workflow": "embedded"})
    index(project)
    return opened(project, dataset)


def embedded_untitled(dataset: Dataset) -> Retrieve:
    """As `embedded`, of passages without titles."""
    settings = {"workflow": "embedded"}
    project = write_project(dataset, "untitled", settings, titled=False)
    index(project)
    return opened(project, dataset)


def embedded_minilm(dataset: Dataset, titled: bool = True) -> Retrieve:
    """As `embedded`, with vectors of all-MiniLM-L6-v2."""
    settings = {
        "workflow": "embedded",
        "generate_text_embeddings": {"model": "all-MiniLM-L6-v2"},
    }
    project = write_project(dataset, "minilm" if titled else "minilm-untitled", settings, titled)
    index(project)
    return opened(project, dataset)


def embedded_minilm_untitled(dataset: Dataset) -> Retrieve:
    """As `embedded_minilm`, of passages without titles."""
    return embedded_minilm(dataset, titled=False)


def basic(dataset: Dataset, titled: bool = True) -> Retrieve:
    """As `embedded`, with basic search."""
    settings = {"workflow": "embedded"}
    project = write_project(dataset, "embedded" if titled else "untitled", settings, titled)
    index(project)
    return opened(project, dataset, method="basic")


def basic_untitled(dataset: Dataset) -> Retrieve:
    """As `basic`, of passages without titles."""
    return basic(dataset, titled=False)


def reranking(dataset: Dataset, titled: bool = True) -> Retrieve:
    """As `embedded`, with the best passages reranked by all-MiniLM-L6-v2."""
    settings = {"workflow": "embedded", "search": {"rerank_model": "all-MiniLM-L6-v2"}}
    kind = "reranking" if titled else "reranking-untitled"
    project = write_project(dataset, kind, settings, titled)
    index(project)
    retrieve = opened(project, dataset)
    questions = [question["question"] for question in dataset.questions[:TIMED_QUESTIONS]]
    # Load the model, and create the file of vectors.
    retrieve(questions[0], 10)
    for caches_vectors in (False, True):
        seconds = 0.0
        for text in questions:
            if not caches_vectors:
                with closing(sqlite3.connect(project / "output" / VECTORS_FILE)) as kept:
                    kept.execute("DELETE FROM vectors").connection.commit()
            started = time.process_time()
            retrieve(text, 10)
            seconds += time.process_time() - started
        milliseconds = 1000 * seconds / len(questions)
        kind = "cached vectors" if caches_vectors else "new vectors"
        print(f"{project.name}: {milliseconds:.1f} CPU ms a question, {kind}", flush=True)
        if not caches_vectors:
            for text in questions:
                retrieve(text, 10)
    return retrieve


def reranking_untitled(dataset: Dataset) -> Retrieve:
    """As `reranking`, of passages without titles."""
    return reranking(dataset, titled=False)


def recorded(dataset: Dataset) -> Retrieve | None:
    """Index the passages with what a model extracted from them, where that was recorded."""
    if dataset.extractions is None:
        return None
    settings = {
        "workflow": "standard",
        "models": {"chat": {"model": "replay", "api_key": "none"}},
        # No summary was recorded: descriptions are joined.
        "summarize_descriptions": {"max_tokens_without_call": 100_000},
        "generate_text_embeddings": {"model": "all-MiniLM-L6-v2"},
    }
    project = write_project(dataset, "recorded", settings)
    with replay(dataset.name) as address:
        index(project, f"models.chat.base_url={address}")
    return opened(project, dataset)


def write_project(
    dataset: Dataset, kind: str, settings: dict[str, Any], titled: bool = True
) -> Path:
    """Write documents, settings and workflow into a folder named by what is in the documents."""
    lines = []
    for passage in dataset.corpus:
        title = (passage.get("title") or "") if titled else ""
        text = f"{title}\n{passage['text']}" if title else passage["text"]
        lines.append(json.dumps({"id": str(passage["id"]), "title": title, "text": text}))
    documents = "\n".join(lines) + "\n"
    digest = blake2b(documents.encode(), digest_size=8).hexdigest()
    project = cache() / f"{dataset.name}-{kind}-{digest}"
    (project / "input").mkdir(parents=True, exist_ok=True)
    (project / "workflows").mkdir(exist_ok=True)
    workflow = f"workflows/{settings['workflow']}.yaml"
    steps = (REPOSITORY / workflow).read_text(encoding="utf-8")
    # No claim was recorded either.
    steps = steps.replace("- extract_covariates\n", "")
    settings = {
        "load_documents": {"id_column": "id", "include": ["*.jsonl"]},
        "create_text_units": WHOLE_DOCUMENTS,
        **settings,
    }
    for path, content in (
        ("input/passages.jsonl", documents),
        ("settings.yaml", yaml.safe_dump(settings)),
        (workflow, steps),
    ):
        (project / path).write_text(content, encoding="utf-8")
    return project


def cache() -> Path:
    """The folder of the indexes; those of the same passages are used again."""
    named = os.environ.get("RETRIEVAL_CACHE")
    return Path(named or Path(tempfile.gettempdir()) / "graphrag-index-retrieval")


def index(project: Path, *overrides: str) -> None:
    """Bring the index of a project up to date, even if a passage gets no good reply."""
    command = [sys.executable, "-m", "graphrag_index", "run", "--quiet", "--root", str(project)]
    for override in overrides:
        command += ["--set", override]
    run = subprocess.run(command, check=False, stdout=sys.stderr)
    if run.returncode not in (0, INCOMPLETE):
        sys.exit(run.returncode)


def opened(project: Path, dataset: Dataset, method: str = "local") -> Retrieve:
    """Open an index; return what asks it for the passages of its local or basic context."""
    import graphrag_query
    from graphrag_query.llm import LLMPool
    from graphrag_query.question.question import Question
    from graphrag_query.searches.basic_search import rank_text_units
    from graphrag_query.searches.local_search import find_evidence

    opened = graphrag_query.open(project / "output")
    models = LLMPool(opened.settings, project, project / "output")
    # Ids of the set may be numbers.
    ids = {str(passage["id"]): passage["id"] for passage in dataset.corpus}

    def retrieve_basic(query: str, k: int) -> list[str]:
        settings = opened.settings.basic_search.with_values({"top_k_text_units": k})
        numbers = rank_text_units(Question(query, opened.store), settings)
        units = opened.store.text_units(numbers)
        return [ids[units[number]["document_id"]] for number in numbers]

    def retrieve(query: str, k: int) -> list[str]:
        settings = opened.settings.local_search.with_values({"top_k_text_units": k})
        look = models.reranking(opened.store)
        found = find_evidence(Question(query, opened.store, reranking=look), settings)
        if look.warnings:
            sys.exit(look.warnings[0])
        return [ids[unit["document_id"]] for unit in found.text_units.values()]

    return retrieve_basic if method == "basic" else retrieve


@contextmanager
def replay(name: str) -> Iterator[str]:
    """Run the server that replays the extractions of a set; give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(HARNESS / "replay_server.py"), name, "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(300):
            try:
                urlopen(f"http://127.0.0.1:{port}/stats", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    factories = [
        *(embedded, embedded_untitled, recorded),
        *(embedded_minilm, embedded_minilm_untitled, reranking, reranking_untitled),
        *(basic, basic_untitled),
    ]
    names = [factory.__name__ for factory in factories]
    parser.add_argument("--factories", nargs="+", choices=names, default=names[:3])
    parser.add_argument("--sets", nargs="+", help="names of sets; all of them")
    chosen = parser.parse_args(arguments)
    if not (HARNESS / "harness.py").exists() or not SETS.exists():
        print(f"Nothing is measured: {HARNESS} and {SETS} are not both there.")
        return
    sys.path.insert(0, str(HARNESS))
    import harness

    for name in chosen.sets or harness.names():
        dataset = harness.Dataset(name)
        for factory in factories:
            if factory.__name__ not in chosen.factories:
                continue
            started = time.perf_counter()
            retrieve = factory(dataset)
            if retrieve is not None:
                seconds = time.perf_counter() - started
                harness.evaluate(dataset, retrieve, factory.__name__, setup=seconds)


if __name__ == "__main__":
    main()
