"""Rows of an opened index are fetched by number, as the public tables have them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import graphrag_query
from graphrag_index.errors import TableError
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StepRecord, Version, move_pointer
from graphrag_query.store import question_embedding
from graphrag_query.store.index_store import IndexStore
from tests.fixtures.small_index import table, write_index


@pytest.fixture(scope="module")
def store(sample_project: Path) -> IndexStore:
    return IndexStore.open(sample_project / "output")


def public(store: IndexStore, name: str) -> pl.DataFrame:
    return store.scan(name).collect()


def test_text_units_come_with_their_documents(store: IndexStore) -> None:
    found = store.text_units([7, 150, 7, -1, 10**6])
    assert list(found) == [7, 150]
    assert store.text_units([]) == {}
    documents = {row["id"]: row for row in public(store, "documents").iter_rows(named=True)}
    for number, unit in found.items():
        expected = public(store, "text_units").row(number, named=True)
        for column in ("human_readable_id", "id", "document_id", "text", "headings", "start_char"):
            assert unit[column] == expected[column]
        document = documents[unit["document_id"]]
        assert unit["text"] == document["text"][unit["start_char"] : unit["end_char"]]
        assert unit["document"] == document["human_readable_id"]
        assert (unit["title"], unit["path"]) == (document["title"], document["path"])


def test_entities_and_relationships_come_in_the_order_given(store: IndexStore) -> None:
    entities, relationships = public(store, "entities"), public(store, "relationships")
    found = store.entities([40, 3])
    columns = ["human_readable_id", "id", "title", "type", "description", "aliases"]
    assert found.select(columns).rows() == entities[[40, 3]].select(columns).rows()
    near = store.relationships([900, 2])
    columns = ["human_readable_id", "source", "target", "description", "type"]
    assert near.select(columns).rows() == relationships[[900, 2]].select(columns).rows()
    titles = entities["title"]
    assert titles.gather(near["source_entity"]).to_list() == near["source"].to_list()
    numbers = dict(public(store, "documents").select("human_readable_id", "id").iter_rows())
    for row, expected in zip(near["evidence"], relationships["evidence"][[900, 2]], strict=True):
        assert [(numbers[p["document"]], p["start_char"], p["end_char"]) for p in row] == [
            (p["document_id"], p["start_char"], p["end_char"]) for p in expected
        ]


def test_reports_are_found_by_community(store: IndexStore) -> None:
    reports = public(store, "community_reports")
    found = store.reports([5, 10**6, 0])
    columns = ["community", "title", "summary", "findings"]
    expected = [reports.row(by_predicate=pl.col("community") == n, named=True) for n in (5, 0)]
    assert found.select(columns).to_dicts() == [{c: row[c] for c in columns} for row in expected]
    whole = store.report(5)
    assert whole is not None
    assert whole["full_content"] == expected[0]["full_content"]
    assert store.report(10**6) is None


def test_texts_of_reports_are_added_in_the_order_of_the_rows(store: IndexStore) -> None:
    reports = public(store, "community_reports").sort("level", "community")
    columns = ["community", "level", "parent", "children", "title", "rank", "size"]
    assert store.report_list.select(columns).equals(reports.select(columns))
    sizes = [len(text.encode()) for text in reports["full_content"]]
    assert store.report_list["n_bytes"].to_list() == sizes
    texts = ["full_content", "findings", "summary"]
    chosen = [7, 90, 2]
    found = store.with_texts(store.report_list[chosen], *texts)
    assert found.select(columns + texts).rows() == reports[chosen].select(columns + texts).rows()
    assert store.with_texts(store.report_list.clear(), *texts).is_empty()


def test_what_a_row_rests_on_is_what_its_table_says(store: IndexStore) -> None:
    units = dict(public(store, "text_units").select("id", "human_readable_id").iter_rows())
    for name, table_name in (("Entities", "entities"), ("Relationships", "relationships")):
        for number in (0, 17):
            ids = public(store, table_name)["text_unit_ids"][number]
            named = sorted(units[id] for id in ids)
            assert set(named) <= set(store.text_units_behind(name, number))
            if name == "Relationships":
                assert store.text_units_behind(name, number) == named
        assert store.text_units_behind(name, 10**6) == []
    assert store.text_units_behind("Sources", 4) == [4]
    assert store.text_units_behind("Sources", -1) == store.text_units_behind("Claims", 0) == []


def test_a_text_is_embedded_once(sample_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lengths:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def embed(self, texts: list[str]) -> np.ndarray:
            self.asked += texts
            return np.array([[len(text), 1] for text in texts], np.float32).reshape(-1, 2)

    monkeypatch.setattr(question_embedding, "MAX_CACHED_TEXTS", 3)
    store = IndexStore.open(sample_project / "output")
    lengths = Lengths()
    vars(store.embedder)["model"] = lengths
    vars(store.embedder)["dimension"] = 2
    assert store.embedder.embed(["a", "ship", "a"]).tolist() == [[1, 1], [4, 1], [1, 1]]
    assert store.embedder.embed(["ship", "ice"]).tolist() == [[4, 1], [3, 1]]
    assert store.embedder.embed([]).shape == (0, 2)
    assert lengths.asked == ["a", "ship", "ice"]
    store.embedder.embed(["floe"])
    store.embedder.embed(["ship", "ice", "a"])
    assert lengths.asked == ["a", "ship", "ice", "floe", "a"]


def test_threads_may_share_an_index(sample_project: Path) -> None:
    store = IndexStore.open(sample_project / "output")

    def read(number: int) -> tuple[object, ...]:
        entities, _ = store.links.entities_of(number % 50)
        return (*store.entities(entities)["title"], *store.text_units([number % 50]))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(read, range(400)))
    assert found == [read(number) for number in range(400)]


def test_an_index_without_tables_for_searches_says_what_to_run(tmp_path: Path) -> None:
    write_index(tmp_path, entities=table("entities", {"title": "Fram"}))
    with pytest.raises(TableError) as caught:
        graphrag_query.open(tmp_path)
    assert str(caught.value) == (
        f"The index in {tmp_path} has no tables for searches. Check that workflows/small.yaml "
        "ends with the step create_search_tables, and run `graphrag-index run`."
    )


def test_a_table_of_an_older_program_says_what_to_run(tmp_path: Path) -> None:
    older = replace(TABLES["title_names"], columns={"name": pl.String()})
    store = TableStore(tmp_path)
    with store.writer(1, older, older.name) as writer:
        writer.append(pl.DataFrame({"name": ["tom"]}))
    step = StepRecord("create_search_tables", "key", {older.name: writer.stored})
    move_pointer(tmp_path, Version(1, "small", "0.1.0", (step,), {}))
    reason = "table title_names .* without the column document: run `graphrag-index run`"
    with pytest.raises(TableError, match=reason):
        IndexStore.open(tmp_path).open_mapped("title_names")
