"""Files of a graph: for programs that draw or compute, and for graph databases.

GraphML, GEXF and node-link JSON have the entities and relationships. A node has the id of its
entity, and an edge has the id of its relationship.

Neo4j, Cypher and Kùzu get the whole index as a labelled property graph:

    (:TextUnit)-[:PART_OF]->(:Document)
    (:TextUnit)-[:MENTIONS]->(:Entity)-[:RELATED]->(:Entity)
    (:Entity)-[:IN_COMMUNITY]->(:Community)-[:PARENT]->(:Community)

A relationship has no direction; its RELATED link goes from its source to its target. With filters,
only text units that mention an exported entity, their documents, and communities with an exported
entity are exported. A link to a node that is not exported is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import polars as pl

from graphrag_index.export.exported_graph import (
    BATCH_ROWS,
    ExportedGraph,
    escape_xml,
    format_fields,
    open_text_file,
    replace_control_characters,
    stream_rows,
    write_rows,
)
from graphrag_index.schema.tables import STRINGS, parse_columns
from graphrag_index.storage.table_writer import write_parquet
from graphrag_nlp.text.languages import read_lists

# Factor for coordinates: the layout spans about -1 to 1; programs draw nodes 10 units wide.
_XY_SCALE = 1_000
# Beginnings of files, and types of the node and edge attributes of GraphML and GEXF.
_FORMATS = read_lists("graphrag_index/export/graph_formats")
_NODE_FIELDS: dict[str, str] = _FORMATS["node_fields"]
_EDGE_FIELDS: dict[str, str] = _FORMATS["edge_fields"]
_GREY_RGB = 153
# Golden angle: communities with consecutive numbers get clearly different hues.
_HUE_STEP_DEGREES = 137.508
_SATURATION, _LIGHTNESS = 0.6, 0.5
_NODE_LINK_EDGE_COLUMNS = ("source", "target", "id", "number", "type", "description", "weight")
# Number of rows per batch of tables with long texts.
_TEXT_BATCH_ROWS = 4_096
# Maximum rows in one Cypher statement; databases parse long statements slowly.
_ROWS_PER_STATEMENT = 100

_RELATIONSHIP_COLUMN_TYPES = pl.Schema(
    parse_columns("id, number: int64, type, description, weight: float64, text_unit_ids: strings")
)
_DOCUMENT_COLUMNS = "id number title path creation_date language metadata".split()
_TEXT_UNIT_COLUMNS = "id number text n_tokens start_char end_char headings metadata".split()
_COMMUNITY_COLUMNS = "id community level title size period island".split()
_NEO4J_NODE_FILES: dict[str, str] = _FORMATS["neo4j_nodes"]
_NEO4J_LINK_FILES: dict[str, str] = _FORMATS["neo4j_links"]
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


def write_graphml(graph: ExportedGraph, path: Path) -> list[str]:
    """Write GraphML with all attributes, for Gephi, yEd, Cytoscape, igraph and networkx."""
    node = {"label": "string", **_NODE_FIELDS, "x": "double", "y": "double"}
    node |= dict.fromkeys(graph.community_columns, "long")
    edge = {"weight": "double", **_EDGE_FIELDS}
    values = _format_attributes('<data key="node_{}">', node, "</data>")
    node_line = pl.format('<node id="{}">{}</node>\n', escape_xml("id"), values)
    values = _format_attributes('<data key="edge_{}">', edge, "</data>")
    endpoints = (escape_xml("source"), escape_xml("target"))
    edge_line = pl.format(
        '<edge id="{}" source="{}" target="{}">{}</edge>\n', escape_xml("id"), *endpoints, values
    )
    with open_text_file(path) as file:
        file.write(_FORMATS["graphml_head"])
        for kind, attributes in (("node", node), ("edge", edge)):
            for name, dtype in attributes.items():
                file.write(
                    f'<key id="{kind}_{name}" for="{kind}" attr.name="{name}" '
                    f'attr.type="{dtype}"/>\n'
                )
        file.write('<graph edgedefault="undirected">\n')
        write_rows(file, map(_scale_xy, graph.stream_nodes()), node_line)
        write_rows(file, map(_add_text_unit_counts, graph.stream_edges()), edge_line)
        file.write("</graph>\n</graphml>\n")
    return []


def write_gexf(graph: ExportedGraph, path: Path) -> list[str]:
    """Write GEXF 1.3 for Gephi, with positions, sizes, and a colour for each community.

    The size of a node grows with its number of neighbours. Nodes without a community are grey.
    """
    node = _NODE_FIELDS | dict.fromkeys(graph.community_columns, "long")
    made = graph.version.made
    date = f' lastmodifieddate="{made.date[:10]}"' if made else ""
    node_line = pl.format(
        '<node id="{}" label="{}"><attvalues>{}</attvalues>{}{}{}</node>\n',
        escape_xml("id"),
        escape_xml("label").fill_null(""),
        _format_attributes('<attvalue for="{}" value="', node, '"/>'),
        pl.format('<viz:color r="{}" g="{}" b="{}"/>', "r", "g", "b"),
        pl.format('<viz:position x="{}" y="{}" z="0.0"/>', "x", "y").fill_null(""),
        pl.format('<viz:size value="{}"/>', "size"),
    )
    edge_line = pl.format(
        '<edge id="{}" source="{}" target="{}{}"><attvalues>{}</attvalues></edge>\n',
        escape_xml("id"),
        escape_xml("source"),
        escape_xml("target"),
        pl.format('" weight="{}', "weight").fill_null(""),
        _format_attributes('<attvalue for="{}" value="', _EDGE_FIELDS, '"/>'),
    )
    with open_text_file(path) as file:
        file.write(_FORMATS["gexf_head"])
        file.write(f"<meta{date}><creator>graphrag-index</creator></meta>\n")
        file.write('<graph defaultedgetype="undirected" idtype="string">\n')
        for kind, attributes in (("node", node), ("edge", _EDGE_FIELDS)):
            file.write(f'<attributes class="{kind}">\n')
            for name, dtype in attributes.items():
                file.write(f'<attribute id="{name}" title="{name}" type="{dtype}"/>\n')
            file.write("</attributes>\n")
        file.write("<nodes>\n")
        write_rows(file, map(_add_drawing_columns, graph.stream_nodes()), node_line)
        file.write("</nodes>\n<edges>\n")
        write_rows(file, map(_add_text_unit_counts, graph.stream_edges()), edge_line)
        file.write("</edges>\n</graph>\n</gexf>\n")
    return []


def _format_attributes(opening: str, types: Mapping[str, str], closing: str) -> pl.Expr:
    """Format the attributes of a row that are not null; `{}` in `opening` stands for the name."""
    parts = []
    for name, dtype in types.items():
        text = escape_xml(name) if dtype == "string" else pl.col(name).cast(pl.String)
        parts.append(pl.format(f"{opening.format(name)}{{}}{closing}", text).fill_null(""))
    return pl.concat_str(parts)


def _scale_xy(nodes: pl.DataFrame) -> pl.DataFrame:
    return nodes.rename({"title": "label"}).with_columns((pl.col("x", "y") * _XY_SCALE).round(3))


def _add_drawing_columns(nodes: pl.DataFrame) -> pl.DataFrame:
    """Add the columns `r`, `g`, `b` (0–255) and `size`, and scale the coordinates `x`, `y`."""
    hue = pl.lit(None, pl.Float64)
    if "community" in nodes.columns:
        hue = pl.col("community") * _HUE_STEP_DEGREES % 360
    # Convert HSL to RGB as in CSS Color Module Level 4.
    amount = _SATURATION * min(_LIGHTNESS, 1 - _LIGHTNESS)
    channels = {}
    for name, offset in (("r", 0), ("g", 8), ("b", 4)):
        k = (hue / 30 + offset) % 12
        swing = pl.min_horizontal(k - 3, 9 - k, pl.lit(1.0)).clip(lower_bound=-1.0)
        channel = ((_LIGHTNESS - amount * swing) * 255).round()
        channels[name] = pl.when(hue.is_null()).then(_GREY_RGB).otherwise(channel).cast(pl.Int64)
    size = (10 + 4 * (pl.col("degree") + 1).log(2)).round(1)
    return _scale_xy(nodes).with_columns(size=size, **channels)


def _add_text_unit_counts(edges: pl.DataFrame) -> pl.DataFrame:
    return edges.with_columns(text_units=pl.col("text_unit_ids").list.len())


def write_node_link(graph: ExportedGraph, path: Path) -> list[str]:
    """Write node-link JSON for `networkx.node_link_graph`, one row per line.

    `multigraph` is true only if several relationships link the same two entities.
    """
    import numpy as np

    pairs = [np.zeros(0, np.int64)]

    def stream_edge_objects() -> Iterable[pl.DataFrame]:
        for rows in graph.stream_edges():
            endpoints = rows.select(pl.col("source_row", "target_row").cast(pl.Int64)).to_numpy()
            pairs.append(endpoints.min(axis=1) * len(graph.keys) + endpoints.max(axis=1))
            yield _add_text_unit_counts(rows).select(*_NODE_LINK_EDGE_COLUMNS, "text_units")

    with open_text_file(path) as file:
        file.write(f'{{"directed":false,"graph":{{"version":{graph.version.number}}},\n"nodes":[')
        _write_objects(file, graph.stream_nodes())
        file.write('\n],\n"edges":[')
        _write_objects(file, stream_edge_objects())
        all_pairs = np.concatenate(pairs)
        all_pairs.sort()
        is_multiple = bool((all_pairs[1:] == all_pairs[:-1]).any())
        file.write(f'\n],\n"multigraph":{str(is_multiple).lower()}}}\n')
    return []


def _write_objects(file: TextIO, batches: Iterable[pl.DataFrame]) -> None:
    """Write rows as JSON objects, separated by commas."""
    separator = "\n"
    for rows in batches:
        objects = format_fields({name: f'"{name}":' for name in rows.columns}, rows)
        file.write(separator + rows.select(objects.str.join(",\n")).item())
        separator = ",\n"


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
