"""Rows for what tables of another program name and do not have: then all that is named is there."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from graphrag_index.schema.tables import TABLES

# A document of which nothing is known, where that is no empty text.
_BLANK: Mapping[str, Any] = {
    **{"human_readable_id": 0, "text_unit_ids": [], "language": "und"},
    **{"raw_data": None, "metadata": None},
}


def with_unknown_documents(documents: pl.LazyFrame, text_units: pl.LazyFrame) -> pl.LazyFrame:
    """Add a document without a text for each that text units name and no row is."""
    known = documents.select("id").collect()["id"]
    named = text_units.select("document_id").collect()["document_id"].unique(maintain_order=True)
    unknown = named.filter(~named.is_in(known.implode()))
    if not len(unknown):
        return documents
    table = TABLES["documents"].empty()
    blank = pl.DataFrame([{name: _BLANK.get(name, "") for name in table.columns}] * len(unknown))
    names = [unknown.alias(name) for name in ("id", "title", "path")]
    numbers = pl.int_range(len(known), len(known) + len(unknown), dtype=pl.Int64, eager=True)
    rows = blank.with_columns(*names, numbers.alias("human_readable_id"))
    return pl.concat([documents, rows.cast(table.schema).lazy()])


def with_unknown_communities(communities: pl.LazyFrame, reports: pl.LazyFrame) -> pl.LazyFrame:
    """Add a community without members for each that a report is on and no row is."""
    known = communities.select("community")
    unknown = (
        reports.join(known, on="community", how="anti", maintain_order="left")
        .unique("community", keep="first", maintain_order=True)
        .select("community", "level", "parent", "children", "title", "period")
        .collect()
    )
    if unknown.is_empty():
        return communities
    blank = pl.lit([], pl.List(pl.String))
    rows = unknown.with_columns(
        id=pl.format("unknown-{}", "community"),
        human_readable_id="community",
        entity_ids=blank,
        relationship_ids=blank,
        text_unit_ids=blank,
        size=pl.lit(0, pl.Int64),
        island=pl.lit(False),
    )
    order = list(TABLES["communities"].columns)
    return pl.concat([communities, rows.select(order).lazy()])
