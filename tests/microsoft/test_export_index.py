"""Each rule of Microsoft GraphRAG's tables, on an index of ours that was exported as one."""

import json
from pathlib import Path
from typing import Any

import lancedb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.errors import ExportError, TableError
from graphrag_index.microsoft.export_index import (
    CHANGED_COLUMNS,
    FIRST_OWN,
    export,
    parse_records,
    record_type,
    shared_columns,
)
from graphrag_index.microsoft.read_tables import MicrosoftIndex
from graphrag_index.pipeline.history import current_version
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE
from tests.conftest import run_project
from tests.fixtures.examples import examples
from tests.fixtures.exported_index import RULES, Index
from tests.fixtures.microsoft_index import (
    MICROSOFT,
    needs_index,
    version_2,
    version_3,
    write,
    write_vectors,
)
from tests.fixtures.model_project import write_project
from tests.fixtures.small_index import table, write_index
from tests.model_server import Server

DIMENSION = 8
# Type and whether it may be null: `s` text, `i` whole number, `f` number, brackets a list.
COLUMNS = {
    "documents": "id:s human_readable_id:i title:s text:s text_unit_ids:[s] creation_date:s "
    "raw_data:struct?",
    "text_units": "id:s human_readable_id:i text:s n_tokens:i document_id:s entity_ids:[s] "
    "relationship_ids:[s] covariate_ids:[s]",
    "entities": "id:s human_readable_id:i title:s type:s description:s text_unit_ids:[s] "
    "frequency:i degree:i",
    "relationships": "id:s human_readable_id:i source:s target:s description:s weight:f "
    "combined_degree:i text_unit_ids:[s]",
    "communities": "id:s human_readable_id:i community:i level:i parent:i children:[i] title:s "
    "entity_ids:[s] relationship_ids:[s] text_unit_ids:[s] period:s size:i",
    "community_reports": "id:s human_readable_id:i community:i level:i parent:i children:[i] "
    "title:s summary:s full_content:s rank:f rating_explanation:s findings:findings "
    "full_content_json:s period:s size:i",
    "covariates": "id:s human_readable_id:i covariate_type:s type:s? description:s? "
    "subject_id:s object_id:s? status:s? start_date:s? end_date:s? source_text:s? text_unit_id:s",
}
TYPES = {
    "s": pa.large_string(),
    "i": pa.int64(),
    "f": pa.float64(),
    "[s]": pa.list_(pa.field("element", pa.string())),
    "[i]": pa.list_(pa.field("element", pa.int64())),
    "findings": pa.list_(
        pa.field("element", pa.struct([("explanation", pa.string()), ("summary", pa.string())]))
    ),
}
# The texts that are embedded, and the table whose ids the vectors have.
EMBEDDED = {
    "text_unit_text": "text_units",
    "entity_description": "entities",
    "community_full_content": "community_reports",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Two articles and some records, with claims, islands and three levels of communities."""
    folder = tmp_path_factory.mktemp("microsoft")
    with Server(dimensions=DIMENSION) as server:
        root = write_project(folder / "ours", server.url, n_documents=2)
        (root / ".env").write_text("MODEL_KEY=sk-test\n", encoding="utf-8")
        run_project(root, "create_communities.max_cluster_size=5")
    store = TableStore(root / "output")
    target = folder / "theirs"
    return Index(store, target, export(store, current_version(store), target))


def test_there_are_its_files_and_a_folder_of_ours(index: Index) -> None:
    names = {path.name for path in index.folder.iterdir()}
    assert names == {*(f"{name}.parquet" for name in COLUMNS), "lancedb", "graphrag_index"}
    # `graphrag update` copies every Parquet file below its output, from any folder.
    assert not list((index.folder / "graphrag_index").glob("*.parquet"))
    assert [path.name for path in index.folder.parent.iterdir() if path.name[0] == "."] == []


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_have_its_order_and_types(index: Index, name: str) -> None:
    schema = pq.read_schema(index.folder / f"{name}.parquet")
    columns = [column.partition(":") for column in COLUMNS[name].split()]
    assert schema.names == [column for column, _, _ in columns]
    for column, _, kind in columns:
        kind = kind.rstrip("?")
        if kind == "struct":
            assert pa.types.is_struct(schema.field(column).type)
        else:
            assert schema.field(column).type == TYPES[kind], column


@pytest.mark.parametrize("name", COLUMNS)
def test_nothing_is_null_that_must_not_be(index: Index, name: str) -> None:
    rows = index.read(name)
    never = [column.partition(":")[0] for column in COLUMNS[name].split() if column[-1] != "?"]
    assert len(rows) > 0
    assert rows.select(never).null_count().sum_horizontal().item() == 0
    for column in never:
        if rows[column].dtype == pl.List:
            assert rows[column].explode(empty_as_null=False).null_count() == 0


@pytest.mark.parametrize("name", ["documents", "text_units", "entities", "relationships"])
def test_the_number_is_that_of_the_row(index: Index, name: str) -> None:
    """Sources are cited by where they stand."""
    assert index.read(name)["human_readable_id"].to_list() == [*range(len(index.read(name)))]


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_are_in_the_order_of_ours(index: Index, name: str) -> None:
    assert index.read(name)["id"].to_list() == index.ours(name)["id"].to_list()


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_of_its_tables_holds(index: Index, rule: str) -> None:
    assert RULES[rule](index)


def test_the_index_has_what_the_rules_are_about(index: Index) -> None:
    ours = index.ours("communities")
    assert ours["island"].any()
    assert not ours["title"].equals(index.read("communities")["title"])
    assert not ours["text_unit_ids"].equals(index.read("communities")["text_unit_ids"])
    assert index.read("documents")["raw_data"].null_count() not in (0, len(index.read("documents")))


@pytest.mark.parametrize("name", EMBEDDED)
def test_vectors_are_in_tables_of_its_names_and_columns(index: Index, name: str) -> None:
    found = index.vectors(name)
    moments = "year:i month:i month_name:s day:i day_of_week:s hour:i quarter:i".split()
    expected = {"id": pl.String(), "vector": pl.Array(pl.Float32, DIMENSION)}
    expected |= {"create_date": pl.String(), "update_date": pl.String()}
    for moment in ("create_date", "update_date"):
        for part, _, kind in (part.partition(":") for part in moments):
            expected[f"{moment}_{part}"] = pl.Int64() if kind == "i" else pl.String()
    assert dict(found.schema) == expected
    assert [*found.schema] == [*expected]
    assert found["id"].to_list() == index.read(EMBEDDED[name])["id"].to_list()
    assert found["vector"].to_list() == index.ours(name)["vector"].to_list()
    made = current_version(index.store).made
    assert made is not None
    assert set(found["create_date"]) == {made.date}
    assert set(found["create_date_year"].cast(pl.String)) == {made.date[:4]}
    (quarter,) = set(found["create_date_quarter"])
    assert int(made.date[5:7]) in range(3 * quarter - 2, 3 * quarter + 1)
    assert found["update_date"].null_count() == len(found)


@pytest.mark.parametrize("name", [*COLUMNS, "mentions", "community_lineage"])
def test_nothing_of_ours_is_lost(index: Index, name: str) -> None:
    """Microsoft's columns, and over them those that are kept beside, are our table."""
    beside = index.folder / "graphrag_index" / f"{name}.arrow"
    own = index.own(name) if beside.exists() else pl.DataFrame()
    shared = index.read(name) if name in COLUMNS else pl.DataFrame()
    together = pl.concat([shared.drop(own.columns, strict=False), own], how="horizontal")
    assert together.select(list(TABLES[name].columns)).equals(index.ours(name))


def test_settings_lines_and_the_model_are_told(index: Index) -> None:
    told = "\n".join(index.told)
    assert f"  vector_size: {DIMENSION}\n" in told
    assert all(f"      index_name: {name}\n" in told for name in EMBEDDED)
    assert f'  base_dir: "{index.folder}"' in told
    assert told.endswith(f"test-embedding, which gives vectors of {DIMENSION} numbers.")


@pytest.mark.parametrize("name", COLUMNS)
def test_it_is_read_as_microsofts_own_index_is(index: Index, name: str) -> None:
    read = MicrosoftIndex(index.folder).tables[name].collect()
    different = CHANGED_COLUMNS.get(name, [])
    columns = [column for column in shared_columns(name) if column not in different]
    assert read.select(columns).equals(index.ours(name).select(columns))


def there_and_back(folder: Path, tmp_path: Path) -> Path:
    """Read Microsoft's folder, write it as an index of ours, and export that."""
    index = MicrosoftIndex(folder)
    tables = {name: rows.collect() for name, rows in index.tables.items()}
    for name, vectors in index.vectors.items():
        rows = pl.concat(vectors.batches()).select("id", "vector")
        filler = table(name, {}).drop("id", "vector")
        kept = rows.with_columns(
            *(pl.lit(filler[column][0]).alias(column) for column in filler.columns)
        )
        tables[name] = kept.with_columns(
            pl.col("vector").cast(pl.Array(pl.Float32, vectors.dimension))
        )
    store = TableStore(write_index(tmp_path / "ours", **tables))
    target = tmp_path / "back"
    export(store, current_version(store), target)
    return target


def as_version_3(name: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Version 2 had other names for two columns, one of them a list, and places of entities."""
    rows = rows.rename({"metadata": "raw_data"}, strict=False).drop("x", "y", strict=False)
    if "document_ids" in rows.columns:
        rows = rows.with_columns(document_id=pl.col("document_ids").list.first())
        columns = [
            column for column in rows.columns if column not in ("document_ids", "document_id")
        ]
        rows = rows.select(*columns[:4], "document_id", *columns[4:])
    return rows


def vectors_in(folder: Path, name: str) -> pl.DataFrame:
    rows = lancedb.connect(str(folder / "lancedb")).open_table(name).to_arrow()
    return pl.DataFrame(rows).select("id", "vector")


def test_version_3_comes_back_as_it_was(tmp_path: Path) -> None:
    tables = version_3()
    records = pl.Series("raw_data", [{"title": "a", "year": 1843}, None])
    tables["documents"] = tables["documents"].with_columns(records)
    write_vectors(write(tmp_path / "theirs", tables), tables)
    back = there_and_back(tmp_path / "theirs", tmp_path)
    assert sorted(path.stem for path in back.glob("*.parquet")) == sorted(tables)
    for name, rows in tables.items():
        found = pl.read_parquet(back / f"{name}.parquet")
        assert_frame_equal(found, rows, check_column_order=False, check_dtypes=False)
    for name in ("text_unit_text", "entity_description", "community_full_content"):
        assert_frame_equal(vectors_in(back, name), vectors_in(tmp_path / "theirs", name))


def test_version_2_comes_back_as_version_3(tmp_path: Path) -> None:
    tables = version_2()
    back = there_and_back(write(tmp_path / "theirs", tables), tmp_path)
    for name, rows in tables.items():
        # The metadata that version 2 has is that of ours, and so lies beside.
        found = pl.read_parquet(back / f"{name}.parquet").drop("raw_data", strict=False)
        expected = as_version_3(name, rows).drop("raw_data", strict=False)
        assert_frame_equal(found, expected, check_column_order=False, check_dtypes=False)


@needs_index
def test_the_real_index_comes_back_with_its_columns_values_and_order(tmp_path: Path) -> None:
    back = there_and_back(MICROSOFT, tmp_path)
    for name in FIRST_OWN:
        before = as_version_3(name, pl.read_parquet(MICROSOFT / f"{name}.parquet"))
        assert_frame_equal(pl.read_parquet(back / f"{name}.parquet"), before)
        schema = pq.read_schema(MICROSOFT / f"{name}.parquet")
        for field in pq.read_schema(back / f"{name}.parquet"):
            # It was written with pandas 2, which has small strings.
            if field.name in schema.names and str(field.type) != "large_string":
                assert field.type == schema.field(field.name).type, field.name
    for name in ("text_unit_text", "entity_description", "community_full_content"):
        assert_frame_equal(vectors_in(back, name), vectors_in(MICROSOFT, name))


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
