import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.rendered_rows import Budget, RenderedRows
from graphrag_index.reports import row_costs
from graphrag_index.reports.report_context import Lines
from graphrag_index.reports.row_costs import RowCosts
from graphrag_index.schema.tables import TABLES
from tests.fixtures.fake_model import EarlierTables

BUDGET = Budget(400, 1_000)
TEXTS = st.lists(st.sampled_from(["one", "zwei drei", "四", "long " * 200]) | st.text(), max_size=6)


def frame(texts: list[str]) -> pl.DataFrame:
    numbers = pl.Series("id", [400] * len(texts), pl.Int64)
    return pl.DataFrame([numbers, pl.Series("description", texts, pl.String)])


@given(TEXTS, TEXTS)
def test_what_is_looked_up_is_what_is_counted(before: list[str], after: list[str]) -> None:
    first = RowCosts(EarlierTables())
    first.of(frame(before), BUDGET)
    first.of(frame(after), Budget(400, 500))
    again = RowCosts(EarlierTables({"row_costs": first.table()}))
    counted = RenderedRows.of(frame(after), BUDGET).cost.tolist()
    assert again.of(frame(after), BUDGET).tolist() == counted
    assert again.table().schema == TABLES["row_costs"].schema


def test_rows_of_the_last_run_are_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = RowCosts(EarlierTables())
    first.of(frame(["one", "two"]), BUDGET)
    counted: list[str] = []

    class Counted(RenderedRows):
        @classmethod
        def of(cls, rows: pl.DataFrame, budget: Budget, count: object = None) -> RenderedRows:
            counted.extend(rows["description"])
            return RenderedRows.of(rows, budget)

    monkeypatch.setattr(row_costs, "RenderedRows", Counted)
    again = RowCosts(EarlierTables({"row_costs": first.table()}))
    again.of(frame(["two", "three"]), BUDGET)
    assert counted == ["three"]
    # Only what may be shown now is kept for the next run.
    assert again.table().height == 2


@given(TEXTS)
def test_a_line_is_written_as_it_was_counted(texts: list[str]) -> None:
    lines = Lines(frame(texts).drop("id"), BUDGET)
    rendered = RenderedRows.of(frame(texts), BUDGET)
    assert lines.cost.tolist() == rendered.cost.tolist()
    wanted = range(0, len(texts), 2)
    assert lines.texts([*wanted, *wanted]) == {
        row: rendered.text[row].removeprefix("400") for row in wanted
    }
