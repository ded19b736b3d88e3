"""What is installed has a stated reason, and asking needs less than indexing."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.fixtures.model_project import KEY, write_project
from tests.fixtures.planted_series import planted_series
from tests.model_server import Server

PYPROJECT = REPOSITORY / "pyproject.toml"

# Modules that only indexing needs, or only workflows and searches with a model.
ONLY_FOR_INDEXING = {
    "aiohttp",
    "charset_normalizer",
    "graphrag_index.communities",
    "graphrag_nlp.names",
    "graphrag_index.readers",
    "graphrag_index.extraction",
    "graphrag_index.reports",
    "graphrag_nlp.reports",
    "graphrag_index.resolution",
    "graphrag_index.pipeline",
    "graphrag_index.step",
    "graphrag_index.steps",
    "graspologic_native",
    "httpx2",
    "huggingface_hub",
    "igraph",
    "kreuzberg",
    "olefile",
    "leidenalg",
    "liteparse",
    "mammoth",
    "networkx",
    "onnxruntime",
    "openai",
    "openpyxl",
    "pptx",
    "pypdfium2",
    "tokenizers",
    "torch",
}

ASK = """
import json, sys
import graphrag_query
index = graphrag_query.open(sys.argv[1])
outcomes = [index.local("Who was Tom Crean?").outcome, index.global_("Main themes?").outcome]
print(json.dumps({"outcomes": outcomes, "modules": sorted(sys.modules)}))
"""

EMBED = """
import asyncio, sys
from graphrag_index.llm.client import LLMClient
from graphrag_index.llm.ledger import Ledger
from graphrag_index.schema.settings.models import ModelSettings
async def embed():
    client = LLMClient("m", ModelSettings(model="m", base_url=sys.argv[1]), Ledger(None))
    await client.request_vectors(["text"])
    await client.close()
asyncio.run(embed())
print(*sys.modules)
"""


# Modules of runs on many machines.
BEYOND_ONE_MACHINE = {"obstore", "ray", "boto3"}

RUN = """
import sys
sys.modules |= dict.fromkeys(sys.argv.pop().split(","))
from graphrag_index.__main__ import main
try:
    main()
finally:
    print("modules:", *(name for name, module in sys.modules.items() if module))
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


