"""Missing columns of communities and reports, and missing rows that other tables refer to."""

from collections.abc import Callable, Collection
from typing import Any

import polars as pl

from graphrag_index.microsoft.read_positions import find_first_rows
from graphrag_index.schema.tables import INTEGERS, STRINGS, TABLES, Table
from graphrag_nlp.list_columns import gather_by_owner, spread_lists

_DEFAULT_TITLE = pl.format("Community {}", "community")
# Columns that a report copies from its community, with defaults for an unknown community.
_COMMUNITY_COLUMNS = {"level": 0, "parent": -1, "children": [], "period": "", "size": 0}


def complete_communities(
    communities: pl.LazyFrame,
    nodes: pl.LazyFrame | None,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
) -> pl.DataFrame:
    """Add the missing columns of communities; keep the rows and their order.

    Members are read from `nodes`. The parent is the community one level up that has the first
    member. Children are derived from parents, relationships from members, and text units from
    relationships.
    """
    rows = communities.collect()
    has = set(rows.columns)
    size = pl.col("entity_ids").list.len().cast(pl.Int64)
    # By column: (function that derives missing values, value that replaces null).
    columns: dict[str, tuple[Callable[[], Any], Any]] = {
        "entity_ids": (lambda: _derive_members(rows, nodes, entities), []),
        "level": (lambda: pl.lit(0, pl.Int64), 0),
        "parent": (lambda: _derive_parents(rows), -1),
        "children": (lambda: _derive_children(rows), []),
        "relationship_ids": (lambda: _derive_relationships(rows, entities, relationships), []),
        "text_unit_ids": (lambda: find_text_units(rows["relationship_ids"], relationships), []),
        "period": (lambda: pl.lit(""), ""),
        "title": (lambda: _DEFAULT_TITLE, _DEFAULT_TITLE),
        "size": (lambda: size, size),
        "human_readable_id": (lambda: pl.col("community"), pl.col("community")),
    }
    for name, (derive, default) in columns.items():
        values = pl.col(name) if name in has else derive()
        rows = rows.with_columns(values.fill_null(default).alias(name))
    rows = rows.with_columns(island=pl.lit(False), theme=pl.lit(False))
    return rows.select(list(TABLES["communities"].columns))


def complete_reports(
    reports: pl.DataFrame, has: Collection[str], communities: pl.DataFrame
) -> pl.DataFrame:
    """Add the missing columns of reports; `has` has the names of the columns in the file."""
    at = find_first_rows(reports["community"], communities["community"])
    for name, default in _COMMUNITY_COLUMNS.items():
        if name not in has:
            known = communities[name]
            values = pl.concat([known, pl.Series(name, [default], known.dtype)])
            reports = reports.with_columns(values.gather(at).alias(name))
    defaults = {
        "human_readable_id": pl.col("community"),
        "id": pl.col("community").cast(pl.String),
        "title": _DEFAULT_TITLE,
    }
    missing = {name: value for name, value in defaults.items() if name not in has}
    return reports.with_columns(**missing).select(list(TABLES["community_reports"].columns))


def read_members_from_nodes(nodes: pl.LazyFrame, entities: pl.LazyFrame) -> pl.LazyFrame | None:
    """Return `community` and its `entity_ids`, in entity order; None if a column is missing."""
    is_usable = {"title", "community"}.issubset(nodes.collect_schema())
    if not is_usable or not {"title", "id"}.issubset(entities.collect_schema()):
        return None
    known = entities.select("id", "title").with_row_index("entity")
    return (
        nodes.select("title", "community")
        .drop_nulls()
        .join(known.unique("title", keep="first"), on="title")
        .unique(["community", "entity"])
        .sort("community", "entity")
        .group_by("community", maintain_order=True)
        .agg(entity_ids=pl.col("id"))
    )


def _derive_members(
    rows: pl.DataFrame, nodes: pl.LazyFrame | None, entities: pl.LazyFrame
) -> pl.Series:
    members = read_members_from_nodes(nodes, entities) if nodes is not None else None
    if members is None:
        return pl.Series([None] * rows.height, dtype=STRINGS)
    return _values_by_community(rows, members.collect(), "entity_ids")


def _derive_parents(rows: pl.DataFrame) -> pl.Series:
    held = rows.select("level", "community", member="entity_ids").explode("member").drop_nulls()
    above = held.select("member", pl.col("level") + 1, parent="community").unique(
        ["member", "level"], keep="first", maintain_order=True
    )
    first = held.unique("community", keep="first", maintain_order=True)
    parents = first.join(above, on=["member", "level"], how="left").select("community", "parent")
    return _values_by_community(rows, parents, "parent")


