"""The command `tune`, with a model behind the test server whose replies depend on the prompt."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from graphrag_evaluation.tuning.corpus_sample import sample_corpus
from graphrag_index.errors import ExitCode
from graphrag_index.readers.input_files import find_files
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_query.store.index_store import IndexStore
from tests.fixtures.commands import call, command, environment, wait_for
from tests.model_server import Faults, Server
from tests.model_server.answers import extract, passage
from tests.model_server.chat import ChatRequest
from tests.model_server.reading import sentences_with_names

Json = dict[str, Any]
NAMES_OF_SHIPS = re.compile(r"\b(?:Aurora|Belgica|Discovery|Endurance|Fram|Nimrod|Terra Nova)\b")
PROMPT = "prompts/extract_graph.txt"
PRICE = "models.chat.price={input: 1, output: 1}"


@dataclass
class PromptDependentModel:
    """Finds all names if the prompt has one of the `hints`, and the first of a passage if not.

    The model `strong_model` always finds all.
    `improvements` are added one after the other to the instructions that it is asked to improve.
    """

    hints: Collection[str] = ()
    improvements: list[str] = field(default_factory=list)
    strong_model: str = ""
    n_improved: int = 0

    def __call__(self, request: ChatRequest) -> Json | str:
        wanted = set((request.schema or {}).get("properties", {}))
        if "domain" in wanted:
            return self._describe(request)
        if "instructions" in wanted:
            return self._improve(request)
        found = extract(request)
        is_strong = request.body["model"] == self.strong_model
        if not is_strong and not any(hint in request.texts[0] for hint in self.hints):
            found = {"entities": found["entities"][:1], "relationships": []}
        entities = [
            {"name": one["title"], "type": one["type"], "description": one["description"]}
            for one in found["entities"]
        ]
        return {"entities": entities, "relationships": found["relationships"]}

    def _describe(self, request: ChatRequest) -> Json:
        """Describe documents: the names of ships are a type, and one type has invented names."""
        ships = sorted(set(NAMES_OF_SHIPS.findall(request.texts[-1])))
        people = [n for _, names in sentences_with_names(passage(request)) for n in names][:2]
        return {
            "domain": "Accounts of expeditions to the Antarctic.",
            "types": [
                {"name": "ship", "names": ships},
                {"name": "person", "names": people},
                {"name": "submarine", "names": ["Nautilus of Nowhere"]},
            ],
        }

    def _improve(self, request: ChatRequest) -> Json:
        present = request.texts[-1].partition("Instructions:\n")[2].partition("\n\nPassage:")[0]
        added = self.improvements[self.n_improved % len(self.improvements)]
        self.n_improved += 1
        return {"instructions": f"{present}\n{added}"}


def arguments(server: Server, *more: str) -> list[str]:
    values = (f"base_url={server.url}", "model=test-model", "api_key=key", "timeout=60")
    settings = [part for value in values for part in ("--set", f"models.chat.{value}")]
    return ["tune", "--model", "chat", "--passages", "16", *settings, *more]


@pytest.fixture
def project(sample_project: Path, tmp_path: Path) -> Path:
    """A copy of the sample with its index, which a test may change."""
    return shutil.copytree(sample_project, tmp_path / "project")


def report(folder: Path) -> Any:
    return json.loads((folder / "tuning.json").read_text(encoding="utf-8"))


def test_without_a_model_a_proposal_is_written_and_nothing_changes(
    sample_project: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "proposal"
    settings = (sample_project / "settings.yaml").read_bytes()
    told = call(sample_project, "tune", "--types", "Sledge", "--to", str(folder))
    assert told.returncode == 0, told.stderr
    assert "Not measured, since no model was asked." in told.stdout
    assert (sample_project / "settings.yaml").read_bytes() == settings
    assert not (sample_project / "prompts").exists()
    names = [one["name"] for one in report(folder)["types"]]
    assert names[0] == "Sledge"
    assert {"person", "geo"} < set(names)
    assert len(report(folder)["examples"]) == 2
    assert "entity_types: [Sledge, " in (folder / "settings.yaml").read_text(encoding="utf-8")
    difference = (folder / "changes.diff").read_text(encoding="utf-8")
    assert "+# About these documents" in difference
    assert "-  entity_types: []" in difference
    # A proposal below the input folder is no document of the next run.
    (tmp_path / "notes.txt").touch()
    listed = find_files(LoadDocuments(folder="."), tmp_path)
    assert [file.path.name for file in listed] == ["notes.txt"]
    # The same seed gives the same bytes.
    again = tmp_path / "again"
    call(sample_project, "tune", "--types", "Sledge", "--to", str(again))
    for name in (PROMPT, "settings.yaml", "changes.diff", "tuning.json"):
        assert (folder / name).read_bytes() == (again / name).read_bytes()


def test_a_better_prompt_is_installed_and_a_worse_one_is_not(
    project: Path, model_server: Server
) -> None:
    model_server.answer = PromptDependentModel()
    told = call(project, *arguments(model_server, "--install", "--yes"))
    assert told.returncode == ExitCode.FAILED
    assert "Nothing was installed, since the proposal is not better" in told.stderr
    assert not (project / "prompts").exists()
    told = call(project, *arguments(model_server, "--install"))
    assert told.returncode == ExitCode.WRONG_USE
    assert "add --yes" in told.stderr

    # This model finds all names only where the prompt tells what the documents are.
    model_server.answer = PromptDependentModel(hints=["# About these documents"])
    before = (project / "settings.yaml").read_bytes()
    told = call(project, *arguments(model_server, "--install", "--yes", "--name", "better"))
    assert told.returncode == 0, told.stdout + told.stderr
    folder = project / "tuning" / "better"
    assert report(folder)["evaluation"]["is_better"]
    assert report(folder)["unreadable"] == 1  # the type whose names are in no passage
    assert {one["name"] for one in report(folder)["types"][:2]} == {"person", "ship"}
    assert (project / PROMPT).read_bytes() == (folder / PROMPT).read_bytes()
    assert (project / "settings.yaml").read_bytes() == (folder / "settings.yaml").read_bytes()
    assert (folder / "previous" / "1" / "settings.yaml").read_bytes() == before


def test_instructions_are_improved_on_other_documents_than_they_are_measured_on(
    sample_project: Path, tmp_path: Path, model_server: Server
) -> None:
    def optimize(folder: Path) -> Any:
        model_server.answer = PromptDependentModel(
            hints=["List every name."], improvements=["Be quick.", "List every name."]
        )
        told = call(
            sample_project,
            *arguments(model_server, "--optimize", "--max-replies", "40", "--to", str(folder)),
        )
        assert told.returncode == 0, told.stderr
        return report(folder)

    found = optimize(tmp_path / "one")
    assert "List every name." in (tmp_path / "one" / PROMPT).read_text(encoding="utf-8")
    assert found["evaluation"]["is_better"]
    asked = [one.json["messages"] for one in model_server.requests if "chat" in one.path]
    improving = [messages[-1]["content"] for messages in asked if "improve" in str(messages[0])]
    assert improving
    sample = sample_corpus(IndexStore.open(sample_project / "output"), 16, 17)
    assert any(one.text in text for one in sample.tuning for text in improving)
    assert not any(one.text in text for one in sample.held_out for text in improving)
    # A new ledger and the same replies give the same bytes.
    optimize(tmp_path / "two")
    for name in (PROMPT, "changes.diff", "tuning.json"):
        one, other = ((tmp_path / folder / name).read_bytes() for folder in ("one", "two"))
        assert one == other


def test_a_tuning_that_stops_at_its_budget_goes_on_and_pays_nothing_twice(
    sample_project: Path, tmp_path: Path, model_server: Server
) -> None:
    model_server.answer = PromptDependentModel(hints=["# About"])
    folder = tmp_path / "proposal"
    common = arguments(model_server, "--to", str(folder), "--set", PRICE)
    told = call(sample_project, *common, "--estimate")
    assert told.returncode == 0, told.stderr
    assert "25" in told.stdout  # a description, 8 passages to tune on, 8 measured twice
    assert not model_server.requests
    told = call(sample_project, *common, "--budget", "0.02")
    assert told.returncode == ExitCode.BUDGET
    n_paid = len(model_server.requests)
    assert n_paid > 1
    assert not (folder / "tuning.json").exists()
    told = call(sample_project, *common, "--budget", "5")
    assert told.returncode == 0, told.stderr
    # Only the question whether the server answers is asked again.
    repeated = [n for n in model_server.counts().values() if n > 1]
    assert repeated in ([], [2])
    assert report(folder)["evaluation"]["is_better"]


def test_replies_that_cannot_be_read_are_counted(
    sample_project: Path, tmp_path: Path, model_server: Server
) -> None:
    model_server.answer = PromptDependentModel(hints=["# About"])
    model_server.faults = Faults(rate=1.0, kinds=["wrong_schema"])
    told = call(sample_project, *arguments(model_server, "--to", str(tmp_path / "proposal")))
    assert told.returncode == 0, told.stderr
    assert "9 replies or records could not be read." in told.stdout
    evaluation = report(tmp_path / "proposal")["evaluation"]
    assert evaluation["before"]["unreadable"] == evaluation["after"]["unreadable"] == 8
    assert not evaluation["is_better"]
    # They are asked again: the server may be mended.
    model_server.faults = Faults()
    told = call(sample_project, *arguments(model_server, "--to", str(tmp_path / "proposal")))
    assert told.returncode == 0, told.stderr
    evaluation = report(tmp_path / "proposal")["evaluation"]
    assert evaluation["before"]["unreadable"] == evaluation["after"]["unreadable"] == 0
    assert evaluation["is_better"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--optimize",), "--optimize needs a model"),
        (("--install", "--yes"), "--install needs a model"),
        (("--name", "a/b"), "cannot name a folder"),
        (("--to", "."), "holds other files"),
        (("--to", "output/proposal"), "lies in the index folder"),
        (("--model", "chat", "--no-model"), "exclude each other"),
        (("--model", "missing"), "missing"),
        (("--reference", "a.jsonl", "--reference-model", "chat"), "exclude each other"),
        (("--reference", "missing.jsonl"), "cannot be read"),
        (("--set", "output=nowhere"), "There is no index"),
        (("--set", "load_documents.folder=nowhere", "--model", "chat"), "nowhere"),
    ],
)
def test_a_wrong_option_is_told(
    sample_project: Path, tmp_path: Path, options: tuple[str, ...], reason: str
) -> None:
    to = () if "--to" in options else ("--to", str(tmp_path / "proposal"))
    told = call(sample_project, "tune", *options, *to)
    assert told.returncode != 0
    assert reason in told.stderr
    assert not any(tmp_path.rglob("tuning.json"))


def test_without_the_extra_one_sentence_says_what_to_install(
    sample_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gepa", None)
    told = call(sample_project, "tune", "--model", "chat", "--optimize")
    assert told.returncode == ExitCode.WRONG_USE
    assert 'pip install "graphrag-index[tune]"' in told.stderr


def test_replies_are_compared_with_a_file_or_with_a_stronger_model(
    sample_project: Path, tmp_path: Path, model_server: Server
) -> None:
    model_server.answer = PromptDependentModel(hints=["# About"], strong_model="strong")
    strong = [
        f"models.strong.{value}" for value in (f"base_url={model_server.url}", "model=strong")
    ]
    common = [*arguments(model_server), *(part for value in strong for part in ("--set", value))]
    told = call(
        sample_project, *common, "--reference-model", "strong", "--to", str(tmp_path / "one")
    )
    assert told.returncode == 0, told.stderr
    evaluation = report(tmp_path / "one")["evaluation"]
    assert evaluation["reference"] == "the model strong"
    assert evaluation["before"]["recall"] < evaluation["after"]["recall"] == 1

    sample = sample_corpus(IndexStore.open(sample_project / "output"), 16, 17)
    lines = []
    for sampled in (*sample.tuning[:2], *sample.held_out[:8]):
        words = re.findall(r"\b[A-Z]\w{4,}", sampled.text)[:5]
        entry = {"document": sampled.document, "text": sampled.text, "entities": sorted({*words})}
        lines.append(json.dumps(entry))
    path = tmp_path / "reference.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    told = call(sample_project, *common, "--reference", str(path), "--to", str(tmp_path / "two"))
    assert told.returncode == 0, told.stderr
    evaluation = report(tmp_path / "two")["evaluation"]
    assert evaluation["reference"] == "the file reference.jsonl"
    # Passages of documents that were tuned on are no part of the comparison.
    assert len(evaluation["passages"]) == 8


@pytest.mark.slow
@pytest.mark.parametrize("n_requests", [10, 30, 50])
def test_a_killed_tuning_goes_on(project: Path, model_server: Server, n_requests: int) -> None:
    model_server.answer = PromptDependentModel(
        hints=["List every name."], improvements=["List every name."]
    )
    model_server.latency = 0.05
    options = arguments(model_server, "--set", "models.chat.concurrency=1")
    options += ["--optimize", "--max-replies", "40"]
    with subprocess.Popen(command(*options), cwd=project, env=environment()) as process:
        wait_for(lambda: len(model_server.requests) > n_requests, process)
        process.kill()
    told = call(project, *options)
    assert told.returncode == 0, told.stderr
    # The request that was running, and the question whether the server answers.
    assert sum(n - 1 for n in model_server.counts().values()) <= 2
