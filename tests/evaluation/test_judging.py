"""A model as judge, behind a server that behaves and misbehaves."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphrag_evaluation.judge import CRITERIA, Judge, Task, list_tasks, summarize_pairs
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.runs import Result, run_systems
from graphrag_evaluation.systems import Place, open_systems, plan_systems
from graphrag_index.__main__ import app
from graphrag_index.errors import BudgetError, ModelError
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_query.answer import Answer, Outcome
from tests.fixtures.reports import honest
from tests.model_server import ChatRequest, Faults, Server

QUESTIONS = [
    EvaluationQuestion(
        "crean",
        "Where was Tom Crean born?",
        answers=("Annascaul",),
        statements=("Crean was born near Annascaul.", "Crean was born in Sydney."),
    ),
    EvaluationQuestion("nimrod", "Who led the Nimrod expedition?", answers=("Shackleton",)),
]


@pytest.fixture(scope="module")
def judged_tasks(sample_project: Path) -> Iterator[tuple[dict[str, list[Result]], list[Task]]]:
    with ExitStack() as stack:
        systems = open_systems(stack, plan_systems([Place(sample_project)], ["local", "global"]))
        results = run_systems(systems, QUESTIONS, budgets=())
        criteria = ["statements", "claims", "relevance", "correctness", "pairwise"]
        yield results, list_tasks(systems, results, criteria, sample_project)


@contextmanager
def judge_at(
    server: Server, folder: Path, root: Path, budget: float | None = None
) -> Iterator[Judge]:
    settings = load_settings(
        root,
        (
            f"models.chat.base_url={server.url}",
            "models.chat.model=test-model",
            "models.chat.price={input: 1.0, output: 2.0}",
            "models.chat.timeout=60",
            "models.chat.retry_seconds=1",
        ),
    )
    judge = Judge("chat", settings, root, folder, budget)
    try:
        yield judge
    finally:
        judge.close()


Judged = tuple[dict[str, list[Result]], list[Task]]


def test_a_judge_scores_answers_by_each_criterion(
    judged_tasks: Judged, tmp_path: Path, sample_project: Path
) -> None:
    results, tasks = judged_tasks
    with Server(answer=honest) as server, judge_at(server, tmp_path, sample_project) as judge:
        calls, n_tokens, cost = judge.estimate(tasks)
        verdicts = judge.judge(tasks)
    assert calls == len(tasks) == verdicts.spent.calls
    assert n_tokens > 0
    assert cost is not None
    assert verdicts.spent.cost is not None
    assert 0 < verdicts.spent.cost < cost
    crean, nimrod = verdicts.add_scores(results)["local"]
    assert crean.scores["judged_statements"] == 0.5
    assert crean.scores["judged_faithful"] == crean.scores["judged_correct"] == 1
    assert crean.scores["judged_relevant"] == 0.8
    assert crean.scores["judge_unread"] == nimrod.scores["judge_unread"] == 0
    assert "judged_statements" not in nimrod.scores
    [summary] = summarize_pairs(verdicts.pairs)
    assert (summary.first, summary.second, summary.n) == ("local", "global", 2)
    assert summary.flip_rate == 0
    assert sum(summary.wins) + summary.ties == 2


def test_evidence_that_is_not_in_the_text_does_not_count(
    judged_tasks: Judged, tmp_path: Path, sample_project: Path
) -> None:
    def inventive(request: ChatRequest) -> Mapping[str, Any]:
        reply = json.loads(json.dumps(honest(request)))
        for record in (reply, *reply.get("verdicts", ()), *reply.get("claims", ())):
            if record.get("quotation"):
                record["quotation"] = "words that no text has"
        return reply  # type: ignore[no-any-return]

    results, tasks = judged_tasks
    with Server(answer=inventive) as server, judge_at(server, tmp_path, sample_project) as judge:
        verdicts = judge.judge(tasks)
    [crean, _] = verdicts.add_scores(results)["local"]
    assert crean.scores["judged_statements"] == crean.scores["judged_faithful"] == 0
    assert "judged_correct" not in crean.scores
    assert crean.scores["judge_unread"] == 3
    # The total has each of them, also where no score is left.
    scores = [row.scores for rows in verdicts.add_scores(results).values() for row in rows]
    assert verdicts.n_unread == sum(one["judge_unread"] for one in scores)


def test_a_judge_that_prefers_the_first_place_proves_nothing(
    judged_tasks: Judged, tmp_path: Path, sample_project: Path
) -> None:
    pairs = [task for task in judged_tasks[1] if task.pair is not None]
    first = {"reason": "it is first", "winner": "first"}
    with (
        Server(answer=lambda request: first) as server,
        judge_at(server, tmp_path, sample_project) as judge,
    ):
        [summary] = summarize_pairs(judge.judge(pairs).pairs)
        # One order alone is no verdict.
        assert judge.judge(pairs[:1]).pairs == []
    assert summary.wins == (0, 0)
    assert summary.ties == summary.n == 2
    assert summary.flip_rate == summary.first_place == 1


def test_equal_answers_are_a_tie_that_no_judge_is_asked_for(
    judged_tasks: Judged, sample_project: Path
) -> None:
    row = judged_tasks[0]["local"][0]
    [task] = list_tasks([], {"a": [row], "b": [row]}, ["pairwise"], sample_project)
    assert task.request is None
    assert task.pair is not None


def test_a_judge_that_cannot_be_reached_stops_the_judgements(
    judged_tasks: Judged, tmp_path: Path, sample_project: Path
) -> None:
    with Server() as server:
        gone = server
    with judge_at(gone, tmp_path, sample_project) as judge:
        verdicts = judge.judge(judged_tasks[1])
    assert isinstance(verdicts.stopped, ModelError)
    assert (verdicts.judgements, verdicts.pairs) == ({}, [])


def test_records_that_are_no_objects_are_unread(
    judged_tasks: Judged, tmp_path: Path, sample_project: Path
) -> None:
    def answer(request: ChatRequest) -> Mapping[str, Any]:
        return {"verdicts": ["yes", *honest(request)["verdicts"]]}

    tasks = [one for one in judged_tasks[1] if one.key and one.key[2] == "statements"]
    with Server(answer=answer) as server, judge_at(server, tmp_path, sample_project) as judge:
        verdicts = judge.judge(tasks)
    assert verdicts.n_unread == len(tasks) == 2
    # Each answer has one of the two statements.
    assert [one.score for one in verdicts.judgements.values()] == [0.5, 0.5]


def test_failed_requests_of_an_earlier_evaluation_are_sent_again(
    judged_tasks: Judged, tmp_path: Path, sample_project: Path
) -> None:
    tasks = [one for one in judged_tasks[1] if one.key and one.key[2] == "relevance"]
    for faults, n_read in ((Faults(rate=1, kinds=["refusal"]), 0), (Faults(), len(tasks))):
        server = Server(answer=honest, faults=faults)
        with server, judge_at(server, tmp_path, sample_project) as judge:
            verdicts = judge.judge(tasks)
        assert sum(one.score is not None for one in verdicts.judgements.values()) == n_read


@pytest.mark.parametrize("fault", ["wrong_schema", "refusal", "empty_content", "null_content"])
def test_replies_that_cannot_be_read_are_counted(
    judged_tasks: Judged, tmp_path: Path, sample_project: Path, fault: str
) -> None:
    results, tasks = judged_tasks
    tasks = [task for task in tasks if task.key and task.key[1:] == ("crean", "correctness")]
    server = Server(answer=honest, faults=Faults(rate=1, kinds=[fault]))
    with server, judge_at(server, tmp_path, sample_project) as judge:
        verdicts = judge.judge(tasks)
    assert verdicts.n_unread == len(tasks) == 2
    scores = verdicts.add_scores(results)["local"][0].scores
    assert scores["judge_unread"] == 1
    assert "judged_correct" not in scores


def test_a_stopped_evaluation_goes_on_and_pays_nothing_twice(
    judged_tasks: Judged, tmp_path: Path, sample_project: Path
) -> None:
    _, tasks = judged_tasks
    with Server(answer=honest) as server:
        with judge_at(server, tmp_path, sample_project, budget=0.02) as judge:
            stopped = judge.judge(tasks)
        assert isinstance(stopped.stopped, BudgetError)
        sent = len(judged_bodies(server))
        assert 0 < sent < len(tasks)
        # What was paid for counts, wherever it stands among what is not yet judged.
        with judge_at(server, tmp_path, sample_project, budget=0.0001) as judge:
            kept = judge.judge(tasks[::-1])
        assert isinstance(kept.stopped, BudgetError)
        assert kept.judgements == stopped.judgements
        assert kept.spent.calls == 0
        with judge_at(server, tmp_path, sample_project) as judge:
            verdicts = judge.judge(tasks)
        assert verdicts.stopped is None
        assert verdicts.spent.calls == len(tasks) - sent
        assert len(set(judged_bodies(server))) == len(judged_bodies(server)) == len(tasks)


def test_equal_answers_are_judged_once(sample_project: Path, tmp_path: Path) -> None:
    answer = Answer("Who?", "Shackleton led it.", Outcome.ANSWERED)
    rows = [Result(QUESTIONS[1], answer, {}, [], [])]
    with ExitStack() as stack:
        places = [Place(sample_project)]
        systems = open_systems(stack, plan_systems(places, ["local", "basic"]))
        results = {system.name: rows for system in systems}
        tasks = list_tasks(systems, results, ["relevance", "correctness"], sample_project)
    server = Server(answer=honest, latency=0.1)
    with server, judge_at(server, tmp_path, sample_project) as judge:
        assert judge.estimate(tasks)[0] == 2
        verdicts = judge.judge(tasks)
    assert (len(tasks), len(judged_bodies(server)), verdicts.spent.calls) == (4, 2, 2)
    scored = verdicts.add_scores(results)
    assert scored["local"][0].scores == scored["basic"][0].scores
    assert scored["basic"][0].scores["judged_correct"] == 1


def judged_bodies(server: Server) -> list[bytes]:
    """Return the bodies of the requests that were judged, without the check of the server."""
    return [one.body for one in server.requests if b"You " in one.body]


def test_a_repeated_claim_counts_once() -> None:
    answer = Answer("Who?", "Crean went south. He came home.", Outcome.ANSWERED)
    result = Result(EvaluationQuestion("1", "Who?"), answer, {}, [], [])
    told = {"claim": "Crean went south.", "supported": True, "quotation": "went south"}
    wrong = {"claim": "He came home.", "supported": False, "quotation": ""}
    read = CRITERIA["claims"].read([told, wrong, wrong, wrong], result, ["He went south."])
    assert (read.score, read.n_unread) == (0.5, 0)


def test_the_command_estimates_and_names_wrong_judges(sample_project: Path, tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text(json.dumps([{"question": "Where was Tom Crean born?", "answer": "Annascaul"}]))
    arguments = ["evaluate", str(path), "--root", str(sample_project), "--no-report", "--judge"]
    told = CliRunner().invoke(app, [*arguments, "chat", "--estimate"])
    assert re.search(r"chat: \d+ requests, [\d,]+ tokens of prompts", told.stdout), told.output
    told = CliRunner().invoke(app, [*arguments, "nobody"])
    assert str(told.exception).startswith("--judge nobody: there is no such model")
    told = CliRunner().invoke(app, [*arguments, "chat", "--judge-with", "taste"])
    assert "--judge-with taste: choose from" in str(told.exception)
    for option in (["--budget", "1"], ["--estimate"]):
        told = CliRunner().invoke(app, [*arguments[:-1], *option])
        assert str(told.exception).startswith(f"{option[0]} needs --judge")
