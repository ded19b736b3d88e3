"""The command `evaluate`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphrag_index.__main__ import app
from graphrag_index.errors import SettingsError

QUESTIONS = [
    {"question": "Where was Tom Crean born?", "documents": ["people/tom-crean.txt"]},
    {"question": "Who led the Nimrod expedition?", "answer": "Ernest Shackleton"},
]


REPORT_FILES = ["evaluation.html", "evaluation.json", "junit.xml"]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(f"{json.dumps(question)}\n" for question in QUESTIONS))
    return path


def test_searches_are_compared(questions: Path, sample_project: Path) -> None:
    # Without the name of a command, `run` is meant.
    arguments = ["evaluate", str(questions), "--root", str(sample_project), "--no-report"]
    told = CliRunner().invoke(app, [*arguments, "--json"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert [system["name"] for system in found["systems"]] == ["local", "basic"]
    assert found["means"]["local"]["recall@10"] == {"mean": 1, "low": 1, "high": 1, "n": 1}
    told = CliRunner().invoke(app, arguments)
    assert "2 questions" in told.stdout
    assert "recall@10" in told.stdout


def test_gold_documents_that_the_index_lacks_are_told(
    questions: Path, sample_project: Path
) -> None:
    other = {"question": "Who led the Quest?", "documents": ["quest.txt", "nowhere.txt"]}
    with questions.open("a", encoding="utf-8") as file:
        file.write(json.dumps(other))
    arguments = ["evaluate", str(questions), "--root", str(sample_project), "--no-report"]
    told = CliRunner().invoke(app, [*arguments, "--methods", "local,basic"])
    assert told.stderr == (
        "Not in the index of local: 2 gold documents, such as 'nowhere.txt', which count as "
        "missed.\n"
    )


def test_a_mean_below_its_limit_fails(
    questions: Path, sample_project: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    arguments = ["evaluate", "run", str(questions), "--root", str(sample_project)]
    arguments += ["--to", str(report)]
    told = CliRunner().invoke(app, [*arguments, "--fail-below", "recall@10=1.1"])
    assert str(told.exception) == (
        "recall@10 of local is 1, below 1.1; recall@10 of basic is 1, below 1.1."
    )
    assert told.stderr == f"Report: {report / 'evaluation.html'}\n"
    assert sorted(path.name for path in report.iterdir()) == REPORT_FILES
    told = CliRunner().invoke(app, [*arguments, "--fail-below", "recall@10=1"])
    assert told.exit_code == 0


@pytest.mark.parametrize(
    "limit", ["recall@10", "recall@10=high", "recall@10=nan", "speed=1", "recall@x=1", "mrr@1=1"]
)
def test_a_wrong_limit_is_told(questions: Path, sample_project: Path, limit: str) -> None:
    arguments = ["evaluate", str(questions), "--root", str(sample_project), "--no-report"]
    told = CliRunner().invoke(app, [*arguments, "--fail-below", limit])
    assert isinstance(told.exception, SettingsError)
    # No question was asked.
    assert "Answered" not in told.output
    assert told.stdout == ""
