import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.reports import row_hashes
from graphrag_index.reports.row_hashes import RowHashes
from graphrag_index.schema.tables import TABLES, content_id
from tests.fixtures.fake_model import EarlierTables

CELLS = st.sampled_from(["", "a", "b", "ab"]) | st.none() | st.text()
ROWS = st.lists(st.tuples(CELLS, CELLS), max_size=6)


def frame(rows: list[tuple[str | None, str | None]]) -> pl.DataFrame:
    return pl.DataFrame(rows, {"id": pl.String, "description": pl.String}, orient="row")


@given(ROWS, ROWS)
def test_what_is_looked_up_is_what_would_be_hashed(
    before: list[tuple[str | None, str | None]], after: list[tuple[str | None, str | None]]
) -> None:
    first = RowHashes(EarlierTables())
    for kind in ("entity", "claim"):
        first.of(kind, frame(before))
    again = RowHashes(EarlierTables({"row_hashes": first.table()}))
    assert again.of("entity", frame(after)).tolist() == [
        int(content_id("entity", id or "", description or "")[:16], 16) for id, description in after
    ]
    assert again.table().schema == TABLES["row_hashes"].schema


def test_rows_of_the_last_run_are_not_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = RowHashes(EarlierTables())
    first.of("entity", frame([("e1", "One."), ("e2", "Two.")]))
    hashed: list[object] = []

    def content_ids(kind: str, *columns: pl.Series) -> pl.Series:
        hashed.extend(columns[0])
        return hash_rows(kind, *columns)

    hash_rows = row_hashes.content_ids
    monkeypatch.setattr(row_hashes, "content_ids", content_ids)
    again = RowHashes(EarlierTables({"row_hashes": first.table()}))
    again.of("entity", frame([("e1", "One."), ("e2", "Two, as is told now.")]))
    assert hashed == ["e2"]
    # A row of another kind is another row; what was not asked about is not kept.
    again.of("relationship", frame([("e1", "One.")]))
    assert hashed == ["e2", "e1"]
    assert again.table().height == 3
