"""Fit the weights of answers without a model to sets of questions with short answers.

    python tools/answer_weights.py --indexes FOLDER --write

Reads the sets of `benchmarks/answers.py`, and the questions about the sample of
`benchmarks/labelled/short_answers.jsonl`. Their indexes are in FOLDER; missing ones are made, as by
`benchmarks/near_misses.py`. Each question is asked in local search without a model.

`features` order the statements: under them it is likely that a statement drawn by the softmax of
the scores is right, which holds the answer and is of a document that supports it. Large weights
cost `--penalty`. Question i is in fold i modulo `--folds`. For each set, the share of all
questions, in per cent, whose answer holds the short one, and whose first statement does: with
weights fitted to the other folds, to the other sets, and to all.

`clearness` tells whether an answer holds the short one: a logistic regression over the questions of
the sets, asked with their evidence and without. Its constant is such that of the answers that hold
it, the share `--false-flags` is below 0 and called unclear.
"""

import argparse
import gzip
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, softmax

import graphrag_query
from graphrag_index.schema.settings.searches import LocalSearch
from graphrag_nlp.answers import rank_statements as sentence_answers
from graphrag_nlp.answers.features import COLUMN, FEATURES, Candidates
from graphrag_nlp.answers.rank_statements import (
    CLEARNESS,
    choose_statements,
    describe_clearness,
    rank_statements,
)
from graphrag_nlp.answers.statements import split_joined_words
from graphrag_query.answering.quoted_answer import read_passages, read_question
from graphrag_query.index import Index
from graphrag_query.question.question import Question
from graphrag_query.searches.local_search import find_evidence

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import answers
import near_misses

ROOT = Path(__file__).resolve().parents[1]
Floats = npt.NDArray[np.float64]
SAMPLE_QUESTIONS = ROOT / "benchmarks/labelled/short_answers.jsonl"
WEIGHTS = ROOT / "graphrag_nlp/answers/data/weights.yaml"
HEADER = (
    "# Fitted by tools/answer_weights.py; what they weigh: FEATURES and CLEARNESS in the code.\n"
)
# Added to the standard deviation of each feature, in case that a feature is constant.
MIN_SCALE = 1e-6


class Asked(NamedTuple):
    """A question: its candidates, and which of their rows hold the answer.

    `right` are those to learn from, of a document that supports the answer.
    """

    set_name: str
    found: Candidates
    holds: npt.NDArray[np.bool_]
    right: npt.NDArray[np.bool_]

    def choose(self, weights: Floats) -> tuple[bool, bool]:
        """Return whether the answer, and its first statement, hold the short answer."""
        if not len(self.found.rows):
            return False, False
        scores = self.found.values @ weights
        order = np.argsort(-scores, kind="stable").tolist()
        rows = choose_statements(self.found, order, scores, LocalSearch().max_sentences)
        return bool(self.holds[rows].any()), bool(self.holds[rows[0]])


def read_candidates(
    set_name: str, index: Index, text: str, wanted: Set[str], supporting: Set[str]
) -> Asked:
    """Compute the features of the statements that a search reads, with all similarities."""
    question = Question(text, index.store)
    evidence = find_evidence(question, LocalSearch())
    units = evidence.text_units
    links = {unit.number: unit.score - unit.own_score for unit in evidence.ranked}
    passages = read_passages(question, units, evidence.own_scores(), links)
    found = Candidates(read_question(question, units), passages)
    statements = [found.statements[i] for i in found.rows]
    if statements:
        vectors = index.store.embedder.embed([s.text_to_embed for s in statements])
        found.values[:, COLUMN["similarity"]] = vectors @ question.vector
    texts = [answers.normalize(f"{s.said} {split_joined_words(s.said)}") for s in statements]
    holds = np.array([any(name in text for name in wanted) for text in texts], bool)
    titles = [found.passages[i].title for i in found.rows]
    return Asked(
        set_name,
        found,
        holds,
        holds & np.array([not supporting or t in supporting for t in titles], bool),
    )


def read_sets(folder: Path) -> Iterator[Asked]:
    """Yield the questions of all sets. Sets without an index are indexed."""
    for name in answers.SETS:
        data, project = answers.DATA / name, folder / Path(name).name
        if not project.exists():
            answers.index_corpus(data, project)
        with gzip.open(data / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
            titles = {str(row["id"]): row["title"] for row in map(json.loads, lines)}
        yield from read_set(project, answers.read_questions(data), titles)
    project = folder / "sample"
    if not project.exists():
        shutil.copytree(ROOT / "input", project / "input")
        answers.index_project(project)
    rows = map(json.loads, SAMPLE_QUESTIONS.read_text(encoding="utf-8").splitlines())
    yield from read_set(project, [{"answer": "", "aliases": r["answers"], **r} for r in rows], {})


def read_set(
    project: Path, rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str]
) -> Iterator[Asked]:
    """Yield the questions of one set."""
    with graphrag_query.open(project / "output") as index:
        for row in rows:
            texts = (row["answer"], *(row.get("aliases") or ()))
            wanted = {answers.normalize(str(text)) for text in texts} - {""}
            supporting = {titles[str(number)] for number in row.get("gold", ())}
            yield read_candidates(project.name, index, row["question"], wanted, supporting)


