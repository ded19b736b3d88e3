"""Filters on an index of records with metadata, from a CSV file to what the commands print."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

import graphrag_query
from graphrag_index.schema.settings.project_settings import init_project, load_settings
from graphrag_query.answering.cited_text import CitedText
from graphrag_query.index import Index
from graphrag_query.searches.router import METHODS
from tests.conftest import run_project
from tests.fixtures.commands import REPOSITORY, ask, call
from tests.model_server import Server

ROWS = [
    ("Log of the Aurora", "1914-12-24", "navy", "3", "Captain John Davis took the Aurora from "
     "Sydney. Ernest Joyce and Frank Wild waited at Hut Point. Frank Wild praised Ernest Joyce."),
    ("Letter from Hut Point", "1916-05-08", "private", "12", "Frank Wild wrote to Margaret "
     "Harcourt from Hut Point. Ernest Joyce accused John Davis of theft in 1916. Dogs died."),
    ("Report to the Society", "1917-02", "navy", "12", "John Davis returned with the Aurora. Frank "
     "Wild met John Davis in Wellington. Margaret Harcourt read the report of John Davis."),
    ("Memoir", "", "private", "", "Ernest Joyce remembered the Aurora and Frank Wild. Ernest Joyce "
     "kept the dogs at Hut Point. Margaret Harcourt wrote to Ernest Joyce."),
]  # fmt: skip
QUESTION = "What did Frank Wild do?"


def write_csv_project(root: Path, **more: object) -> Path:
    (root / "input").mkdir(parents=True)
    columns = ["title", "date", "archive", "box", "text"]
    pl.DataFrame(ROWS, columns, orient="row").write_csv(root / "input" / "letters.csv")
    (root / "workflows").symlink_to(REPOSITORY / "workflows")
    settings = {
        "load_documents": {"metadata_columns": ["archive", "box"]},
        "finalize_graph": {"layout": False},
        **more,
    }
    (root / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(dimensions=32) as server:
        yield server


def models(server: Server) -> dict[str, object]:
    llm = {"model": "test-model", "base_url": server.url, "api_key": "x", "timeout": 5}
    return {"models": {"chat": llm}}


@pytest.fixture(
    scope="module",
    params=["linguistic", pytest.param("fast", marks=pytest.mark.slow), "standard"],
)
def project(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    server: Server,
) -> Path:
    more = {} if request.param == "linguistic" else {"workflow": request.param, **models(server)}
    root = write_csv_project(tmp_path_factory.mktemp(request.param) / "project", **more)
    result = call(root, "run")
    assert result.returncode == 0, result.stderr
    return root


@pytest.fixture(scope="module")
def index(project: Path) -> Iterator[Index]:
    settings = load_settings(project)
    with graphrag_query.open(project / "output", settings, project) as index:
        yield index


@pytest.mark.parametrize(
    ("filters", "inside"),
    [
        ({"documents": {"archive": "navy"}}, {0, 2}),
        ({"documents": {"archive": "NAV*", "box": "12"}}, {2}),
        ({"documents": {"box": ["3", "12"]}, "since": "1916"}, {1, 2}),
        ({"since": "1914-12-24", "until": "1916-05"}, {0, 1}),
    ],
)
def test_every_search_is_held_to_what_the_metadata_say(
    index: Index, filters: dict[str, Any], inside: set[int]
) -> None:
    held = index.where(**filters)
    # Queries read the tables whole: structured search refuses filters.
    asked = [(method, QUESTION) for method in set(METHODS) - {"structured", "path"}]
    asked += [("path", "Frank Wild and John Davis"), ("global", "Who are the main people?")]
    for method, question in asked:
        answer = held.search(method, question)
        assert answer.outcome in ("answered", "no_evidence")
        titles = {ROWS[n][0] for n in inside}
        assert {citation.document for citation in answer.citations} <= titles
        assert answer.citations or method not in ("local", "basic")
        listed = map(int, re.findall(r"\[Data: Entities \((\d+)\)\]", answer.text))
        assert all(map(held.store.keeps_entity, listed))


@pytest.mark.parametrize("project", ["linguistic"], indirect=True)
def test_the_command_line_takes_the_same_filters(project: Path) -> None:
    for options, titles in (
        (["--where", "archive=navy", "--until", "1914"], {"Log of the Aurora"}),
        (["--where", "archive=private", "--since", "1916"], {"Letter from Hut Point"}),
    ):
        result = ask("local", QUESTION, "--root", str(project), "--json", *options)
        assert result.returncode == 0, result.stderr
        answer = json.loads(result.stdout)
        assert {citation["document"] for citation in answer["citations"]} == titles
    wrong = ask("local", QUESTION, "--root", str(project), "--where", "shelf=3")
    assert wrong.returncode == 2
    assert "The keys are: path, title, language, archive, box" in wrong.stderr


@pytest.mark.parametrize("project", ["linguistic"], indirect=True)
def test_an_unknown_type_is_told_and_a_known_one_holds(project: Path, index: Index) -> None:
    types = set(index.store.scan("entities").collect()["type"])
    known, wrong = (
        ask("local", QUESTION, "--root", str(project), "--show-context", "--type", kind)
        for kind in ("PERSON", "dragon")
    )
    assert known.returncode == 0
    assert "Frank Wild" in known.stdout
    assert wrong.returncode == 2
    assert f"The types are: {', '.join(sorted(types))}." in wrong.stderr


@pytest.mark.parametrize("project", ["standard"], indirect=True)
def test_claims_are_shown_and_their_citations_lead_to_the_passage(index: Index) -> None:
    answer = index.local("Whom did Ernest Joyce accuse?")
    assert answer.context is not None
    claims = answer.context.tables["Claims"]
    assert claims["subject"].to_list() == ["Ernest Joyce"]
    for number in claims["id"].to_list():
        text = f"He was accused [Data: Claims ({number})]."
        cited = CitedText(index.store, {"Claims": {number}})
        assert cited.add_piece(text, is_last=True) == "He was accused [1]."
        [citation] = cited.citations
        document = next(row for row in ROWS if row[0] == citation.document)
        assert document[4][citation.start_char : citation.end_char] == citation.quote
    held = index.where({"archive": "navy"}).local("Whom did Ernest Joyce accuse?")
    assert held.context is not None
    assert "Claims" not in held.context.tables


def test_a_date_in_a_title_is_one_for_filters(tmp_path: Path) -> None:
    root = tmp_path / "minutes"
    root.mkdir()
    init_project(root)
    for day in ("2026-04-08", "2026-05-06"):
        text = f"Frank Wild met Ernest Joyce in the hut of {day}."
        (root / "input" / f"{day} minutes.txt").write_text(text, encoding="utf-8")
    run_project(root)
    with graphrag_query.open(root / "output") as index:
        assert index.where(since="2026-05").store.masks.documents.tolist() == [False, True]
