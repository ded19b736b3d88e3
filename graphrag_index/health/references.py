"""Ids that no row has: entities of passages that are gone, relationships of unknown ends."""

from typing import NamedTuple

import polars as pl

from graphrag_index.health.finding import Finding, Looked, count_and_first, number_of_rows
from graphrag_index.health.opened_index import Opened, name_row


class Reference(NamedTuple):
    """A column whose values must be found in a column of another table."""

    table: str
    column: str
    to: str
    key: str = "id"


REFERENCES = (
    Reference("documents", "text_unit_ids", "text_units"),
    Reference("text_units", "document_id", "documents"),
    Reference("text_units", "document_ids", "documents"),
    Reference("text_units", "entity_ids", "entities"),
    Reference("text_units", "relationship_ids", "relationships"),
    Reference("text_units", "covariate_ids", "covariates"),
    Reference("entities", "text_unit_ids", "text_units"),
    Reference("entities", "evidence", "documents"),
    Reference("relationships", "source", "entities", "title"),
    Reference("relationships", "target", "entities", "title"),
    Reference("relationships", "source_id", "entities"),
    Reference("relationships", "target_id", "entities"),
    Reference("relationships", "text_unit_ids", "text_units"),
    Reference("relationships", "evidence", "documents"),
    Reference("mentions", "entity", "entities", "human_readable_id"),
    Reference("mentions", "text_unit", "text_units", "human_readable_id"),
    Reference("communities", "entity_ids", "entities"),
    Reference("communities", "relationship_ids", "relationships"),
    Reference("communities", "text_unit_ids", "text_units"),
    Reference("communities", "parent", "communities", "community"),
    Reference("communities", "children", "communities", "community"),
    Reference("community_reports", "community", "communities", "community"),
    Reference("covariates", "text_unit_id", "text_units"),
)


def dangling_ids(index: Opened) -> Looked:
    """Look up every id that a row names."""
    looked, of = [], 0
    for reference in REFERENCES:
        if index.has(reference.table, reference.column) and index.has(reference.to, reference.key):
            finding, n_named = _dangling(index, reference)
            of += n_named
            looked += [finding] if finding else []
    return Looked(of or None, tuple(looked))


def _dangling(index: Opened, reference: Reference) -> tuple[Finding | None, int]:
    table, column, to, key = reference
    label = index.label(table) if index.has(table, index.label(table)) else column
    named = index.tables[table].select(row=pl.col(label), named=pl.col(column))
    dtype = named.collect_schema()["named"]
    if isinstance(dtype, pl.List):
        named = named.explode("named")
        if isinstance(dtype.inner, pl.Struct):
            named = named.with_columns(named=pl.col("named").struct.field("document_id"))
    named = named.drop_nulls("named")
    if column == "parent":
        named = named.filter(pl.col("named") != -1)  # level 0 has none
    if column in ("source_id", "target_id"):
        # What was imported has none where the title is no entity's, which is told of the title.
        named = named.filter(pl.col("named") != "")
    # 64 bits stand for an id: of a billion hardly two share one.
    known = index.tables[to].select(key=_key(key)).drop_nulls()
    missing = named.with_columns(key=_key("named")).join(known, on="key", how="anti")
    count, first = count_and_first(missing, ["row", "named"])
    n_named = number_of_rows(named)
    if not count:
        return None, n_named
    what = {"id": "ids", "title": "titles"}.get(key, "numbers")
    means = (
        f"{count:,} of {n_named:,} {what} in {table}.{column} belong to no row of {to}: what they "
        "name is gone or was never written, and searches pass over it. Make the index again from "
        "its documents."
    )
    examples = tuple(
        f"{name_row(table, row)}: {named}" for row, named in first.select("row", "named").rows()
    )
    return Finding(f"{table}.{column}", count, n_named, examples, means), n_named


def _key(column: str) -> pl.Expr:
    """A number for a value; numbers of all widths have the same."""
    return pl.col(column).cast(pl.String).hash()
