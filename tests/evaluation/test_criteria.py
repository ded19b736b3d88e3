"""What is asked of a judge about one answer or two, and what its replies mean."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graphrag_evaluation.judge import (
    CRITERIA,
    Judgement,
    Pair,
    PairVerdict,
    SingleVerdict,
    build_request,
    list_pairs,
    summarize_pairs,
)
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.runs import Result
from graphrag_evaluation.statistics import compare_paired
from graphrag_index.llm.prompts import Prompts
from graphrag_query.answer import Answer, Outcome

TEXT = "Crean was born near Annascaul. He joined the navy."
QUESTION = EvaluationQuestion(
    "1", "Who was Crean?", statements=("Born.", "Navy.", "Rich."), answers=("A seaman.",)
)


def judged(outcome: Outcome = Outcome.ANSWERED, question: EvaluationQuestion = QUESTION) -> Result:
    return Result(question, Answer(question.text, TEXT, outcome), {}, (), ())


@pytest.mark.parametrize("name", list(CRITERIA))
def test_only_answers_are_judged(name: str, tmp_path: Path) -> None:
    prompts = Prompts(tmp_path, "graphrag_evaluation")
    asked = [
        build_request(CRITERIA[name], one, ["A passage."], prompts, "unit") is not None
        for one in (judged(), judged(Outcome.NO_EVIDENCE), judged(Outcome.PROVIDER_ERROR))
    ]
    assert asked == [True, False, False]


@pytest.mark.parametrize(
    ("name", "is_asked"),
    [("statements", False), ("claims", False), ("relevance", True), ("correctness", False)],
)
def test_a_criterion_without_its_material_is_not_asked(
    name: str, is_asked: bool, tmp_path: Path
) -> None:
    bare = judged(question=EvaluationQuestion("1", "Who was Crean?"))
    prompts = Prompts(tmp_path, "graphrag_evaluation")
    assert (build_request(CRITERIA[name], bare, [], prompts, "unit") is not None) is is_asked


def read(name: str, value: Any) -> Judgement:
    return CRITERIA[name].read(value, judged(), ["A passage."])


def test_a_statement_without_a_verdict_is_not_made() -> None:
    made = {"statement": 1, "made": True, "quotation": "born near Annascaul"}
    not_made = {"statement": 3, "made": False, "quotation": ""}
    assert read("statements", [made, not_made]) == Judgement(1 / 3, 1)
    # A quotation that is not in the answer, no verdict, and numbers of no statement.
    others = [
        {"statement": 2, "made": True, "quotation": "joined the army"},
        {"statement": 2, "made": "yes", "quotation": "joined the navy"},
        {"statement": 4, "made": True, "quotation": "joined the navy"},
        {"statement": "2", "made": True, "quotation": "joined the navy"},
    ]
    assert read("statements", [made, *others]) == Judgement(1 / 3, 2)


@pytest.mark.parametrize(
    ("verdict", "quotation", "expected"),
    [
        ("right", "joined the navy", Judgement(1.0)),
        ("partly", "joined the navy", Judgement(0.5)),
        ("wrong", "", Judgement(0.0)),
        ("right", "", Judgement(None, n_unread=1)),
        ("partly", "joined the army", Judgement(None, n_unread=1)),
    ],
)
def test_a_right_answer_needs_its_quotation(
    verdict: str, quotation: str, expected: Judgement
) -> None:
    assert read("correctness", {"verdict": verdict, "quotation": quotation}) == expected


def result(text: str, outcome: Outcome = Outcome.ANSWERED, number: int = 0) -> Result:
    question = EvaluationQuestion(str(number), "Who?", documents=(f"{number}.txt",))
    return Result(question, Answer("Who?", text, outcome), {}, (), ())


def verdict(first: str, second: str, number: int = 0, names: str = "ab") -> PairVerdict:
    """Return the verdict on a pair; "" is a reply that could not be read."""
    orders = [SingleVerdict(winner) if winner else None for winner in (first, second)]
    pair = Pair(*names, (result("x", number=number), result("y", number=number)))
    return PairVerdict(pair, (orders[0], orders[1]))


@pytest.mark.parametrize(
    ("shown", "winner", "is_flip"),
    [
        (("first", "second"), "a", False),
        (("second", "first"), "b", False),
        (("first", "first"), "tie", True),
        (("second", "second"), "tie", True),
        (("tie", "first"), "tie", False),
        (("tie", "tie"), "tie", False),
        (("first", ""), None, False),
    ],
)
def test_an_answer_wins_if_it_wins_in_both_orders(
    shown: tuple[str, str], winner: str | None, is_flip: bool
) -> None:
    found = verdict(*shown)
    assert (found.winner, found.is_flip) == (winner, is_flip)


@pytest.mark.parametrize(
    ("long", "short", "cut"),
    [
        ("one\ntwo three four", "five six", "one two"),
        # Scripts without spaces between words.
        ("南極に行った。帰った。", "英国へ", "南極に"),
        ("Scott は南極に行った。", "Wild は", "Scott は"),
    ],
)
def test_answers_are_shown_at_equal_length_in_both_orders(
    long: str, short: str, cut: str, tmp_path: Path
) -> None:
    pair = Pair("long", "short", (result(long), result(short)))
    prompts = Prompts(tmp_path, "graphrag_evaluation")
    asked = [request.messages[1]["content"] for request in pair.requests(prompts)]
    assert asked == [
        f"Question: Who?\n\nFirst answer:\n{first}\n\nSecond answer:\n{second}"
        for first, second in ((cut, short), (short, cut))
    ]


def test_only_two_answers_are_a_pair() -> None:
    rows = {
        "a": [result("x"), result("", Outcome.NO_EVIDENCE), result("x")],
        "b": [result("y"), result("y"), result("", Outcome.PROVIDER_ERROR)],
        "c": [result("z"), result("", Outcome.NO_EVIDENCE), result("z")],
    }
    pairs = [(one.first, one.second, one.results[0].answer.text) for one in list_pairs(rows)]
    assert pairs == [("a", "b", "x"), ("a", "c", "x"), ("a", "c", "x"), ("b", "c", "y")]


def test_a_summary_counts_and_corrects() -> None:
    won, lost, flip, half = ("first", "second"), ("second", "first"), ("first",) * 2, ("first", "")

    def judged(shown: Sequence[tuple[str, ...]], names: str) -> list[PairVerdict]:
        return [verdict(one[0], one[1], at, names) for at, one in enumerate(shown)]

    [ab, ac] = summarize_pairs(
        [
            *judged([lost] * 8 + [won] + [flip, ("tie", "tie"), half], "ab"),
            *judged([lost] * 9, "ac"),
        ]
    )
    assert (ab.n, ab.wins, ab.ties, ab.n_unread) == (11, (1, 8), 2, 1)
    assert ab.flip_rate == 1 / 11
    # Of 20 single verdicts that name a winner; nine pairs have one in each place.
    assert ab.first_place == 11 / 20
    assert ab.difference == pytest.approx(7 / 11)
    assert (ac.wins, ac.first_place, ac.p_value) == ((0, 9), 0.5, 2 * 2 / 2**9)
    alone = compare_paired([0] * 8 + [1, 0, 0], [1] * 8 + [0, 0, 0], [str(i) for i in range(11)])
    assert alone is not None
    # The larger of two p-values is not multiplied, the smaller one is doubled.
    assert ab.p_value == alone.p_value > ac.p_value
