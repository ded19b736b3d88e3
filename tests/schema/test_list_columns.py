import numpy as np
import polars as pl
from polars.testing import assert_series_equal

from graphrag_index.schema.list_columns import ListValues, gather_lists, spread_lists


def test_the_lists_of_some_rows_are_spread_in_the_order_of_these_rows():
    lists = pl.Series([["a", "b"], [], None, ["c"], ["d", "e"]])

    place, values = ListValues(lists).at(np.array([4, 1, 0, 2, 4]))

    assert place.tolist() == [0, 0, 2, 2, 4, 4]
    assert values.to_list() == ["d", "e", "a", "b", "d", "e"]


def test_lists_of_structs_are_spread_as_all_rows_are():
    lists = pl.Series([[{"at": 1}], [], [{"at": 2}, {"at": 3}]])

    place, values = ListValues(lists).at(np.arange(3))

    everything = spread_lists(lists)
    assert place.tolist() == everything[0].tolist()
    assert_series_equal(values, everything[1])
    assert_series_equal(gather_lists(place, values, 3), lists)


def test_of_no_rows_there_are_no_values():
    lists = pl.Series([], dtype=pl.List(pl.Int64))

    place, values = ListValues(lists).at(np.zeros(0, dtype=np.int64))

    assert len(place) == 0
    assert_series_equal(values, pl.Series([], dtype=pl.Int64), check_names=False)
