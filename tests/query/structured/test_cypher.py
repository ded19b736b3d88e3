"""Questions in Cypher: known answers, what a query may not do, and the database behind it."""

from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

from graphrag_index.errors import QueryError
from graphrag_index.pipeline.history import collect_garbage
from graphrag_query.store.index_store import IndexStore
from graphrag_query.structured.cypher_graph import GRAPH_LABELS, graph_schema
from graphrag_query.structured.queries import check_cypher, graph_database, run_cypher, table_files
from graphrag_query.structured.sandbox import GRAPH_LIBRARIES, Limits, run_graph
from tests.fixtures.cases import cases
from tests.fixtures.commands import ask
from tests.fixtures.small_index import table, write_index
from tests.fixtures.structured_questions import QUESTIONS, AskedTwice


@pytest.fixture(scope="module")
def sample(sample_project: Path, tmp_path_factory: pytest.TempPathFactory) -> IndexStore:
    """The sample, whose database lies elsewhere, since no test may change it."""
    _needs_engine()
    store = IndexStore.open(sample_project / "output")
    output = tmp_path_factory.mktemp("graph")
    for name in ("index.json", "versions"):
        (output / name).symlink_to(sample_project / "output" / name)
    store.backend.output = output
    return store


@pytest.fixture
def small(tmp_path: Path) -> IndexStore:
    """Two entities and their relationship."""
    _needs_engine()
    ends = [
        {"id": "a", "human_readable_id": 0, "title": "Mumbai", "type": "place"},
        {"id": "b", "human_readable_id": 1, "title": "Pune", "type": "place"},
    ]
    link = {"id": "r", "source": "Mumbai", "target": "Pune", "source_id": "a", "target_id": "b"}
    output = tmp_path / "a[1] *'s"
    write_index(
        output, entities=table("entities", *ends), relationships=table("relationships", link)
    )
    return IndexStore.open(output)


def _needs_engine() -> None:
    if not any(map(find_spec, GRAPH_LIBRARIES)):
        pytest.skip("no graph engine is installed")


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked.question)
def test_questions_over_the_sample_have_known_answers(
    asked: AskedTwice, sample: IndexStore
) -> None:
    graph = {"graph": str(graph_database(sample, lambda text: None))}
    tables = {name: pl.read_parquet(path) for name, path in table_files(sample).items()}
    _, rows = run_graph(graph, asked.cypher, Limits(), lambda: None)
    assert [tuple(row) for row in rows] == asked.answer(tables)


@cases("query")
def test_what_does_not_ask_is_refused(query: str) -> None:
    with pytest.raises(QueryError):
        check_cypher(query)


def test_no_clause_that_does_more_than_ask_may_stand_anywhere() -> None:
    clauses = (
        "CALL show_tables()",
        "copy x",
        "DELETE e",
        "detach",
        "Drop x",
        "EXPORT x",
        "REMOVE x",
    )
    for clause in clauses:
        with pytest.raises(QueryError, match=f"{clause.split()[0].upper()} is refused"):
            check_cypher(f"MATCH (e:Entity) {clause} RETURN e")


@cases("query")
def test_words_of_clauses_may_stand_in_texts_and_names(query: str) -> None:
    check_cypher(query)


def test_a_database_is_made_once_and_again_where_it_is_damaged(small: IndexStore) -> None:
    said: list[str] = []
    query = "MATCH (a:Entity {title: 'Pune'})-[:RELATED]-(b) RETURN b.title AS other"
    found = run_cypher(small, query, Limits(), said.append)
    assert (found.columns, found.rows, found.version) == (["other"], [["Mumbai"]], 1)
    assert len(said) == 1
    run_cypher(small, query, Limits(), said.append)
    assert len(said) == 1
    [path] = small.backend.graphs.glob("*.db")
    path.write_bytes(b"broken")
    path.with_name(".1-x.db.tmp").write_bytes(b"of a killed process")
    still_written = path.with_name(f".{path.name}.tmp.rows")

    def say(text: str) -> None:
        said.append(text)
        # Another process may have it open: the new one takes its place when it is complete.
        assert path.read_bytes() == b"broken"
        # By a process whose parent was killed, and which goes on with what is its own.
        still_written.mkdir()

    assert run_cypher(small, query, Limits(), say).rows == [["Mumbai"]]
    assert len(said) == 2
    left = [found for found in small.backend.graphs.iterdir() if ".tmp" in found.name]
    assert left == [still_written]


def test_two_that_ask_at_once_make_one_database(small: IndexStore) -> None:
    said: list[str] = []
    with ThreadPoolExecutor(2) as threads:
        paths = list(threads.map(lambda _: graph_database(small, said.append), range(2)))
    assert paths[0] == paths[1]
    assert len(said) == 1


def test_the_database_goes_with_its_version(small: IndexStore) -> None:
    path = graph_database(small, lambda text: None)
    gone = path.with_name("0-0123456789abcdef.db")
    gone.write_bytes(b"of a version that is no more")
    collect_garbage(small.backend, keep=1)
    assert path.exists()
    assert not gone.exists()


def test_a_query_that_would_run_for_an_hour_is_ended(sample: IndexStore) -> None:
    query = "MATCH (a:Entity)-[:RELATED*1..20]-(b:Entity) RETURN count(*)"
    with pytest.raises(QueryError, match=r"stopped after 0\.2 s"):
        run_cypher(sample, query, Limits(timeout=0.2))


def test_a_node_is_returned_without_its_place(small: IndexStore) -> None:
    found = run_cypher(small, "MATCH (e:Entity) RETURN e ORDER BY e.number", Limits(max_rows=1))
    [[node]] = found.rows
    assert (node["_label"], node["title"], found.is_cut) == ("Entity", "Mumbai", True)
    assert node.keys() == {"_label", *GRAPH_LABELS[0].properties}


def test_the_schema_names_all_labels() -> None:
    shown = graph_schema()
    assert all(f":{part.name}" in shown for part in GRAPH_LABELS)


def test_without_an_engine_the_command_says_what_to_install(
    sample_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if any(map(find_spec, GRAPH_LIBRARIES)):
        pytest.skip("one is installed")
    result = ask("cypher", "RETURN 1", "--root", str(sample_project))
    assert result.returncode == 2
    assert "graphrag-index[cypher]" in result.stderr
