"""The wheel carries all that the program needs, and works away from this checkout."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built with the tools of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    call([sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", folder, REPOSITORY])
    (wheel,) = folder.glob("*.whl")
    return wheel


def call(command: list[str | Path], cwd: Path | None = None, pythonpath: Path | None = None) -> str:
    """Run a command that must succeed and return what it printed."""
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    environment.pop("PYTHONPATH", None)
    if pythonpath is not None:
        environment["PYTHONPATH"] = str(pythonpath)
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def files_below(folder: Path, name: str) -> set[str]:
    """Paths of the files of a package, without what Python and the system leave there."""
    return {
        path.relative_to(folder).as_posix()
        for path in (folder / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }


def test_a_wheel_holds_the_packages_the_workflows_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    names = (
        "graphrag_nlp",
        "graphrag_index",
        "graphrag_query",
        "graphrag_server",
        "graphrag_evaluation",
    )
    packages = set().union(*(files_below(REPOSITORY, name) for name in names))
    workflows = {f"graphrag_index/{name}" for name in files_below(REPOSITORY, "workflows")}
    assert held == packages | workflows
    assert {
        "graphrag_index/py.typed",
        "graphrag_query/py.typed",
        "graphrag_evaluation/py.typed",
        "graphrag_index/llm/local/all-MiniLM-L6-v2.onnx",
        "graphrag_index/llm/local/static.safetensors",
        "graphrag_index/llm/encodings/o200k_base.tiktoken.gz",
        "graphrag_index/workflows/embedded.yaml",
    } <= held


def test_init_writes_the_workflows_of_an_unpacked_wheel(wheel: Path, tmp_path: Path) -> None:
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    # A workflow that only this copy has shows that it was not the checkout's that were written.
    (unpacked / "graphrag_index/workflows/mark.yaml").write_text("- mark\n", encoding="utf-8")
    (tmp_path / "papers").mkdir()

    init = [sys.executable, "-m", "graphrag_index", "init", "project", "--input", "papers"]
    call(init, cwd=tmp_path, pythonpath=unpacked)

    written = {path.name for path in (tmp_path / "project/workflows").iterdir()}
    assert written == files_of_workflows() | {"mark.yaml"}
    settings = (tmp_path / "project/settings.yaml").read_text(encoding="utf-8")
    assert (tmp_path / "papers").resolve().as_posix() in settings


def files_of_workflows() -> set[str]:
    return {path.name for path in (REPOSITORY / "workflows").glob("*.yaml")}


@pytest.mark.slow
def test_an_installed_wheel_indexes_and_answers(wheel: Path, tmp_path: Path) -> None:
    call([sys.executable, "-m", "venv", tmp_path / "environment"])
    bin_ = tmp_path / "environment" / ("Scripts" if os.name == "nt" else "bin")
    call([bin_ / "python", "-m", "pip", "install", "--quiet", wheel])
    shutil.copytree(REPOSITORY / "input", tmp_path / "papers")

    index, query = bin_ / "graphrag-index", bin_ / "graphrag-query"
    call([index, "init", "project", "--input", "papers"], cwd=tmp_path)
    call([index, "run", "--root", "project"], cwd=tmp_path)
    again = call([index, "run", "--root", "project"], cwd=tmp_path)
    ask: list[str | Path] = [query, "local", "Who was Tom Crean?", "--root", "project", "--json"]
    answer = json.loads(call(ask, cwd=tmp_path))

    assert "Nothing changed" in again
    assert answer["outcome"] == "answered"
    assert "tom-crean.txt" in {citation["document"] for citation in answer["citations"]}

    packages = json.loads(call([bin_ / "python", "-m", "pip", "list", "--format", "json"]))
    names = {package["name"] for package in packages} - {"pip", "setuptools"}
    assert len(names) <= 60
    assert not names & {"torch", "pandas", "onnxruntime", "tokenizers", "huggingface-hub"}
