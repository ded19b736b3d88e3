"""An index of Microsoft's, read as ours and exported as its own, is what it was."""

from pathlib import Path

import lancedb
import polars as pl
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

from graphrag_index.microsoft.export_index import export
from graphrag_index.microsoft.export_tables import FIRST_OWN
from graphrag_index.microsoft.read_tables import MicrosoftIndex
from graphrag_index.pipeline.history import current_version
from graphrag_index.storage.table_store import TableStore
from tests.fixtures.microsoft_index import MICROSOFT, version_2, version_3, write, write_vectors
from tests.fixtures.small_index import table, write_index

needs_index = pytest.mark.skipif(not MICROSOFT.is_dir(), reason="the index is not here")


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