def test_what_many_machines_need_is_neither_installed_nor_imported(tmp_path: Path) -> None:
    required = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    names = {re.split(r"[^\w-]", line)[0] for line in required}
    assert names.isdisjoint(BEYOND_ONE_MACHINE)
    shutil.copytree(REPOSITORY / "workflows", tmp_path / "workflows")
    (tmp_path / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    (tmp_path / "input").mkdir()
    text = "Tom Crean met Robert Scott in Cardiff. Tom Crean sailed with Robert Scott."
    (tmp_path / "input" / "a.txt").write_text(text, encoding="utf-8")
    arguments = ["run", "--quiet", "--root", str(tmp_path), ",".join(BEYOND_ONE_MACHINE)]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    imported = {name.partition(".")[0] for name in done.stdout.partition("modules:")[2].split()}
    assert "polars" in imported
    assert imported.isdisjoint(BEYOND_ONE_MACHINE)


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
    assert BEYOND_ONE_MACHINE.intersection(asked["modules"]) == set()
    assert ONLY_FOR_INDEXING.intersection(asked["modules"]) == set()


def test_asking_loads_only_the_shared_rooms(asked: dict[str, list[str]]) -> None:
    used = {name for name in asked["modules"] if name.startswith("graphrag_index.")}
    assert used
    assert {name.split(".")[1] for name in used} <= {
        *("schema", "storage", "text", "llm", "microsoft", "errors", "spans")
    }


def test_requests_outside_batches_do_not_import_openai() -> None:
    with Server() as server:
        done = subprocess.run(
            [sys.executable, "-c", EMBED, server.url],
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
    modules = set(done.stdout.split())
    assert "aiohttp" in modules
    assert {"openai", "httpx2"}.isdisjoint(modules)


SEARCH_WITH_MODEL = """
import json, sys
import graphrag_query
from pathlib import Path
from graphrag_index.schema.settings.project_settings import load_settings
root = Path(sys.argv[1])
index = graphrag_query.open(root / "output", load_settings(root), root)
outcomes, modules = {}, {}
for method in ("local", "basic", "global", "drift", "path", "neighbourhood", "lazy"):
    outcomes[method] = index.search(method, "How is Tom Crean connected with Frank Wild?").outcome
    modules[method] = sorted(m for m in sys.modules if m.startswith("graphrag_"))
print(json.dumps({"outcomes": outcomes, "modules": modules}))
"""
# What works without a model.
RULES = ("graphrag_nlp.names", "graphrag_nlp.reports", "graphrag_nlp.answers")


@pytest.fixture(scope="module")
def model_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """What a run of `standard`, and searches, have imported where a model is configured."""
    root = tmp_path_factory.mktemp("with-model")
    with Server() as server:
        write_project(root, server.url, n_documents=2)
        environment = {**os.environ, "MODEL_KEY": KEY}
        outputs = [
            subprocess.run(
                [sys.executable, "-c", *arguments],
                capture_output=True,
                encoding="utf-8",
                check=False,
                env=environment,
            )
            for arguments in (
                (RUN, "run", "--quiet", "--root", str(root), "obstore"),
                (SEARCH_WITH_MODEL, str(root)),
            )
        ]
    for done in outputs:
        assert done.returncode == 0, done.stderr
    return outputs[0].stdout.partition("modules:")[2], json.loads(outputs[1].stdout)


def test_a_run_with_a_model_imports_no_rules(model_run: tuple[str, dict[str, Any]]) -> None:
    imported = model_run[0].split()
    assert "graphrag_index.steps.create_community_reports" in imported
    assert [name for name in imported if name.startswith(RULES)] == []


def test_searches_with_a_model_import_no_rules(model_run: tuple[str, dict[str, Any]]) -> None:
    outcomes, imported = model_run[1]["outcomes"], model_run[1]["modules"]
    # After a search without evidence, others are tried without a model, to suggest one.
    answered = [*takewhile(lambda method: outcomes[method] == "answered", outcomes)]
    assert {"local", "basic", "global", "drift"} <= {*answered}
    for method in answered:
        assert [name for name in imported[method] if name.startswith(RULES)] == [], method


COMPARE_WITH_MODEL = """
import sys
import graphrag_query
from pathlib import Path
from graphrag_index.schema.settings.project_settings import load_settings
root = Path(sys.argv[1])
settings = load_settings(root, (sys.argv[2], "search.model=chat"))
index = graphrag_query.open(root / "output", settings, root)
answer = index.ask("Compare the operating margin of Ostwick and Penharrow in Q3 2022.")
print(answer.method, answer.outcome, *sys.modules)
"""


def test_a_comparison_with_a_model_imports_no_rules(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = planted_series(tmp_path_factory)
    cell = {"cell": 0, "value": "", "statement": "It says so.", "sources": [42]}
    with Server(answer=lambda request: {"cells": [cell]}) as server:
        model = f"models.chat={{model: writer, base_url: '{server.url}'}}"
        done = subprocess.run(
            [sys.executable, "-c", COMPARE_WITH_MODEL, str(root), model],
            capture_output=True, encoding="utf-8", check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    method, outcome, *modules = done.stdout.split()
    assert (method, outcome) == ("compare", "answered")
    rules = (*RULES, "graphrag_query.answering.quoted_answer")
    assert [name for name in modules if name.startswith(rules)] == []


def test_local_search_with_a_model_imports_few_files() -> None:
    code = "import graphrag_query.searches.local_search, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = [name for name in done.stdout.split() if name.startswith("graphrag_")]
    files = [name for name in names if (REPOSITORY / f"{name.replace('.', '/')}.py").exists()]
    assert "graphrag_query.searches.local_search" in files
    assert len(files) <= 60
    assert [name for name in names if name.startswith(RULES)] == []
