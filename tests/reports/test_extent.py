"""Counts of a community."""

import polars as pl

from graphrag_index.reports.extent import COUNTED_TYPES, describe_extent, find_kinds


def test_places_are_counted_by_their_kind() -> None:
    named = pl.DataFrame(
        {
            "title": ["France", "Ohio", "Munich", "Europe", "Tora Bora", "Jordan", "Rain"],
            "type": ["geo", "geo", "geo", "geo", "geo", "person", "noun phrase"],
        }
    )
    kinds = [*COUNTED_TYPES, None]
    assert [kinds[number] for number in find_kinds(named)] == [
        *("country", "region", "city", "geo", "geo", "person", None)
    ]


def test_entities_without_places_have_kinds_too() -> None:
    named = pl.DataFrame({"title": ["Rain"], "type": ["noun phrase"]})
    assert find_kinds(named).to_list() == [len(COUNTED_TYPES)]


def test_the_counts_are_a_sentence() -> None:
    counts = {"country": 2, "person": 1}
    row = {
        "n_documents": 17,
        "first_date": None,
        "last_date": None,
        "kinds": [counts.get(kind, 0) for kind in COUNTED_TYPES],
    }
    assert describe_extent(row) == "17 documents: 1 person and 2 countries."
