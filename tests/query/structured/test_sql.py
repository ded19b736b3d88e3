"""Questions in SQL: known answers, and all that a query may not do."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import graphrag_query
from graphrag_index.errors import QueryError, SettingsError, TableError
from graphrag_query.store.index_store import IndexStore
from graphrag_query.structured.queries import (
    SQL_ENGINES,
    check_sql,
    run_sql,
    sql_schema,
    table_files,
)
from graphrag_query.structured.sandbox import Engine, Limits, QueryResult, run_duckdb, run_query
from tests.fixtures.cases import cases
from tests.fixtures.commands import ask
from tests.fixtures.small_index import table, write_index
from tests.fixtures.structured_questions import QUESTIONS, AskedTwice

ENGINES = ("duckdb", "polars")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "duckdb":
        pytest.importorskip("duckdb")
    return SQL_ENGINES[request.param]


@pytest.fixture(scope="module")
def sample_files(sample_project: Path) -> Mapping[str, str]:
    files = table_files(IndexStore.open(sample_project / "output"))
    return {name: str(path) for name, path in files.items()}


@pytest.fixture(scope="module")
def sample_tables(sample_files: Mapping[str, str]) -> Mapping[str, pl.DataFrame]:
    return {name: pl.read_parquet(path) for name, path in sample_files.items()}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> IndexStore:
    """Three entities, in a folder whose name is no pattern."""
    rows = [
        {"id": str(n), "human_readable_id": n, "title": title, "type": "place"}
        for n, title in enumerate(("Mumbai", "Pune", "Goa"))
    ]
    output = tmp_path_factory.mktemp("small") / "a[1] *'s"
    write_index(output, entities=table("entities", *rows))
    return IndexStore.open(output)


@pytest.fixture(autouse=True)
def _back_in_this_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine may go to the folder of the tables: it has a process of its own."""
    monkeypatch.chdir(Path.cwd())


def rows_of(engine: Engine, files: Mapping[str, str], query: str) -> list[tuple[Any, ...]]:
    """Run a query here, without the process around it."""
    return [tuple(row) for row in engine(files, query, Limits(), lambda: None)[1]]


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked.question)
def test_questions_over_the_sample_have_known_answers(
    asked: AskedTwice,
    engine: Engine,
    sample_files: Mapping[str, str],
    sample_tables: Mapping[str, pl.DataFrame],
) -> None:
    answer = asked.answer(sample_tables)
    assert answer
    assert rows_of(engine, sample_files, asked.sql) == answer


@cases("query")
def test_what_does_not_ask_is_refused_at_once(query: str) -> None:
    with pytest.raises(QueryError):
        check_sql(query)


