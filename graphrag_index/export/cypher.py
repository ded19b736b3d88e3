"""A Cypher script that makes the graph in a database that runs, by MERGE: twice is as once.

One statement is one line: the constraints, then nodes, then links, so many rows in each.
"""

from pathlib import Path

import polars as pl

from graphrag_index.export.exported_graph import Graph
from graphrag_index.export.property_graph import Links, Nodes, property_graph
from graphrag_index.export.text_rows import TextFile, fields

# Rows of one statement. Databases read long ones slowly.
_ROWS = 100


def write(graph: Graph, path: Path) -> list[str]:
    """Write the script."""
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
            _write(file, part, merge)
        for link in links:
            _write(file, link, _merge(link))
    return ['Run it with: cypher-shell --file "TARGET"']


def _merge(link: Links) -> str:
    match = (
        f"MATCH (a:{link.source} {{id: row.source}}) MATCH (b:{link.target} {{id: row.target}}) "
    )
    has_id = "id" in link.schema
    key = " {id: row.id}" if has_id else ""
    values = [f"r.{name} = row.{name}" for name in list(link.schema)[2 + has_id :]]
    setting = f" SET {', '.join(values)}" if values else ""
    return f"{match}MERGE (a)-[r:{link.type}{key}]->(b){setting}"


def _write(file: TextFile, part: Nodes | Links, merge: str) -> None:
    keys = {name: f"{name}:" for name in part.schema}
    for batch in part.batches():
        rows = batch.select(row=pl.concat_str(pl.lit("{"), fields(keys, batch), pl.lit("}")))
        statements = (
            rows.with_row_index("n")
            .group_by(pl.col("n") // _ROWS, maintain_order=True)
            .agg(pl.col("row").str.join(","))
            .select(pl.concat_str(pl.lit("UNWIND ["), "row", pl.lit(f"] AS row {merge};\n")))
        )
        file.write_column(statements.to_series())
