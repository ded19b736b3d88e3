"""What may be written into a table."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from graphrag_index.errors import TableError
from graphrag_index.schema.tables import EVIDENCE, STRINGS, TABLES, Table
from graphrag_index.storage.table_writer import TableCheck, can_cast


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pl.String(), pl.String()),
        (pl.Null(), pl.String()),
        (pl.UInt32(), pl.Int64()),
        (pl.Int64(), pl.Int32()),  # if each value fits
        (pl.Int64(), pl.Float64()),
        (pl.Float32(), pl.Float64()),
        (pl.Categorical(), pl.String()),
        (pl.List(pl.Null), STRINGS),
        (pl.Array(pl.Float32, 3), pl.List(pl.Float32)),
        (
            pl.List(
                pl.Struct({"document_id": pl.String, "start_char": pl.Int32, "end_char": pl.Int32})
            ),
            EVIDENCE,
        ),
    ],
)
def test_types_that_become_another_without_a_change_of_meaning(given: Any, wanted: Any) -> None:
    assert can_cast(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pl.Int64(), pl.String()),
        (pl.String(), pl.Int64()),
        (pl.Float64(), pl.Int64()),
        (pl.Float64(), pl.Float32()),
        (pl.Boolean(), pl.Int64()),
        (pl.Int64(), pl.Boolean()),
        (pl.Date(), pl.String()),
        (pl.String(), STRINGS),
        (STRINGS, pl.String()),
        (pl.List(pl.Int64), STRINGS),
        (pl.List(pl.Struct({"document_id": pl.String})), EVIDENCE),
    ],
)
def test_types_that_do_not(given: Any, wanted: Any) -> None:
    assert not can_cast(given, wanted)


LISTS = Table("lists", "", "", {"names": STRINGS, "places": EVIDENCE}, nullable=())
PLACE = {"document_id": "a", "start_char": 0, "end_char": 1}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(["a"], []), (["a", None], [])], "null inside of the column names (row 2)."),
        ([([], []), (None, [])], "null in the column names (row 2)."),
        (
            [([], [PLACE | {"start_char": None}]), ([], [PLACE])],
            "null inside of the column places (row 1).",
        ),
    ],
)
def test_nulls_inside_of_lists_are_found(rows: list[Any], said: str) -> None:
    check = TableCheck("s", LISTS)
    check.add(pl.DataFrame([([], [PLACE])], LISTS.schema, orient="row"))
    with pytest.raises(TableError) as caught:
        check.add(pl.DataFrame(rows, LISTS.schema, orient="row"))
    assert str(caught.value) == f"Step s wrote lists with {said}"


def test_a_table_that_does_not_say_where_it_has_nulls_may_have_them_anywhere() -> None:
    table = Table("words", "one word", "", {"id": pl.String, "word": pl.String})
    check = TableCheck("s", table)
    check.add(pl.DataFrame({"id": ["a", "b"], "word": [None, None]}))
    check.finish()
    # The same table refuses them as soon as it says that it has none.
    strict = TableCheck("s", replace(table, nullable=()))
    with pytest.raises(TableError, match="null"):
        strict.add(pl.DataFrame({"id": ["a", "b"], "word": [None, None]}))


def test_every_table_of_the_program_says_which_columns_may_be_null() -> None:
    for table in TABLES.values():
        assert table.nullable is not None, table.name
        assert set(table.nullable) <= set(table.columns), table.name
