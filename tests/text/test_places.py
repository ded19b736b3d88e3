"""Known places."""

import polars as pl

from graphrag_index.nlp.name_words import more_given_names
from graphrag_index.text.places import KINDS, find_places, read_places


def places_of(name: str) -> list[tuple[str, str]]:
    found = find_places(pl.Series([name]))
    return [(kind, country) for _, kind, country, _ in found.iter_rows()]


def test_a_name_has_all_places_that_it_can_mean() -> None:
    assert places_of("Georgia") == [("country", "GE"), ("region", "US")]
    assert places_of("München") == [("city", "DE")]
    assert places_of("Europe") == [("continent", "")]
    assert places_of("Medicaid") == []


def test_countries_are_known_in_many_languages() -> None:
    for name in ("Germany", "Deutschland", "Alemania", "Niemcy", "Германия", "ドイツ", "ألمانيا"):
        assert places_of(name)[0] == ("country", "DE"), name


def test_accents_tell_places_from_other_names() -> None:
    assert places_of("Bélgica") == [("country", "BE")]
    assert ("country", "BE") not in places_of("Belgica")
    assert ("city", "BR") in places_of("Sao Paulo")
    assert ("city", "BR") in places_of("São Paulo")


def test_short_names_are_known_in_capitals_only() -> None:
    for name in ("US", "U.S.", "USA", "U.S"):
        assert ("country", "US") in places_of(name), name
    assert places_of("UK") == places_of("U.K.") == [("country", "GB")]
    assert places_of("us") == []


def test_rows_follow_the_names_and_the_larger_city_comes_first() -> None:
    found = find_places(pl.Series(["Nowhere at all", "Birmingham", "Paris"]))
    assert found["row"].is_sorted()
    assert set(found["row"]) == {1, 2}
    cities = found.filter(pl.col("row") == 1, pl.col("kind") == "city")["population"].to_list()
    assert len(cities) > 1
    assert cities == sorted(cities, reverse=True)


def test_the_table_is_normalized_and_sorted() -> None:
    places = read_places()
    assert places["name"].is_sorted()
    assert places["kind"].dtype == pl.Enum(KINDS)
    assert places.filter(pl.col("name").str.contains(r"[\p{Lu}\s]{2}|\p{Lu}")).is_empty()


def test_given_names_of_other_languages_are_known() -> None:
    assert {"Rajesh", "Björk", "Agnieszka", "Mark"} <= more_given_names()
