"""Two versions of an index side by side, over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphrag_server.app import create_app
from graphrag_server.server_settings import ServerSettings
from tests.server.conftest import ADDRESS

BASE = "/v1/indexes/ships"


@pytest.fixture(scope="module")
def client(project_of_two_versions: Path) -> Iterator[TestClient]:
    """A client of an index whose version 2 has another document, and one document less."""
    app = create_app(ServerSettings(indexes={"ships": project_of_two_versions}))
    with TestClient(app, base_url=ADDRESS) as client:
        yield client


def test_changed_rows_have_the_numbers_of_both_versions(client: TestClient) -> None:
    page = client.get(f"{BASE}/diff/documents", params={"from": 1}).json()
    assert page["counts"] == {"added": 1, "removed": 1}
    assert {(row["kind"], row["name"]) for row in page["items"]} == {
        ("added", "aurora.txt"),
        ("removed", "belgica.txt"),
    }
    for row in client.get(f"{BASE}/diff/entities", params={"from": 1}).json()["items"]:
        for version, number in ((1, row["before"]), (2, row["after"])):
            if number is not None:
                reply = client.get(f"{BASE}/entities/{number}", params={"as_of": version})
                assert reply.json()["title"] == row["name"]
        assert (row["before"] is None, row["after"] is None) == (
            row["kind"] == "added",
            row["kind"] == "removed",
        )


def test_pages_of_changed_rows_hold_each_row_once(client: TestClient) -> None:
    query = {"from": 1, "to": 2, "kind": "added"}
    whole = client.get(f"{BASE}/diff/entities", params=query).json()
    assert whole["total"] == whole["counts"]["added"] > 1
    seen, cursor = [], ""
    while cursor is not None:
        page = client.get(f"{BASE}/diff/entities", params={**query, "limit": 1, "cursor": cursor})
        seen += page.json()["items"]
        cursor = page.json()["next_cursor"]
    assert seen == whole["items"]


def test_a_page_stays_in_its_version(client: TestClient) -> None:
    first = client.get(f"{BASE}/entities", params={"as_of": 1, "limit": 1})
    cursor = first.json()["next_cursor"]
    second = client.get(f"{BASE}/entities", params={"limit": 1, "cursor": cursor})
    assert first.headers["x-index-version"] == second.headers["x-index-version"] == "1"
