"""Questions that a model writes and checks, behind a server that behaves and misbehaves."""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import graphrag_query
from graphrag_evaluation.generation.make_questions import KINDS
from graphrag_evaluation.generation.natural_questions import (
    LEDGER_STEP,
    MAX_ROUNDS,
    UNREADABLE,
    NaturalQuestions,
    QuestionMaker,
    agrees,
)
from graphrag_evaluation.questions import read_questions
from graphrag_index.__main__ import app
from graphrag_index.errors import BudgetError
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.registry import Models
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_nlp.text.sentences import split_sentences
from tests.conftest import copy_project, run_project
from tests.model_server import ChatRequest, Faults, Server

Json = dict[str, Any]
N = 24


class Writer:
    """A model that asks for the last words of sentences, and finds what it asked for in a text."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}

    def __call__(self, request: ChatRequest) -> Json:
        instructions, text = request.texts[:2]
        if instructions.startswith("You write one question"):
            return self.make(text)
        if instructions.startswith("You check which statements"):
            return {"statements": [int(n) for n in re.findall(r"(?m)^(\d+)\. ", text)]}
        return self.check(text)

    def make(self, text: str) -> Json:
        kind = text.partition("Kind: ")[2].partition("\n")[0]
        passages = re.split(r"(?m)^\[\d+\] ", text)[1:]
        quotations = [sentence for passage in passages for sentence in whole_sentences(passage)[:2]]
        if not quotations:
            return {"question": "", "answer": "", "quotations": []}
        answer = quotations[-1].rstrip(".").split()[-1]
        question = f"{kind}: what is said under number {len(self.asked)}?"
        if kind in ("unanswerable", "whole-corpus"):
            answer = ""
        self.asked[question] = answer
        return {
            "question": question,
            "answer": answer,
            "quotations": [] if kind == "unanswerable" else quotations,
        }

    def check(self, text: str) -> Json:
        shown, _, question = text.rpartition("Question: ")
        answer = self.asked[question]
        found = bool(answer) and answer.split()[-1] in shown
        return {"clear": True, "answerable": found, "answer": answer if found else ""}


def whole_sentences(text: str) -> list[str]:
    return [
        text[s.start : s.end] for s in split_sentences(text) if s.prose and s.end - s.start > 40
    ]


def models_at(server: Server, folder: Path, root: Path, budget: float | None = None) -> Models:
    settings = load_settings(root, overrides(server))
    return Models(settings.models, folder, needed={"chat": ""}, budget=budget)


def overrides(server: Server) -> tuple[str, ...]:
    return (
        f"models.chat.base_url={server.url}",
        "models.chat.model=test-model",
        "models.chat.price={input: 1.0, output: 2.0}",
        "models.chat.timeout=60",
        "models.chat.retry_seconds=1",
    )


def ask(
    server: Server, folder: Path, root: Path, kinds: tuple[str, ...] = tuple(KINDS), n: int = N
) -> NaturalQuestions:
    with (
        graphrag_query.open(root / "output") as index,
        closing(models_at(server, folder, root)) as models,
    ):
        maker = QuestionMaker(index, n, 17, kinds, Prompts(root, "graphrag_evaluation"))
        return maker.make(models.open_chat_model("chat", LEDGER_STEP))


def sent(server: Server) -> list[bytes]:
    """Return the bodies of the requests for questions and checks."""
    return [one.body for one in server.requests if b"You " in one.body]


def test_questions_of_every_kind_have_evidence_in_the_documents(
    sample_project: Path, tmp_path: Path
) -> None:
    with Server(answer=Writer()) as server:
        found = ask(server, tmp_path, sample_project)
        n_sent = len(sent(server))
    questions = found.questions
    assert Counter(one.kind for one in questions).keys() == KINDS.keys()
    assert found.spent.calls == n_sent >= 2 * len(questions)
    assert len(questions) == N
    with graphrag_query.open(sample_project / "output") as index:
        texts = dict(index.store.scan("documents").select("id", "text").collect().iter_rows())
    for question in questions:
        assert bool(question.spans) == question.is_answerable
        for span in question.spans:
            assert texts[span.document][span.start_char : span.end_char] == span.text
        if question.kind == "whole-corpus":
            assert len(question.statements) == len(question.spans) >= 4
            assert len(question.documents) >= 3
    tune, report = (
        {name for one in questions if one.split == split for name in one.documents}
        for split in ("tune", "report")
    )
    assert tune
    assert report
    assert not tune & report


def test_equal_seeds_and_replies_give_equal_questions_without_a_call(
    sample_project: Path, tmp_path: Path
) -> None:
    with Server(answer=Writer()) as server:
        first = ask(server, tmp_path, sample_project, n=12)
        n_sent = len(sent(server))
        again = ask(server, tmp_path, sample_project, n=12)
        assert len(sent(server)) == n_sent
    assert again.questions == first.questions
    assert again.dropped == first.dropped
    assert (again.spent.calls, again.spent.cost) == (0, 0)


class InventsQuotations(Writer):
    def make(self, text: str) -> Json:
        return {**super().make(text), "quotations": ["Words that stand in no text."]}


class AnswersFromMemory(Writer):
    def make(self, text: str) -> Json:
        return {**super().make(text), "answer": "Atlantis"}


class GivesAway(Writer):
    def make(self, text: str) -> Json:
        made = super().make(text)
        return {**made, "question": f"{made['question']} {made['answer']}?"}


class Disagrees(Writer):
    def check(self, text: str) -> Json:
        return {"clear": True, "answerable": True, "answer": "Atlantis"}


class FindsNothing(Writer):
    def check(self, text: str) -> Json:
        return {"clear": True, "answerable": False, "answer": ""}


class FindsItUnclear(Writer):
    def check(self, text: str) -> Json:
        return {**super().check(text), "clear": False}


class NeedsNoStatement(Writer):
    def __call__(self, request: ChatRequest) -> Json:
        reply = super().__call__(request)
        return {"statements": [1, 99]} if "statements" in reply else reply


class QuotesOnePassage(Writer):
    def make(self, text: str) -> Json:
        made = super().make(text)
        return {**made, "quotations": made["quotations"][-1:]}


class AsksNothing(Writer):
    def make(self, text: str) -> Json:
        return {"question": "", "answer": "", "quotations": []}


@pytest.mark.parametrize(
    ("writer", "kind", "reason"),
    [
        (InventsQuotations, "local", "a quotation is not in the passages"),
        (AnswersFromMemory, "local", "the answer is not in the quotations"),
        (GivesAway, "local", "the answer stands in the question"),
        (Disagrees, "local", "a reader of the span alone answers otherwise, or not"),
        (FindsNothing, "local", "a reader of the span alone answers otherwise, or not"),
        (Disagrees, "unanswerable", "the documents answer a question that they should not"),
        (FindsItUnclear, "unanswerable", "the question is unclear without its passage"),
        (NeedsNoStatement, "whole-corpus", "too few statements belong to the answer"),
        (QuotesOnePassage, "comparison", "the quotations are of too few passages"),
        (AsksNothing, "temporal", "the model found no question"),
    ],
)
def test_questions_that_fail_a_check_are_dropped_and_counted(
    writer: Callable[[], Writer], kind: str, reason: str, sample_project: Path, tmp_path: Path
) -> None:
    with Server(answer=writer()) as server:
        found = ask(server, tmp_path, sample_project, (kind,), n=4)
    assert found.dropped[reason] >= 2
    assert found.questions == []


def test_passages_of_other_languages_give_questions(tmp_path: Path) -> None:
    root = copy_project(tmp_path)
    shutil.rmtree(root / "input")
    (root / "input").mkdir()
    texts = [
        f"Die Brücke von {town} wurde im Jahr {1850 + 7 * place} aus rotem Sandstein gebaut. Der "
        f"Baumeister {person} aus Köln leitete die Arbeiten an den drei Bögen über den Fluss. "
        "Heute steht das Bauwerk unter Denkmalschutz und trägt nur noch Fußgänger und Fahrräder."
        for place, (town, person) in enumerate(
            zip(
                ("Altenau", "Bergheim", "Calw", "Dachau", "Erding", "Fulda"),
                ("Otto Braun", "Karl Weber", "Hans Vogt", "Emil Roth", "Franz Haas", "Paul Kern"),
                strict=True,
            )
        )
    ]
    for place, text in enumerate(texts):
        (root / "input" / f"{place}.txt").write_text(text, encoding="utf-8")
    run_project(root)
    with Server(answer=Writer()) as server:
        found = ask(server, tmp_path, root, ("local", "temporal"), n=4)
    assert len(found.questions) == 4
    assert all(one.spans[0].text in " ".join(texts) for one in found.questions)


@pytest.mark.parametrize("fault", ["wrong_schema", "refusal", "empty_content", "null_content"])
def test_replies_that_cannot_be_read_are_counted(
    fault: str, sample_project: Path, tmp_path: Path
) -> None:
    with Server(answer=Writer(), faults=Faults(rate=1, kinds=[fault])) as server:
        found = ask(server, tmp_path, sample_project, ("local",), n=2)
    assert found.questions == []
    assert found.dropped == {UNREADABLE: 2 * MAX_ROUNDS}


def test_broken_json_is_read_where_its_meaning_is_clear(
    sample_project: Path, tmp_path: Path
) -> None:
    with Server(answer=Writer(), faults=Faults(rate=1, kinds=["fences"])) as server:
        found = ask(server, tmp_path, sample_project, ("local",), n=2)
    assert len(found.questions) == 2


def test_the_command_stops_at_its_budget_and_goes_on(sample_project: Path, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    root = tmp_path / "project"
    root.mkdir()
    for name in ("settings.yaml", "workflows", "output"):
        (root / name).symlink_to(sample_project / name)
    with Server(answer=Writer()) as server:
        arguments = ["evaluate", "make", "--root", str(root), "--model", "chat", "--n", "12"]
        arguments += ["--to", str(path)]
        arguments += [part for value in overrides(server) for part in ("--set", value)]
        told = CliRunner().invoke(app, [*arguments, "--estimate"])
        assert re.search(r"chat: 24 requests, [\d,]+ tokens of prompts, at most", told.output)
        assert not server.requests
        told = CliRunner().invoke(app, [*arguments, "--budget", "0.02"])
        assert isinstance(told.exception, BudgetError), told.output
        assert not path.exists()
        n_paid = len(sent(server))
        assert n_paid > 0
        told = CliRunner().invoke(app, arguments)
        assert told.exit_code == 0, told.output
        assert len(set(sent(server))) == len(sent(server)) > n_paid
        assert "requests sent for $" in told.output
        assert len(read_questions(path)) == 12
        # Those of one split alone have been paid for, and no other is.
        n_paid = len(sent(server))
        told = CliRunner().invoke(app, [*arguments, "--split", "report", "--force"])
        assert len(sent(server)) == n_paid, told.output
    assert {one.split for one in read_questions(path)} == {"report"}


def test_requests_that_failed_are_sent_again(sample_project: Path, tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for name in ("settings.yaml", "workflows", "output"):
        (root / name).symlink_to(sample_project / name)
    arguments = ["evaluate", "make", "--root", str(root), "--model", "chat", "--n", "2"]
    arguments += ["--kinds", "local", "--to", str(tmp_path / "questions.jsonl")]
    with Server(answer=Writer(), faults=Faults(rate=1, kinds=["refusal"])) as server:
        arguments += [part for value in overrides(server) for part in ("--set", value)]
        told = CliRunner().invoke(app, arguments)
        assert str(told.exception).startswith("No question passed the checks of chat")
        server.faults = Faults()
        told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output


def test_only_the_questions_of_the_wanted_split_are_paid_for(
    sample_project: Path, tmp_path: Path
) -> None:
    path = tmp_path / "questions.jsonl"
    with Server(answer=Writer()) as server:
        arguments = ["evaluate", "make", "--root", str(sample_project), "--model", "chat"]
        arguments += ["--n", "12", "--split", "tune", "--estimate", "--to", str(path)]
        arguments += [part for value in overrides(server) for part in ("--set", value)]
        told = CliRunner().invoke(app, arguments)
    assert "chat: 12 requests, " in told.output, told.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "nobody"], "--model nobody: there is no such model, but chat"),
        (["--budget", "1"], "--estimate and --budget need a model"),
    ],
)
def test_wrong_options_are_told(
    arguments: list[str], said: str, sample_project: Path, tmp_path: Path
) -> None:
    command = ["evaluate", "make", "--root", str(sample_project), "--to", str(tmp_path / "q.json")]
    assert said in str(CliRunner().invoke(app, [*command, *arguments]).exception)


@pytest.mark.parametrize(
    ("answer", "known", "agreed"),
    [
        ("In Annascaul, Kerry", ("Annascaul",), True),
        ("1877", ("20 July 1877",), True),
        ("20", ("20 July 1877",), False),
        ("1878", ("20 July 1877",), False),
        ("Shackleton", ("Ernest Shackleton",), True),
        ("the", ("the ship that sank off Greenland",), False),
        ("Nobel", ("Alfred Nobel", "the Nobel Prize"), True),
        ("東京", ("東京都",), True),
        ("", ("Annascaul",), False),
    ],
)
def test_answers_agree_if_one_has_the_other(
    answer: str, known: tuple[str, ...], agreed: bool
) -> None:
    assert agrees(answer, known) is agreed
