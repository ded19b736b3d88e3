"""An evaluation in a process of its own, which is killed while models answer and judge."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_evaluation import EVALUATIONS
from graphrag_index.cli.evaluation_commands import _sum_spending
from graphrag_index.errors import ExitCode
from graphrag_index.llm.ledger import FILE
from graphrag_index.llm.request import Spending
from tests.fixtures.commands import MAX_SECONDS, call, command, environment, start, wait_for
from tests.fixtures.reports import honest
from tests.model_server import ChatRequest, Faults, Server, answer_from_text

# A small budget, since contexts of the default ones take a quarter of the time.
OPTIONS = "--methods local,basic --budgets 1000 --judge chat".split()
OPTIONS += ["--judge-with", "statements,relevance,pairwise"]
# Values of an evaluation that differ from run to run.
CHANGING = {"seconds", "date", "made", "index"}


def answer_or_judge(request: ChatRequest) -> Any:
    return honest(request) if "judge" in request.texts[0] else answer_from_text(request)


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = ["Tom Crean", "Frank Wild", "Roald Amundsen"]
    rows = [
        {"question": f"Who was {name}?", "statements": [f"{name} was there."]} for name in names
    ]
    path = tmp_path_factory.mktemp("questions") / "questions.json"
    path.write_text(json.dumps(rows))
    return path


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(answer=answer_or_judge, latency=0.02) as server:
        yield server


def make_project(root: Path, sample: Path, server: Server) -> Path:
    """Write a project with the index of the sample, whose answers a model writes."""
    root.mkdir()
    (root / "output").symlink_to(sample / "output")
    chat = {
        "model": "test-model",
        "base_url": server.url,
        "concurrency": 1,
        "price": {"input": 1.0, "output": 2.0},
    }
    settings = yaml.safe_load((sample / "settings.yaml").read_text(encoding="utf-8"))
    settings["models"] = {"chat": chat}
    settings["search"] = {"model": "chat"}
    (root / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return root


def test_the_versions_of_one_project_pay_together(
    tmp_path: Path, sample_project: Path, questions: Path, server: Server
) -> None:
    root = make_project(tmp_path / "project", sample_project, server)
    options = ["--methods", "basic", "--against", "@1", "--no-report"]
    told = call(root, "evaluate", str(questions), *options)
    assert f"Answers: {len(set(asked(server)))} requests sent for $" in told.stderr


def test_a_ledger_that_a_full_disk_left_without_tables_is_empty(tmp_path: Path) -> None:
    folder = tmp_path / EVALUATIONS
    folder.mkdir()
    (folder / FILE).touch()
    assert _sum_spending([tmp_path]) == Spending()


def test_searches_that_failed_are_told(
    tmp_path: Path, sample_project: Path, questions: Path, server: Server
) -> None:
    server.faults = Faults(rate=1, kinds=["refusal"])
    root = make_project(tmp_path / "project", sample_project, server)
    options = ["--methods", "basic,local", "--json", "--no-report"]
    told = call(root, "evaluate", str(questions), *options)
    assert told.returncode == ExitCode.QUARANTINED
    for name in ("basic", "local"):
        assert f"3 of 3 searches of {name} failed, the first one since: " in told.stderr
    # A failure is no short and wrong answer.
    means = json.loads(told.stdout)["means"]["basic"]
    assert means["outcome_right"]["mean"] == 0
    assert not {"words", "said", "coverage@4000"} & means.keys()


def evaluate(root: Path, questions: Path) -> tuple[dict[str, Any], str]:
    """Run the evaluation to its end; return its record, without what differs, and its messages."""
    told = call(root, "evaluate", "run", str(questions), "--json", "--no-report", *OPTIONS)
    assert told.returncode == 0, told.stderr

    def settle(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: settle(part) for name, part in value.items() if name not in CHANGING}
        if isinstance(value, list):
            return [settle(part) for part in value]
        return value

    return settle(json.loads(told.stdout)), told.stderr


def asked(server: Server) -> list[bytes]:
    """Return the bodies of the requests, without the checks of the server."""
    return [one.body for one in server.requests if one.path.endswith("/chat/completions")]


@pytest.mark.parametrize(
    "n_requests", [9, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3, 5, 7, 12, 16))]
)
def test_a_killed_evaluation_goes_on_and_pays_nothing_twice(
    tmp_path: Path, sample_project: Path, questions: Path, server: Server, n_requests: int
) -> None:
    root = make_project(tmp_path / "killed", sample_project, server)
    options = ["evaluate", "run", str(questions), "--no-report", *OPTIONS]
    with subprocess.Popen(command(*options), cwd=root, env=environment()) as process:
        wait_for(lambda: len(server.requests) > n_requests, process)
        process.kill()
    record, told = evaluate(root, questions)
    # At most the request that was running is sent again.
    assert len(asked(server)) - len(set(asked(server))) <= 1
    assert any(b"judge" in body for body in asked(server))
    # A second run asks nothing, and the answers still have the price that was paid for them.
    n_before = len(asked(server))
    again, told = evaluate(root, questions)
    assert len(asked(server)) == n_before
    assert again == record
    assert "Answers: 0 requests sent for $0.0000." in told
    assert all(means["cost"]["mean"] > 0 for means in record["means"].values())
    # An evaluation that nobody disturbs gives the same.
    undisturbed, _ = evaluate(make_project(tmp_path / "other", sample_project, server), questions)
    assert undisturbed == record


def test_ctrl_c_says_what_is_kept(
    tmp_path: Path, sample_project: Path, questions: Path, server: Server
) -> None:
    server.latency = 0.5
    root = make_project(tmp_path / "project", sample_project, server)
    with start(root, "evaluate", str(questions), "--methods", "basic,local") as process:
        wait_for(lambda: asked(server), process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=MAX_SECONDS)
    assert process.returncode == ExitCode.INTERRUPTED, err
    assert "Stopped; no report was written. Replies that were paid for are kept" in err
    assert "Traceback" not in out + err
    assert not list(root.glob("evaluations/*/evaluation.html"))
