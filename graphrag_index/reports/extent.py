"""Counts of a community: its documents with their dates, and its members by kind."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from graphrag_index.reports.report import join_titles, rank_communities
from graphrag_index.storage.memo import read_batches
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.places import find_places

# Types of entities and kinds of places that are counted, with the singular and the plural noun.
COUNTED_TYPES: Mapping[str, tuple[str, str]] = read_lists("graphrag_nlp/text/data/report_words")[
    "counted_types"
]
_NOUNS = "|".join(noun for nouns in COUNTED_TYPES.values() for noun in nouns)
# A sentence that `describe_extent` returns, in which `_KIND` is a counted kind.
_KIND = rf"[\d,]+ (?:{_NOUNS})"
EXTENT_SENTENCE = re.compile(
    r"[\d,]+ documents?(?: on different subjects)?(?:, [\w ]+)?"
    rf"(?:: {_KIND}(?:, {_KIND})*(?:,? and {_KIND})?)?\."
)


def find_kinds(named: pl.DataFrame) -> pl.Series:
    """Return the kind of each entity: its place in `COUNTED_TYPES`, or the number of these.

    The type is the kind. The kind of a place is that of the known place with its name; continents
    and unknown places are "geo".
    """
    kinds = [*COUNTED_TYPES]
    places = named.with_row_index("at").filter(pl.col("type") == "geo")
    known = find_places(places["title"]).unique("row", keep="first", maintain_order=True)
    at = places["at"].gather(known["row"])
    kind = named["type"].scatter(at, known["kind"].cast(pl.String).replace("continent", "geo"))
    return kind.replace_strict(kinds, range(len(kinds)), default=len(kinds), return_dtype=pl.Int32)


def read_communities(
    communities: pl.LazyFrame, base_text_units: pl.LazyFrame, documents: pl.LazyFrame
) -> pl.DataFrame:
    """Return the communities with their ranks and the numbers of their documents."""
    rows = rank_communities(communities)
    counted = count_documents(communities, base_text_units, documents)
    rows = rows.join(counted, on="community", how="left", maintain_order="left")
    return rows.with_columns(pl.col("n_documents").fill_null(0))


def count_documents(
    communities: pl.LazyFrame, base_text_units: pl.LazyFrame, documents: pl.LazyFrame
) -> pl.DataFrame:
    """Return for each community the number of its documents, and their first and last date."""
    known = documents.select(
        document_id="id",
        document=pl.int_range(pl.len(), dtype=pl.Int32),
        date=pl.col("creation_date").str.head(10).str.to_date("%Y-%m-%d", strict=False),
    )
    units = base_text_units.select("document_id", unit="id").join(known, on="document_id")
    of_unit = units.select("unit", "document", "date").collect()
    lists = communities.select("community", unit="text_unit_ids")
    counted = [
        batch.explode("unit")
        .join(of_unit, on="unit", how="left")
        .group_by("community")
        .agg(
            n_documents=pl.col("document").drop_nulls().n_unique(),
            first_date=pl.min("date"),
            last_date=pl.max("date"),
        )
        for batch in read_batches(lists, ROW_GROUP_SIZE, at_least_one=True)
    ]
    return pl.concat(counted)


def describe_extent(row: Mapping[str, Any], is_mixed: bool = False) -> str:
    """Count the documents of a community and its members by kind in a sentence.

    `is_mixed` tells whether the documents are on different subjects.
    """
    documents = f"{row['n_documents']:,} document{'s' * (row['n_documents'] != 1)}"
    if is_mixed:
        documents += " on different subjects"
    if row["first_date"]:
        documents += f", {format_period(row['first_date'], row['last_date'])}"
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
