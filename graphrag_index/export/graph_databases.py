"""The whole index as a labelled property graph, in the import formats of graph databases.

    (:TextUnit)-[:PART_OF]->(:Document)
    (:TextUnit)-[:MENTIONS]->(:Entity)-[:RELATED]->(:Entity)
    (:Entity)-[:IN_COMMUNITY]->(:Community)-[:PARENT]->(:Community)

A RELATED has no direction: its arrow begins at the row's source. With filters, text units are
those that name a remaining entity, documents theirs, and communities those that hold one. A link
to a node that is left out is left out too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from graphrag_index.export.exported_graph import BATCH, Graph, in_batches
from graphrag_index.export.text_rows import TextFile, clean, fields
from graphrag_index.schema.table import STRINGS

# Rows of long texts that are held in memory at once.
_TEXT_BATCH = 4_096
# Rows of one Cypher statement: databases read long ones slowly.
_STATEMENT_ROWS = 100

_TEXT, _INTEGER, _NUMBER = pl.String(), pl.Int64(), pl.Float64()
_RELATED: dict[str, pl.DataType] = {
    "source": _TEXT,
    "target": _TEXT,
    "id": _TEXT,
    "number": _INTEGER,
    "type": _TEXT,
    "description": _TEXT,
    "weight": _NUMBER,
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
    _INTEGER: ":long",
    _NUMBER: ":double",
    pl.Boolean(): ":boolean",
    _TEXT: "",
    STRINGS: ":string[]",
}
_KUZU_TYPES = {_TEXT: "STRING", _INTEGER: "INT64", _NUMBER: "DOUBLE", STRINGS: "STRING[]"}
# The files of the formats that are folders.
NEO4J_FILES = frozenset([*_NEO4J_NODES.values(), *_NEO4J_LINKS.values()])
KUZU_FILES = frozenset(["nodes.parquet", "edges.parquet", "schema.cypher", "copy.cypher"])

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

    A column `id` tells the links between the same two nodes apart.
    """

    type: str
    source: str
    target: str
    schema: pl.Schema
    batches: Batches


def property_graph(graph: Graph) -> tuple[Sequence[Nodes], Sequence[Links]]:
    """Open the nodes and links of an index; they are read by `batches`."""
    documents, text_units, communities = (
        _remaining_rows(graph, name) for name in ("documents", "text_units", "communities")
    )
    nodes = [
        Nodes("Entity", pl.Schema(_entity_columns(graph)), graph.nodes),
        _nodes("Document", documents.select(*_DOCUMENT)),
        _nodes("TextUnit", text_units.select(*_TEXT_UNIT), _TEXT_BATCH),
        _nodes("Community", _with_reports(graph, communities), _TEXT_BATCH),
    ]
    part_of = _only(text_units.select(source="id", target="document_id"), "target", documents)
    mentions = graph.scan("entities").select(source="text_unit_ids", target="id")
    mentions = _only(mentions, "target", graph.kept()).explode("source")
    members = communities.select(source="entity_ids", target="id", level="level")
    parents = communities.select("parent", source="id").join(
        communities.select(target="id", parent="community"),
        on="parent",
        how="inner",
        maintain_order="left",
    )
    links = [
        Links("RELATED", "Entity", "Entity", pl.Schema(_RELATED), lambda: _related(graph)),
        _links("PART_OF", "TextUnit", "Document", part_of),
        _links("MENTIONS", "TextUnit", "Entity", _only(mentions, "source", text_units)),
        _links(
            "IN_COMMUNITY",
            "Entity",
            "Community",
            _only(members.explode("source"), "source", graph.kept()),
        ),
        _links("PARENT", "Community", "Community", parents.select("source", "target")),
    ]
    return nodes, links


def _entity_columns(graph: Graph) -> dict[str, pl.DataType]:
    return {
        "id": _TEXT,
        "number": _INTEGER,
        "title": _TEXT,
        "type": _TEXT,
        "description": _TEXT,
        "aliases": STRINGS,
        "degree": _INTEGER,
        "frequency": _INTEGER,
        "x": _NUMBER,
        "y": _NUMBER,
        **dict.fromkeys(graph.communities, _INTEGER),
    }


def _nodes(label: str, rows: pl.LazyFrame, size: int = BATCH) -> Nodes:
    return Nodes(label, rows.collect_schema(), lambda: in_batches(rows, size))


def _links(name: str, source: str, target: str, rows: pl.LazyFrame) -> Links:
    return Links(name, source, target, rows.collect_schema(), lambda: in_batches(rows))


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
    return rows.join(ids, on=column, how="inner", maintain_order="left")


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
        _write_csv(path / _NEO4J_NODES[part.label], part, {"id": f"id:ID({part.label})"})
    for link in links:
        ends = {"source": f":START_ID({link.source})", "target": f":END_ID({link.target})"}
        _write_csv(path / _NEO4J_LINKS[link.type], link, ends)
    # Texts have line ends, and their backslashes escape nothing.
    command = ["neo4j-admin database import full neo4j --multiline-fields=true"]
    command += [f"--nodes={label}={file}" for label, file in _NEO4J_NODES.items()]
    command += [f"--relationships={name}={file}" for name, file in _NEO4J_LINKS.items()]
    return ["In TARGET, with the database stopped:", " \\\n  ".join(command)]


