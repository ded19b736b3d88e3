"""Compare what lazy search's relevance tests find with as many passages ranked by vector.

    python benchmarks/lazy.py

The corpus is `planted.py`'s, indexed with the workflow `lazy`. Each question asks about somebody
and all whom the planted facts tie to them; a passage is relevant if it names one of these. The
test of a passage is this truth, in the place of a model: what is measured is which passages are
tested, not how well a model judges them.
"""

import argparse
import json
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from index import REPOSITORY
from planted import GIVEN, make_corpus

import graphrag_query
from graphrag_index.pipeline.run import run_workflow
from graphrag_index.pipeline.workflow import load_workflow, make_services
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_index.schema.settings.searches import LazySearch
from graphrag_query.question.question import Question
from graphrag_query.retrieval.community_descent import IndexHierarchy, QueryScores, RelevanceTests
from graphrag_query.store.index_store import IndexStore

QUESTION = "What is told of {name}, and of all who had dealings with {name}?"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text-units", type=int, default=1_000)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--budgets", type=int, nargs="+", default=[25, 50, 100, 500])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_corpus(arguments.text_units, root)
        make_index(root)
        truth = json.loads((root / "ground_truth.json").read_text(encoding="utf-8"))
        store = graphrag_query.open(root / "output").store
        compare(store, relevant_passages(store, truth, arguments.questions), arguments.budgets)


def make_index(root: Path) -> None:
    """Index the corpus with the workflow `lazy`."""
    shutil.copytree(REPOSITORY / "workflows", root / "workflows")
    (root / "settings.yaml").write_text("workflow: lazy\n", encoding="utf-8")
    settings = load_settings(root, [])
    run_workflow(load_workflow(root, "lazy"), settings, root, make_services(settings, None, root))


def relevant_passages(
    store: IndexStore, truth: Mapping[str, Any], n_questions: int
) -> dict[str, set[int]]:
    """Return the people asked about, spread over the valleys, and the passages that count."""
    tied: dict[str, set[str]] = {}
    for pair in truth["relations"]:
        for one, other in ((pair["source"], pair["target"]), (pair["target"], pair["source"])):
            tied.setdefault(one, {one}).add(other)
    people = [e["name"] for e in truth["entities"] if e["type"] == "person" and e["name"] in tied]
    asked = people[:: max(1, len(people) // n_questions)][:n_questions]
    texts = dict(store.scan("text_units").select("human_readable_id", "text").collect().iter_rows())
    words = {number: set(re.findall(r"\w+", text)) for number, text in texts.items()}
    return {
        name: {n for n in texts if words[n] & {proper(other) for other in tied[name]}}
        for name in asked
    }


def proper(name: str) -> str:
    """The word of a name that no other has: a person's surname, else the first."""
    first, _, last = name.partition(" ")
    return last if first in GIVEN else first


def compare(store: IndexStore, relevant: Mapping[str, set[int]], budgets: list[int]) -> None:
    """Print the share of the relevant passages that each way finds, by budget."""
    hierarchy = IndexHierarchy(store)
    n_passages = store.n_rows("text_units")
    n_relevant = sum(map(len, relevant.values())) / len(relevant)
    print(
        f"{n_passages:,} passages, {len(relevant)} questions, {n_relevant:.1f} relevant ones each"
    )
    print(
        "\n| budget | tests spent | found by lazy | by vector, as many passages | ms a question |"
    )
    print("| --- | --- | --- | --- | --- |")
    for budget in budgets:
        settings = LazySearch(budget=budget)
        n_tests = found = by_vector = seconds = 0.0
        for name, wanted in relevant.items():
            question = Question(QUESTION.format(name=name), store)
            question.vector  # noqa: B018  embedding is not what is measured
            started = time.perf_counter()
            ranking = QueryScores.compute(question, [question.text], settings)

            def rate(numbers: list[int], wanted: set[int] = wanted) -> list[float | None]:
                return [float(number in wanted) for number in numbers]

            spent = RelevanceTests(
                ranking.scores, hierarchy, ranking.score, rate, settings, 1.0
            ).run()
            seconds += time.perf_counter() - started
            table = store.vectors("text_unit_text")
            near = table.nearest(question.vector, spent.n_tests, ["human_readable_id"])
            n_tests += spent.n_tests
            found += len(spent.relevant) / len(wanted)
            by_vector += len(wanted & set(near["human_readable_id"])) / len(wanted)
        tests, lazy, vector = (value / len(relevant) for value in (n_tests, found, by_vector))
        ms = 1_000 * seconds / len(relevant)
        print(f"| {budget} | {tests:.0f} | {lazy:.1%} | {vector:.1%} | {ms:.0f} |", flush=True)


if __name__ == "__main__":
    main()
