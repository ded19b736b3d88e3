"""What is installed has a stated reason, and asking needs less than indexing."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PYPROJECT = REPOSITORY / "pyproject.toml"

# What only indexing needs, and aiohttp, which only workflows and searches with a model need.
ONLY_FOR_INDEXING = {
    "aiohttp",
    "charset_normalizer",
    "graphrag_index.communities",
    "graphrag_index.nlp",
    "graphrag_index.readers",
    "graphrag_index.extraction",
    "graphrag_index.reports",
    "graphrag_index.resolution",
    "graphrag_index.pipeline",
    "graphrag_index.step",
    "graphrag_index.steps",
    "graspologic_native",
    "igraph",
    "leidenalg",
    "markitdown",
    "networkx",
    "torch",
}

ASK = """
import json, sys
import graphrag_query
index = graphrag_query.open(sys.argv[1])
outcomes = [index.local("Who was Tom Crean?").outcome, index.global_("Main themes?").outcome]
print(json.dumps({"outcomes": outcomes, "modules": sorted(sys.modules)}))
"""


def dependencies_without_a_comment(pyproject: str) -> list[str]:
    """Name the requirements that stand in a list of pyproject.toml with no comment above.

    A comment speaks for the line below it and the lines that follow without a break.
    """
    bare, reason = [], False
    for line in pyproject.splitlines():
        text = line.strip()
        if text.startswith("#"):
            reason = True
        elif re.fullmatch(r'"[^"]+",?', text):
            if not reason:
                bare.append(text.strip('",'))
        else:
            reason = False
    return bare


def test_a_requirement_without_its_reason_is_noticed() -> None:
    bare = 'dependencies = [\n    "a>=1",\n    # Why.\n    "b>=2,<3",\n]\n'
    assert dependencies_without_a_comment(bare) == ["a>=1"]


def test_every_dependency_says_what_it_is_for() -> None:
    assert dependencies_without_a_comment(PYPROJECT.read_text(encoding="utf-8")) == []


def test_every_dependency_has_a_lower_bound() -> None:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    assert [line for line in project["dependencies"] if ">=" not in line] == []


@pytest.fixture(scope="module")
def asked(sample_project: Path) -> dict[str, list[str]]:
    """What a fresh process has imported when it has asked a local and a global question."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(sample_project / "output")],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_asking_imports_nothing_that_only_indexing_needs(asked: dict[str, list[str]]) -> None:
    assert asked["outcomes"] == ["answered", "answered"]
    assert ONLY_FOR_INDEXING.intersection(asked["modules"]) == set()


def test_asking_loads_only_the_shared_rooms(asked: dict[str, list[str]]) -> None:
    used = {name for name in asked["modules"] if name.startswith("graphrag_index.")}
    assert used
    assert {name.split(".")[1] for name in used} <= {
        *("schema", "storage", "text", "llm", "microsoft", "errors"),
    }


def test_importing_the_packages_is_cheap() -> None:
    code = "import sys, graphrag_index, graphrag_query; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    heavy = {"lancedb", "numpy", "onnxruntime", "aiohttp", "polars", "pyarrow", "pydantic", "scipy"}
    assert heavy.intersection(done.stdout.split()) == set()


@pytest.mark.parametrize("command", ["graphrag_index", "graphrag_query"])
def test_help_imports_no_heavy_library(command: str) -> None:
    code = (
        f"import sys, runpy; sys.argv[1:] = ['--help']\n"
        f"try: runpy.run_module('{command}', run_name='__main__')\n"
        f"finally: print('modules:', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    shown, _, modules = done.stdout.partition("modules:")
    assert "Usage" in shown
    heavy = {"lancedb", "numpy", "onnxruntime", "polars", "pyarrow", "pydantic", "rich", "scipy"}
    assert heavy.intersection(modules.split()) == set()
