"""Measure what a question costs on indexes of a million entities, and of a tenth of that.

    python benchmarks/search.py --scale 1000000 100000 --folder FOLDER

For each scale an index is made as tables (synthetic.py), with `create_search_tables` run for real;
what lies in the folder already and is current is kept. It is then opened in a process of its own,
and the context of local search is gathered for 200 questions, once to warm up and once measured,
with vectors that are given: embedding them is not measured. Then 200 questions are answered
without a model, twice, and as many about a company in a quarter. Printed as Markdown. Linux.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from itertools import count, pairwise
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
N_QUESTIONS = 200
MIB = 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, nargs="+", default=[100_000, 10_000])
    parser.add_argument("--folder", type=Path, help="keep the indexes in this folder")
    parser.add_argument("--ask", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        print(json.dumps(ask(arguments.ask)))
        return
    kept = nullcontext(str(arguments.folder)) if arguments.folder else None
    with kept or tempfile.TemporaryDirectory(prefix="graphrag-search-benchmark-") as folder:
        found = {}
        for scale in arguments.scale:
            project = Path(folder) / str(scale)
            made = make(project, scale)
            command = [sys.executable, __file__, "--ask", str(project)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[scale] = {**made, **json.loads(done.stdout.splitlines()[-1])}
    print(f"{os.cpu_count()} CPUs\n\n{describe(found)}")


def make(project: Path, scale: int) -> dict[str, float]:
    """Bring an index up to date in a process of its own; tell what its tables take."""
    print(f"{scale:,} entities ...", file=sys.stderr, flush=True)
    code = (
        "import sys; from pathlib import Path; from benchmarks.synthetic import make_index; "
        "make_index(Path(sys.argv[1]), int(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(project), str(scale)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run(command, check=True, env=environment)
    statistics = json.loads((project / "output" / "stats.json").read_text(encoding="utf-8"))
    step = statistics["steps"]["create_search_tables"]
    return {
        "rows": step["rows"],
        "making": statistics["steps"]["make_tables"]["seconds"],
        "seconds": step["seconds"],
        "cpu_seconds": step["cpu_seconds"],
        "peak": (step["peak_memory_bytes"] or 0) / MIB,
        "disk": _size(project.glob("output/versions/*/*.arrow")),
        "parquet": _size(project.glob("output/versions/*/*.parquet")),
        "lancedb": _size(project.glob("output/lancedb/**/*")),
    }


def _size(paths: Any) -> float:
    return sum(path.stat().st_size for path in paths if path.is_file()) / MIB


def ask(project: Path) -> dict[str, float]:
    """Open an index and gather the context of every question, twice: cold, then warm."""
    sys.path.insert(0, str(REPOSITORY))
    import lancedb  # noqa: F401
    import numpy as np
    import polars as pl  # noqa: F401
    import pyarrow as pa  # noqa: F401

    import graphrag_query
    from benchmarks.synthetic import QUARTERS, company_of, title_of
    from graphrag_query import index as _index  # noqa: F401
    from graphrag_query.question.question import Question
    from graphrag_query.searches import local_search

    imported = _memory()
    started = time.perf_counter()
    index = graphrag_query.open(project / "output")
    store = index.store
    n_entities = store.n_rows("entity_rows")
    for name in ("text_unit_text", "entity_description", "community_full_content"):
        store.vectors(name)
    for name, stored in store.version.tables.items():
        if stored.file and stored.file.endswith(".arrow"):
            store.open_mapped(name)
    opening = time.perf_counter() - started
    opened = _memory()

    random = np.random.default_rng(7)
    numbers = random.integers(0, n_entities, N_QUESTIONS).tolist()
    near = store.vectors("entity_description").at(
        sorted(set(numbers)), ["human_readable_id", "text", "vector"]
    )
    rows = {row[0]: row[1:] for row in near.iter_rows()}
    settings = index.settings.local_search

    def gather(number: int) -> tuple[float, float]:
        text, vector = rows[number]
        words = text.partition(":")[2].split()
        question = Question(f"What did {title_of(number)} do about {words[0]} {words[5]}?", store)
        # As if it had been embedded: near the entity, but not its vector.
        vector = np.asarray(vector, np.float32) + random.standard_normal(len(vector)) / 40
        vars(question)["vector"] = (vector / np.linalg.norm(vector)).astype(np.float32)
        started, worked = time.perf_counter(), time.process_time()
        found = local_search.find_evidence(question, settings)
        local_search.local_context(question, found, settings, settings.max_context_tokens)
        return time.perf_counter() - started, time.process_time() - worked

    first, _ = gather(numbers[0])
    for number in numbers[1:]:
        gather(number)
    asked = _memory()
    warm = np.array([gather(number) for number in numbers]) * 1000

    def answer(number: int, form: str) -> tuple[float, float]:
        words = rows[number][0].partition(":")[2].split()
        document = number % store.n_rows("document_rows")
        # The ranking of a known question is kept, so ask each time about another word.
        text = form.format(
            name=title_of(number),
            company=company_of(document),
            quarter=QUARTERS[document % len(QUARTERS)],
            word=words[next(turn) % len(words)],
        )
        started, worked = time.perf_counter(), time.process_time()
        index.local(text)
        return time.perf_counter() - started, time.process_time() - worked

    turn = count()
    forms = (
        "What did {name} do about {word}?",
        "What was the {word} of {company} in {quarter}?",
    )
    answers, in_cells = (
        np.array([answer(number, form) for _ in range(2) for number in numbers])[N_QUESTIONS:]
        * 1000
        for form in forms
    )
    return {
        "opening": opening,
        "imported": imported,
        "opened": opened,
        "asked": asked,
        "first": first * 1000,
        "median": float(np.median(warm[:, 0])),
        "p99": float(np.percentile(warm[:, 0], 99)),
        "cpu": float(np.median(warm[:, 1])),
        "answer": float(np.median(answers[:, 0])),
        "answer_p99": float(np.percentile(answers[:, 0], 99)),
        "answer_cpu": float(np.median(answers[:, 1])),
        "in_cells": float(np.median(in_cells[:, 0])),
        "in_cells_p99": float(np.percentile(in_cells[:, 0], 99)),
        "in_cells_cpu": float(np.median(in_cells[:, 1])),
    }


def _memory() -> float:
    """Return the resident memory in MiB, mapped pages that were looked at among it."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def describe(found: dict[int, dict[str, Any]]) -> str:
    lines = {
        "opening, imports aside, s": "{opening:.3f}",
        "resident memory: imported, opened, after 200 questions, MiB": (
            "{imported:,.0f}, {opened:,.0f}, {asked:,.0f}"
        ),
        "first question, ms": "{first:,.0f}",
        "local context, warm: median, 99th percentile, ms": "{median:.1f}, {p99:.1f}",
        "the same, CPU ms of all threads: median": "{cpu:.1f}",
        "whole answer without a model, warm: median, 99th percentile, ms": (
            "{answer:.1f}, {answer_p99:.1f}"
        ),
        "the same, CPU ms: median": "{answer_cpu:.1f}",
        "the same of a company in a quarter: median, 99th percentile, ms": (
            "{in_cells:.1f}, {in_cells_p99:.1f}"
        ),
        "the same, CPU ms of this: median": "{in_cells_cpu:.1f}",
        "making the tables, vectors among them: s": "{making:,.0f}",
        "create_search_tables: s, CPU s, peak MiB": (
            "{seconds:,.0f}, {cpu_seconds:,.0f}, {peak:,.0f}"
        ),
        "on disk: mapped tables, Parquet, LanceDB, MiB": (
            "{disk:,.0f}, {parquet:,.0f}, {lancedb:,.0f}"
        ),
    }
    rows = [[name, *(text.format(**one) for one in found.values())] for name, text in lines.items()]
    scales = list(found)
    for large, small in pairwise(scales):
        ratios = [found[large][name] / found[small][name] for name in ("median", "cpu")]
        cell = ", ".join(f"× {ratio:.2f}" for ratio in ratios)
        rows.append([f"medians, {large:,} against {small:,}: s, CPU s", cell])
    width = 1 + len(found)
    header = ["", *(f"{scale:,} entities" for scale in found)]
    rows = [[*row, *[""] * (width - len(row))] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * width, *rows])


if __name__ == "__main__":
    main()
