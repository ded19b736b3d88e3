"""Microsoft GraphRAG's own program answers from what we export.

It is no dependency of ours: `pip install graphrag==3.3.0` in an environment of its own, then
`MICROSOFT_GRAPHRAG_PYTHON=/there/bin/python pytest -m slow` with the path of this file.
"""

import os
import subprocess
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
import yaml

from graphrag_index.llm.local.local_models import load_embedding_model
from graphrag_index.microsoft.export_index import export
from graphrag_index.pipeline.history import current_version
from graphrag_index.storage.table_store import TableStore
from tests.fixtures.model_project import run, write_project
from tests.model_server import ChatRequest, Server, answer_from_text
from tests.model_server.answers import Json, best_lines

PYTHON = os.environ.get("MICROSOFT_GRAPHRAG_PYTHON")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="MICROSOFT_GRAPHRAG_PYTHON names no Python"),
]
METHODS = ("local", "global", "drift", "basic")


class Exported(NamedTuple):
    """Export an index, and set up a project of Microsoft's on it with a server of models."""

    folder: Path
    root: Path
    server: Server


def answer(request: ChatRequest) -> str | Json:
    """As a model that knows Microsoft's prompts: drift search wants questions to follow up."""
    prompt = "\n".join(request.texts)
    names = set((request.schema or {}).get("properties", {}))
    lines = [line for _, line in best_lines(request)]
    step = {"score": 50, "follow_up_queries": ["Who else was there?"]}
    if "intermediate_answer" in names:
        return {"intermediate_answer": "\n".join(lines), **step}
    if "follow_up_queries" in prompt:
        return {"response": "\n".join(lines), **step}
    return answer_from_text(request)


def exported(root: Path, index: Path, server: Server) -> Exported:
    """Export an index, and write the settings that the export asks for."""
    folder = root / "exported"
    store = TableStore(index)
    told = "\n".join(export(store, current_version(store), folder))
    lines = told.split("\n\n")[1]
    model = {"model_provider": "openai", "api_base": server.url, "api_key": "sk-test"}
    settings = {
        "completion_models": {"default_completion_model": {**model, "model": "test-model"}},
        "embedding_models": {"default_embedding_model": {**model, "model": "test-embedding"}},
        **yaml.safe_load(lines),
    }
    (root / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return Exported(folder, root, server)


@pytest.fixture(scope="module")
def embedded(sample_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exported]:
    """The index of the sample, with the model that embedded it behind the server."""
    model = load_embedding_model("static")

    def vector(text: str, _: int) -> "array[float]":
        return array("f", model.embed([text])[0].tolist())

    with Server(answer=answer, vector=vector) as server:
        root = tmp_path_factory.mktemp("embedded")
        yield exported(root, sample_project / "output", server)


@pytest.fixture(scope="module")
def standard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exported]:
    """An index written by models: with claims, and communities of several levels."""
    root = tmp_path_factory.mktemp("standard")
    with Server(dimensions=32) as server:
        project = write_project(root / "ours", server.url)
        done = run(project, "--set", "create_communities.max_cluster_size=5")
        assert done.returncode == 0, done.stderr
    with Server(dimensions=32, answer=answer) as server:
        yield exported(root, project / "output", server)


def query(of: Exported, method: str, question: str, *options: str) -> tuple[str, str]:
    """Return the output of its command, and its requests to the models."""
    asked = len(of.server.requests)
    done = subprocess.run(
        [str(PYTHON), "-m", "graphrag", "query", "--root", of.root, "--method", method,
         *options, question],
        capture_output=True, encoding="utf-8", check=False,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    requests = [r for r in of.server.requests[asked:] if r.path.endswith("/chat/completions")]
    return done.stdout, "\n".join(m["content"] for r in requests for m in r.json["messages"])


def shown(texts: pl.Series, prompts: str) -> int:
    """Count the texts that the prompts hold in full."""
    return sum(text in prompts for text in texts)


def read(of: Exported, name: str) -> pl.DataFrame:
    return pl.read_parquet(of.folder / f"{name}.parquet")


@pytest.mark.parametrize("method", METHODS)
def test_it_answers_from_the_sample(embedded: Exported, method: str) -> None:
    answered, prompts = query(embedded, method, "Who was Tom Crean?")
    # What drift search ends with is up to the model.
    assert ("Tom Crean" in answered) or (method == "drift" and answered.strip())
    if method in ("local", "basic"):
        units = read(embedded, "text_units").filter(pl.col("text").str.contains("Crean"))
        assert shown(units["text"].str.slice(0, 80), prompts) > 0
    if method == "local":
        crean = read(embedded, "entities").filter(pl.col("title") == "Tom Crean").row(0, named=True)
        assert f"{crean['human_readable_id']}|Tom Crean|{crean['description']}" in prompts
    if method in ("global", "drift"):
        reports = read(embedded, "community_reports").filter(pl.col("level") <= 2)
        assert shown(reports["title"], prompts) > 0


@pytest.mark.parametrize("method", METHODS)
def test_it_answers_from_what_models_wrote(standard: Exported, method: str) -> None:
    claims, entities = read(standard, "covariates"), read(standard, "entities")
    claim = claims.filter(pl.col("subject_id").is_in(entities["title"].implode())).row(
        0, named=True
    )
    subject = entities.filter(pl.col("title") == claim["subject_id"]).row(0, named=True)
    # The vectors of equal texts are equal here, and of others far away.
    question = f"{subject['title']}:{subject['description']}"
    answered, prompts = query(standard, method, question)
    assert answered.strip()
    if method == "local":
        assert claim["description"] in prompts
    if method == "global":
        # It shows every report of the levels down to 2, whatever the question.
        reports = read(standard, "community_reports")
        assert reports["level"].n_unique() > 2
        of_levels = reports.filter(pl.col("level") <= 2)
        assert shown(of_levels["title"], prompts) == len(of_levels)


def test_it_goes_down_the_levels(standard: Exported) -> None:
    _, prompts = query(standard, "global", "What is told?", "--dynamic-community-selection")
    reports = read(standard, "community_reports")
    for level in range(3):
        assert shown(reports.filter(pl.col("level") == level)["title"], prompts) > 0


def test_levels_below_the_one_that_is_asked_for_are_not_shown(standard: Exported) -> None:
    reports = read(standard, "community_reports")
    _, prompts = query(standard, "global", "What is told?", "--community-level", "0")
    rows = reports.select("level", row=pl.format("\n{}|{}|", "community", "title"))
    assert shown(rows.filter(pl.col("level") == 0)["row"], prompts) == (reports["level"] == 0).sum()
    assert shown(rows.filter(pl.col("level") > 0)["row"], prompts) == 0
