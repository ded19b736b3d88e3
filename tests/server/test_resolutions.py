"""Decisions about names over HTTP: previewed, recorded, applied by a run, and undone."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphrag_index.resolution.decisions_file import read_decisions
from graphrag_server.app import create_app
from graphrag_server.server_settings import ServerSettings
from tests.conftest import REPOSITORY, run_project
from tests.server.conftest import ADDRESS

RESOLUTIONS = "/v1/indexes/docs/resolutions"
# Two spellings of one place.
COAST, OTHER = "Nordenskiöld Coast", "Nordenskjöld Coast"
MERGE = {"kind": "merge", "title": COAST, "names": [OTHER]}
TEXTS = {
    "a.txt": f"Anna Novak left {COAST}. Anna Novak saw {OTHER} again. The {COAST} is cold.",
    "b.txt": "Anna Novak paints. Anna Novak sold a painting of Wierzbowice Lake.",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "docs"
    (project / "input").mkdir(parents=True)
    (project / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    shutil.copytree(REPOSITORY / "workflows", project / "workflows")
    for name, text in TEXTS.items():
        (project / "input" / name).write_text(text, encoding="utf-8")
    return project


@pytest.fixture
def client(root: Path) -> Iterator[TestClient]:
    settings = ServerSettings(indexes={"docs": root}, state_folder=root.parent)
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        yield client


def undo(client: TestClient, *names: str) -> int:
    return client.delete(RESOLUTIONS, params={"name": names}).status_code


def entity_titles(client: TestClient) -> set[str]:
    page = client.get("/v1/indexes/docs/entities", params={"limit": 500}).json()
    return {entity["title"] for entity in page["items"]}


def test_a_merge_is_previewed_recorded_applied_by_a_run_and_undone(
    client: TestClient, root: Path
) -> None:
    run_project(root)
    path = root / "resolutions.yaml"
    listed = client.get(RESOLUTIONS).json()
    assert {COAST, OTHER} in [{row["title"], row["other"]} for row in listed["doubtful"]]
    assert listed["titles"] == []

    preview = client.post(f"{RESOLUTIONS}/preview", json={**MERGE, "names": [OTHER, "Nobody"]})
    found = preview.json()
    assert [entity["title"] for entity in found["entities"]] == [COAST, OTHER]
    assert found["is_new"]
    assert (found["n_text_units"], found["n_documents"]) == (1, 1)
    assert found["n_relationships"] > 0
    assert not path.exists()

    assert client.post(RESOLUTIONS, json=MERGE).json() == {"is_changed": True}
    assert client.post(RESOLUTIONS, json=MERGE).json() == {"is_changed": False}
    listed = client.get(RESOLUTIONS).json()
    assert listed["titles"] == [{"name": OTHER, "title": COAST}]
    assert listed["n_doubtful"] == 0
    assert {COAST, OTHER} <= entity_titles(client)
    run_project(root)
    assert {COAST, OTHER} & entity_titles(client) == {COAST}
    # The merged name is now an alias, by which a preview finds the entity.
    apart = {"kind": "never", "names": [OTHER, "Anna Novak"]}
    found = client.post(f"{RESOLUTIONS}/preview", json=apart).json()
    assert [entity["title"] for entity in found["entities"]] == [COAST, "Anna Novak"]

    assert undo(client, COAST, OTHER) == 200
    assert read_decisions(path).titles == {}
    assert undo(client, "Anna Novak", "Robert Falcon Scott") == 404
    # The current index still has the two merged, so undoing once more keeps them apart.
    assert undo(client, COAST, OTHER) == 200
    assert client.get(RESOLUTIONS).json()["never"] == [[COAST, OTHER]]


def test_a_split_is_previewed_by_the_text_units_of_each_part(
    client: TestClient, root: Path
) -> None:
    assert client.post(f"{RESOLUTIONS}/preview", json=MERGE).json()["code"] == "no_index_yet"
    run_project(root)
    parts = [{"title": "Anna Novak (painter)", "paths": ["b.*"]}, {"title": "Anna Novak"}]
    split = {"kind": "split", "name": "anna novak", "parts": parts}
    found = client.post(f"{RESOLUTIONS}/preview", json=split).json()
    counted = {"n_text_units": 1, "n_documents": 1}
    assert sorted(found["parts"], key=lambda part: part["title"]) == [
        {"title": "Anna Novak", **counted},
        {"title": "Anna Novak (painter)", **counted},
    ]
    assert client.post(RESOLUTIONS, json=split).json() == {"is_changed": True}
    [listed] = client.get(RESOLUTIONS).json()["split"]
    assert [part["title"] for part in listed["parts"]] == ["Anna Novak (painter)", "Anna Novak"]
    assert undo(client, "Anna Novak") == 200
    assert undo(client, "Anna Novak") == 404


def test_a_decision_that_cannot_be_recorded_is_refused_and_changes_nothing(
    client: TestClient, root: Path
) -> None:
    path = root / "resolutions.yaml"
    assert client.get(RESOLUTIONS).json()["n_doubtful"] == 0
    client.post(RESOLUTIONS, json={"kind": "rename", "name": "RGS", "title": "Society"})
    before = path.read_bytes()
    bad = [
        {"kind": "never", "names": ["RGS", "Society"]},
        {"kind": "never", "names": ["A", " a "]},
        {"kind": "rename", "name": "RGS", "title": "Other"},
        {"kind": "merge", "title": " ", "names": ["A"]},
        {"kind": "split", "name": "A", "parts": [{"title": "B"}, {"title": "C"}]},
    ]
    for decision in bad:
        reply = client.post(RESOLUTIONS, json=decision)
        assert (reply.status_code, reply.json()["code"]) == (400, "settings_error"), decision
        assert str(root) not in reply.text
    for decision in ({"kind": "other"}, {"kind": "merge", "title": "A", "names": []}):
        assert client.post(RESOLUTIONS, json=decision).status_code == 422
    assert path.read_bytes() == before
    # Names cannot add entries of their own to the file.
    name = 'A: [x]\nmerge:\n  "B'
    assert client.post(RESOLUTIONS, json={**MERGE, "names": [name]}).json()["is_changed"]
    assert set(read_decisions(path).titles.values()) == {"Society", COAST}
