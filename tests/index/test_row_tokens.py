import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.core.rendered_rows import count_lines
from graphrag_index.core.tables import TABLES
from graphrag_index.reports import row_tokens
from graphrag_index.reports.row_tokens import RowTokens
from tests.index.fake_model import EarlierTables

LINES = st.lists(st.sampled_from(["1,one\n", "2,zwei drei\n", "3,四\n"]) | st.text().map(
    lambda text: f"4,{' '.join(text.split())}\n"
), max_size=6)  # fmt: skip


@given(LINES, LINES)
def test_what_is_looked_up_is_what_is_counted(before: list[str], after: list[str]) -> None:
    first = RowTokens(EarlierTables())
    first.count(pl.Series(before, dtype=pl.String))
    again = RowTokens(EarlierTables({"row_tokens": first.table()}))
    lines = pl.Series(after, dtype=pl.String)
    assert again.count(lines).tolist() == count_lines(lines).tolist()
    assert again.table().schema == TABLES["row_tokens"].schema


def test_lines_of_the_last_run_are_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = RowTokens(EarlierTables())
    first.count(pl.Series(["1,one\n", "2,two\n"]))
    asked: list[str] = []

    def count(lines: pl.Series) -> object:
        asked.extend(lines)
        return count_lines(lines)

    monkeypatch.setattr(row_tokens, "count_lines", count)
    again = RowTokens(EarlierTables({"row_tokens": first.table()}))
    again.count(pl.Series(["2,two\n", "3,three\n"]))
    assert asked == ["3,three\n"]
    # Only what is shown now is kept for the next run.
    assert again.table().height == 2
