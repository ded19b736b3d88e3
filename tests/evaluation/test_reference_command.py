"""The commands `evaluate` and `evaluate graph --reference`."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from graphrag_index.__main__ import app
from graphrag_index.errors import SettingsError
from tests.fixtures.commands import Call
from tests.fixtures.microsoft_index import version_2, version_3, write

QUESTIONS = [
    {"question": "Where was Tom Crean born?", "documents": ["people/tom-crean.txt"]},
    {"question": "Who led the Nimrod expedition?", "answer": "Ernest Shackleton"},
]


REPORT_FILES = ["evaluation.html", "evaluation.json"]


def test_an_index_is_its_own_reference(sample_project: Path, graphrag_index: Call) -> None:
    arguments = ["evaluate", "graph", "--root", sample_project, "--reference", sample_project]
    told = graphrag_index(*arguments, "--json", "--fail-below", "entity_recall=1.1")
    assert told.code == 1
    assert "entity_recall of" in told.err
    assert "below 1.1" in told.err
    (found,) = json.loads(told.out)["indexes"].values()
    assert (
        found["measures"]["entity_f1"]["mean"] == found["measures"]["relationship_f1"]["mean"] == 1
    )
    assert found["reference"]["documents"] == 63
    shown = graphrag_index(*arguments).out
    assert (
        f"Compared with {sample_project}: 63 of 63 documents; 0 of the reference were not" in shown
    )


def test_a_measure_without_its_reference_is_told(
    sample_project: Path, graphrag_index: Call
) -> None:
    arguments = ["evaluate", "graph", "--root", sample_project]
    told = graphrag_index(*arguments, "--fail-below", "entity_f1=0.5")
    assert told.code == 2
    assert "entity_f1 needs --reference" in told.err
    told = graphrag_index(*arguments, "--reference", "nowhere")
    assert told.code == 1
    assert "nowhere" in told.err


@pytest.mark.parametrize("version", [version_2, version_3])
def test_indexes_of_every_version_of_microsoft_are_measured_and_compared(
    tmp_path: Path, graphrag_index: Call, version: Callable[[], dict[str, pl.DataFrame]]
) -> None:
    theirs, latest = write(tmp_path / "theirs", version()), write(tmp_path / "3", version_3())
    arguments = ["evaluate", "graph", "--root", theirs, "--json"]
    (found,) = json.loads(graphrag_index(*arguments, "--reference", latest).out)["indexes"].values()
    measures = {name: figure["mean"] for name, figure in found["measures"].items()}
    # Each text unit names its entities.
    assert measures["grounded_mentions"] == 1
    # DI has no relationship, but for one with what is no entity.
    assert measures["alone"] == 0.25
    assert found["reference"]["documents"] == 2
    for kind in ("entity", "relationship"):
        assert measures[f"{kind}_f1"] == 1, kind


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