def _derive_children(rows: pl.DataFrame) -> pl.Series:
    children = (
        rows.filter(pl.col("parent") >= 0)
        .sort("parent", "community")
        .group_by(community="parent", maintain_order=True)
        .agg(children=pl.col("community"))
    )
    return _values_by_community(rows, children, "children").cast(INTEGERS)


def _values_by_community(rows: pl.DataFrame, values: pl.DataFrame, column: str) -> pl.Series:
    """Return, for each row, the value of `column` for the community of the row."""
    numbers = rows.select("community")
    return numbers.join(values, on="community", how="left", maintain_order="left")[column]


def _derive_relationships(
    rows: pl.DataFrame, entities: pl.LazyFrame, relationships: pl.LazyFrame
) -> pl.Series:
    known = entities.select("id", "title").collect()
    links = relationships.select("id", "source", "target").collect()
    owners, members = spread_lists(rows["entity_ids"])
    held = pl.DataFrame({"row": owners, "entity": find_first_rows(members, known["id"])})
    endpoints = links.with_columns(
        pl.Series(end, find_first_rows(links[end], known["title"])) for end in ("source", "target")
    )
    return find_relationships_within(held, endpoints, rows.height)


def find_relationships_within(held: pl.DataFrame, links: pl.DataFrame, n_rows: int) -> pl.Series:
    """Return, for each community, the sorted ids of relationships between its members.

    `held` has the `row` of a community and the row number of an `entity` in it. `links` has an `id`
    and the row numbers of `source` and `target`, which are negative for an unknown entity.
    """
    inside = (
        links.filter(pl.col("source") >= 0, pl.col("target") >= 0)
        .join(held, left_on="source", right_on="entity")
        .join(held, left_on=["target", "row"], right_on=["entity", "row"])
        .select("id", owner="row")
        .unique()
        .sort("owner", "id")
    )
    return gather_by_owner(inside, n_rows)


def find_text_units(relationship_ids: pl.Series, relationships: pl.LazyFrame) -> pl.Series:
    """Return, for each list of relationship ids, the sorted ids of their text units."""
    owners, ids = spread_lists(relationship_ids)
    links = relationships.select("id", "text_unit_ids").unique("id", keep="first")
    units = (
        pl.LazyFrame({"owner": owners, "id": ids})
        .join(links, on="id")
        .select("owner", unit="text_unit_ids")
        .explode("unit")
        .drop_nulls()
        .unique()
        .sort("owner", "unit")
        .collect()
    )
    return gather_by_owner(units, len(relationship_ids))


def add_missing_documents(documents: pl.LazyFrame, text_units: pl.LazyFrame) -> pl.LazyFrame:
    """Add an empty document for each missing document that text units refer to."""
    known = documents.select("id").collect()
    named = text_units.select(id="document_id").collect().unique(maintain_order=True)
    unknown = named.join(known, on="id", how="anti", maintain_order="left").with_columns(
        title="id",
        path="id",
        human_readable_id=known.height + pl.int_range(pl.len(), dtype=pl.Int64),
        language=pl.lit("und"),
    )
    return _append_rows("documents", documents, unknown)


def add_missing_communities(communities: pl.LazyFrame, reports: pl.LazyFrame) -> pl.LazyFrame:
    """Add a community without members for each missing community that a report names."""
    known = communities.select("community")
    unknown = (
        reports.join(known, on="community", how="anti", maintain_order="left")
        .unique("community", keep="first", maintain_order=True)
        .select(
            pl.col("community", "level", "parent", "children", "title", "period"),
            id=pl.format("unknown-{}", "community"),
            human_readable_id="community",
        )
        .collect()
    )
    return _append_rows("communities", communities, unknown)


def _append_rows(name: str, rows: pl.LazyFrame, new: pl.DataFrame) -> pl.LazyFrame:
    """Append new rows to a table, with default values for their missing columns."""
    if new.is_empty():
        return rows
    columns = [
        column if column in new.columns else default.alias(column)
        for column, default in get_column_defaults(TABLES[name]).items()
    ]
    return pl.concat([rows, new.lazy().select(columns)])


def get_column_defaults(table: Table) -> dict[str, pl.Expr]:
    """Return the default value of each column; the default of a nullable column is null."""
    by_type: dict[Any, Any] = {pl.String: "", pl.Int64: 0, pl.Float64: 0, pl.Boolean: False}
    defaults = {name: by_type.get(dtype, []) for name, dtype in table.schema.items()}
    defaults |= dict.fromkeys(table.nullable or ())
    return {name: pl.lit(value, table.schema[name]) for name, value in defaults.items()}
