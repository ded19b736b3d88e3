"""The whole index as a labelled property graph, in the import formats of graph databases.

    (:TextUnit)-[:PART_OF]->(:Document)
    (:TextUnit)-[:MENTIONS]->(:Entity)-[:RELATED]->(:Entity)
    (:Entity)-[:IN_COMMUNITY]->(:Community)-[:PARENT]->(:Community)

A relationship has no direction; its RELATED link goes from its source to its target. With filters,
only text units that mention an exported entity, their documents, and communities with an exported
entity are exported. A link to a node that is not exported is left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import polars as pl

from graphrag_index.export.exported_graph import (
    BATCH_ROWS,
    ExportedGraph,
    format_fields,
    open_text_file,
    replace_control_characters,
    stream_rows,
    write_rows,
)
from graphrag_index.schema.tables import STRINGS, parse_columns
from graphrag_index.storage.table_writer import write_parquet
from graphrag_nlp.text.languages import read_lists

# Number of rows read at once from tables with long texts.
_TEXT_BATCH_ROWS = 4_096
# Maximum rows in one Cypher statement; databases parse long statements slowly.
_ROWS_PER_STATEMENT = 100

_RELATIONSHIP_COLUMN_TYPES = pl.Schema(
    parse_columns("id, number: int64, type, description, weight: float64, text_unit_ids: strings")
)
_DOCUMENT_COLUMNS = "id number title path creation_date language metadata".split()
_TEXT_UNIT_COLUMNS = "id number text n_tokens start_char end_char headings metadata".split()
_COMMUNITY_COLUMNS = "id community level title size period island".split()
_NEO4J_NODE_FILES: dict[str, str] = read_lists("graphrag_index/export/graph_formats")["neo4j_nodes"]
_NEO4J_LINK_FILES: dict[str, str] = read_lists("graphrag_index/export/graph_formats")["neo4j_links"]
# Names of each column type: column suffix in Neo4j, type in Kùzu.
_COLUMN_TYPE_NAMES: dict[pl.DataType, tuple[str, str]] = {
    pl.Int64(): (":long", "INT64"),
    pl.Float64(): (":double", "DOUBLE"),
    pl.Boolean(): (":boolean", "BOOLEAN"),
    pl.String(): ("", "STRING"),
    STRINGS: (":string[]", "STRING[]"),
}
# Names of the files that an export to Neo4j or Kùzu writes into a folder.
NEO4J_FILES = frozenset([*_NEO4J_NODE_FILES.values(), *_NEO4J_LINK_FILES.values()])
KUZU_FILES = frozenset(["nodes.parquet", "edges.parquet", "schema.cypher", "copy.cypher"])


@dataclass(frozen=True)
class GraphPart:
    """All nodes with one label, or all links of one type.

    The first column of nodes is `id`, unique within the label. The first columns of links are
    `source` and `target`, which are ids of nodes. A column `id` distinguishes links between the
    same two nodes.
    """

    name: str
    schema: pl.Schema
    batches: Callable[[], Iterator[pl.DataFrame]]
    source: str = ""
    target: str = ""


def open_property_graph(graph: ExportedGraph) -> tuple[list[GraphPart], list[GraphPart]]:
    """Return the nodes by label and the links by type; `GraphPart.batches` reads their rows."""
    documents, text_units, communities = (
        _scan_exported_rows(graph, name).rename({"human_readable_id": "number"})
        for name in ("documents", "text_units", "communities")
    )
    nodes = [
        GraphPart("Entity", graph.scan_nodes().collect_schema(), graph.stream_nodes),
        _make_part("Document", documents.select(_DOCUMENT_COLUMNS)),
        _make_part("TextUnit", text_units.select(_TEXT_UNIT_COLUMNS), size=_TEXT_BATCH_ROWS),
        _make_part("Community", _join_community_reports(graph, communities), size=_TEXT_BATCH_ROWS),
    ]
    kept = graph.scan_kept_entities()
    part_of = text_units.select(source="id", target="document_id")
    part_of = _filter_by_ids(part_of, "target", documents)
    mentions = graph.scan_table("entities").select(source="text_unit_ids", target="id")
    mentions = _filter_by_ids(mentions, "target", kept).explode("source")
    mentions = _filter_by_ids(mentions, "source", text_units)
    members = communities.select(source="entity_ids", target="id", level="level").explode("source")
    members = _filter_by_ids(members, "source", kept)
    parents = communities.select("parent", source="id").join(
        communities.select(target="id", parent="community"), on="parent", maintain_order="left"
    )
    related = pl.Schema({**parse_columns("source, target"), **_RELATIONSHIP_COLUMN_TYPES})
    links = [
        GraphPart(
            "RELATED",
            related,
            lambda: (edges.select(*related) for edges in graph.stream_edges()),
            "Entity",
            "Entity",
        ),
        _make_part("PART_OF", part_of, "TextUnit", "Document"),
        _make_part("MENTIONS", mentions, "TextUnit", "Entity"),
        _make_part("IN_COMMUNITY", members, "Entity", "Community"),
        _make_part("PARENT", parents.select("source", "target"), "Community", "Community"),
    ]
    return nodes, links


def _make_part(
    name: str, rows: pl.LazyFrame, source: str = "", target: str = "", size: int = BATCH_ROWS
) -> GraphPart:
    return GraphPart(name, rows.collect_schema(), lambda: stream_rows(rows, size), source, target)


def _scan_exported_rows(graph: ExportedGraph, name: str) -> pl.LazyFrame:
    """Return the rows of a table that belong to exported entities; without filters, all rows."""
    rows = graph.scan_table(name)
    if not graph.is_filtered:
        return rows
    kept = graph.scan_kept_entities()
    if name == "communities":
        members = rows.select("id", entity_id="entity_ids").explode("entity_id")
        referring = _filter_by_ids(members, "entity_id", kept)
    elif name == "documents":
        referring = _scan_exported_rows(graph, "text_units").select(id="document_id")
    else:
        entities = _filter_by_ids(graph.scan_table("entities"), "id", kept)
        referring = entities.select(id="text_unit_ids").explode("id")
    return _filter_by_ids(rows, "id", referring)


def _filter_by_ids(rows: pl.LazyFrame, column: str, among: pl.LazyFrame) -> pl.LazyFrame:
    """Keep the rows whose `column` is an id of the table `among`, in the order of `rows`."""
    ids = among.select(pl.col("id").alias(column)).drop_nulls().unique()
    return rows.join(ids, on=column, maintain_order="left")


def _join_community_reports(graph: ExportedGraph, communities: pl.LazyFrame) -> pl.LazyFrame:
    """Join reports to their communities; the report's title replaces the community's title."""
    reports = (
        graph.scan_table("community_reports")
        .select("community", "summary", "full_content", "rank", report="title")
        .unique("community", keep="first", maintain_order=True)
    )
    return (
        communities.select(_COMMUNITY_COLUMNS)
        .join(reports, on="community", how="left", maintain_order="left")
        .with_columns(title=pl.coalesce("report", "title"))
        .drop("report")
    )


def write_neo4j(graph: ExportedGraph, path: Path) -> list[str]:
    """Write CSV files for `neo4j-admin database import`, one per label and per type of link.

    List items are separated by semicolons. A semicolon in an item becomes a comma, since the format
    has no escape character. Control characters that XML forbids become U+FFFD.
    """
    nodes, links = open_property_graph(graph)
    for part in nodes:
        _write_csv(path / _NEO4J_NODE_FILES[part.name], part, {"id": f"id:ID({part.name})"})
    for link in links:
        endpoints = {"source": f":START_ID({link.source})", "target": f":END_ID({link.target})"}
        _write_csv(path / _NEO4J_LINK_FILES[link.name], link, endpoints)
    # Texts contain line ends, so the import needs the option `--multiline-fields`.
    command = ["neo4j-admin database import full neo4j --multiline-fields=true"]
    command += [f"--nodes={label}={file}" for label, file in _NEO4J_NODE_FILES.items()]
    command += [f"--relationships={name}={file}" for name, file in _NEO4J_LINK_FILES.items()]
    return ["Stop the database, then run in the folder TARGET:", " \\\n  ".join(command)]


def _write_csv(path: Path, part: GraphPart, names: dict[str, str]) -> None:
    """Write nodes or links as CSV; `names` maps columns to other names in the header."""
    columns = part.schema.items()
    head = [names.get(name, f"{name}{_COLUMN_TYPE_NAMES[dtype][0]}") for name, dtype in columns]
    values = [_format_csv_value(name, dtype) for name, dtype in columns]
    with open_text_file(path) as file:
        file.write(f"{','.join(head)}\n")
        for batch in part.batches():
            # Quote texts: an unquoted empty field is null, a quoted one is the empty text.
            rows = batch.select(values)
            file.write(rows.write_csv(include_header=False, quote_style="non_numeric"))


def _format_csv_value(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return the expression that formats a column for the CSV import of Neo4j."""
    if isinstance(dtype, pl.List):
        items = pl.element().str.replace_all(";", ",", literal=True)
        return replace_control_characters(pl.col(name).list.eval(items).list.join(";")).alias(name)
    if dtype == pl.Boolean:
        return pl.col(name).cast(pl.String)
    return replace_control_characters(name) if dtype == pl.String else pl.col(name)


