"""The whole index as a labelled property graph, in the import formats of graph databases.

    (:TextUnit)-[:PART_OF]->(:Document)
    (:TextUnit)-[:MENTIONS]->(:Entity)-[:RELATED]->(:Entity)
    (:Entity)-[:IN_COMMUNITY]->(:Community)-[:PARENT]->(:Community)

A RELATED has no direction: its arrow begins at the row's source. With filters, text units are
those that name a remaining entity, documents theirs, and communities those that hold one. A link
to a node that is left out is left out too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import polars as pl

from graphrag_index.export.exported_graph import (
    BATCH,
    Graph,
    clean,
    fields,
    in_batches,
    quoted,
    text_file,
    write_rows,
)
from graphrag_index.schema.table import STRINGS

# Rows of long texts that are held in memory at once.
_TEXT_BATCH = 4_096
# Rows of one Cypher statement: databases read long ones slowly.
_STATEMENT_ROWS = 100

_RELATED: dict[str, pl.DataType] = {
    "source": pl.String(),
    "target": pl.String(),
    "id": pl.String(),
    "number": pl.Int64(),
    "type": pl.String(),
    "description": pl.String(),
    "weight": pl.Float64(),
    "text_unit_ids": STRINGS,
}
_ROW_NUMBER = pl.col("human_readable_id").alias("number")
# fmt: off
_DOCUMENT = ("id", _ROW_NUMBER, "title", "path", "creation_date", "language", "metadata")
_TEXT_UNIT = (
    "id", _ROW_NUMBER, "text", "n_tokens", "start_char", "end_char", "headings", "metadata",
)
_COMMUNITY = ("id", "community", "level", "title", "size", "period", "island")
# fmt: on
_NEO4J_NODES = {
    "Entity": "entities.csv",
    "Document": "documents.csv",
    "TextUnit": "text_units.csv",
    "Community": "communities.csv",
}
_NEO4J_LINKS = {
    "RELATED": "related.csv",
    "PART_OF": "part_of.csv",
    "MENTIONS": "mentions.csv",
    "IN_COMMUNITY": "in_community.csv",
    "PARENT": "parent.csv",
}
_NEO4J_TYPES: dict[pl.DataType, str] = {
    pl.Int64(): ":long",
    pl.Float64(): ":double",
    pl.Boolean(): ":boolean",
    pl.String(): "",
    STRINGS: ":string[]",
}
_KUZU_TYPES: dict[pl.DataType, str] = {
    pl.String(): "STRING",
    pl.Int64(): "INT64",
    pl.Float64(): "DOUBLE",
    STRINGS: "STRING[]",
}
# The files of the formats that are folders.
NEO4J_FILES = frozenset([*_NEO4J_NODES.values(), *_NEO4J_LINKS.values()])
KUZU_FILES = frozenset(["nodes.parquet", "edges.parquet", "schema.cypher", "copy.cypher"])

BASE = "urn:graphrag-index:"
SCHEMA = f"{BASE}schema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_PREDICATES = {
    "title": f"{RDFS}label",
    "description": f"{RDFS}comment",
    "aliases": f"{SCHEMA}alias",
    "text_unit_ids": f"{SCHEMA}foundIn",
}
_RDF_LINKS = {
    "RELATED": "related",
    "PART_OF": "partOf",
    "MENTIONS": "mentions",
    "IN_COMMUNITY": "inCommunity",
    "PARENT": "parent",
}
_RDF_TYPES: dict[pl.DataType, str] = {
    pl.Int64(): "integer",
    pl.Float64(): "double",
    pl.Boolean(): "boolean",
}
# Characters that an IRI cannot hold, or that would divide an id.
_ENCODED = {chr(code): f"%{code:02X}" for code in (*range(0x21), *map(ord, '<>"{}|^`\\%/#?[]'))}


@dataclass(frozen=True)
class Part:
    """The nodes of one label, or the links of one type from nodes of one label to another.

    The first column of nodes is `id`, unique within the label. The first columns of links are
    `source` and `target`, ids of nodes; a column `id` tells the links between the same two nodes
    apart.
    """

    name: str
    schema: pl.Schema
    batches: Callable[[], Iterator[pl.DataFrame]]
    source: str = ""
    target: str = ""


def property_graph(graph: Graph) -> tuple[list[Part], list[Part]]:
    """Open the nodes and links of an index; they are read by `batches`."""
    documents, text_units, communities = (
        _remaining_rows(graph, name) for name in ("documents", "text_units", "communities")
    )
    nodes = [
        Part("Entity", graph.node_rows().collect_schema(), graph.nodes),
        _part("Document", documents.select(*_DOCUMENT)),
        _part("TextUnit", text_units.select(*_TEXT_UNIT), size=_TEXT_BATCH),
        _part("Community", _with_reports(graph, communities), size=_TEXT_BATCH),
    ]
    part_of = _only(text_units.select(source="id", target="document_id"), "target", documents)
    mentions = graph.scan("entities").select(source="text_unit_ids", target="id")
    mentions = _only(mentions, "target", graph.kept()).explode("source")
    members = communities.select(source="entity_ids", target="id", level="level").explode("source")
    parents = communities.select("parent", source="id").join(
        communities.select(target="id", parent="community"), on="parent", maintain_order="left"
    )
    links = [
        Part("RELATED", pl.Schema(_RELATED), lambda: _related(graph), "Entity", "Entity"),
        _part("PART_OF", part_of, "TextUnit", "Document"),
        _part("MENTIONS", _only(mentions, "source", text_units), "TextUnit", "Entity"),
        _part("IN_COMMUNITY", _only(members, "source", graph.kept()), "Entity", "Community"),
        _part("PARENT", parents.select("source", "target"), "Community", "Community"),
    ]
    return nodes, links


def _part(
    name: str, rows: pl.LazyFrame, source: str = "", target: str = "", size: int = BATCH
) -> Part:
    return Part(name, rows.collect_schema(), lambda: in_batches(rows, size), source, target)


def _related(graph: Graph) -> Iterator[pl.DataFrame]:
    return (edges.select(*_RELATED) for edges in graph.edges())


def _remaining_rows(graph: Graph, name: str) -> pl.LazyFrame:
    """Return the rows of a table that belong to the remaining entities."""
    rows = graph.scan(name)
    if not graph.is_filtered:
        return rows
    if name == "communities":
        members = rows.select("id", entity_id="entity_ids").explode("entity_id")
        return _only(rows, "id", _only(members, "entity_id", graph.kept()))
    if name == "documents":
        return _only(rows, "id", _remaining_rows(graph, "text_units").select(id="document_id"))
    named = graph.scan("entities").select("id", text_unit_id="text_unit_ids")
    named = _only(named, "id", graph.kept()).explode("text_unit_id")
    return _only(rows, "id", named.select(id="text_unit_id"))


def _only(rows: pl.LazyFrame, column: str, among: pl.LazyFrame) -> pl.LazyFrame:
    """Keep, in order, the rows whose value is an id of other rows."""
    ids = among.select(pl.col("id").alias(column)).drop_nulls().unique()
    return rows.join(ids, on=column, maintain_order="left")


def _with_reports(graph: Graph, communities: pl.LazyFrame) -> pl.LazyFrame:
    """Join the reports to their communities, and prefer the title of the report."""
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


def write_neo4j(graph: Graph, path: Path) -> list[str]:
    """Write CSV files for `neo4j-admin database import`, one for each label and type of link.

    The items of a list are joined by semicolons; one within an item becomes a comma, since the
    format has no escape for it. Forbidden control characters are replaced.
    """
    nodes, links = property_graph(graph)
    for part in nodes:
        _write_csv(path / _NEO4J_NODES[part.name], part, {"id": f"id:ID({part.name})"})
    for link in links:
        ends = {"source": f":START_ID({link.source})", "target": f":END_ID({link.target})"}
        _write_csv(path / _NEO4J_LINKS[link.name], link, ends)
    # Texts have line ends, and their backslashes escape nothing.
    command = ["neo4j-admin database import full neo4j --multiline-fields=true"]
    command += [f"--nodes={label}={file}" for label, file in _NEO4J_NODES.items()]
    command += [f"--relationships={name}={file}" for name, file in _NEO4J_LINKS.items()]
    return ["In TARGET, with the database stopped:", " \\\n  ".join(command)]


def _write_csv(path: Path, part: Part, names: dict[str, str]) -> None:
    head = [names.get(name, f"{name}{_NEO4J_TYPES[dtype]}") for name, dtype in part.schema.items()]
    values = [_csv_value(name, dtype) for name, dtype in part.schema.items()]
    with text_file(path) as file:
        file.write(f"{','.join(head)}\n")
        for batch in part.batches():
            # Null is not quoted, which tells it from the empty text.
            rows = batch.select(values)
            file.write(rows.write_csv(include_header=False, quote_style="non_numeric"))


def _csv_value(name: str, dtype: pl.DataType) -> pl.Expr:
    if isinstance(dtype, pl.List):
        items = pl.element().str.replace_all(";", ",", literal=True)
        return clean(pl.col(name).list.eval(items).list.join(";")).alias(name)
    if dtype == pl.Boolean:
        return pl.col(name).cast(pl.String)
    return clean(name) if dtype == pl.String else pl.col(name)


def write_cypher(graph: Graph, path: Path) -> list[str]:
    """Write a script of MERGE statements, one a line, which may be run more than once.

    First come constraints, then nodes, then links, several rows in each statement.
    """
    nodes, links = property_graph(graph)
    with text_file(path) as file:
        for part in nodes:
            name = f"graphrag_{part.name.lower()}_id"
            file.write(
                f"CREATE CONSTRAINT {name} IF NOT EXISTS "
                f"FOR (n:{part.name}) REQUIRE n.id IS UNIQUE;\n"
            )
        for part in nodes:
            _write_statements(file, part, f"MERGE (n:{part.name} {{id: row.id}}) SET n += row")
        for link in links:
            _write_statements(file, link, _merge_link(link))
    return ['Run it with: cypher-shell --file "TARGET"']


def _merge_link(link: Part) -> str:
    match = (
        f"MATCH (a:{link.source} {{id: row.source}}) MATCH (b:{link.target} {{id: row.target}}) "
    )
    has_id = "id" in link.schema
    key = " {id: row.id}" if has_id else ""
    values = [f"r.{name} = row.{name}" for name in list(link.schema)[2 + has_id :]]
    setting = f" SET {', '.join(values)}" if values else ""
    return f"{match}MERGE (a)-[r:{link.name}{key}]->(b){setting}"


def _write_statements(file: TextIO, part: Part, merge: str) -> None:
    keys = {name: f"{name}:" for name in part.schema}
    for batch in part.batches():
        statements = (
            batch.select(row=fields(keys, batch))
            .with_row_index("n")
            .group_by(pl.col("n") // _STATEMENT_ROWS, maintain_order=True)
            .agg(pl.col("row").str.join(","))
        )
        text = pl.concat_str(pl.lit("UNWIND ["), "row", pl.lit(f"] AS row {merge};\n"))
        write_rows(file, [statements], text)


def write_kuzu(graph: Graph, path: Path) -> list[str]:
    """Write entities and relationships as Parquet for Kùzu, with the scripts that load them.

    The first column of the nodes is their key, the first two of the edges are their ends. `IMPORT
    DATABASE` runs `schema.cypher` and `copy.cypher`.
    """
    node = graph.node_rows().collect_schema()
    properties = dict(list(_RELATED.items())[2:])
    edges = (batch.rename({"source": "from", "target": "to"}) for batch in graph.edges())
    _write_parquet(path / "nodes.parquet", node, graph.nodes())
    edge = {"from": pl.String(), "to": pl.String(), **properties}
    _write_parquet(path / "edges.parquet", edge, edges)
    scripts = {
        "schema": f"CREATE NODE TABLE Entity ({_kuzu_columns(node)}, PRIMARY KEY (id));\n"
        f"CREATE REL TABLE RELATED (FROM Entity TO Entity, {_kuzu_columns(properties)});\n",
        "copy": 'COPY Entity FROM "nodes.parquet";\nCOPY RELATED FROM "edges.parquet";\n',
    }
    for name, text in scripts.items():
        (path / f"{name}.cypher").write_text(text, encoding="utf-8", newline="\n")
    return ["Load it into an empty database with: IMPORT DATABASE 'TARGET'"]


def _kuzu_columns(schema: Mapping[str, pl.DataType]) -> str:
    return ", ".join(f"`{name}` {_KUZU_TYPES[dtype]}" for name, dtype in schema.items())


def _write_parquet(
    path: Path, schema: Mapping[str, pl.DataType], batches: Iterable[pl.DataFrame]
) -> None:
    import pyarrow.parquet as pq

    empty = pl.DataFrame(schema=schema).to_arrow(compat_level=pl.CompatLevel.oldest())
    with path.open("wb") as file, pq.ParquetWriter(file, empty.schema, compression="zstd") as out:
        for batch in batches:
            rows = batch.select(pl.col(name).cast(dtype) for name, dtype in schema.items())
            out.write_table(rows.to_arrow(compat_level=pl.CompatLevel.oldest()))


def write_ntriples(graph: Graph, path: Path) -> list[str]:
    """Write N-Triples (RDF 1.1): a resource for each row, triples for its columns and links.

    A row is `<urn:graphrag-index:CLASS/ID>` of the class `<urn:graphrag-index:schema#CLASS>`:
    Entity, Document, TextUnit, Community or Relationship. A column is the property
    `schema#COLUMN`; the title is `rdfs:label`, and the description `rdfs:comment`. A link is a
    property too. A relationship is a resource with `schema#source` and `schema#target`, and also
    the triple `source schema#related target`. The file begins with the domain and range of the
    links, and says that `schema#related` is symmetric.
    """
    nodes, links = property_graph(graph)
    with text_file(path) as file:
        file.write(f"<{SCHEMA}related> <{RDF}type> <{_OWL}SymmetricProperty> .\n")
        for link in links:
            name = _RDF_LINKS[link.name]
            file.write(f"<{SCHEMA}{name}> <{RDFS}domain> <{SCHEMA}{link.source}> .\n")
            file.write(f"<{SCHEMA}{name}> <{RDFS}range> <{SCHEMA}{link.target}> .\n")
        for part in nodes:
            triples = _row_triples(part.name, part.schema)
            write_rows(file, part.batches(), pl.concat_str(triples))
        for link in links:
            source, target = (
                _resource(getattr(link, end), pl.col(end)) for end in ("source", "target")
            )
            triples = [_triple(source, f"{SCHEMA}{_RDF_LINKS[link.name]}", target)]
            if "id" in link.schema:
                subject = _resource("Relationship", pl.col("id"))
                triples += _row_triples("Relationship", link.schema)
                triples.append(_triple(subject, f"{SCHEMA}source", source))
                triples.append(_triple(subject, f"{SCHEMA}target", target))
            write_rows(file, link.batches(), pl.concat_str(triples))
    return []


def _resource(label: str, ids: pl.Expr) -> pl.Expr:
    return pl.format(f"<{BASE}{label}/{{}}>", ids.str.replace_many(_ENCODED))


def _row_triples(label: str, schema: pl.Schema) -> list[pl.Expr]:
    """Return the triples of a row's columns that are not null, without those of its links."""
    subject = _resource(label, pl.col("id"))
    triples = [_triple(subject, f"{RDF}type", pl.lit(f"<{SCHEMA}{label}>"))]
    for name, dtype in schema.items():
        if name in ("id", "source", "target"):
            continue
        predicate = _PREDICATES.get(name, f"{SCHEMA}{name}")
        if isinstance(dtype, pl.List):
            item = pl.element()
            values = quoted(item) if name == "aliases" else _resource("TextUnit", item)
            between = pl.format(f" .\n{{}} <{predicate}> ", subject)
            value = pl.col(name).list.eval(values).list.join(between)
            # A join of no values is the empty text, not null.
            value = pl.when(pl.col(name).list.len() > 0).then(value)
        elif dtype == pl.String:
            value = quoted(name)
        else:
            value = pl.format(f'"{{}}"^^<{_XSD}{_RDF_TYPES[dtype]}>', name)
        triples.append(_triple(subject, predicate, value))
    return triples


def _triple(subject: pl.Expr, predicate: str, value: pl.Expr) -> pl.Expr:
    return pl.format(f"{{}} <{predicate}> {{}} .\n", subject, value).fill_null("")
