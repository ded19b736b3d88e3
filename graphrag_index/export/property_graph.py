"""The whole index as a labelled property graph: what graph databases are filled with.

    (:TextUnit)-[:PART_OF]->(:Document)
    (:TextUnit)-[:MENTIONS]->(:Entity)-[:RELATED]->(:Entity)
    (:Entity)-[:IN_COMMUNITY]->(:Community)-[:PARENT]->(:Community)

A RELATED has no direction: its arrow is where the row has its source. With filters, text units
are those that name an entity that is left, documents theirs, and communities those that hold
one. A link whose end is not among the nodes is left out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from graphrag_index.export.exported_graph import Graph, in_batches

# Rows of long texts that are held in memory at once.
_BATCH_OF_TEXTS = 4_096

Batches = Callable[[], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class Nodes:
    """The nodes of one label. The first column is `id`, unique within the label."""

    label: str
    schema: pl.Schema
    batches: Batches


@dataclass(frozen=True)
class Links:
    """The links of one type. The first columns are `source` and `target`, ids of nodes.

    If there is a column `id`, it tells the links between the same two nodes apart.
    """

    type: str
    source: str
    target: str
    schema: pl.Schema
    batches: Batches


def property_graph(graph: Graph) -> tuple[Sequence[Nodes], Sequence[Links]]:
    """Open the nodes and links of an index; nothing is read before their batches are."""
    tables = {name: _of_graph(graph, name) for name in ("text_units", "documents", "communities")}
    nodes = [
        Nodes("Entity", _entity_schema(graph), graph.nodes),
        _nodes("Document", tables["documents"].select(*_DOCUMENT)),
        _nodes("TextUnit", tables["text_units"].select(*_TEXT_UNIT), _BATCH_OF_TEXTS),
        _nodes("Community", _with_reports(graph, tables["communities"]), _BATCH_OF_TEXTS),
    ]
    text_units, communities = tables["text_units"], tables["communities"]
    related = pl.Schema(_RELATED)
    links = [
        Links("RELATED", "Entity", "Entity", related, lambda: _related(graph)),
        _links("PART_OF", "TextUnit", "Document", _part_of(text_units, tables["documents"])),
        _links("MENTIONS", "TextUnit", "Entity", _mentions(graph, text_units)),
        _links("IN_COMMUNITY", "Entity", "Community", _in_community(graph, communities)),
        _links("PARENT", "Community", "Community", _parents(communities)),
    ]
    return nodes, links


_NUMBER = pl.col("human_readable_id").alias("number")
_DOCUMENT = ("id", _NUMBER, "title", "path", "creation_date", "language", "metadata")
_TEXT_UNIT = ("id", _NUMBER, "text", "n_tokens", "start_char", "end_char", "headings", "metadata")
_COMMUNITY = ("id", "community", "level", "title", "size", "period", "island")
_RELATED: dict[str, pl.DataType] = {
    **{"source": pl.String(), "target": pl.String(), "id": pl.String(), "number": pl.Int64()},
    **{"type": pl.String(), "description": pl.String(), "weight": pl.Float64()},
    "text_unit_ids": pl.List(pl.String),
}


def _entity_schema(graph: Graph) -> pl.Schema:
    texts = {name: pl.String() for name in ("title", "type", "description")}
    return pl.Schema(
        {"id": pl.String(), "number": pl.Int64(), **texts, "aliases": pl.List(pl.String)}
        | {"degree": pl.Int64(), "frequency": pl.Int64(), "x": pl.Float64(), "y": pl.Float64()}
        | dict.fromkeys(graph.communities, pl.Int64())
    )


def _nodes(label: str, rows: pl.LazyFrame, size: int | None = None) -> Nodes:
    return Nodes(label, rows.collect_schema(), lambda: _batches(rows, size))


def _links(name: str, source: str, target: str, rows: pl.LazyFrame) -> Links:
    return Links(name, source, target, rows.collect_schema(), lambda: _batches(rows))


def _batches(rows: pl.LazyFrame, size: int | None = None) -> Iterator[pl.DataFrame]:
    return in_batches(rows) if size is None else in_batches(rows, size)


def _related(graph: Graph) -> Iterator[pl.DataFrame]:
    return (edges.select(*_RELATED) for edges in graph.edges())


def _of_graph(graph: Graph, name: str) -> pl.LazyFrame:
    """The rows of a table that belong to the entities that are left."""
    rows = graph.scan(name)
    if not graph.is_filtered:
        return rows
    if name == "communities":
        members = rows.select("id", entity_id="entity_ids").explode("entity_id")
        return _only(rows, "id", _only(members, "entity_id", graph.kept()))
    if name == "documents":
        return _only(rows, "id", _of_graph(graph, "text_units").select(id="document_id"))
    named = graph.scan("entities").select("id", text_unit_id="text_unit_ids")
    named = _only(named, "id", graph.kept()).explode("text_unit_id")
    return _only(rows, "id", named.select(id="text_unit_id"))


def _only(rows: pl.LazyFrame, column: str, among: pl.LazyFrame) -> pl.LazyFrame:
    """Keep, in order, the rows whose value is an id of other rows."""
    ids = among.select(pl.col("id").alias(column)).drop_nulls().unique()
    return rows.join(ids, on=column, how="inner", maintain_order="left")


def _part_of(text_units: pl.LazyFrame, documents: pl.LazyFrame) -> pl.LazyFrame:
    return _only(text_units.select(source="id", target="document_id"), "target", documents)


def _mentions(graph: Graph, text_units: pl.LazyFrame) -> pl.LazyFrame:
    entities = graph.scan("entities").select(source="text_unit_ids", target="id")
    named = _only(entities, "target", graph.kept()).explode("source")
    return _only(named, "source", text_units)


def _in_community(graph: Graph, communities: pl.LazyFrame) -> pl.LazyFrame:
    members = communities.select(source="entity_ids", target="id", level="level")
    return _only(members.explode("source"), "source", graph.kept())


def _parents(communities: pl.LazyFrame) -> pl.LazyFrame:
    numbers = communities.select(target="id", parent="community")
    rows = communities.select("parent", source="id")
    return rows.join(numbers, on="parent", how="inner", maintain_order="left").select(
        "source", "target"
    )


def _with_reports(graph: Graph, communities: pl.LazyFrame) -> pl.LazyFrame:
    """Add what the report on a community says; its title is better than the community's."""
    reports = (
        graph.scan("community_reports")
        .select("community", "summary", "full_content", "rank", report="title")
        .unique("community", keep="first", maintain_order=True)
    )
    return (
        communities.select(*_COMMUNITY)
        .join(reports, on="community", how="left", maintain_order="left")
        .with_columns(title=pl.coalesce("report", "title"))
        .drop("report")
    )