def write_cypher(graph: ExportedGraph, path: Path) -> list[str]:
    """Write a Cypher script of MERGE statements; running it again changes nothing.

    The script creates constraints, then nodes, then links. Each statement is one line of text, and
    creates several nodes or links.
    """
    nodes, links = open_property_graph(graph)
    with open_text_file(path) as file:
        for part in nodes:
            name = f"graphrag_{part.name.lower()}_id"
            file.write(
                f"CREATE CONSTRAINT {name} IF NOT EXISTS "
                f"FOR (n:{part.name}) REQUIRE n.id IS UNIQUE;\n"
            )
        for part in nodes:
            _write_statements(file, part, f"MERGE (n:{part.name} {{id: row.id}}) SET n += row")
        for link in links:
            _write_statements(file, link, _format_link_clause(link))
    return ['Run the script with: cypher-shell --file "TARGET"']


def _format_link_clause(link: GraphPart) -> str:
    """Return the Cypher clause that matches source and target of `row` and creates the link."""
    match = f"MATCH (a:{link.source} {{id: row.source}}) MATCH (b:{link.target} {{id: row.target}})"
    has_id = "id" in link.schema
    key = " {id: row.id}" if has_id else ""
    values = [f"r.{name} = row.{name}" for name in list(link.schema)[2 + has_id :]]
    setting = f" SET {', '.join(values)}" if values else ""
    return f"{match} MERGE (a)-[r:{link.name}{key}]->(b){setting}"


