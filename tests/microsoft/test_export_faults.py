"""Obstacles to an export in Microsoft's layout, and unusual rows."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import lancedb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.errors import ExportError, TableError
from graphrag_index.microsoft.export_index import FIRST_OWN, export, parse_records, record_type
from graphrag_index.pipeline.history import current_version
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE
from tests.fixtures.commands import environment
from tests.fixtures.examples import examples
from tests.fixtures.small_index import table, write_index

UNIT = [0.6, 0.8]
ZERO = [0.0, 0.0]


def vectors(name: str, **by_id: list[float]) -> pl.DataFrame:
    rows = table(name, *({"id": id, "vector": vector} for id, vector in by_id.items()))
    return rows.with_columns(pl.col("vector").cast(pl.Array(pl.Float32, 2)))


def tables(**others: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """One document with one text unit, two entities that are linked, and an island of one."""
    return {
        "documents": table("documents", {"id": "d", "text_unit_ids": ["t"]}),
        "text_units": table("text_units", {"id": "t", "document_id": "d"}),
        "entities": table(
            "entities",
            {"id": "a", "title": "A", "text_unit_ids": ["t"]},
            {"id": "b", "title": "B", "human_readable_id": 1},
            {"id": "c", "title": "C", "human_readable_id": 2},
        ),
        "relationships": table(
            "relationships", {"id": "r", "source": "A", "target": "B", "text_unit_ids": ["t"]}
        ),
        "communities": table(
            "communities",
            {"id": "x", "community": 4, "title": "Community 4", "relationship_ids": ["r"],
             "text_unit_ids": ["t"], "entity_ids": ["a", "b"]},
            {"id": "y", "community": 9, "title": "Island 9", "island": True, "entity_ids": ["c"],
             "text_unit_ids": ["t"]},
        ),
        "community_reports": table("community_reports", {"id": "z", "community": 4}),
        "text_unit_text": vectors("text_unit_text", t=UNIT),
        "entity_description": vectors("entity_description", a=UNIT, b=ZERO, c=UNIT),
        "community_full_content": vectors("community_full_content", z=ZERO),
        **others,
    }  # fmt: skip


def export_tables(output: Path, target: Path, given: dict[str, pl.DataFrame]) -> list[str]:
    store = TableStore(write_index(output, **given))
    return export(store, current_version(store), target)


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "ours")


@pytest.fixture
def ours(tmp_path: Path) -> TableStore:
    return TableStore(write_index(tmp_path / "ours", **tables()))


def test_islands_show_what_relationships_show_under_the_name_that_others_have(
    tmp_path: Path,
) -> None:
    given = tables()
    alone = {"id": "w", "community": 11, "title": "Community 11", "text_unit_ids": ["t"]}
    linked = {"id": "v", "community": 12, "island": True, "relationship_ids": ["r", "s"]}
    given["communities"].extend(table("communities", alone, linked))
    behind = {"r": [*"tsrqponm"], "s": [*"nmlk"]}
    given["relationships"] = table(
        "relationships", *({"id": id, "text_unit_ids": units} for id, units in behind.items())
    )
    export_tables(tmp_path / "ours", tmp_path / "theirs", given)
    rows = pl.read_parquet(tmp_path / "theirs" / "communities.parquet")
    assert rows.select("community", "title", "text_unit_ids").rows() == [
        (4, "Community 4", ["t"]),
        (9, "Community 9", []),
        (11, "Community 11", []),
        (12, "Community 12", [*"klmnopqrst"]),
    ]


def test_zeros_are_no_vectors_but_each_report_needs_one(ours: TableStore, tmp_path: Path) -> None:
    told = export(ours, current_version(ours), tmp_path / "theirs")
    database = lancedb.connect(str(tmp_path / "theirs" / "lancedb"))
    ids = {
        name: database.open_table(name).to_arrow()["id"].to_pylist()
        for name in ("text_unit_text", "entity_description", "community_full_content")
    }
    assert ids == {
        "text_unit_text": ["t"], "entity_description": ["a", "c"], "community_full_content": ["z"]
    }  # fmt: skip
    assert "entity_description: 1 rows without a vector are left out." in told


def test_an_index_without_reports_has_an_empty_table_of_them(tmp_path: Path) -> None:
    given = tables()
    del given["community_reports"], given["community_full_content"]
    target = tmp_path / "their $HOME"
    told = export_tables(tmp_path / "ours", target, given)
    assert len(pl.read_parquet(target / "community_reports.parquet")) == 0
    # A dollar begins a variable in its settings.
    assert f'  base_dir: "{tmp_path}/their $$HOME"' in told
    assert any("no community reports" in line for line in told)
    assert "There are no vectors community_full_content." in told
    assert not (tmp_path / "theirs" / "covariates.parquet").exists()


@pytest.mark.parametrize(
    "name", [n for n, t in TABLES.items() if t.kind == "public" and n not in FIRST_OWN]
)
def test_tables_that_are_only_ours_lie_beside(tmp_path: Path, name: str) -> None:
    rows = table(name, {}, {})
    export_tables(tmp_path / "ours", tmp_path / "theirs", tables(**{name: rows}))
    assert pl.read_ipc(tmp_path / "theirs" / "graphrag_index" / f"{name}.arrow").equals(rows)


def test_an_empty_index_has_empty_tables(tmp_path: Path) -> None:
    export_tables(
        tmp_path / "ours", tmp_path / "theirs", {n: rows.clear() for n, rows in tables().items()}
    )
    for name in ("documents", "relationships", "communities"):
        assert len(pl.read_parquet(tmp_path / "theirs" / f"{name}.parquet")) == 0
    assert pq.read_schema(tmp_path / "theirs" / "documents.parquet").field("raw_data").type == (
        pa.null()
    )


def test_long_tables_are_written_part_by_part_in_their_order(tmp_path: Path) -> None:
    n_rows = ROW_GROUP_SIZE + 5
    many = table("entities", {"id": "a"}).drop("id").select(pl.all().repeat_by(n_rows).explode())
    ids = pl.Series("id", [f"{number * 7919 % n_rows:05}" for number in range(n_rows)])
    export_tables(tmp_path / "ours", tmp_path / "theirs", tables(entities=many.with_columns(ids)))
    path = tmp_path / "theirs" / "entities.parquet"
    assert pq.ParquetFile(path).num_row_groups == 2
    assert pl.read_parquet(path)["id"].equals(ids)
    own = pl.read_ipc(tmp_path / "theirs" / "graphrag_index" / "entities.arrow")
    assert len(own) == n_rows


def test_an_earlier_export_is_replaced(ours: TableStore, tmp_path: Path) -> None:
    version, target = current_version(ours), tmp_path / "theirs"
    export(ours, version, target)
    (target / "entities.parquet").write_bytes(b"")
    with pytest.raises(ExportError, match=r"already exists: .* --overwrite"):
        export(ours, version, target)
    export(ours, version, target, overwrite=True)
    assert len(pl.read_parquet(target / "entities.parquet")) == 3
    assert left_behind(tmp_path) == ["theirs"]


@pytest.mark.parametrize("path", ["stats.json", "lancedb/mine.lance", "graphrag_index"])
def test_what_no_export_wrote_is_kept(ours: TableStore, tmp_path: Path, path: str) -> None:
    target = tmp_path / "theirs"
    if path == "graphrag_index":
        target.mkdir()
    else:
        export(ours, current_version(ours), target)
    mine = target / path
    mine.write_text("mine", encoding="utf-8")
    with pytest.raises(ExportError, match=rf"holds {path}, which is not part of an export"):
        export(ours, current_version(ours), target, overwrite=True)
    assert mine.read_text(encoding="utf-8") == "mine"
    assert left_behind(tmp_path) == ["theirs"]


def test_a_file_is_no_target(ours: TableStore, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("mine", encoding="utf-8")
    with pytest.raises(ExportError, match="is a file, but this format is a folder"):
        export(ours, current_version(ours), tmp_path / "theirs")


def test_what_a_killed_export_left_is_no_obstacle(ours: TableStore, tmp_path: Path) -> None:
    left = tmp_path / ".theirs.tmp" / "lancedb"
    left.mkdir(parents=True)
    (left / "text_unit_text.lance").write_bytes(b"half")
    (tmp_path / ".theirs.lock").touch()
    export(ours, current_version(ours), tmp_path / "theirs")
    assert left_behind(tmp_path) == ["theirs"]


def test_two_do_not_write_one_folder(ours: TableStore, tmp_path: Path) -> None:
    with (
        FileLock(tmp_path / ".theirs.lock"),
        pytest.raises(ExportError, match="Another export is writing"),
    ):
        export(ours, current_version(ours), tmp_path / "theirs")


@pytest.mark.parametrize("name", ["documents", "entities", "communities"])
def test_a_table_that_is_needed_is_missed_before_anything_is_written(
    tmp_path: Path, name: str
) -> None:
    given = tables()
    del given[name]
    with pytest.raises(TableError, match=f"no table {name}.* run a workflow that writes it"):
        export_tables(tmp_path / "ours", tmp_path / "theirs", given)
    assert left_behind(tmp_path) == []


def test_a_damaged_table_leaves_nothing(ours: TableStore, tmp_path: Path) -> None:
    version = current_version(ours)
    path = ours.output / str(version.tables["relationships"].file)
    content = path.read_bytes()
    path.write_bytes(content[:40] + bytes(len(content) - 80) + content[-40:])
    with pytest.raises(TableError, match=r"damaged .*run `graphrag-index run`"):
        export(ours, version, tmp_path / "theirs")
    path.write_bytes(content[:100])
    with pytest.raises(TableError, match=r"relationships is damaged"):
        export(ours, version, tmp_path / "theirs")
    assert left_behind(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit on the size of files")
def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    texts = table("documents", {"id": "d", "text": "".join(map(str, range(9_000)))})
    write_index(tmp_path / "ours", **tables(documents=texts))
    (tmp_path / "settings.yaml").write_text("output: ours\n", encoding="utf-8")
    command = [sys.executable, "-m", "graphrag_index", "export", "--to", "microsoft"]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 16; exec "$@"', "sh", *command, "theirs"],
        cwd=tmp_path, env=environment(), capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("Error: The disk is full")
    assert left_behind(tmp_path) == ["settings.yaml"]


RECORDS: dict[str, tuple[list[Any], pa.DataType]] = {
    "no record": ([None, None], pa.null()),
    "fields of all": (
        [{"a": "x"}, None, {"b": 1}],
        pa.struct([("a", pa.string()), ("b", pa.int64())]),
    ),
    "whole numbers and others": ([{"a": 1}, {"a": 1.5}], pa.struct([("a", pa.float64())])),
    "nothing but null": ([{"a": None}], pa.struct([("a", pa.null())])),
    "no struct holds them": ([{"a": 1}, {"a": "x"}], pa.large_string()),
    "a number too great": ([{"a": 2**70}], pa.large_string()),
    "half a character": ([{"a": "\ud800"}], pa.large_string()),
    "no field": ([{}], pa.large_string()),
    "no field within": ([{"a": [{}]}], pa.large_string()),
    "no object": ([[1, 2]], pa.large_string()),
}


@pytest.mark.parametrize("case", RECORDS)
def test_records_have_one_type(case: str) -> None:
    values, expected = RECORDS[case]
    texts = [None if value is None else json.dumps(value) for value in values]
    # Whether they come at once or one by one.
    assert record_type([texts]) == record_type([[text] for text in texts]) == expected
    if pa.types.is_large_string(expected):
        assert parse_records(texts, expected).to_pylist() == texts


def test_what_is_no_json_stays_text() -> None:
    assert pa.types.is_large_string(record_type([['{"a": 1}', "{"]]))


@examples(12)
@given(
    st.lists(
        st.none()
        | st.dictionaries(
            st.sampled_from("abc"),
            st.text(max_size=3) | st.booleans() | st.lists(st.integers(-9, 9), max_size=2),
        )
    )
)
def test_records_lose_nothing(values: list[dict[str, Any] | None]) -> None:
    texts = [None if value is None else json.dumps(value) for value in values]
    kind = record_type([texts])
    found = parse_records(texts, kind).to_pylist()
    if pa.types.is_large_string(kind):
        assert found == texts
    else:
        names = [field.name for field in kind] if pa.types.is_struct(kind) else []
        assert found == [
            None if value is None else {name: value.get(name) for name in names} for value in values
        ]
