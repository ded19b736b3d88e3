"""Systems on questions about the sample, and what is told of them."""

from pathlib import Path

import pytest

import graphrag_query
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.runs import System, run_system
from graphrag_evaluation.summary import Evaluation
from graphrag_index.errors import SettingsError

QUESTIONS = [
    EvaluationQuestion(
        "crean",
        "Where was Tom Crean born?",
        documents=("people/tom-crean.txt",),
        answers=("Annascaul",),
    ),
    EvaluationQuestion("bakery", "Who runs the bakery in Zürich?", is_answerable=False),
]


@pytest.fixture(scope="module")
def evaluation(sample_project: Path) -> Evaluation:
    with graphrag_query.open(sample_project / "output") as index:
        systems = [System(name, index, name) for name in ("local", "basic")]
        return Evaluation({system.name: run_system(system, QUESTIONS) for system in systems})


def test_each_question_gets_the_measures_that_apply_to_it(evaluation: Evaluation) -> None:
    crean, bakery = evaluation.results["local"]
    assert crean.scores["recall@10"] == crean.scores["said"] == crean.scores["citations_valid"] == 1
    assert crean.scores["outcome_right"] == bakery.scores["outcome_right"] == 1
    assert not {"recall@10", "said", "citations_valid"} & bakery.scores.keys()
    assert crean.missed == []


def test_two_systems_are_compared_question_by_question(evaluation: Evaluation) -> None:
    [comparison] = evaluation.comparisons("outcome_right")
    assert (comparison.first, comparison.second) == ("local", "basic")
    assert comparison.difference.interval.n == 2
    # Two questions can prove nothing.
    assert not comparison.is_significant


def test_questions_about_other_documents_are_told(sample_project: Path) -> None:
    question = EvaluationQuestion("1", "Who?", documents=("nowhere.txt",))
    with (
        graphrag_query.open(sample_project / "output") as index,
        pytest.raises(SettingsError, match=r"None of the 1 gold documents .* 'nowhere.txt'"),
    ):
        run_system(System("local", index, "local"), [question])