def _write_statements(file: TextIO, part: GraphPart, merge: str) -> None:
    """Write Cypher statements that run the clause `merge` for each row of a graph part."""
    keys = {name: f"{name}:" for name in part.schema}
    for batch in part.batches():
        statements = (
            batch.select(row=format_fields(keys, batch))
            .with_row_index("n")
            .group_by(pl.col("n") // _ROWS_PER_STATEMENT, maintain_order=True)
            .agg(pl.col("row").str.join(","))
        )
        text = pl.concat_str(pl.lit("UNWIND ["), "row", pl.lit(f"] AS row {merge};\n"))
        write_rows(file, [statements], text)


def write_kuzu(graph: ExportedGraph, path: Path) -> list[str]:
    """Write entities and relationships as Parquet for Kùzu, with the scripts that load them.

    The first column of the nodes is the primary key; the first two columns of the edges are their
    source and target. `IMPORT DATABASE` runs `schema.cypher` and `copy.cypher`.
    """
    node = graph.scan_nodes().collect_schema()
    edges = (batch.rename({"source": "from", "target": "to"}) for batch in graph.stream_edges())
    write_parquet(path / "nodes.parquet", node, graph.stream_nodes())
    edge = pl.Schema({**parse_columns("from, to"), **_RELATIONSHIP_COLUMN_TYPES})
    write_parquet(path / "edges.parquet", edge, edges)
    columns, properties = (
        ", ".join(f"`{name}` {_COLUMN_TYPE_NAMES[dtype][1]}" for name, dtype in schema.items())
        for schema in (node, _RELATIONSHIP_COLUMN_TYPES)
    )
    scripts = {
        "schema": f"CREATE NODE TABLE Entity ({columns}, PRIMARY KEY (id));\n"
        f"CREATE REL TABLE RELATED (FROM Entity TO Entity, {properties});\n",
        "copy": 'COPY Entity FROM "nodes.parquet";\nCOPY RELATED FROM "edges.parquet";\n',
    }
    for name, text in scripts.items():
        (path / f"{name}.cypher").write_text(text, encoding="utf-8", newline="\n")
    return ["Load the folder into an empty database with: IMPORT DATABASE 'TARGET'"]
