"""The graph for Cypher: labels, properties, and how tables are mapped to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    Tables = Mapping[str, pl.LazyFrame]

# Increment it if the graph changes, so that existing databases are made again.
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Nodes:
    """Nodes of one label with their properties, the first of which is the key."""

    label: str
    meaning: str
    properties: Mapping[str, str]


@dataclass(frozen=True)
class Edges:
    """Relationships of one label between nodes of two labels."""

    label: str
    meaning: str
    source: str
    target: str
    properties: Mapping[str, str]


NODES = (
    Nodes(
        "Entity",
        "an entity, by its human_readable_id",
        {
            "number": "INT64",
            "id": "STRING",
            "title": "STRING",
            "type": "STRING",
            "description": "STRING",
            "frequency": "INT64",
            "degree": "INT64",
            "aliases": "STRING[]",
        },
    ),
    Nodes(
        "Document",
        "a document, by its human_readable_id",
        {
            "number": "INT64",
            "id": "STRING",
            "title": "STRING",
            "path": "STRING",
            "language": "STRING",
            "creation_date": "STRING",
            "metadata": "STRING",
        },
    ),
    Nodes(
        "TextUnit",
        "a passage of a document, by its human_readable_id",
        {
            "number": "INT64",
            "id": "STRING",
            "text": "STRING",
            "n_tokens": "INT64",
            "headings": "STRING",
        },
    ),
    Nodes(
        "Community",
        "a community with its report, by its number; level 0 is the coarsest",
        {
            "community": "INT64",
            "level": "INT64",
            "title": "STRING",
            "size": "INT64",
            "period": "STRING",
            "report": "STRING",
            "summary": "STRING",
            "rank": "DOUBLE",
        },
    ),
)
EDGES = (
    Edges(
        "RELATED",
        "a relationship, once for each pair: match it without a direction",
        "Entity",
        "Entity",
        {"number": "INT64", "type": "STRING", "description": "STRING", "weight": "DOUBLE"},
    ),
    Edges("MENTIONS", "a text unit names an entity", "TextUnit", "Entity", {"times": "INT64"}),
    Edges("PART_OF", "a text unit lies in a document", "TextUnit", "Document", {}),
    Edges("IN_COMMUNITY", "an entity is a member", "Entity", "Community", {}),
    Edges("BELOW", "a community is a part of another", "Community", "Community", {}),
)


def graph_schema() -> str:
    """Describe the graph as patterns of Cypher."""
    nodes = [f"(:{n.label} {{{_properties(n.properties)}}})\n  {n.meaning}" for n in NODES]
    links = []
    for link in EDGES:
        own = f" {{{_properties(link.properties)}}}" if link.properties else ""
        links.append(f"(:{link.source})-[:{link.label}{own}]->(:{link.target})\n  {link.meaning}")
    return "\n".join([*nodes, *links])


def _properties(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in properties.items())


def rows_of(label: str, tables: "Tables") -> "pl.LazyFrame | None":
    """Return the rows of a label, ends first, then properties; None if a table is missing."""
    needed, make = _ROWS[label]
    if not all(name in tables for name in needed):
        return None
    return make(tables)


def _entities(tables: "Tables") -> "pl.LazyFrame":
    return _numbered(tables["entities"]).select(*NODES[0].properties)


def _documents(tables: "Tables") -> "pl.LazyFrame":
    return _numbered(tables["documents"]).select(*NODES[1].properties)


def _text_units(tables: "Tables") -> "pl.LazyFrame":
    return _numbered(tables["text_units"]).select(*NODES[2].properties)


def _communities(tables: "Tables") -> "pl.LazyFrame":
    import polars as pl

    communities = tables["communities"].select("community", "level", "title", "size", "period")
    if "community_reports" not in tables:
        report = {"report": pl.lit(None, pl.String), "summary": pl.lit(None, pl.String)}
        return communities.with_columns(**report, rank=pl.lit(None, pl.Float64))
    columns = ("community", pl.col("title").alias("report"), "summary", "rank")
    reports = tables["community_reports"].select(columns)
    # There is at most one report on a community.
    return communities.join(reports, on="community", how="left", maintain_order="left")


def _related(tables: "Tables") -> "pl.LazyFrame":
    numbers = _numbers(tables["entities"])
    return (
        _numbered(tables["relationships"])
        .join(numbers.rename({"id": "source_id", "of": "a"}), on="source_id")
        .join(numbers.rename({"id": "target_id", "of": "b"}), on="target_id")
        .select("a", "b", *EDGES[0].properties)
    )


def _mentions(tables: "Tables") -> "pl.LazyFrame":
    import polars as pl

    pairs = tables["mentions"].group_by("text_unit", "entity")
    return pairs.agg(pl.len().cast(pl.Int64).alias("times")).cast(pl.Int64)


def _part_of(tables: "Tables") -> "pl.LazyFrame":
    documents = _numbers(tables["documents"]).rename({"id": "document_id"})
    units = tables["text_units"].select("human_readable_id", "document_id")
    return units.join(documents, on="document_id").select("human_readable_id", "of")


def _in_community(tables: "Tables") -> "pl.LazyFrame":
    members = tables["communities"].select("community", "entity_ids").explode("entity_ids")
    numbers = _numbers(tables["entities"]).rename({"id": "entity_ids"})
    return members.join(numbers, on="entity_ids").select("of", "community")


def _below(tables: "Tables") -> "pl.LazyFrame":
    import polars as pl

    return tables["communities"].filter(pl.col("parent") >= 0).select("community", "parent")


def _numbered(table: "pl.LazyFrame") -> "pl.LazyFrame":
    return table.rename({"human_readable_id": "number"})


def _numbers(table: "pl.LazyFrame") -> "pl.LazyFrame":
    return table.select("id", of="human_readable_id")


_ROWS: "Mapping[str, tuple[tuple[str, ...], Callable[[Tables], pl.LazyFrame]]]" = {
    "Entity": (("entities",), _entities),
    "Document": (("documents",), _documents),
    "TextUnit": (("text_units",), _text_units),
    "Community": (("communities",), _communities),
    "RELATED": (("entities", "relationships"), _related),
    "MENTIONS": (("mentions", "entities", "text_units"), _mentions),
    "PART_OF": (("documents", "text_units"), _part_of),
    "IN_COMMUNITY": (("communities", "entities"), _in_community),
    "BELOW": (("communities",), _below),
}
