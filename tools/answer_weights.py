"""Fit the weights of `answer_ranking.py` to sets of questions with short answers.

    python tools/answer_weights.py --indexes FOLDER

Reads the sets of `benchmarks/answers.py`, and the questions about the sample of
`benchmarks/labelled/short_answers.jsonl`. Their indexes are in FOLDER; missing ones are made. Each
question is asked in local search without a model. A sentence is right if it holds the answer and is
of a document that supports it. The weights make it likely that a sentence drawn by the softmax of
the scores is right; large weights cost `--penalty`.

Prints each weight as it is and as fitted, with the standard deviation of its feature. Then, for
each set, the share of all questions, in per cent, whose first sentence holds the answer: with the
present weights, with those fitted to the other folds of the questions, and with those fitted to the
other sets.
"""

import argparse
import gzip
import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import softmax

import graphrag_query
from graphrag_query.answering.answer_features import COLUMN, FEATURES, AnswerFeatures
from graphrag_query.answering.answer_ranking import WEIGHTS, without_copies
from graphrag_query.answering.extractive import is_sentence, split_into_candidates
from graphrag_query.answering.list_answer import find_types_of_names
from graphrag_query.answering.short_answer import extend_to_line
from graphrag_query.answering.statements import find_openings
from graphrag_query.index import Index
from graphrag_query.question.question import Question

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import answers

ROOT = Path(__file__).resolve().parents[1]
Floats = npt.NDArray[np.float64]
SAMPLE_QUESTIONS = ROOT / "benchmarks/labelled/short_answers.jsonl"
# Added to the standard deviation of each feature, in case that a feature is constant.
MIN_SCALE = 1e-6


class Asked(NamedTuple):
    """A question: the features of its sentences (rows), and whether each has the answer.

    `right` has the sentences to learn from: those of a document that supports the answer.
    """

    set_name: str
    features: Floats
    holds: npt.NDArray[np.bool_]
    right: npt.NDArray[np.bool_]


def read_sets(folder: Path) -> Iterator[Asked]:
    """Yield the questions of all sets. Sets without an index are indexed."""
    for name in answers.SETS:
        data, project = answers.DATA / name, folder / Path(name).name
        if not project.exists():
            answers.index_corpus(data, project)
        with gzip.open(data / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
            titles = {str(row["id"]): row["title"] for row in map(json.loads, lines)}
        yield from ask(project, answers.read_questions(data), titles)
    project = folder / "sample"
    if not project.exists():
        shutil.copytree(ROOT / "input", project / "input")
        answers.index_project(project)
    rows = map(json.loads, SAMPLE_QUESTIONS.read_text(encoding="utf-8").splitlines())
    yield from ask(project, [{"answer": "", "aliases": r["answers"], **r} for r in rows], {})


def ask(
    project: Path, rows: Iterable[Mapping[str, Any]], titles: Mapping[str, str]
) -> Iterator[Asked]:
    """Yield the questions of a set, with the features of the sentences that a search reads."""
    with graphrag_query.open(project / "output") as index:
        for row in rows:
            texts = (row["answer"], *(row.get("aliases") or ()))
            wanted = {answers.normalize(str(text)) for text in texts}
            supporting = {titles[str(number)] for number in row.get("gold", ())}
            yield read_question(project.name, index, row["question"], wanted - {""}, supporting)


def read_question(
    set_name: str, index: Index, text: str, wanted: Set[str], supporting: Set[str]
) -> Asked:
    """Compute the features of the sentences that a search reads, as an answer does."""
    sources = index.context(text).tables.get("Sources")
    numbers = [] if sources is None else sources["id"].to_list()
    rows = index.store.text_units(numbers)
    units = {number: rows[number] for number in numbers}
    openings = find_openings(index.store, units.values())
    statements = split_into_candidates(units.values(), dict.fromkeys(units, 0.0), openings)
    said = without_copies([c for c in statements if is_sentence(c, units[c.text_unit])])
    if not said:
        none = np.zeros(0, bool)
        return Asked(set_name, np.zeros((0, len(FEATURES))), none, none)
    question = Question(text, index.store)
    found = AnswerFeatures(question, said)
    types = find_types_of_names(index.store, units) if question.wanted.wants_name else {}
    for i in range(len(said)):
        found.add_spans(i, types)
    vectors = index.store.embedder.embed([c.text_to_embed for c in said])
    found.values[:, COLUMN["similarity"]] = vectors @ question.vector
    lines = [extend_to_line(c, said, units[c.text_unit]) if c.label else c for c in said]
    texts = [answers.normalize(line.quotation) for line in lines]
    holds = np.array([any(answer in text for answer in wanted) for text in texts])
    right = holds & np.array([not supporting or c.title in supporting for c in said])
    return Asked(set_name, found.values, holds, right)


def fit(questions: Sequence[Asked], penalty: float) -> Floats:
    """Return the weights under which the right sentences are likeliest among all."""
    usable = [q for q in questions if q.right.any()]
    scale = np.concatenate([q.features for q in usable]).std(axis=0) + MIN_SCALE

    def loss(weights: Floats) -> tuple[float, Floats]:
        value, gradient = penalty * weights @ weights, 2 * penalty * weights
        for question in usable:
            features = question.features / scale
            likely = softmax(features @ weights)
            share = likely[question.right].sum()
            value -= np.log(share)
            gradient -= (likely * question.right / share - likely) @ features
        return float(value) / len(usable), gradient / len(usable)

    found = minimize(loss, np.zeros(len(FEATURES)), jac=True, method="L-BFGS-B")
    return np.asarray(found.x / scale)


def count_first(questions: Sequence[Asked], weights: Floats) -> int:
    """Count the questions whose first sentence holds the answer."""
    return sum(bool(q.holds[np.argmax(q.features @ weights)]) for q in questions if len(q.features))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--indexes", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--penalty", type=float, default=3.0)
    parser.add_argument("--folds", type=int, default=6)
    options = parser.parse_args()
    asked = list(read_sets(options.indexes))
    present = np.array([WEIGHTS[name] for name in FEATURES])
    fitted = fit(asked, options.penalty)
    deviations = np.concatenate([q.features for q in asked]).std(axis=0)
    print("| feature | now | fitted | deviation |", "| --- " * 4 + "|", sep="\n")
    for row in zip(FEATURES, present, fitted, deviations, strict=True):
        print("| {} | {:.1f} | {:.1f} | {:.2f} |".format(*row))
    folds = [
        (asked[i :: options.folds], [q for j, q in enumerate(asked) if j % options.folds != i])
        for i in range(options.folds)
    ]
    by_fold = [(held_out, fit(rest, options.penalty)) for held_out, rest in folds]
    print("\n| set | questions | now | other folds | other sets |", "| --- " * 5 + "|", sep="\n")
    for name in dict.fromkeys(q.set_name for q in asked):
        own = [q for q in asked if q.set_name == name]
        others = fit([q for q in asked if q.set_name != name], options.penalty)
        counts = (
            count_first(own, present),
            sum(count_first([q for q in part if q.set_name == name], w) for part, w in by_fold),
            count_first(own, others),
        )
        cells = " | ".join(f"{100 * count / len(own):.0f}" for count in counts)
        print(f"| {name} | {len(own)} | {cells} |")


if __name__ == "__main__":
    main()
