"""Communities of Microsoft's with members, parents and children, whichever version wrote them."""

import numpy as np
import polars as pl

from graphrag_index.microsoft.read_positions import rows_of
from graphrag_index.schema.list_columns import spread_lists
from graphrag_index.schema.table import INTEGERS, STRINGS
from graphrag_index.schema.tables import TABLES


def whole_communities(
    communities: pl.LazyFrame,
    nodes: pl.LazyFrame | None,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
) -> pl.DataFrame:
    """Complete the table of communities; rows and their order stay.

    Members that only `nodes` has are taken from there. A parent is the community one level up
    that holds the first member; children follow from parents, relationships from their ends,
    and text units from those relationships.
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
        rows = rows.with_columns(_relationships(rows, entities, relationships))
    rows = rows.with_columns(pl.col("relationship_ids").fill_null([]))
    if "text_unit_ids" not in has:
        rows = rows.with_columns(_text_units(rows, relationships))
    size = pl.col("entity_ids").list.len().cast(pl.Int64)
    given = {name for name in ("period", "title", "size", "human_readable_id") if name in has}
    title = pl.concat_str(pl.lit("Community "), pl.col("community"))
    rows = rows.with_columns(
        period=pl.col("period").fill_null("") if "period" in given else pl.lit(""),
        title=pl.col("title").fill_null(title) if "title" in given else title,
        size=pl.col("size").fill_null(size) if "size" in given else size,
        human_readable_id=pl.col("human_readable_id").fill_null(pl.col("community"))
        if "human_readable_id" in given
        else pl.col("community"),
        children=pl.col("children").fill_null([]),
        text_unit_ids=pl.col("text_unit_ids").fill_null([]),
        island=pl.lit(False),
    )
    return rows.select(list(TABLES["communities"].columns))


def members_from_nodes(nodes: pl.LazyFrame, entities: pl.LazyFrame) -> pl.LazyFrame | None:
    """Return `community` and `entity_ids`, in the order of entities; None if nodes do not tell."""
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
    joined = rows.select("community").join(
        members.collect(), on="community", how="left", maintain_order="left"
    )
    return joined["entity_ids"].fill_null([])


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
    joined = rows.select("community").join(
        parents, on="community", how="left", maintain_order="left"
    )
    return joined["parent"].fill_null(-1)


def _children(rows: pl.DataFrame) -> pl.Series:
    children = (
        rows.filter(pl.col("parent") >= 0)
        .sort("parent", "community")
        .group_by(community="parent", maintain_order=True)
        .agg(children=pl.col("community"))
    )
    joined = rows.select("community").join(
        children, on="community", how="left", maintain_order="left"
    )
    return joined["children"].cast(INTEGERS).fill_null([])


def _relationships(
    rows: pl.DataFrame, entities: pl.LazyFrame, relationships: pl.LazyFrame
) -> pl.Series:
    """Find the relationships whose ends are both members, sorted by id."""
    known = entities.select("id", "title").collect()
    links = relationships.select("id", "source", "target").collect()
    ends = [rows_of(links[end], known["title"]) for end in ("source", "target")]
    owners, members = spread_lists(rows["entity_ids"])
    held = pl.DataFrame({"row": owners, "entity": rows_of(members, known["id"])})
    named = pl.DataFrame({"id": links["id"], "source": ends[0], "target": ends[1]})
    named = named.filter(pl.col("source") >= 0, pl.col("target") >= 0)
    inside = (
        named.join(held, left_on="source", right_on="entity")
        .join(held, left_on=["target", "row"], right_on=["entity", "row"])
        .select("row", "id")
        .unique()
        .sort("row", "id")
    )
    return _gathered(inside, "id", rows.height).alias("relationship_ids")


def _text_units(rows: pl.DataFrame, relationships: pl.LazyFrame) -> pl.Series:
    """Find the text units of the relationships of each community, sorted by id."""
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
    return _gathered(units, "unit", rows.height).alias("text_unit_ids")


def _gathered(rows: pl.DataFrame, column: str, n_rows: int) -> pl.Series:
    lists = rows.group_by("row", maintain_order=True).agg(column)
    every = pl.DataFrame({"row": np.arange(n_rows)})
    joined = every.join(lists, on="row", how="left", maintain_order="left")
    return joined[column].cast(STRINGS).fill_null([])
