"""Vector tables: which version a reader sees, and what a search in one returns."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from graphrag_index.errors import TableError
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage import vector_store
from graphrag_index.storage.table_store import TableStore, open_index
from graphrag_index.storage.vector_store import (
    ROWS_PER_FRAGMENT,
    VectorTable,
    VectorWriter,
    connect,
    delete_versions,
    make_versions_newest,
)
from graphrag_index.storage.versions import StepRecord, StoredTable, Vectors, Version, move_pointer

REPORTS = replace(TABLES["community_full_content"], full_text=True)
ENTITIES = replace(TABLES["entity_description"], full_text=True)


def reports(*rows: tuple[str, str, str, list[float]]) -> pl.DataFrame:
    """Rows of id, title, text and a vector of two numbers."""
    return pl.DataFrame(
        {
            "id": [id for id, _, _, _ in rows],
            "community": list(range(len(rows))),
            "level": [0] * len(rows),
            "title": [title for _, title, _, _ in rows],
            "rank": [5.0] * len(rows),
            "text": [text for _, _, text, _ in rows],
            "vector": pl.Series([v for _, _, _, v in rows], dtype=pl.Array(pl.Float32, 2)),
        },
        schema_overrides={"community": pl.Int64, "level": pl.Int64},
    )


COLD = reports(
    ("a", "Ice", "The ship drifted in the ice.", [1.0, 0.0]),
    ("b", "Dogs", "Dogs pulled the sledges over the ice.", [0.6, 0.8]),
    ("c", "O'Brien's tea", "Tea was served; nobody complained.", [0.0, 1.0]),
)
WARM = reports(("z", "Palms", "Palms grow on the beach.", [1.0, 0.0]))


def write(store: TableStore, number: int, *batches: pl.DataFrame) -> StoredTable:
    with VectorWriter(store.lancedb, REPORTS, number) as writer:
        for batch in batches:
            writer.append(batch)
    return writer.stored


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> VectorTable:
    store = TableStore(tmp_path_factory.mktemp("cold"))
    stored = write(store, 1, COLD)
    return VectorTable.open(store.lancedb, REPORTS.name, stored.lance_version)


class TestSearch:
    def test_the_nearest_come_first_with_their_cosine(self, cold: VectorTable) -> None:
        found = cold.nearest(np.array([1, 0], np.float32), 2, ["id", "title"])
        assert found.columns == ["id", "title", "similarity"]
        assert found["id"].to_list() == ["a", "b"]
        assert found["similarity"].to_list() == pytest.approx([1.0, 0.6], abs=1e-6)

    def test_rows_are_fetched_by_number_in_the_order_they_were_written(
        self, tmp_path: Path
    ) -> None:
        store = TableStore(tmp_path)
        stored = write(store, 1, COLD, WARM)
        table = VectorTable.open(store.lancedb, REPORTS.name, stored.lance_version)
        assert table.at([0, 3], ["id", "title"]).rows() == [("a", "Ice"), ("z", "Palms")]
        assert table.at([], ["id"]).rows() == []

    def test_rows_that_do_not_meet_the_condition_are_passed_over(self, cold: VectorTable) -> None:
        found = cold.nearest(np.array([1, 0], np.float32), 1, ["id"], where="community > 1")
        assert found["id"].to_list() == ["c"]

    def test_words_are_found_in_any_form(self, cold: VectorTable) -> None:
        assert set(cold.find_matching_rows("ice", 9, ["id"])["id"]) == {"a", "b"}
        # Both have one of the words; it weighs more in the shorter text.
        assert list(cold.find_matching_rows("sledge complaining", 9, ["id"])["id"]) == ["c", "b"]
        assert cold.find_matching_rows("dog", 9, ["id"])["id"].to_list() == ["b"]
        assert cold.find_matching_rows("penguin", 9, ["id"]).is_empty()
        assert cold.find_matching_rows("  ", 9, ["id"]).is_empty()

    def test_the_table_knows_its_size(self, cold: VectorTable) -> None:
        assert len(cold) == 3
        assert cold.dimension == 2
        assert_frame_equal(cold.lazy().collect(), COLD)


@pytest.mark.parametrize(
    ("minimum", "kept", "indexed"),
    [
        (1_025, False, ["text"]),
        (1_024, False, ["text", "vector"]),
        (None, False, ["text"]),
        (1_024, True, []),  # the caller keeps its earlier table with these rows
    ],
)
def test_indexes_are_built_for_enough_new_rows(
    minimum: int | None, kept: bool, indexed: list[str], tmp_path: Path
) -> None:
    def write_entities(known: list[str]) -> VectorWriter:
        with VectorWriter(tmp_path, ENTITIES, 1, minimum, known) as writer:
            writer.append(entities(1_024))
        return writer

    known = [write_entities([]).stored.digest] if kept else []
    table = write_entities(known).table
    assert sorted(column for index in table.list_indices() for column in index.columns) == indexed


def test_the_vector_index_tells_the_cosine_and_finds_rows_that_meet_a_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    angles = np.linspace(0, np.pi, 4_096)
    vectors = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    column = pl.Series(vectors, dtype=pl.Array(pl.Float32, 2))
    with VectorWriter(tmp_path, ENTITIES, 1, 1_024) as writer:
        writer.append(entities(4_096).with_columns(vector=column))
    table = VectorTable.open(tmp_path, ENTITIES.name, writer.stored.lance_version)
    monkeypatch.setattr(vector_store, "CELLS_PER_SEARCH", 1)
    monkeypatch.setattr(vector_store, "MAX_BYTES_IN_MEMORY", 0)
    # No row in the one cell that is nearest to the question meets the condition.
    far = table.nearest(
        np.array([1, 0], np.float32), 9, ["human_readable_id"], "human_readable_id > 4090"
    )
    assert far["human_readable_id"].to_list() == [4091, 4092, 4093, 4094, 4095]
    found = table.nearest(np.array([1, 0], np.float32), 500, ["human_readable_id"])
    assert found["human_readable_id"][0] < 5  # one byte per number does not tell the first apart
    cosines = np.cos(angles[found["human_readable_id"].to_numpy()])
    assert found["similarity"].to_list() == pytest.approx(cosines.tolist(), abs=0.01)


def test_a_small_table_is_searched_in_memory_as_lancedb_searches_it(tmp_path: Path) -> None:
    numbers = np.random.default_rng(5)
    # Some vectors are equal, and some are zero.
    vectors = numbers.integers(-1, 2, (40, 3)).astype(np.float32)
    column = pl.Series(vectors, dtype=pl.Array(pl.Float32, 3))
    with VectorWriter(tmp_path, ENTITIES, 1) as writer:
        writer.append(entities(len(vectors)).with_columns(vector=column))
    in_memory, by_lancedb = (
        VectorTable.open(tmp_path, ENTITIES.name, writer.stored.lance_version) for _ in range(2)
    )
    by_lancedb.__dict__["_in_memory"] = None
    columns = ["human_readable_id", "title"]
    for asked in [*vectors[:9], *numbers.normal(size=(9, 3)).astype(np.float32), np.zeros(3, "f4")]:
        found, expected = (table.nearest(asked, 40, columns) for table in (in_memory, by_lancedb))
        assert found.schema == expected.schema
        assert found.height == (np.any(vectors, axis=1).sum() if asked.any() else 0)
        assert dict(found.select(columns[0], "similarity").iter_rows()) == pytest.approx(
            dict(expected.select(columns[0], "similarity").iter_rows()), abs=1e-6
        )
        assert found.equals(found.sort("similarity", columns[0], descending=[True, False]))
        assert in_memory.nearest(asked, 7, columns).equals(found.head(7))


def test_only_text_units_are_searched_by_words() -> None:
    assert [name for name, table in TABLES.items() if table.full_text] == ["text_unit_text"]


def test_a_table_without_a_vector_index_has_another_digest(tmp_path: Path) -> None:
    digests = set()
    for minimum in (None, 1_024, 1_000):
        with VectorWriter(tmp_path, ENTITIES, 1, minimum) as writer:
            writer.append(entities(1_024))
        digests.add(writer.stored.digest)
    assert len(digests) == 2


def test_rows_after_the_end_of_a_table_are_refused(tmp_path: Path) -> None:
    with VectorWriter(tmp_path, REPORTS, 1) as writer:
        writer.append(COLD)
        writer.finish()
        with pytest.raises(TableError, match="one vector table after the other"):
            writer.append(WARM)
    assert writer.stored.rows == COLD.height


@pytest.mark.parametrize("english", ["", "An English report of the same table. "])
def test_words_of_scripts_without_spaces_are_found(tmp_path: Path, english: str) -> None:
    store = TableStore(tmp_path)
    rows = reports(
        ("a", "船", "船在冰中漂流" * 4, [1.0, 0.0]),
        ("b", "茶", "他们喝茶" * 4, [0.0, 1.0]),
        ("c", "Tea", english, [0.0, 1.0]),
    )
    stored = write(store, 1, rows)
    table = VectorTable.open(store.lancedb, REPORTS.name, stored.lance_version)
    assert table.find_matching_rows("漂流", 9, ["id"])["id"].to_list() == ["a"]


def test_a_few_signs_of_such_a_script_leave_words_whole(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    rows = reports(("a", "Ship", "The Xuelong (雪龙) drifted in the ice of the bay.", [1.0, 0.0]))
    stored = write(store, 1, rows)
    table = VectorTable.open(store.lancedb, REPORTS.name, stored.lance_version)
    assert table.find_matching_rows("drifting", 9, ["id"])["id"].to_list() == ["a"]
    assert table.find_matching_rows("rif", 9, ["id"]).is_empty()


def test_the_version_that_the_pointer_names_is_read_after_a_later_run_was_interrupted(
    tmp_path: Path,
) -> None:
    store = TableStore(tmp_path)
    first = write(store, 1, COLD)
    step = StepRecord("only_step", "key", {REPORTS.name: first})
    move_pointer(store.output, Version(1, "small", "0.1.0", (step,)))
    second = write(store, 2, WARM)  # and the pointer was not moved
    with pytest.raises(TableError):
        write(store, 3, WARM, WARM.drop("text"))  # nor was this one finished

    _, version = open_index(tmp_path)
    named = version.tables[REPORTS.name]
    assert_frame_equal(store.scan(REPORTS.name, named).collect(), COLD)
    table = VectorTable.open(store.lancedb, REPORTS.name, named.lance_version)
    assert table.find_matching_rows("ice", 9, ["id"]).height == 2
    assert table.nearest(np.array([1, 0], np.float32), 1, ["id"])["id"].item() == "a"
    assert_frame_equal(store.scan(REPORTS.name, second).collect(), WARM)
    assert store.exists(REPORTS.name, first)
    assert not store.exists(REPORTS.name, StoredTable(1, "", lance_version=999))


def test_equal_rows_have_one_digest_and_others_another(tmp_path: Path) -> None:
    store, other = TableStore(tmp_path / "a"), TableStore(tmp_path / "b")
    first, again = write(store, 1, COLD), write(store, 2, COLD)
    assert first.digest == again.digest == write(other, 1, COLD).digest
    assert first.digest != write(other, 2, WARM).digest


def test_batches_larger_than_a_fragment_keep_their_order(tmp_path: Path) -> None:
    n = ROWS_PER_FRAGMENT + 2
    rows = reports(*((f"{i:05}", "", "word", [1.0, i / n]) for i in range(n)))
    stored = write(TableStore(tmp_path), 1, rows, COLD)
    assert stored.rows == n + 3
    found = TableStore(tmp_path).scan(REPORTS.name, stored).collect()
    assert found["id"].to_list() == [*rows["id"], *COLD["id"]]


def entities(n_rows: int) -> pl.DataFrame:
    """Entities with one vector, but for the fourth and the last."""
    vectors = np.tile(np.array([1, 0], np.float32), (n_rows, 1))
    vectors[3], vectors[-1] = [0, 1], [-1, 0]
    return pl.DataFrame(
        {
            "id": [f"{i:05}" for i in range(n_rows)],
            "human_readable_id": np.arange(n_rows),
            "title": ["Tom"] * n_rows,
            "type": ["person"] * n_rows,
            "degree": [0] * n_rows,
            "text": [f"man{i}" for i in range(n_rows)],
            "vector": pl.Series(vectors, dtype=pl.Array(pl.Float32, 2)),
        }
    )


def test_numbers_are_told_from_where_rows_lie_also_in_a_table_that_replaces_another(
    tmp_path: Path,
) -> None:
    table, rows = ENTITIES, entities(2 * ROWS_PER_FRAGMENT + 2)
    for number, cuts in enumerate([(0, 5), (0, 100, ROWS_PER_FRAGMENT + 7)], 1):
        with VectorWriter(tmp_path, table, number) as writer:
            for start, stop in zip(cuts, (*cuts[1:], rows.height), strict=True):
                writer.append(rows[start:stop])
        opened = VectorTable.open(tmp_path, table.name, writer.stored.lance_version)
        assert opened._first_fragment is not None
        for place in (3, rows.height - 1):
            vector = rows["vector"][place].to_numpy()
            for columns in (["human_readable_id"], ["human_readable_id", "id"]):
                near = opened.nearest(vector, 1, columns)
                assert near["human_readable_id"].to_list() == [place]
                found = opened.find_matching_rows(f"man{place}", 1, columns)
                assert found["human_readable_id"].to_list() == [place]


def test_numbers_are_read_where_their_places_do_not_tell_them(tmp_path: Path) -> None:
    table = TABLES["entity_description"]
    with VectorWriter(tmp_path, table, 1) as writer:
        writer.append(entities(9).with_columns(pl.col("human_readable_id") + 100))
    opened = VectorTable.open(tmp_path, table.name, writer.stored.lance_version)
    assert opened._first_fragment is None
    near = opened.nearest(np.array([1, 0], np.float32), 2, ["human_readable_id"])
    assert near["human_readable_id"].to_list() == [100, 101]


def test_an_empty_table_is_opened_and_finds_nothing(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    stored = write(store, 1, COLD.clear())
    table = VectorTable.open(store.lancedb, REPORTS.name, stored.lance_version)
    assert len(table) == 0
    assert table.find_matching_rows("ice", 9, ["id"]).is_empty()
    assert table.nearest(np.array([1, 0], np.float32), 3, ["id"]).is_empty()


def test_a_first_write_that_was_killed_does_not_stop_the_next(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    write(store, 1, COLD)
    # A kill before the first version was complete leaves data without a manifest.
    folder = store.lancedb / f"{REPORTS.name}.lance"
    shutil.rmtree(folder / "_versions")
    stored = write(store, 1, WARM)
    assert_frame_equal(store.scan(REPORTS.name, stored).collect(), WARM)


def test_vectors_that_are_gone_are_named_with_the_way_out(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    stored = write(store, 1, COLD)
    with pytest.raises(TableError, match=r"version 999, cannot be opened .* `graphrag-index run`"):
        VectorTable.open(store.lancedb, REPORTS.name, 999)
    shutil.rmtree(store.lancedb)
    with pytest.raises(TableError, match="cannot be opened"):
        store.scan(REPORTS.name, stored)
    assert not store.exists(REPORTS.name, stored)


@pytest.mark.parametrize(
    ("rows", "normalized"),
    [
        ([[0.6, 0.8], [1.0, 0.0]], True),
        ([[0.6, 0.8], [0.0, 0.0]], True),  # zeros stand for a vector that could not be had
        ([[0.6, 0.8], [3.0, 4.0]], False),
        ([], True),
    ],
)
def test_what_the_vectors_are_is_noted(
    rows: list[list[float]], normalized: bool, tmp_path: Path
) -> None:
    batches = [reports((f"r{n}", "Ice", "Ice.", row)) for n, row in enumerate(rows)]
    stored = write(TableStore(tmp_path), 1, *(batches or [COLD.clear()]))
    assert stored.vectors == Vectors(2, normalized)


def test_what_searches_keep_in_memory_is_limited_for_all_tables_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 64 << 10
    monkeypatch.setattr(vector_store, "MAX_INDEX_CACHE", most)
    monkeypatch.setattr(vector_store, "MAX_METADATA_CACHE", most)
    vector_store._shared_session.cache_clear()
    n_rows = 3_000
    for name in ("a", "b"):
        store = TableStore(tmp_path / name)
        with VectorWriter(store.lancedb, ENTITIES, 1) as writer:
            writer.append(entities(n_rows))
        version = writer.stored.lance_version
        opened = VectorTable.open(store.lancedb, "entity_description", version)
        for number in range(0, n_rows, 100):
            found = opened.find_matching_rows(f"man{number}", 1, ["title", "human_readable_id"])
            assert found["human_readable_id"].to_list() == [number]
    kept = vector_store._shared_session().size_bytes
    vector_store._shared_session.cache_clear()
    assert 0 < kept <= 2 * most


def test_the_caches_take_a_share_of_a_small_machine() -> None:
    assert vector_store.cache_limits(16 << 20) == (4 << 20, 1 << 20)
    assert vector_store.cache_limits(1 << 40) == (6 << 30, 1 << 30)


def test_versions_that_are_deleted_are_gone_and_others_stay(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    first, second, third = (
        write(store, number, batch).lance_version
        for number, batch in enumerate((COLD, WARM, COLD), 1)
    )
    assert None not in (first, second, third)
    delete_versions(store.lancedb, REPORTS.name, [second, third], newest=third)
    with pytest.raises(TableError):
        VectorTable.open(store.lancedb, REPORTS.name, first)
    assert len(VectorTable.open(store.lancedb, REPORTS.name, second)) == 1
    assert connect(store.lancedb).open_table(REPORTS.name).count_rows() == 3
    make_versions_newest(store.lancedb, {REPORTS.name: second})
    assert connect(store.lancedb).open_table(REPORTS.name).count_rows() == 1
