"""Tables read in parts: all rows once, in their order, so many at a time."""

from pathlib import Path

import polars as pl
import pytest

from graphrag_index.storage.batches import batches
from graphrag_index.storage.table_writer import ROW_GROUP


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
