"""What is asked of a judge about one answer, and what its replies mean."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_evaluation.judging.criteria import CRITERIA, Judgement, build_request
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.runs import Result
from graphrag_index.llm.prompts import Prompts
from graphrag_query.answer import Answer, Outcome

TEXT = "Crean was born near Annascaul. He joined the navy."
QUESTION = EvaluationQuestion(
    "1", "Who was Crean?", statements=("Born.", "Navy.", "Rich."), answers=("A seaman.",)
)


def result(outcome: Outcome = Outcome.ANSWERED, question: EvaluationQuestion = QUESTION) -> Result:
    return Result(question, Answer(question.text, TEXT, outcome), {}, (), ())


@pytest.mark.parametrize("name", list(CRITERIA))
def test_only_answers_are_judged(name: str, tmp_path: Path) -> None:
    prompts = Prompts(tmp_path, "graphrag_evaluation")
    asked = [
        build_request(CRITERIA[name], one, ["A passage."], prompts, "unit") is not None
        for one in (result(), result(Outcome.NO_EVIDENCE), result(Outcome.PROVIDER_ERROR))
    ]
    assert asked == [True, False, False]


@pytest.mark.parametrize(
    ("name", "is_asked"),
    [("statements", False), ("claims", False), ("relevance", True), ("correctness", False)],
)
def test_a_criterion_without_its_material_is_not_asked(
    name: str, is_asked: bool, tmp_path: Path
) -> None:
    bare = result(question=EvaluationQuestion("1", "Who was Crean?"))
    prompts = Prompts(tmp_path, "graphrag_evaluation")
    assert (build_request(CRITERIA[name], bare, [], prompts, "unit") is not None) is is_asked


def read(name: str, value: Any) -> Judgement:
    return CRITERIA[name].read(value, result(), ["A passage."])


def test_a_statement_without_a_verdict_is_not_made() -> None:
    made = {"statement": 1, "made": True, "quotation": "born near Annascaul"}
    not_made = {"statement": 3, "made": False, "quotation": ""}
    assert read("statements", [made, not_made]) == Judgement(1 / 3, {0: True, 2: False}, 1)
    # A quotation that is not in the answer, no verdict, and numbers of no statement.
    others = [
        {"statement": 2, "made": True, "quotation": "joined the army"},
        {"statement": 2, "made": "yes", "quotation": "joined the navy"},
        {"statement": 4, "made": True, "quotation": "joined the navy"},
        {"statement": "2", "made": True, "quotation": "joined the navy"},
    ]
    assert read("statements", [made, *others]) == Judgement(1 / 3, {0: True}, 2)


@pytest.mark.parametrize(
    ("verdict", "quotation", "expected"),
    [
        ("right", "joined the navy", Judgement(1.0, {0: "right"})),
        ("partly", "joined the navy", Judgement(0.5, {0: "partly"})),
        ("wrong", "", Judgement(0.0, {0: "wrong"})),
        ("right", "", Judgement(None, n_unread=1)),
        ("partly", "joined the army", Judgement(None, n_unread=1)),
    ],
)
def test_a_right_answer_needs_its_quotation(
    verdict: str, quotation: str, expected: Judgement
) -> None:
    assert read("correctness", {"verdict": verdict, "quotation": quotation}) == expected
