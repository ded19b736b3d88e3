"""Tables read in batches, and content ids of many rows at once."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.schema.tables import content_id
from graphrag_index.storage.batches import batches, content_ids
from graphrag_index.storage.table_writer import ROW_GROUP

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ROWS = st.lists(st.tuples(TEXT, st.lists(TEXT)))


@pytest.mark.parametrize("size", [1_000, 4_096, ROW_GROUP, 3 * ROW_GROUP])
@pytest.mark.parametrize("n_rows", [1, 4_096, ROW_GROUP - 1, ROW_GROUP, 2 * ROW_GROUP + 5])
def test_all_rows_come_once_in_their_order(tmp_path: Path, n_rows: int, size: int) -> None:
    rows = pl.DataFrame({"number": range(n_rows)})
    rows.write_parquet(tmp_path / "rows.parquet", row_group_size=ROW_GROUP)
    for frame in (rows.lazy(), pl.scan_parquet(tmp_path / "rows.parquet")):
        found = list(batches(frame, size))
        assert pl.concat(found).equals(rows)
        assert {batch.height for batch in found[:-1]} <= {size}
        assert 0 < found[-1].height <= size


def test_of_no_rows_there_is_no_batch_or_one_with_its_columns() -> None:
    empty = pl.DataFrame({"number": pl.Series([], dtype=pl.Int64)})
    assert list(batches(empty.lazy(), 10)) == []
    assert [batch.equals(empty) for batch in batches(empty.lazy(), 10, at_least_one=True)] == [True]


@given(TEXT, ROWS, st.integers(0, 3))
def test_each_row_has_the_id_of_its_parts(kind: str, rows: list[tuple[str, list[str]]], first: int):
    frame = pl.DataFrame(rows, {"name": pl.String, "said": pl.List(pl.String)}, orient="row")
    part = frame.slice(first)

    ids = content_ids(kind, part["name"], part["said"])

    assert ids.to_list() == [content_id(kind, name, *said) for name, said in rows[first:]]


def test_no_pandas_is_loaded_for_it() -> None:
    code = (
        "import sys; import polars as pl\n"
        "from graphrag_index.storage.batches import content_ids\n"
        "content_ids('a', pl.Series(['b']), pl.Series([['c']]))\n"
        "print('pandas' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout == "False\n"
