"""The application: its indexes, and errors in one shape."""

import gc
import json
import re
import runpy
import shutil
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphrag_evaluation.report.evaluation_page import write_report
from graphrag_index.errors import SettingsError
from graphrag_server.app import create_app
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.server_settings import ServerSettings, load_server_settings, name_projects
from tests.conftest import copy_project, run_project
from tests.fixtures.commands import wait_for
from tests.fixtures.page_parser import HOSTILE, Page
from tests.fixtures.reports import literal_record
from tests.fixtures.served import write_project
from tests.model_server import Server
from tests.server.conftest import ADDRESS

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "openapi.json"
METHODS = {"get", "post", "put", "patch", "delete"}
EVALUATIONS = "/v1/indexes/docs/evaluations"


def test_an_index_is_listed_with_its_sizes(sample_client: TestClient) -> None:
    [listed] = sample_client.get("/v1/indexes").json()["indexes"]
    assert listed == sample_client.get("/v1/indexes/sample").json()
    assert (listed["name"], listed["version"], listed["workflow"]) == ("sample", 1, "embedded")
    assert listed["tables"]["documents"] == 63
    assert "local" in listed["methods"]


def test_a_project_without_an_index_is_listed_and_says_what_to_do(tmp_path: Path) -> None:
    copy_project(tmp_path / "new")
    app = create_app(ServerSettings(indexes={"new": tmp_path / "new"}))
    with TestClient(app, base_url=ADDRESS) as client:
        reply = client.get("/v1/indexes/new").json()
    assert (reply["version"], reply["tables"], reply["methods"]) == (0, {}, [])


def test_a_damaged_index_is_listed_with_its_problem(sample_project: Path, tmp_path: Path) -> None:
    copy_project(tmp_path / "broken")
    (tmp_path / "broken" / "output").mkdir()
    (tmp_path / "broken" / "output" / "index.json").write_text("{", encoding="utf-8")
    app = create_app(
        ServerSettings(indexes={"broken": tmp_path / "broken", "sample": sample_project})
    )
    with TestClient(app, base_url=ADDRESS) as client:
        broken, sample = client.get("/v1/indexes").json()["indexes"]
        assert client.get("/v1/indexes/broken").status_code == 503
    assert (broken["version"], sample["version"], sample["problem"]) == (0, 1, "")
    assert "index.json" in broken["problem"]
    assert str(tmp_path) not in broken["problem"]


def test_server_yaml_names_projects_relative_to_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("indexes: {a: one, b: two}\nport: 9000\n", encoding="utf-8")
    settings = load_server_settings(file)
    assert settings.indexes == {"a": tmp_path / "one", "b": tmp_path / "two"}
    assert settings.port == 9000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("indexes: {}", "at least one project"),
        ("indexes: {../up: x}", "has the name"),
        ("indexes: {a: x}\nporrt: 1", "port"),
        ("- a", "key: value"),
    ],
)
def test_a_mistake_in_server_yaml_is_explained(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=said):
        load_server_settings(file)


def test_projects_are_named_after_their_folders() -> None:
    roots = [Path("/x/My Docs"), Path("/y/my docs"), Path("/")]
    assert list(name_projects(roots)) == ["my-docs", "my-docs-2", "index"]


def test_a_version_that_nobody_reads_any_more_closes_its_connections(
    model_server: Server, tmp_path: Path
) -> None:
    root = write_project(tmp_path / "docs")
    run_project(root)
    chat = f"{{base_url: '{model_server.url}', model: test-model, api_key: k}}"
    text = f"workflow: embedded\nmodels:\n  chat: {chat}\nsearch: {{model: chat}}\n"
    (root / "settings.yaml").write_text(text, encoding="utf-8")
    index = HostedIndex("docs", root)

    def count_loops() -> int:
        gc.collect()
        return sum(one.name == "models" for one in threading.enumerate())

    # Tests before this one may have left some.
    n_others = count_loops()
    assert index.open().local("Who was Tom Crean?").usage.calls
    assert count_loops() == n_others + 1
    (root / "input" / "wild.txt").write_text("Frank Wild met Tom Crean.", encoding="utf-8")
    run_project(root)
    assert index.open().store.version.number == 2
    wait_for(lambda: count_loops() <= n_others)