@cases("query")
def test_a_query_reaches_nothing_but_the_tables(
    query: str, engine: Engine, small: IndexStore, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nsesame\n", encoding="utf-8")
    asked = query.format(file=secret.as_posix(), folder=tmp_path.as_posix())
    files = {name: str(path) for name, path in table_files(small).items()}
    with pytest.raises(QueryError) as error:
        rows_of(engine, files, asked)
    assert "sesame" not in str(error.value)
    assert list(tmp_path.iterdir()) == [secret]


def test_a_query_that_would_run_for_an_hour_is_ended(engine: Engine, small: IndexStore) -> None:
    query = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with pytest.raises(QueryError, match=r"stopped after 0\.2 s"):
        run_query(engine, "", table_files(small), query, Limits(timeout=0.2))


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is of Linux")
def test_a_query_that_needs_too_much_memory_is_ended(engine: Engine, small: IndexStore) -> None:
    doubled = "SELECT title || title || title || title AS title FROM"
    query = f"{doubled} (" * 14 + "SELECT title FROM entities" + ")" * 14
    query = f"SELECT title, length(title) FROM ({query}) ORDER BY title"
    with pytest.raises(QueryError, match="memory"):
        run_query(engine, "", table_files(small), query, Limits(max_memory=64))


def test_rows_that_are_larger_than_their_reader_may_hold_are_refused(small: IndexStore) -> None:
    pytest.importorskip("duckdb")
    query = "SELECT repeat('é', 28_000_000)"
    with pytest.raises(QueryError, match=r"rows of the query are larger than 160 MB"):
        run_sql(small, query, Limits(max_memory=640))
    [[found]] = run_sql(small, query, Limits(max_memory=1_280)).rows
    assert found == "é" * 28_000_000


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is of POSIX")
def test_the_process_of_a_query_can_write_no_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    begin = "from graphrag_query.structured import sandbox as s; s.apply_limits(s.Limits()); "
    code = f"{begin}open({str(path)!r}, 'wb', buffering=0).write(b'x')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "File too large" in ended.stderr
    assert path.read_bytes() == b""


def test_duckdb_itself_runs_nothing_but_queries(small: IndexStore) -> None:
    pytest.importorskip("duckdb")
    files = {name: str(path) for name, path in table_files(small).items()}
    with pytest.raises(QueryError, match="CREATE is refused"):
        rows_of(run_duckdb, files, "CREATE VIEW v AS SELECT 1")


@pytest.mark.parametrize("time", ["now()", "[now()]", "{'x': [now()]}"])
def test_a_time_of_a_zone_is_to_be_cast(small: IndexStore, time: str) -> None:
    pytest.importorskip("duckdb")
    files = {name: str(path) for name, path in table_files(small).items()}
    with pytest.raises(QueryError, match=r"cast them, as in CAST\(now\(\) AS TIMESTAMP\)"):
        rows_of(run_duckdb, files, f"SELECT 1, {time}")
    assert len(rows_of(run_duckdb, files, "SELECT CAST(now() AS TIMESTAMP)")) == 1


def _has_duckdb() -> bool:
    from importlib.util import find_spec

    return find_spec("duckdb") is not None


def test_more_rows_than_may_be_returned_are_cut_and_told(small: IndexStore) -> None:
    query = "SELECT title, title FROM entities ORDER BY title"
    if not _has_duckdb():
        query = "SELECT title, title AS title_2 FROM entities ORDER BY title"
    found = run_sql(small, query, Limits(max_rows=2))
    assert (found.columns, found.rows) == (["title", "title_2"], [["Goa", "Goa"], ["Mumbai"] * 2])
    assert found.is_cut
    assert found.version == 1
    assert found.frame.rows() == [("Goa", "Goa"), ("Mumbai", "Mumbai")]


def test_the_frame_of_no_rows_has_the_columns() -> None:
    assert QueryResult("", "", ["a", "b"], []).frame.columns == ["a", "b"]


def test_a_filtered_index_is_not_asked_whole(sample_project: Path) -> None:
    index = graphrag_query.open(sample_project / "output").where({"path": "people/*"})
    with pytest.raises(SettingsError, match="without filters"):
        index.sql("SELECT 1")


def test_a_table_that_is_gone_is_named(tmp_path: Path) -> None:
    write_index(tmp_path, entities=table("entities"))
    store = IndexStore.open(tmp_path)
    next(tmp_path.glob("versions/1/entities*.parquet")).unlink()
    with pytest.raises(TableError, match="entities is missing"):
        run_sql(store, "SELECT 1", Limits())


def test_rows_are_printed_for_people_and_programs(sample_project: Path) -> None:
    root = ("--root", str(sample_project))
    query = "SELECT title, aliases FROM entities WHERE title = 'Tom Crean'"
    plain = ask("sql", query, *root)
    assert (plain.returncode, plain.stderr) == (0, "")
    assert plain.stdout == 'title\taliases\nTom Crean\t["Crean"]\n'
    assert ask("sql", query, "--csv", *root).stdout == ('title,aliases\nTom Crean,"[""Crean""]"\n')
    asked = ask("sql", "SELECT title FROM documents", "--json", "--limit", "2", *root)
    found = json.loads(asked.stdout)
    assert (len(found["rows"]), found["is_cut"], found["version"]) == (2, True, 1)
    assert "--limit" in asked.stderr


def test_a_wrong_query_is_one_sentence(sample_project: Path) -> None:
    result = ask("sql", "DROP TABLE entities", "--root", str(sample_project))
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "DROP is refused" in result.stderr


def test_the_schema_names_every_column(sample_project: Path) -> None:
    store = IndexStore.open(sample_project / "output")
    shown = sql_schema(store)
    for name in table_files(store):
        for column in store.scan(name).collect_schema():
            assert f"{column} " in shown


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM entites", r"There is no table 'entites'; there are: entities\.$"),
        ("SELECT titel FROM entities", r'unable to find column "titel"; valid columns: .*\]\.$'),
    ],
)
def test_a_name_that_polars_does_not_find_is_told_with_those_that_there_are(
    query: str, said: str, small: IndexStore
) -> None:
    files = {name: str(path) for name, path in table_files(small).items()}
    with pytest.raises(QueryError, match=said):
        rows_of(SQL_ENGINES["polars"], files, query)
