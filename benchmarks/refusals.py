"""Count the questions that searches without a model refuse as `no_evidence`.

    python benchmarks/refusals.py --every 2

The passages and questions are those of `benchmarks/retrieval.py`. Own questions of a set should be
answered, and those of the next set refused. In lower case, names are words like others, so that
only similarity and words decide. Printed as Markdown.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import retrieval

import graphrag_query
from graphrag_query.answer import Outcome
from graphrag_query.index import Index

CASES = {"as written": str, "lower case": str.lower}
METHODS = ("local", "basic")
COLUMNS = "| passages | questions | | local: others | local: own | basic: others | basic: own |"


def count_refused(index: Index, method: str, questions: Sequence[str]) -> int:
    """Count the questions without evidence."""
    answers = index.ask_many(questions, method, concurrency=1)
    return sum(answer.outcome is Outcome.NO_EVIDENCE for answer in answers)


def rows(dataset: Any, own: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return a row of the table for each way to write the questions."""
    project = retrieval.write_project(dataset, "embedded", {"workflow": "embedded"})
    retrieval.index(project)
    found = []
    with graphrag_query.open(project / "output") as index:
        for case, rewrite in CASES.items():
            counts = [
                count_refused(index, method, list(map(rewrite, questions)))
                for method in METHODS
                for questions in (others, own)
            ]
            numbers = " | ".join(map(str, counts))
            found.append(f"| {dataset.name} | {len(own)}, {len(others)} | {case} | {numbers} |")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question only")
    parser.add_argument("--first", type=int, default=0, help="number of the first question")
    chosen = parser.parse_args()
    if not (retrieval.HARNESS / "harness.py").exists() or not retrieval.SETS.exists():
        print(f"Nothing is measured: {retrieval.HARNESS} and {retrieval.SETS} are not both there.")
        return
    sys.path.insert(0, str(retrieval.HARNESS))
    import harness

    print(COLUMNS, "| --- " * 7 + "|", sep="\n")
    names = harness.names()
    sets = {name: harness.Dataset(name) for name in names}
    asked = {
        name: [row["question"] for row in sets[name].questions[chosen.first :: chosen.every]]
        for name in names
    }
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        print(*rows(sets[name], asked[name], asked[other]), sep="\n", flush=True)


if __name__ == "__main__":
    main()
