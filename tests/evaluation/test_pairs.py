"""Pairs of answers and the verdicts on them, as literal values."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphrag_evaluation.judging.pairwise import (
    Pair,
    PairVerdict,
    SingleVerdict,
    list_pairs,
    summarize_pairs,
)
from graphrag_evaluation.judging.position_bias import (
    RecordedVerdict,
    measure_position_bias,
    read_verdicts,
)
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.runs import Result
from graphrag_evaluation.statistics import compare_paired
from graphrag_index.__main__ import app
from graphrag_index.errors import SettingsError
from graphrag_index.llm.prompts import Prompts
from graphrag_query.answer import Answer, Outcome


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


def write_verdicts(path: Path, n: int, ours_first: float, ours_second: float) -> Path:
    """Write verdicts in which `ours` wins with a probability when shown first, and second."""
    draw = random.Random(5)
    with path.open("w", encoding="utf-8") as file:
        for number in range(n):
            for shown in (("ours", "theirs"), ("theirs", "ours")):
                is_ours = draw.random() < (ours_first if shown[0] == "ours" else ours_second)
                winner = "ours" if is_ours else "theirs"
                record = {"question": number, "first": shown[0], "second": shown[1]}
                file.write(json.dumps({**record, "winner": winner}) + "\n")
    return path


# The biases of published verdicts: the first place wins 74.5 %; one system wins 94 % shown first,
# and 34 % shown second.
@pytest.mark.parametrize(
    ("n", "ours_first", "ours_second"), [(400, 0.745, 0.255), (130, 0.94, 0.34)]
)
def test_verdicts_that_follow_the_order_are_told_as_biased(
    n: int, ours_first: float, ours_second: float, tmp_path: Path
) -> None:
    path = write_verdicts(tmp_path / "v.jsonl", n, ours_first, ours_second)
    found = measure_position_bias(read_verdicts(path))
    assert found.is_biased
    assert found.low < (ours_first + 1 - ours_second) / 2 < found.high
    assert (found.n, found.n_both_orders) == (2 * n, n)
    assert found.flip_rate is not None
    assert found.flip_rate > 0.5
    assert found.wins["ours"] == pytest.approx((ours_first, ours_second), abs=0.05)
    told = CliRunner().invoke(app, ["evaluate", "verdicts", str(path)])
    assert "Verdict on the judge: biased by position." in told.stdout


@pytest.mark.parametrize("wins_of_ours", [0.5, 0.9, 1.0])
def test_verdicts_that_do_not_follow_the_order_are_not(wins_of_ours: float, tmp_path: Path) -> None:
    path = write_verdicts(tmp_path / "v.jsonl", 400, wins_of_ours, wins_of_ours)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    # The same with one order nine times as often as the other.
    uneven = [line for at, line in enumerate(lines) if at % 2 == 0 or at % 18 == 3]
    for kept in (lines, uneven):
        path.write_text("".join(kept), encoding="utf-8")
        told = CliRunner().invoke(app, ["evaluate", "verdicts", str(path)])
        assert "no bias of position is shown" in told.stdout


def test_one_order_of_two_systems_does_not_tell_a_bias(tmp_path: Path) -> None:
    path = write_verdicts(tmp_path / "v.jsonl", 40, 1, 1)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[::2]))
    assert measure_position_bias(read_verdicts(path)).p_value is None
    told = CliRunner().invoke(app, ["evaluate", "verdicts", str(path)])
    assert "not known, since no two systems were shown in both orders" in told.stdout


def test_verdicts_of_other_programs_are_read(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    record = {"query": "q", "Diversity": {"Winner": "Answer 1"}, "Overall": {"Winner": "Answer 2"}}
    path.write_text(json.dumps(record))
    assert [(one.criterion, one.place) for one in read_verdicts(path)] == [
        ("Diversity", 0),
        ("Overall", 1),
    ]
    path.write_text('{"question": "a\u2028b", "winner": "first"}', encoding="utf-8")
    assert [one.question for one in read_verdicts(path)] == ["a\u2028b"]
    path.write_text('{"first": "a", "second": "b", "winner": "c"}')
    with pytest.raises(SettingsError, match="the winner 'c' is none of"):
        read_verdicts(path)


def test_flips_and_wins_of_recorded_verdicts() -> None:
    # The winning places of pairs in both orders: a flip, a tie twice, no flip, one order only.
    places = [(0, 0), (None, None), (0, 1), (1,)]
    verdicts = [
        RecordedVerdict(str(at), "", shown, place)
        for at, both in enumerate(places)
        for shown, place in zip((("a", "b"), ("b", "a")), both, strict=False)
    ]
    found = measure_position_bias(verdicts)
    assert (found.n, found.n_ties, found.first_share) == (5, 2, 3 / 5)
    assert (found.n_both_orders, found.flip_rate) == (3, 1 / 3)
    # Shown first, `a` won two of three times and `b` one of two times.
    assert found.wins == {"a": (2 / 3, 1 / 2), "b": (1 / 2, 1 / 3)}
    assert found.p_value == 1
