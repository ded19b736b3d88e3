"""SQL and Cypher over HTTP: rows, the rows of the index behind them, and what is refused."""

import shutil
import time
from importlib.util import find_spec
from pathlib import Path
from threading import Timer

import pytest
from fastapi.testclient import TestClient

import graphrag_query
from graphrag_index.llm.chat_model import Cancellation, CancelledQuestionError, cancelled_by
from graphrag_query.structured.sandbox import GRAPH_LIBRARIES
from graphrag_server.app import create_app
from graphrag_server.keys import Scope
from graphrag_server.server_settings import ServerSettings
from tests.server.conftest import ADDRESS

BASE = "/v1/indexes/sample"
needs_cypher = pytest.mark.skipif(
    not any(map(find_spec, GRAPH_LIBRARIES)),
    reason="needs a graph engine",
)


def query(client: TestClient, language: str, text: str) -> dict:
    reply = client.post(f"{BASE}/{language}", json={"query": text})
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.parametrize(
    ("language", "text", "kinds"),
    [
        ("sql", "SELECT title, degree FROM entities ORDER BY degree DESC LIMIT 3", {0: "entity"}),
        ("sql", "SELECT entity, text_unit FROM mentions LIMIT 4", {0: "entity", 1: "text_unit"}),
        ("sql", "SELECT path, title FROM documents LIMIT 9", {0: "document", 1: "document"}),
        ("sql", "SELECT DISTINCT type FROM entities", {}),
        pytest.param(
            "cypher", "RETURN {_label: 'Entity', number: 'x'} AS e", {}, marks=needs_cypher
        ),
        pytest.param(
            "cypher",
            "MATCH (d:Document)<-[:PART_OF]-(t:TextUnit) RETURN d, t, d.title LIMIT 2",
            {0: "document", 1: "text_unit", 2: "document"},
            marks=needs_cypher,
        ),
    ],
)
def test_values_that_are_rows_of_the_index_have_their_numbers(
    sample_client: TestClient, language: str, text: str, kinds: dict[int, str]
) -> None:
    found = query(sample_client, language, text)
    links = {link["column"]: link for link in found["links"]}
    assert {column: link["kind"] for column, link in links.items()} == kinds
    assert (found["version"], found["is_cut"]) == (1, False)
    for column, link in links.items():
        for row, number in zip(found["rows"], link["numbers"], strict=True):
            table = {"entity": "entities", "document": "documents", "text_unit": "text_units"}
            linked = sample_client.get(f"{BASE}/{table[link['kind']]}/{number}").json()
            named = row[column]
            if isinstance(named, dict):
                assert named["number"] == number
            elif isinstance(named, str):
                assert named in (linked["title"], linked.get("path"))
            else:
                assert named == number


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("sql", "DELETE FROM entities", "DELETE is refused: begin with SELECT or WITH."),
        ("sql", "SELECT 1; DROP TABLE entities", "Write one query at a time: this text has 2."),
        ("sql", "SELECT * FROM read_csv('/etc/passwd')", "/etc/passwd"),
        ("sql", "SELECT * FROM nothing", "nothing"),
        ("cypher", "CREATE (e:Entity) RETURN e", "CREATE is refused: a query can only read"),
        ("cypher", " ", "The query is empty."),
    ],
)
def test_what_does_not_read_the_index_is_refused_with_the_reason(
    sample_client: TestClient, language: str, text: str, said: str
) -> None:
    before = sample_client.get(BASE).json()
    reply = sample_client.post(f"{BASE}/{language}", json={"query": text})
    assert (reply.status_code, reply.json()["code"]) == (400, "query_error")
    assert said in reply.json()["detail"]
    assert sample_client.get(BASE).json() == before


def test_more_rows_than_the_limit_are_told(sample_client: TestClient) -> None:
    found = query(sample_client, "sql", "SELECT a.id FROM entities a, entities b")
    assert found["is_cut"]
    assert len(found["rows"]) == found["max_rows"] == 1_000


def test_the_schema_has_what_queries_can_name(sample_client: TestClient) -> None:
    schema = sample_client.get(f"{BASE}/schema").json()
    tables = schema["sql"]["tables"]
    for table in tables:
        names = ", ".join(f'"{column}"' for column in table["columns"])
        found = query(sample_client, "sql", f"SELECT {names} FROM {table['name']} LIMIT 1")
        assert found["columns"] == [*table["columns"]]
    counts = ", ".join(f"(SELECT count(*) FROM {table['name']})" for table in tables)
    [counted] = query(sample_client, "sql", f"SELECT {counts}")["rows"]
    assert counted == [table["rows"] for table in tables]
    labels = {label["name"]: label for label in schema["cypher"]["tables"]}
    assert labels["RELATED"]["meaning"].endswith("from Entity to Entity")
    assert "degree" in labels["Entity"]["columns"]


def test_a_query_needs_the_scope_of_questions(sample_project: Path, tmp_path: Path) -> None:
    settings = ServerSettings(indexes={"sample": sample_project}, state_folder=tmp_path)
    app = create_app(settings)
    key = app.state.access.keys.add("ana", frozenset({Scope.READ}))
    with TestClient(app, base_url=ADDRESS, headers={"X-API-Key": key}) as client:
        assert client.get(f"{BASE}/schema").status_code == 200
        reply = client.post(f"{BASE}/sql", json={"query": "SELECT 1"})
        assert (reply.status_code, reply.json()["code"]) == (403, "missing_scope")


@needs_cypher
def test_a_database_that_cannot_be_written_is_told(sample_project: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_project, tmp_path / "sample", ignore=shutil.ignore_patterns("cypher"))
    # A file stands where the folder of the databases would be.
    (tmp_path / "sample" / "output" / "cypher").touch()
    app = create_app(ServerSettings(indexes={"sample": tmp_path / "sample"}))
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        reply = client.post(f"{BASE}/cypher", json={"query": "MATCH (e:Entity) RETURN count(e)"})
        assert (reply.status_code, reply.json()["code"]) == (507, "not_stored")
        assert reply.json()["detail"] == "The query did not run: File exists."
        assert query(client, "sql", "SELECT 42")["rows"] == [[42]]


def test_a_query_that_is_cancelled_ends_at_once(sample_project: Path) -> None:
    cancellation = Cancellation()
    endless = (
        "SELECT count(*) FROM mentions a, mentions b, mentions c WHERE a.entity * c.entity = 7"
    )
    with graphrag_query.open(sample_project / "output") as index, cancelled_by(cancellation):
        Timer(1, cancellation.cancel).start()
        started = time.monotonic()
        with pytest.raises(CancelledQuestionError):
            index.sql(endless, timeout=60)
        # The time limit of the query is far off.
        assert time.monotonic() - started < 45
