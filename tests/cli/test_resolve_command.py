"""The command `resolve`, and the step within runs: by rules, by a person and by a model."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.fixtures.commands import Call, Result, write_project
from tests.fixtures.model_project import KEY
from tests.fixtures.small_index import read_files
from tests.model_server import ChatRequest, Faults, Server

STEPS = "load_documents create_text_units extract_graph_nlp resolve_entities finalize_graph".split()
# Two spellings of one place, and two of another.
DOCUMENTS = {
    "a.txt": "Anna Novak left Nordenskiöld Coast. Anna Novak saw Nordenskjöld Coast again. "
    "The Nordenskiöld Coast is cold.",
    "b.txt": "Ewa Nowak lives in Wierzbowice Lake. Ewa Nowak knows Wierzbowica Lake well.",
}
TWO = ("Nordenskiöld Coast", "Nordenskjöld Coast")


Calls = Callable[..., Result]


@pytest.fixture
def call(graphrag_index: Call, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Call a command in a project, inside this process."""
    monkeypatch.setenv("MODEL_KEY", KEY)
    return lambda root, *arguments: graphrag_index(*arguments, "--root", root)


@pytest.fixture
def root(tmp_path: Path, call: Calls) -> Path:
    project = write_project(tmp_path / "p", STEPS, "finalize_graph: {layout: false}\n", DOCUMENTS)
    assert call(project, "run").code == 0
    return project


def titles(root: Path) -> set[str]:
    return set(pl.read_parquet(root / "output" / "entities.parquet")["title"])


def test_what_is_decided_is_applied_by_the_next_run_and_can_be_undone(
    root: Path, call: Calls
) -> None:
    before = read_files(root)
    assert set(TWO) <= titles(root)
    listed = call(root, "resolve")
    assert listed.code == 0
    assert listed.out.startswith("Doubtful (2), best first:\n")
    assert "Nordenskiöld Coast (" in listed.out
    assert "one letter differs" in listed.out

    told = call(root, "resolve", "--merge", *TWO)
    assert told.out == (
        f"Nordenskjöld Coast is Nordenskiöld Coast. Written to {root / 'resolutions.yaml'}: "
        "`graphrag-index run` applies the decision.\n"
    )
    pairs = json.loads(call(root, "resolve", "--json").out)["doubtful"]
    assert [{row["title"], row["other"]} for row in pairs] == [
        {"Wierzbowice Lake", "Wierzbowica Lake"}
    ]
    result = call(root, "run")
    assert result.code == 0, result.err
    # Only what depends on the decision is done again.
    assert [line.split()[2] for line in result.out.splitlines()[:3]] == ["unchanged"] * 3
    assert TWO[1] not in titles(root)
    aliases = pl.read_parquet(root / "output" / "entities.parquet").filter(title=TWO[0])
    assert aliases["aliases"].to_list() == [[TWO[1]]]
    assert "Nordenskjöld Coast → Nordenskiöld Coast (person)" in call(root, "resolve").out

    # An update equals a rebuild.
    updated = read_files(root)
    assert call(root, "run", "--set", "output=again").code == 0
    again = pl.read_parquet(root / "again" / "entities.parquet")
    assert again.equals(pl.read_parquet(root / "output" / "entities.parquet"))

    assert "Removed the decision about" in call(root, "resolve", "--undo", *TWO).out
    assert call(root, "run").code == 0
    assert read_files(root) == before
    assert updated != before


def test_what_is_kept_apart_is_no_longer_listed(root: Path, call: Calls) -> None:
    assert "stay apart" in call(root, "resolve", "--never", *TWO).out
    assert call(root, "resolve").out.startswith("Doubtful (1)")
    assert call(root, "run").code == 0
    assert call(root, "resolve").out.startswith("Doubtful (1)")


