"""CSV files for `neo4j-admin database import`: one for each label and each type of link.

A list is one text with semicolons between its items; a semicolon inside of an item becomes a
comma, since the program knows no other way to write it. Other texts stay as they are, but for
control characters that no text should have.
"""

from pathlib import Path

import polars as pl

from graphrag_index.export.exported_graph import Graph
from graphrag_index.export.property_graph import Links, Nodes, property_graph
from graphrag_index.export.text_rows import clean

NODES = {
    **{"Entity": "entities.csv", "Document": "documents.csv"},
    **{"TextUnit": "text_units.csv", "Community": "communities.csv"},
}
LINKS = {
    **{"RELATED": "related.csv", "PART_OF": "part_of.csv", "MENTIONS": "mentions.csv"},
    **{"IN_COMMUNITY": "in_community.csv", "PARENT": "parent.csv"},
}
FILES = frozenset([*NODES.values(), *LINKS.values()])
_TYPES: dict[pl.DataType, str] = {
    **{pl.Int64(): ":long", pl.Float64(): ":double", pl.Boolean(): ":boolean"},
    **{pl.String(): "", pl.List(pl.String): ":string[]"},
}


def write(graph: Graph, path: Path) -> list[str]:
    """Write the files; return how they are imported."""
    nodes, links = property_graph(graph)
    for part in nodes:
        _write(path / NODES[part.label], part, {"id": f"id:ID({part.label})"})
    for link in links:
        ends = {"source": f":START_ID({link.source})", "target": f":END_ID({link.target})"}
        _write(path / LINKS[link.type], link, ends)
    # A backslash in a text is no escape, and a line end no end of a row.
    command = ["neo4j-admin database import full neo4j --multiline-fields=true"]
    command += [f"--nodes={label}={file}" for label, file in NODES.items()]
    command += [f"--relationships={name}={file}" for name, file in LINKS.items()]
    return ["In TARGET, with the database stopped:", " \\\n  ".join(command)]


def _write(path: Path, part: Nodes | Links, names: dict[str, str]) -> None:
    head = [names.get(name, f"{name}{_TYPES[dtype]}") for name, dtype in part.schema.items()]
    values = [_value(name, dtype) for name, dtype in part.schema.items()]
    with path.open("wb", buffering=1 << 20) as file:
        file.write(f"{','.join(head)}\n".encode())
        for batch in part.batches():
            # What is null is not quoted, and so no empty text.
            text = batch.select(values).write_csv(
                include_header=False, quote_style="non_numeric", line_terminator="\n"
            )
            file.write(text.encode())


def _value(name: str, dtype: pl.DataType) -> pl.Expr:
    if isinstance(dtype, pl.List):
        parted = pl.element().str.replace_all(";", ",", literal=True)
        return clean(pl.col(name).list.eval(parted).list.join(";")).alias(name)
    if dtype == pl.Boolean:
        return pl.col(name).cast(pl.String)
    return clean(name) if dtype == pl.String else pl.col(name)
