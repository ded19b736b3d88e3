import polars as pl

from graphrag_query.searches.main_entities import are_of_type


def test_a_large_city_is_no_region_elsewhere() -> None:
    titles = ["Portland", "New York", "Oregon", "Portland"]
    types = ["geo", "geo", "geo", "person"]
    entities = pl.DataFrame({"title": titles, "type": types})
    assert are_of_type(entities, "geo", "region").to_list() == [False, True, True, False]
    assert are_of_type(entities, "geo", "city").to_list() == [True, True, False, False]
