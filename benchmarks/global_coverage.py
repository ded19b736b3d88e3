"""Measure which gold statements the contexts of searches cover at equal budgets of tokens.

    python benchmarks/global_coverage.py [--questions 100]

Whole corpus: questions about what the documents of the sample tell about a name, with the facts of
`graphrag-index evaluate make` that tell it. Linked passages: the questions of
the sets of benchmarks/retrieval.py, with the sentences of their gold passages; skipped without
these sets. Each search may fill the budget. `basic text` (BM25) and `basic vector` are passages
without a graph. Differences are tested question by question against `global`.
"""

import argparse
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from retrieval import SETS, cache, embedded

from graphrag_evaluation.generation.make_questions import (
    MAX_STATEMENTS,
    MIN_DOCUMENTS,
    MIN_STATEMENTS,
    Fact,
    find_facts,
    read_sentences,
)
from graphrag_evaluation.scores import TOKEN_BUDGETS, contexts_within
from graphrag_evaluation.stated_shares import THRESHOLD, statement_scores
from graphrag_evaluation.statistics import bootstrap_interval, compare_paired
from graphrag_evaluation.systems import Place, System, SystemPlan, open_systems
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.sentences import split_sentences

REPOSITORY = Path(__file__).parent.parent
SEARCHES = ("global", "ask", "local", "lazy", "drift", "basic text", "basic vector")
MIN_STATEMENT_CHARS = 40

Questions = list[tuple[str, list[str]]]


def open_searches(stack: ExitStack, root: Path) -> list[System]:
    """Open each search of an index; a word after `basic` is its mode."""
    plans = []
    for name in SEARCHES:
        method, _, mode = name.partition(" ")
        overrides = (f"basic_search.mode={mode}",) if mode else ()
        plans.append(SystemPlan(name, Place(root), method, overrides))
    return open_systems(stack, plans)


def questions_of_sample(system: System) -> Questions:
    """Ask what the documents tell about each name that enough of them state facts about."""
    of_name: dict[str, dict[str, Fact]] = defaultdict(dict)
    for fact in find_facts(read_sentences(system.index)):
        for name in (fact.subject, *fact.named):
            of_name[name][fold(fact.sentence)] = fact
    told = {name: list(facts.values())[:MAX_STATEMENTS] for name, facts in of_name.items()}
    return [
        (f"What do the documents tell about {name}?", [fact.sentence for fact in facts])
        for name, facts in told.items()
        if len(facts) >= MIN_STATEMENTS
        and len({fact.span.document for fact in facts}) >= MIN_DOCUMENTS
    ]


def questions_of_set(name: str, limit: int) -> Questions:
    """Return the questions of a set with the sentences of their gold passages."""

    def rows(file: str) -> Iterator[dict[str, object]]:
        with gzip.open(SETS / name / file, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    texts = {str(row["id"]): str(row["text"]) for row in rows("corpus.jsonl.gz")}
    found = []
    for row in list(rows("questions.jsonl.gz"))[:limit]:
        gold = [texts[str(number)] for number in row["gold"]]  # type: ignore[attr-defined]
        sentences = [text[one.start : one.end] for text in gold for one in split_sentences(text)]
        statements = [text for text in sentences if len(text) >= MIN_STATEMENT_CHARS]
        if statements:
            found.append((str(row["question"]), statements))
    return found


def measure(name: str, systems: Sequence[System], questions: Questions) -> None:
    """Print the coverage of each search at each budget, and its difference to global search."""
    n_statements = sum(len(statements) for _, statements in questions)
    print(f"{name}: {len(questions)} questions, {n_statements:,} statements")
    for budget in TOKEN_BUDGETS:
        baseline: list[float] = []
        for system in systems:
            shares = []
            for text, statements in questions:
                lines = contexts_within(system, text, [budget])[budget].splitlines()
                scores = statement_scores(statements, lines, system.word_weights)
                shares.append(sum(score >= THRESHOLD for score in scores) / len(scores))
            baseline = baseline or shares
            mean = bootstrap_interval(shares)
            change = compare_paired(baseline, shares, [text for text, _ in questions])
            assert mean is not None
            assert change is not None
            print(
                f"  {budget:6,} {system.name:<13} {mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]"
                f"  {change.interval.mean:+.3f}, p {change.p_value:.4f}",
                flush=True,
            )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the sample, then the sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=100)
    limit = parser.parse_args(arguments).questions
    if not (REPOSITORY / "output" / "index.json").exists():
        sys.exit("Index the sample first: graphrag-index run")
    with ExitStack() as stack:
        systems = open_searches(stack, REPOSITORY)
        measure("sample", systems, questions_of_sample(systems[0])[:limit])
    for folder in sorted(SETS.glob("*/")) if SETS.exists() else ():
        found = sorted(cache().glob(f"{folder.name}-{embedded.__name__}-*"))
        if not found:
            print(f"{folder.name}: index it first, with benchmarks/retrieval.py")
        elif (folder / "questions.jsonl.gz").exists():
            with ExitStack() as stack:
                systems = open_searches(stack, found[0])
                measure(folder.name, systems, questions_of_set(folder.name, limit))


if __name__ == "__main__":
    main()
