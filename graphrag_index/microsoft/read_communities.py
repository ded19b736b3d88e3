"""Communities and reports of any version of Microsoft GraphRAG, completed to our columns."""

from collections.abc import Collection
from typing import Any

import polars as pl

from graphrag_index.microsoft.read_positions import first_rows
from graphrag_index.schema.list_columns import gather_lists, spread_lists
from graphrag_index.schema.table import INTEGERS, STRINGS
from graphrag_index.schema.tables import TABLES

# Columns that a report takes from its community, and their defaults without one.
_OF_COMMUNITY = {"level": 0, "parent": -1, "children": [], "period": "", "size": 0}


def complete_communities(
    communities: pl.LazyFrame,
    nodes: pl.LazyFrame | None,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
) -> pl.DataFrame:
    """Add the columns that a table of communities lacks; rows and their order stay.

    Members come from `nodes`. The parent is the community one level up that holds the first
    member; children follow from parents, relationships from members, text units from
    relationships.
    """
    rows = communities.collect()
    has = set(rows.columns)
    if "entity_ids" not in has:
        rows = rows.with_columns(_members(rows, nodes, entities))
    rows = rows.with_columns(pl.col("entity_ids").fill_null([]))
    if "level" not in has:
        rows = rows.with_columns(level=pl.lit(0, pl.Int64))
    if "parent" not in has:
        rows = rows.with_columns(_parents(rows))
    rows = rows.with_columns(pl.col("parent").fill_null(-1))
    if "children" not in has:
        rows = rows.with_columns(_children(rows))
    if "relationship_ids" not in has:
        rows = rows.with_columns(relationship_ids=_relationships(rows, entities, relationships))
    rows = rows.with_columns(pl.col("relationship_ids").fill_null([]))
    if "text_unit_ids" not in has:
        rows = rows.with_columns(text_unit_ids=_text_units(rows, relationships))
    defaults: dict[str, Any] = {
        "period": pl.lit(""),
        "title": pl.concat_str(pl.lit("Community "), pl.col("community")),
        "size": pl.col("entity_ids").list.len().cast(pl.Int64),
        "human_readable_id": pl.col("community"),
    }
    filled = {
        name: pl.col(name).fill_null(default) if name in has else default
        for name, default in defaults.items()
    }
    rows = rows.with_columns(
        pl.col("children", "text_unit_ids").fill_null([]), island=pl.lit(False), **filled
    )
    return rows.select(list(TABLES["communities"].columns))


def complete_reports(
    reports: pl.DataFrame, has: Collection[str], communities: pl.DataFrame
) -> pl.DataFrame:
    """Fill the columns of reports that their file lacks; `has` are those of the file."""
    at = first_rows(reports["community"], communities["community"])
    for name, default in _OF_COMMUNITY.items():
        if name not in has:
            known = communities[name]
            values = pl.concat([known, pl.Series(name, [default], known.dtype)])
            reports = reports.with_columns(values.gather(at).alias(name))
    defaults = {
        "human_readable_id": pl.col("community"),
        "id": pl.col("community").cast(pl.String),
        "title": pl.concat_str(pl.lit("Community "), pl.col("community")),
    }
    missing = {name: value for name, value in defaults.items() if name not in has}
    return reports.with_columns(**missing).select(list(TABLES["community_reports"].columns))


def members_from_nodes(nodes: pl.LazyFrame, entities: pl.LazyFrame) -> pl.LazyFrame | None:
    """Return `community` and `entity_ids`, in entity order; None if a column is missing."""
    if not {"title", "community"}.issubset(nodes.collect_schema()):
        return None
    if not {"title", "id"}.issubset(entities.collect_schema()):
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


def _members(rows: pl.DataFrame, nodes: pl.LazyFrame | None, entities: pl.LazyFrame) -> pl.Series:
    members = members_from_nodes(nodes, entities) if nodes is not None else None
    if members is None:
        return pl.Series("entity_ids", [[]] * rows.height, dtype=STRINGS)
    return _look_up(rows, members.collect(), "entity_ids").fill_null([])


def _parents(rows: pl.DataFrame) -> pl.Series:
    owners, members = spread_lists(rows["entity_ids"])
    held = pl.DataFrame(
        {
            "member": members,
            "level": rows["level"].gather(owners),
            "community": rows["community"].gather(owners),
        },
        schema={"member": pl.String, "level": pl.Int64, "community": pl.Int64},
    )
    above = held.select("member", pl.col("level") + 1, parent="community").unique(
        ["member", "level"], keep="first", maintain_order=True
    )
    first = held.unique("community", keep="first", maintain_order=True)
    parents = first.join(above, on=["member", "level"], how="left").select("community", "parent")
    return _look_up(rows, parents, "parent").fill_null(-1)


def _children(rows: pl.DataFrame) -> pl.Series:
    children = (
        rows.filter(pl.col("parent") >= 0)
        .sort("parent", "community")
        .group_by(community="parent", maintain_order=True)
        .agg(children=pl.col("community"))
    )
    return _look_up(rows, children, "children").cast(INTEGERS).fill_null([])


def _look_up(rows: pl.DataFrame, values: pl.DataFrame, column: str) -> pl.Series:
    """Return the value of each row's community."""
    numbers = rows.select("community")
    return numbers.join(values, on="community", how="left", maintain_order="left")[column]


def _relationships(
    rows: pl.DataFrame, entities: pl.LazyFrame, relationships: pl.LazyFrame
) -> pl.Series:
    """Return the ids of the relationships between two members, sorted."""
    known = entities.select("id", "title").collect()
    links = relationships.select("id", "source", "target").collect()
    owners, members = spread_lists(rows["entity_ids"])
    held = pl.DataFrame({"row": owners, "entity": first_rows(members, known["id"])})
    ends = links.with_columns(
        pl.Series(end, first_rows(links[end], known["title"])) for end in ("source", "target")
    ).filter(pl.col("source") >= 0, pl.col("target") >= 0)
    inside = (
        ends.join(held, left_on="source", right_on="entity")
        .join(held, left_on=["target", "row"], right_on=["entity", "row"])
        .select("row", "id")
        .unique()
        .sort("row", "id")
    )
    return gather_lists(inside["row"].to_numpy(), inside["id"], rows.height)


def _text_units(rows: pl.DataFrame, relationships: pl.LazyFrame) -> pl.Series:
    """Return the ids of the text units of each community's relationships, sorted."""
    owners, ids = spread_lists(rows["relationship_ids"])
    links = relationships.select("id", "text_unit_ids").unique("id", keep="first").collect()
    units = (
        pl.DataFrame({"row": owners, "id": ids})
        .join(links, on="id")
        .select("row", unit="text_unit_ids")
        .explode("unit")
        .drop_nulls()
        .unique()
        .sort("row", "unit")
    )
    return gather_lists(units["row"].to_numpy(), units["unit"], rows.height)
