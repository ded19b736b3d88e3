"""The command `tune`, with a model behind the test server."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import ExitCode
from graphrag_index.readers.input_files import find_files
from graphrag_index.schema.settings.step_sections import LoadDocuments
from tests.fixtures.commands import call, command, environment, wait_for
from tests.model_server import Faults, Server
from tests.model_server.answers import extract, passage
from tests.model_server.chat import ChatRequest
from tests.model_server.reading import sentences_with_names

Json = dict[str, Any]
NAMES_OF_SHIPS = re.compile(r"\b(?:Aurora|Belgica|Discovery|Endurance|Fram|Nimrod|Terra Nova)\b")
PROMPT = "prompts/extract_graph.txt"
PRICE = "models.chat.price={input: 1, output: 1}"


def describe_or_extract(request: ChatRequest) -> Json:
    """Describe documents, with a type of invented names; or find the names of a passage."""
    if "domain" not in (request.schema or {}).get("properties", {}):
        found = extract(request)
        entities = [
            {"name": one["title"], "type": "person", "description": one["description"]}
            for one in found["entities"]
        ]
        return {"entities": entities, "relationships": found["relationships"]}
    ships = sorted(set(NAMES_OF_SHIPS.findall(request.texts[-1])))
    people = [n for _, names in sentences_with_names(passage(request)) for n in names][:2]
    return {
        "domain": "Accounts of expeditions to the Antarctic.",
        "persona": "a historian of exploration",
        "types": [
            {"name": "ship", "names": ships},
            {"name": "person", "names": people},
            {"name": "submarine", "names": ["Nautilus of Nowhere"]},
        ],
    }


def arguments(server: Server, *more: str) -> list[str]:
    values = (f"base_url={server.url}", "model=test-model", "api_key=key", "timeout=60")
    settings = [part for value in values for part in ("--set", f"models.chat.{value}")]
    return ["tune", "--model", "chat", "--passages", "8", *settings, *more]


@pytest.fixture
def project(sample_project: Path, tmp_path: Path) -> Path:
    """A copy of the sample with its index, which a test may change."""
    return shutil.copytree(sample_project, tmp_path / "project")


def test_without_a_model_prompts_are_written_and_nothing_changes(project: Path) -> None:
    settings = (project / "settings.yaml").read_bytes()
    told = call(project, "tune", "--types", "Sledge")
    assert told.returncode == 0, told.stderr
    assert "2 examples from the documents." in told.stdout
    assert "extract_graph: {entity_types: [Sledge, " in told.stdout
    assert (project / "settings.yaml").read_bytes() == settings
    assert not (project / "prompts").exists()
    difference = (project / "tuning" / "changes.diff").read_bytes()
    assert b"+# About these documents" in difference
    prompt = (project / "tuning" / PROMPT).read_bytes()
    # A proposal below the input folder is no document of the next run.
    listed = find_files(LoadDocuments(folder=".", include=["**/*.txt", "**/*.diff"]), project)
    assert not any(file.name.startswith("tuning/") for file in listed)
    # The same seed gives the same bytes, also where the prompt is in force already.
    shutil.copytree(project / "tuning" / "prompts", project / "prompts")
    call(project, "tune", "--types", "Sledge")
    assert (project / "tuning" / PROMPT).read_bytes() == prompt
    assert (project / "tuning" / "changes.diff").read_bytes() == b""


def test_a_model_describes_the_documents_and_gives_the_examples(
    project: Path, model_server: Server
) -> None:
    model_server.answer = describe_or_extract
    told = call(project, *arguments(model_server, "--set", "workflow=standard"))
    assert told.returncode == 0, told.stdout + told.stderr
    # The type whose names are in no passage.
    assert "1 reply or record could not be read." in told.stdout
    assert "submarine" not in told.stdout
    prompt = (project / "tuning" / PROMPT).read_text(encoding="utf-8")
    about = (
        "# About these documents\n"
        "Accounts of expeditions to the Antarctic.\n"
        "Read them as a historian of exploration.\n"
        "They are written in English"
    )
    assert about in prompt
    assert "\nReply:\n{" in prompt
    reports = project / "tuning" / "prompts" / "create_community_reports.txt"
    assert about in reports.read_text(encoding="utf-8")


def test_a_tuning_that_stops_at_its_budget_goes_on_and_pays_nothing_twice(
    project: Path, model_server: Server
) -> None:
    model_server.answer = describe_or_extract
    common = arguments(model_server, "--passages", "24", "--set", PRICE)
    told = call(project, *common, "--estimate")
    assert told.returncode == 0, told.stderr
    assert "chat: 25 requests" in told.stdout  # a description, and 24 passages
    assert not model_server.requests
    told = call(project, *common, "--budget", "0.035")
    assert told.returncode == ExitCode.BUDGET, told.stderr
    assert len(model_server.requests) > 1
    assert not (project / "tuning" / PROMPT).exists()
    told = call(project, *common, "--budget", "5")
    assert told.returncode == 0, told.stderr
    # Only the question whether the server answers is asked again.
    assert [n for n in model_server.counts().values() if n > 1] in ([], [2])


def test_replies_that_cannot_be_read_are_counted(project: Path, model_server: Server) -> None:
    model_server.answer = describe_or_extract
    model_server.faults = Faults(rate=1.0, kinds=["wrong_schema"])
    told = call(project, *arguments(model_server))
    assert told.returncode == 0, told.stderr
    assert "9 replies or records could not be read." in told.stdout
    # They are asked again: the server may be mended.
    model_server.faults = Faults()
    told = call(project, *arguments(model_server))
    assert "1 reply or record could not be read." in told.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [(("--model", "missing"), "missing"), (("--set", "output=nowhere"), "There is no index")],
)
def test_a_wrong_option_is_told(project: Path, options: tuple[str, ...], reason: str) -> None:
    told = call(project, "tune", *options)
    assert told.returncode != 0
    assert reason in told.stderr
    assert not (project / "tuning" / PROMPT).exists()


@pytest.mark.slow
@pytest.mark.parametrize("n_requests", [2, 5])
def test_a_killed_tuning_goes_on(project: Path, model_server: Server, n_requests: int) -> None:
    model_server.answer = describe_or_extract
    model_server.latency = 0.05
    options = arguments(model_server, "--set", "models.chat.concurrency=1")
    with subprocess.Popen(command(*options), cwd=project, env=environment()) as process:
        wait_for(lambda: len(model_server.requests) > n_requests, process)
        process.kill()
    told = call(project, *options)
    assert told.returncode == 0, told.stderr
    # The request that was running, and the question whether the server answers.
    assert sum(n - 1 for n in model_server.counts().values()) <= 2