def fit(questions: Sequence[Asked], penalty: float) -> Floats:
    """Return the weights under which the right statements are likeliest among all."""
    usable = [q for q in questions if q.right.any()]
    scale = np.concatenate([q.found.values for q in usable]).std(axis=0) + MIN_SCALE

    def loss(weights: Floats) -> tuple[float, Floats]:
        value, gradient = penalty * weights @ weights, 2 * penalty * weights
        for question in usable:
            features = question.found.values / scale
            likely = softmax(features @ weights)
            share = likely[question.right].sum()
            value -= np.log(share)
            gradient -= (likely * question.right / share - likely) @ features
        return float(value) / len(usable), gradient / len(usable)

    found = minimize(loss, np.zeros(len(FEATURES)), jac=True, method="L-BFGS-B")
    return np.asarray(found.x / scale)


def read_clearness(folder: Path, weights: Floats) -> Iterator[tuple[str, str, Floats, bool]]:
    """Yield the set and the case of a question, its clearness, and whether the answer is said."""
    for corpus in near_misses.read_corpora():
        for case, index, own in near_misses.open_cases(corpus, folder):
            for asked in own:
                one = read_candidates(corpus.name, index, asked.question, asked.wanted, set())
                if len(one.found.rows):
                    scores = one.found.values @ weights
                    order, scores = rank_statements(one.found, index.store.embedder.embed)
                    clearness = describe_clearness(one.found, order, scores)
                    yield corpus.name, case, clearness, one.choose(weights)[0]


def fit_clearness(values: Floats, is_said: npt.NDArray[np.bool_], false_flags: float) -> Floats:
    """Return the weights of a logistic regression, with the constant that flags few."""
    signs = np.where(is_said, 1.0, -1.0)

    def loss(weights: Floats) -> tuple[float, Floats]:
        margins = signs * (values @ weights)
        gradient = -(signs * expit(-margins)) @ values
        return float(np.logaddexp(0, -margins).sum() + weights @ weights), gradient + 2 * weights

    found = minimize(loss, np.zeros(values.shape[1]), jac=True, method="L-BFGS-B").x
    found[CLEARNESS.index("constant")] = 0
    found[CLEARNESS.index("constant")] = -np.quantile(values[is_said] @ found, false_flags)
    return np.asarray(found)


def write_weights(features: Floats, clearness: Floats) -> None:
    """Write the weights, in the order of the code."""
    parts = {
        "features": zip(FEATURES, features, strict=True),
        "clearness": zip(CLEARNESS, clearness, strict=True),
    }
    lines = [
        line
        for name, pairs in parts.items()
        for line in (f"{name}:", *(f"  {key}: {value:.2f}" for key, value in pairs))
    ]
    WEIGHTS.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--indexes", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--penalty", type=float, default=1.0)
    parser.add_argument("--folds", type=int, default=6)
    parser.add_argument("--false-flags", type=float, default=0.1)
    parser.add_argument("--write", action="store_true", help=f"write {WEIGHTS.name}")
    options = parser.parse_args()
    asked = list(read_sets(options.indexes))
    weights = fit(asked, options.penalty)
    print("\n| set | questions | other folds | other sets | fitted |", "| --- " * 5 + "|", sep="\n")
    by_fold = [
        fit([q for j, q in enumerate(asked) if j % options.folds != i], options.penalty)
        for i in range(options.folds)
    ]
    for name in dict.fromkeys(q.set_name for q in asked):
        own = [(i, q) for i, q in enumerate(asked) if q.set_name == name]
        others = fit([q for q in asked if q.set_name != name], options.penalty)
        counts = [
            np.mean([q.choose(by_fold[i % options.folds]) for i, q in own], axis=0),
            np.mean([q.choose(others) for _, q in own], axis=0),
            np.mean([q.choose(weights) for _, q in own], axis=0),
        ]
        cells = " | ".join(f"{100 * said:.1f} / {100 * first:.1f}" for said, first in counts)
        print(f"| {name} | {len(own)} | {cells} |", flush=True)
    if options.write:
        write_weights(weights, np.zeros(len(CLEARNESS)))
        sentence_answers.read_weights.cache_clear()
    found = list(read_clearness(options.indexes, weights))
    values, is_said = np.array([one[2] for one in found]), np.array([one[3] for one in found])
    clearness = fit_clearness(values, is_said, options.false_flags)
    is_unclear = values @ clearness < 0
    print("\n| set | evidence | said, unclear | not said, unclear |", "| --- " * 4 + "|", sep="\n")
    for name, case in dict.fromkeys(one[:2] for one in found):
        own = np.array([one[:2] == (name, case) for one in found])
        cells = (
            f"{100 * is_unclear[own & said].mean():.1f}" if (own & said).any() else "-"
            for said in (is_said, ~is_said)
        )
        print(f"| {name} | {case} | {' | '.join(cells)} |")
    if options.write:
        write_weights(weights, clearness)


if __name__ == "__main__":
    main()