def test_the_committed_document_is_that_of_the_code() -> None:
    text = runpy.run_path(str(ROOT / "docs" / "generate.py"))["openapi_text"]()
    assert FILE.read_text(encoding="utf-8") == text, "run `python docs/generate.py openapi`"


def test_the_changelog_knows_the_committed_document() -> None:
    """Whoever changes the API must look at its line in the changelog."""
    server = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("### Server\n")[1]
    digest = sha256(FILE.read_bytes()).hexdigest()[:12]
    assert re.search(r"^- HTTP API `(\w+)`:", server.split("\n### ")[0], re.M)[1] == digest, (
        f"say in CHANGELOG.md, under Server, what changed, and write there: HTTP API `{digest}`"
    )


def test_each_operation_has_a_name_a_summary_and_the_shape_of_its_errors() -> None:
    document = json.loads(FILE.read_text(encoding="utf-8"))
    operations = [
        operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in METHODS and path.startswith("/v1/indexes")
    ]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    for operation in operations:
        assert operation["description"], operation["operationId"]
        assert list(operation["responses"]["default"]["content"]) == ["application/problem+json"]


BODIES: list[tuple[str, dict]] = [
    ("/ask", {"question": "Who?", "question_": 1}),
    ("/ask", {"question": "Who?", "filters": {"sinse": "1914"}}),
    ("/ask", {"question": "Who?", "conversation": [{"question": "?", "answers": ""}]}),
    ("/search/{method}", {"question": "Who?", "stream ": True}),
    ("/context", {"question": "Who?", "methods": "local"}),
    ("/sql", {"query": "SELECT 1", "limit": 1}),
    ("/cypher", {"query": "RETURN 1", "limit": 1}),
    ("/files", {"replaces": "true"}),
    ("/jobs", {"kinds": "run"}),
    ("/jobs/{job}/budget", {"budget": 1, "Budget": 1}),
    ("/resolutions", {"kind": "merge", "title": "a", "names": ["b"], "name": "c"}),
    ("/resolutions", {"kind": "never", "names": ["a", "b"], "titel": "x"}),
    ("/resolutions", {"kind": "rename", "name": "a", "title": "b", "names": []}),
    ("/resolutions/preview", {"kind": "split", "name": "a", "parts": [{"title": "b"}], "x": 1}),
    ("/resolutions/preview", {"kind": "split", "name": "a", "parts": [{"title": "b", "y": 1}]}),
    (
        "/judgements",
        {"verdict": "up", "question": "Who?", "method": "local", "reasons": "", "version": 1},
    ),
]


def test_every_body_refuses_an_unknown_key(client: TestClient) -> None:
    document = json.loads(FILE.read_text(encoding="utf-8"))
    start = "/v1/indexes/{index}"
    posts = {path for path, methods in document["paths"].items() if "post" in methods}
    without = {"/v1/chat/completions", "/api/chat", f"{start}/jobs/{{job}}/cancel"}
    assert posts - without == {f"{start}{end}" for end, _ in BODIES}
    for end, body in BODIES:
        path = f"/v1/indexes/docs{end}".replace("{method}", "local").replace("{job}", "x")
        form = {"files": [("files", ("a.txt", b"a"))], "data": body}
        reply = client.post(path, **(form if end == "/files" else {"json": body}))
        assert (reply.status_code, "unknown key" in reply.json()["detail"]) == (422, True), body


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


def test_an_evaluation_is_read_as_a_page(client: TestClient) -> None:
    reply = client.get(f"{EVALUATIONS}/told/page")
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; connect-src 'none'")
    assert "unsafe" not in policy
    assert Page(reply.text).data["questions"][0]["text"] == HOSTILE


def test_a_damaged_evaluation_is_told(client: TestClient) -> None:
    reply = client.get(f"{EVALUATIONS}/damaged/page")
    assert reply.status_code == 503
    assert reply.json()["code"] == "unreadable_evaluation"


@pytest.mark.parametrize("name", ["none", "empty", "%2e%2e", "told%2F..%2Ftold", "%2Fetc", "*"])
def test_a_name_that_the_list_has_not_is_not_found(client: TestClient, name: str) -> None:
    assert client.get(f"{EVALUATIONS}/{name}").status_code == 404
    assert client.get(f"{EVALUATIONS}/{name}/page").status_code == 404
