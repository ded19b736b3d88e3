"""The scripts in examples/ run as they stand, without a network."""

import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.fixtures.in_process import call_here
from tests.model_server import Server

SCRIPTS = sorted((REPOSITORY / "examples").glob("*.py"))


def run_example(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, REPOSITORY / "examples" / name, *arguments],
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture
def run_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run an example and its commands in this process, and return what they print."""

    def run_command(command: Sequence[str], check: bool) -> "subprocess.CompletedProcess[str]":
        assert not check
        assert command[:2] == [sys.executable, "-m"]
        done = call_here(command[2].replace("_", "-"), command[3:], Path.cwd())
        sys.stdout.write(done.stdout)
        assert done.returncode == 0, done.stderr
        return done

    def run(name: str, *arguments: str) -> str:
        monkeypatch.setattr(subprocess, "run", run_command)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(REPOSITORY / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_examples_fit_a_screen_or_two(script: Path) -> None:
    assert 20 <= len(script.read_text(encoding="utf-8").splitlines()) <= 60


def test_a_folder_is_indexed_and_asked(run_here: Callable[..., str], tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    shutil.copy(REPOSITORY / "input" / "people" / "tom-crean.txt", documents)
    said = run_here("index_and_ask.py", "--documents", str(documents))
    assert "Tom Crean" in said
    assert "[1] tom-crean.txt, characters " in said


def test_a_step_of_ones_own_redacts_the_documents() -> None:
    result = run_example("own_step.py")
    assert result.returncode == 0, result.stderr
    assert "write to [e-mail] about the Analytical Engine." in result.stdout


def test_a_graph_of_ones_own_is_searched(run_here: Callable[..., str]) -> None:
    said = "Charles Babbage – Analytical Engine – Luigi Menabrea (2 hops)"
    assert said in run_here("own_graph.py")


def test_a_local_model_is_asked(run_here: Callable[..., str], model_server: Server) -> None:
    options = ["--base-url", model_server.url, "--model", "test-model"]
    assert "[1] engine.txt" in run_here("local_model.py", *options)


def test_without_a_model_server_one_sentence_says_what_to_start() -> None:
    result = run_example("local_model.py", "--base-url", "http://127.0.0.1:9/v1")
    assert result.returncode == 1
    assert "ollama serve" in result.stderr
    assert len(result.stderr.splitlines()) == 1
