"""Counts of a community."""

from datetime import date
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.reports.extent import (
    COUNTED_TYPES,
    EXTENT_SENTENCE,
    describe_extent,
    find_kinds,
    format_period,
)

DAYS = st.dates(date(1000, 1, 1), date(2030, 1, 1))
EXTENTS = st.fixed_dictionaries(
    {
        "n_documents": st.integers(1, 5_000),
        "kinds": st.lists(
            st.integers(0, 3_000), min_size=len(COUNTED_TYPES), max_size=len(COUNTED_TYPES)
        ),
        "days": st.none() | st.tuples(DAYS, DAYS),
    }
)


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
    assert describe_extent(row, is_mixed=True).startswith("17 documents on different subjects: 1")
    # Whoever reads the dates shall not take them for those of the events.
    dated = row | {"first_date": date(2024, 3, 11), "last_date": date(2024, 5, 6)}
    assert describe_extent(dated).startswith("17 documents, dated March to May 2024: 1 person")


@given(EXTENTS, st.booleans())
def test_every_sentence_of_counts_is_recognized(row: dict[str, Any], is_mixed: bool) -> None:
    first, last = sorted(row.pop("days") or ()) or (None, None)
    sentence = describe_extent({**row, "first_date": first, "last_date": last}, is_mixed)
    assert EXTENT_SENTENCE.fullmatch(sentence)


@pytest.mark.parametrize(
    "said", ["3 documents were lost.", "4 documents: a letter and two maps.", "12 people."]
)
def test_other_sentences_are_not_counts_of_a_community(said: str) -> None:
    assert not EXTENT_SENTENCE.fullmatch(said)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (date(2024, 3, 1), date(2024, 5, 31), "March to May 2024"),
        (date(2024, 3, 3), date(2024, 3, 3), "3 March 2024"),
        (date(2024, 1, 1), date(2024, 12, 31), "2024"),
        (date(1914, 8, 8), date(1917, 1, 1), "1914 to 1917"),
    ],
)
def test_a_period_is_as_short_as_its_dates_allow(first: date, last: date, expected: str) -> None:
    assert format_period(first, last) == expected