def test_what_a_rule_joined_is_undone_and_what_nothing_joined_is_not(
    tmp_path: Path, call: Calls
) -> None:
    values = "finalize_graph: {layout: false}\nresolve_entities: {merge_above: 0.7}\n"
    root = write_project(tmp_path / "p", STEPS, values, DOCUMENTS)
    assert "There is no index in" in call(root, "resolve", "--undo", *TWO).err
    assert call(root, "run").code == 0
    assert len({*TWO} & titles(root)) == 1
    for other in ("Anna Novak", "nobody", TWO[0].upper()):
        refused = call(root, "resolve", "--undo", TWO[0], other)
        assert refused.code == 2
        assert refused.err.startswith("Error: Nothing to undo: neither ")
    assert not (root / "resolutions.yaml").exists()
    assert "stay apart" in call(root, "resolve", "--undo", *TWO).out
    assert call(root, "run").code == 0
    assert {*TWO} <= titles(root)


def test_wrong_use_is_told(root: Path, call: Calls) -> None:
    both = call(root, "resolve", "--json", "--merge", *TWO)
    assert both.code == 2
    none = call(root, "resolve", "--set", "output=nowhere")
    assert none.code == 1
    assert "There is no index in" in none.err
    (root / "resolutions.yaml").write_text("merge: [x]\n", encoding="utf-8")
    for arguments in (["resolve"], ["run"], ["validate"], ["resolve", "--merge", *TWO]):
        result = call(root, *arguments)
        assert result.code == 2
        assert "resolutions.yaml, line 1: merge must hold names" in result.err
        assert len(result.err.splitlines()) == 1


def test_an_index_without_the_step_says_how_to_have_it(tmp_path: Path, call: Calls) -> None:
    steps = [step for step in STEPS if step != "resolve_entities"]
    root = write_project(tmp_path / "p", steps, "finalize_graph: {layout: false}\n", DOCUMENTS)
    assert call(root, "run").code == 0
    result = call(root, "resolve")
    assert result.code == 1
    assert "without the step resolve_entities" in result.err


def decide(request: ChatRequest) -> dict[str, object]:
    """Say yes to the one pair and no to the other."""
    return {"reason": "as told", "same": "Nordensk" in request.texts[-1]}


def with_model(root: Path, url: str) -> Path:
    settings = (
        "workflow: small\nfinalize_graph: {layout: false}\nresolve_entities: {model: chat}\n"
        "models:\n  chat: {model: test-model, api_key: '${MODEL_KEY}', retry_seconds: 1, "
        f"base_url: '{url}'}}\n"
    )
    (root / "settings.yaml").write_text(settings, encoding="utf-8")
    return root


def test_a_model_behind_an_address_decides(root: Path, call: Calls) -> None:
    with Server(answer=decide, api_keys=[KEY]) as server:
        with_model(root, server.url)
        estimated = call(root, "estimate")
        assert "resolve_entities" in estimated.out
        result = call(root, "run")
        assert result.code == 0, result.err
        asked = sum("chat" in request.path for request in server.requests)
        assert asked == 2
        assert TWO[1] not in titles(root)
        assert {"Wierzbowice Lake", "Wierzbowica Lake"} <= titles(root)
        assert "a model: different" in call(root, "resolve").out
        # What is answered is not asked again.
        assert call(root, "run", "--set", "output=output").code == 0
        (root / "input" / "c.txt").write_text("Oslo is far from Bergen.", encoding="utf-8")
        assert call(root, "run").code == 0
        assert sum("chat" in request.path for request in server.requests) == asked


def test_a_model_that_fails_merges_nothing_and_is_listed(root: Path, call: Calls) -> None:
    faults = Faults(rate=1, kinds=["refusal"])
    with Server(answer=decide, api_keys=[KEY], faults=faults) as bad:
        with_model(root, bad.url)
        result = call(root, "run")
        assert result.code == 3
        assert "resolve_entities, Nordenskiöld Coast and Nordenskjöld Coast:" in result.err
        assert set(TWO) <= titles(root)
        bad.faults = Faults()
        assert call(root, "retry").code == 0
        assert TWO[1] not in titles(root)
