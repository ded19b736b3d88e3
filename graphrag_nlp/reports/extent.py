"""Counts of a community: its documents with their dates, and its members by kind."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from graphrag_nlp.text.languages import join_titles, read_lists
from graphrag_nlp.text.places import find_places

# Types of entities and kinds of places that are counted, with the singular and the plural noun.
COUNTED_TYPES: Mapping[str, tuple[str, str]] = read_lists("graphrag_nlp/text/data/report_words")[
    "counted_types"
]
_NOUNS = "|".join(noun for nouns in COUNTED_TYPES.values() for noun in nouns)
# Matches a sentence of `describe_extent`; `_KIND` is a count with its noun, such as "3 persons".
_KIND = rf"[\d,]+ (?:{_NOUNS})"
EXTENT_SENTENCE = re.compile(
    r"[\d,]+ documents?(?: on different subjects)?(?:, [\w ]+)?"
    rf"(?:: {_KIND}(?:, {_KIND})*(?:,? and {_KIND})?)?\."
)


def find_kinds(named: pl.DataFrame) -> pl.Series:
    """Return the kind of each entity as an index of `COUNTED_TYPES`; its length for other kinds.

    The kind is the type of the entity; of a known place, it is the kind of place, such as "city".
    Continents and unknown places are "geo".
    """
    kinds = [*COUNTED_TYPES]
    places = named.with_row_index("at").filter(pl.col("type") == "geo")
    known = find_places(places["title"]).unique("row", keep="first", maintain_order=True)
    at = places["at"].gather(known["row"])
    kind = named["type"].scatter(at, known["kind"].cast(pl.String).replace("continent", "geo"))
    return kind.replace_strict(kinds, range(len(kinds)), default=len(kinds), return_dtype=pl.Int32)


def describe_extent(row: Mapping[str, Any], is_mixed: bool = False) -> str:
    """Count the documents of a community and its members by kind in a sentence.

    `is_mixed` tells whether the documents are on different subjects.
    """
    documents = f"{row['n_documents']:,} document{'s' * (row['n_documents'] != 1)}"
    if is_mixed:
        documents += " on different subjects"
    if row["first_date"]:
        # The dates of documents are not those of the events that they tell.
        documents += f", dated {format_period(row['first_date'], row['last_date'])}"
    kinds = [
        f"{n:,} {COUNTED_TYPES[kind][n != 1]}"
        for kind, n in zip(COUNTED_TYPES, row["kinds"], strict=True)
        if n
    ]
    return f"{documents}{': ' * bool(kinds)}{join_titles(kinds)}."


def format_period(first: date, last: date) -> str:
    """Format a period of days: "1914 to 1917", "March to May 2024", "3 May 2024"."""
    if first == last:
        return f"{first.day} {first:%B %Y}"
    if first.year != last.year:
        return f"{first.year} to {last.year}"
    if first.month == last.month:
        return f"{first:%B %Y}"
    if (first.month, first.day, last.month, last.day) == (1, 1, 12, 31):
        return str(first.year)
    return f"{first:%B} to {last:%B %Y}"
