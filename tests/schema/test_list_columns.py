import polars as pl
from polars.testing import assert_series_equal

from graphrag_index.schema.list_columns import gather_lists, spread_lists


def test_lists_of_structs_are_gathered_again_from_their_values():
    lists = pl.Series([[{"at": 1}], [], [{"at": 2}, {"at": 3}]])

    place, values = spread_lists(lists)

    assert place.tolist() == [0, 2, 2]
    assert values.to_list() == [{"at": 1}, {"at": 2}, {"at": 3}]
    assert_series_equal(gather_lists(place, values, 3), lists)