def _write_csv(path: Path, part: Nodes | Links, names: dict[str, str]) -> None:
    head = [names.get(name, f"{name}{_NEO4J_TYPES[dtype]}") for name, dtype in part.schema.items()]
    values = [_csv_value(name, dtype) for name, dtype in part.schema.items()]
    with path.open("wb", buffering=1 << 20) as file:
        file.write(f"{','.join(head)}\n".encode())
        for batch in part.batches():
            # Null is not quoted, which tells it from the empty text.
            text = batch.select(values).write_csv(
                include_header=False, quote_style="non_numeric", line_terminator="\n"
            )
            file.write(text.encode())


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
    with TextFile(path) as file:
        for part in nodes:
            name = f"graphrag_{part.label.lower()}_id"
            file.write(
                f"CREATE CONSTRAINT {name} IF NOT EXISTS "
                f"FOR (n:{part.label}) REQUIRE n.id IS UNIQUE;\n"
            )
        for part in nodes:
            merge = f"MERGE (n:{part.label} {{id: row.id}}) SET n += row"
            _write_statements(file, part, merge)
        for link in links:
            _write_statements(file, link, _merge_link(link))
    return ['Run it with: cypher-shell --file "TARGET"']


def _merge_link(link: Links) -> str:
    match = (
        f"MATCH (a:{link.source} {{id: row.source}}) MATCH (b:{link.target} {{id: row.target}}) "
    )
    has_id = "id" in link.schema
    key = " {id: row.id}" if has_id else ""
    values = [f"r.{name} = row.{name}" for name in list(link.schema)[2 + has_id :]]
    setting = f" SET {', '.join(values)}" if values else ""
    return f"{match}MERGE (a)-[r:{link.type}{key}]->(b){setting}"


def _write_statements(file: TextFile, part: Nodes | Links, merge: str) -> None:
    keys = {name: f"{name}:" for name in part.schema}
    for batch in part.batches():
        rows = batch.select(row=pl.concat_str(pl.lit("{"), fields(keys, batch), pl.lit("}")))
        statements = (
            rows.with_row_index("n")
            .group_by(pl.col("n") // _STATEMENT_ROWS, maintain_order=True)
            .agg(pl.col("row").str.join(","))
            .select(pl.concat_str(pl.lit("UNWIND ["), "row", pl.lit(f"] AS row {merge};\n")))
        )
        file.write_column(statements.to_series())


def write_kuzu(graph: Graph, path: Path) -> list[str]:
    """Write entities and relationships as Parquet for Kùzu, with the scripts that load them.

    The first column of the nodes is their key, the first two of the edges are their ends. `IMPORT
    DATABASE` runs `schema.cypher` and `copy.cypher`.
    """
    node = _entity_columns(graph)
    edge = {"from": _TEXT, "to": _TEXT, **dict(list(_RELATED.items())[2:])}
    _write_parquet(path / "nodes.parquet", node, graph.nodes())
    edges = (batch.rename({"source": "from", "target": "to"}) for batch in graph.edges())
    _write_parquet(path / "edges.parquet", edge, edges)
    properties = dict(list(edge.items())[2:])
    schema = (
        f"CREATE NODE TABLE Entity ({_kuzu_columns(node)}, PRIMARY KEY (id));\n"
        f"CREATE REL TABLE RELATED (FROM Entity TO Entity, {_kuzu_columns(properties)});\n"
    )
    (path / "schema.cypher").write_text(schema, encoding="utf-8", newline="\n")
    copy = 'COPY Entity FROM "nodes.parquet";\nCOPY RELATED FROM "edges.parquet";\n'
    (path / "copy.cypher").write_text(copy, encoding="utf-8", newline="\n")
    return ["Load it into an empty database with: IMPORT DATABASE 'TARGET'"]


def _kuzu_columns(schema: Mapping[str, pl.DataType]) -> str:
    return ", ".join(f"`{name}` {_KUZU_TYPES[dtype]}" for name, dtype in schema.items())


def _write_parquet(
    path: Path, schema: Mapping[str, pl.DataType], batches: Iterator[pl.DataFrame]
) -> None:
    import pyarrow.parquet as pq

    empty = pl.DataFrame(schema=schema).to_arrow(compat_level=pl.CompatLevel.oldest())
    with path.open("wb") as file, pq.ParquetWriter(file, empty.schema, compression="zstd") as out:
        for batch in batches:
            rows = batch.select(pl.col(name).cast(dtype) for name, dtype in schema.items())
            out.write_table(rows.to_arrow(compat_level=pl.CompatLevel.oldest()))
