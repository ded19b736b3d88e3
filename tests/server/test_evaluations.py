"""Evaluations over HTTP: listed, read as data and as a page, and told if they are damaged."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphrag_evaluation.report.report_folder import write_report
from graphrag_server.app import create_app
from graphrag_server.server_settings import ServerSettings
from tests.fixtures.page_parser import HOSTILE, Page
from tests.fixtures.reports import literal_record
from tests.server.conftest import ADDRESS

EVALUATIONS = "/v1/indexes/docs/evaluations"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project without an index, with a report of hostile texts and a damaged one."""
    root = tmp_path_factory.mktemp("evaluated")
    (root / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    write_report(root / "evaluations" / "told", literal_record(HOSTILE))
    shutil.copytree(root / "evaluations" / "told", root / "evaluations" / "damaged")
    (root / "evaluations" / "damaged" / "evaluation.json").write_text("{}", encoding="utf-8")
    (root / "evaluations" / "empty").mkdir()
    return root


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[TestClient]:
    settings = ServerSettings(indexes={"docs": root}, state_folder=root)
    with TestClient(
        create_app(settings), base_url=ADDRESS, raise_server_exceptions=False
    ) as client:
        yield client


def test_evaluations_are_listed_with_their_main_means(client: TestClient, root: Path) -> None:
    told, damaged = client.get(EVALUATIONS).json()["evaluations"]
    assert (told["name"], damaged["name"]) == ("told", "damaged")
    assert told["summary"]["date"] == "2026-01-31T18:00:00+00:00"
    assert told["summary"]["systems"][0]["version"] == 3
    interval = {"mean": 0.5, "low": 0.25, "high": 0.75, "n": 1}
    assert told["summary"]["means"]["basic"] == {"recall@10": interval}
    assert damaged["summary"] is None
    assert damaged["problem"].startswith("docs/evaluations/damaged/evaluation.json is not an eval")
    assert str(root) not in damaged["problem"]


def test_an_evaluation_is_read_as_data_and_as_a_page(client: TestClient) -> None:
    found = client.get(f"{EVALUATIONS}/told").json()
    assert found == literal_record(HOSTILE).model_dump(mode="json")
    reply = client.get(f"{EVALUATIONS}/told/page")
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; connect-src 'none'")
    assert "unsafe" not in policy
    assert Page(reply.text).data["questions"][0]["text"] == HOSTILE


@pytest.mark.parametrize("page", ["", "/page"])
def test_a_damaged_evaluation_is_told(client: TestClient, page: str) -> None:
    reply = client.get(f"{EVALUATIONS}/damaged{page}")
    assert reply.status_code == 503
    assert reply.json()["code"] == "unreadable_evaluation"


@pytest.mark.parametrize("name", ["none", "empty", "%2e%2e", "told%2F..%2Ftold", "%2Fetc", "*"])
def test_a_name_that_the_list_has_not_is_not_found(client: TestClient, name: str) -> None:
    assert client.get(f"{EVALUATIONS}/{name}").status_code == 404
    assert client.get(f"{EVALUATIONS}/{name}/page").status_code == 404
