"""Judgements of answers by people: kept line by line, and measured as known answers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import graphrag_query
from graphrag_evaluation.judgements import (
    FILE,
    Judgement,
    add_judgement,
    read_judgements,
    read_known_answers,
)
from graphrag_evaluation.questions import GoldSpan
from graphrag_evaluation.runs import run_systems
from graphrag_evaluation.scores import outcome_scores
from graphrag_evaluation.systems import System
from graphrag_index.errors import SettingsError
from graphrag_query.answer import Answer, Outcome
from tests.fixtures.commands import call, environment

QUOTE = "Tom Crean was born near Annascaul."
CITATION = {"number": 1, "document_id": "d1", "start_char": 5, "end_char": 39, "text_unit": 3}


def judgement(verdict: str = "up", **values: Any) -> Judgement:
    return Judgement.model_validate(
        {
            "verdict": verdict,
            "question": "Where was Tom Crean born?",
            "method": "local",
            "version": 1,
            "outcome": "answered",
            "answer": "He was born near Annascaul [1].",
            "citations": [{**CITATION, "document": "Crean", "quote": QUOTE}],
            "author": "ana",
            "date": "2026-05-01T10:00:00+00:00",
            **values,
        }
    )


def write(folder: Path, *judgements: Judgement) -> Path:
    for one in judgements:
        add_judgement(folder, one)
    return folder / FILE


def test_an_approved_answer_and_its_citations_are_those_to_expect(tmp_path: Path) -> None:
    [question] = read_known_answers(write(tmp_path, judgement(reason="It is all there.")))
    assert question.text == "Where was Tom Crean born?"
    assert question.answers == ("He was born near Annascaul [1].",)
    assert question.statements == ("He was born near Annascaul.",)
    assert question.spans == (GoldSpan("d1", 5, 39, QUOTE),)
    assert (question.kind, question.wrong_answers, question.is_answerable) == ("approved", (), True)


def test_of_a_rejected_answer_only_its_repetition_is_measured(tmp_path: Path) -> None:
    wrong = "He was born in Cork [1]."
    [question] = read_known_answers(write(tmp_path, judgement("down", answer=wrong)))
    assert (question.kind, question.answers, question.spans) == ("rejected", (), ())
    scores = {
        outcome: outcome_scores(question, Answer("", text, outcome))
        for text, outcome in ((wrong, Outcome.ANSWERED), ("Unknown.", Outcome.NO_EVIDENCE))
    }
    # Nobody has said whether the documents hold the answer.
    assert scores == {
        Outcome.ANSWERED: {"not_wrong": 0.0},
        Outcome.NO_EVIDENCE: {"not_wrong": 1.0},
    }
    both = write(tmp_path, judgement())
    [question] = read_known_answers(both)
    assert outcome_scores(question, Answer("", wrong, Outcome.ANSWERED)) == {
        "not_wrong": 0.0,
        "outcome_right": 1.0,
        "said": 0.0,
    }


@pytest.mark.parametrize(("verdict", "is_answerable"), [("up", False), ("down", True)])
def test_a_judged_refusal_tells_whether_there_is_an_answer(
    tmp_path: Path, verdict: str, is_answerable: bool
) -> None:
    refusal = judgement(verdict, outcome="no_evidence", answer="Not found.", citations=[])
    [question] = read_known_answers(write(tmp_path, refusal))
    assert (question.is_answerable, question.answers, question.wrong_answers) == (
        is_answerable,
        (),
        (),
    )
    refused = outcome_scores(question, Answer("", "Not found.", Outcome.NO_EVIDENCE))
    assert refused["outcome_right"] == float(not is_answerable)


def test_the_last_judgement_of_an_answer_counts(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        judgement(),
        judgement("down", question="Who led it?", answer="Wild."),
        judgement("down", question=" where was TOM Crean born? "),
        judgement("withdrawn", question="Who led it?", answer="Wild."),
        judgement(question="Only there?", filters={"since": "1914"}),
    )
    [question] = read_known_answers(path)
    assert question.wrong_answers == ("He was born near Annascaul [1].",)
    found, problem = read_judgements(path)
    assert ([one.verdict for one in found], problem) == (["down", "up"], "")
    write(tmp_path, judgement("withdrawn"))
    with pytest.raises(SettingsError, match="has no judgement for an evaluation"):
        read_known_answers(path)


def test_a_broken_line_is_named_and_costs_no_other(tmp_path: Path) -> None:
    path = write(tmp_path, judgement())
    whole = path.read_bytes()
    # A writer was killed in the middle of its line.
    path.write_bytes(whole + whole[:40])
    write(tmp_path, judgement("down", question="Who led it?"))
    found, problem = read_judgements(path)
    assert [one.verdict for one in found] == ["up", "down"]
    assert problem == f"Line 2 of {FILE} is no judgement: delete the line."
    with pytest.raises(SettingsError, match=r"line 2: this is not JSON.*correct it"):
        read_known_answers(path)
    path.write_bytes(whole + b'{"verdict": "up", "question": "Who?"}\n')
    with pytest.raises(SettingsError, match=r"record 2 is no judgement: method.*delete its line"):
        read_known_answers(path)
    assert read_judgements(tmp_path / "none") == ([], "")


def in_a_process(folder: Path, program: str) -> "subprocess.Popen[str]":
    (folder / "one.json").write_text(judgement().model_dump_json(), encoding="utf-8")
    head = (
        "import sys, resource; from pathlib import Path; from graphrag_evaluation.judgements "
        "import *; folder = Path(sys.argv[1]); "
        "one = Judgement.model_validate_json((folder / 'one.json').read_text())\n"
    )
    arguments = [sys.executable, "-c", head + program, str(folder)]
    return subprocess.Popen(
        arguments, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_two_processes_keep_all_lines(tmp_path: Path) -> None:
    program = "for _ in range(60): add_judgement(folder, one)"
    processes = [in_a_process(tmp_path, program) for _ in range(2)]
    assert [process.communicate()[0] for process in processes] == ["", ""]
    lines = (tmp_path / FILE).read_text(encoding="utf-8").splitlines()
    assert len(lines) == 120
    assert {json.loads(line)["author"] for line in lines} == {"ana"}


def test_a_full_disk_leaves_no_half_line(tmp_path: Path) -> None:
    path = write(tmp_path, judgement())
    before = path.read_bytes()
    # The file may grow by less than a line.
    limit = len(before) + 100
    program = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
    program += "try: add_judgement(folder, one)\nexcept OSError as error: print(error.errno)"
    told = in_a_process(tmp_path, program).communicate()[0]
    assert told.strip().isdecimal()
    assert path.read_bytes() == before


def test_an_answer_of_the_index_that_was_approved_is_found_again(
    sample_project: Path, tmp_path: Path
) -> None:
    with graphrag_query.open(sample_project / "output") as index:
        answer = index.local("Where was Tom Crean born?")
        cited = [vars(citation) for citation in answer.citations]
        approved = judgement(answer=answer.text, citations=cited)
        [question] = read_known_answers(write(tmp_path, approved))
        results = run_systems([System("local", index, "local")], [question])
    [result] = results["local"]
    for measure in ("recall@10", "said", "outcome_right", "coverage@4000"):
        assert result.scores[measure] == 1, measure
    assert result.missed == []
    # The command measures the file too.
    arguments = ("--root", str(sample_project), "--methods", "local", "--no-report", "--workers=1")
    told = call(tmp_path, "evaluate", str(tmp_path / FILE), *arguments)
    assert told.returncode == 0, told.stderr
    assert "said" in told.stdout
