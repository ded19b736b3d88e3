"""Parquet for engines such as Kùzu: `nodes.parquet` and `edges.parquet`, and how to load them.

The first column of the nodes is their key, the first two of the edges are the keys of their
ends. Beside them lie `schema.cypher` and `copy.cypher`, with which `IMPORT DATABASE` makes the
database from the folder.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from graphrag_index.export.exported_graph import Graph
from graphrag_index.schema.table import STRINGS

FILES = frozenset(["nodes.parquet", "edges.parquet", "schema.cypher", "copy.cypher"])
_NODE: dict[str, pl.DataType] = {
    **{"id": pl.String(), "number": pl.Int64(), "title": pl.String(), "type": pl.String()},
    **{"description": pl.String(), "aliases": STRINGS, "degree": pl.Int64()},
    **{"frequency": pl.Int64(), "x": pl.Float64(), "y": pl.Float64()},
}
_EDGE: dict[str, pl.DataType] = {
    **{"from": pl.String(), "to": pl.String(), "id": pl.String(), "number": pl.Int64()},
    **{"type": pl.String(), "description": pl.String(), "weight": pl.Float64()},
    "text_unit_ids": STRINGS,
}
_TYPES: dict[pl.DataType, str] = {
    **{pl.String(): "STRING", pl.Int64(): "INT64", pl.Float64(): "DOUBLE", STRINGS: "STRING[]"}
}


def write(graph: Graph, path: Path) -> list[str]:
    """Write the files; return how they are loaded."""
    node: dict[str, pl.DataType] = {**_NODE, **dict.fromkeys(graph.communities, pl.Int64())}
    _write(path / "nodes.parquet", node, graph.nodes())
    edges = (batch.rename({"source": "from", "target": "to"}) for batch in graph.edges())
    _write(path / "edges.parquet", _EDGE, edges)
    ends = list(_EDGE)[:2]
    properties = {name: dtype for name, dtype in _EDGE.items() if name not in ends}
    schema = (
        f"CREATE NODE TABLE Entity ({_columns(node)}, PRIMARY KEY (id));\n"
        f"CREATE REL TABLE RELATED (FROM Entity TO Entity, {_columns(properties)});\n"
    )
    (path / "schema.cypher").write_text(schema, encoding="utf-8", newline="\n")
    copy = 'COPY Entity FROM "nodes.parquet";\nCOPY RELATED FROM "edges.parquet";\n'
    (path / "copy.cypher").write_text(copy, encoding="utf-8", newline="\n")
    return ["Load it into an empty database with: IMPORT DATABASE 'TARGET'"]


def _columns(schema: Mapping[str, pl.DataType]) -> str:
    return ", ".join(f"`{name}` {_TYPES[dtype]}" for name, dtype in schema.items())


def _write(path: Path, schema: Mapping[str, pl.DataType], batches: Iterator[pl.DataFrame]) -> None:
    import pyarrow.parquet as pq

    empty = pl.DataFrame(schema=schema).to_arrow(compat_level=pl.CompatLevel.oldest())
    with path.open("wb") as file, pq.ParquetWriter(file, empty.schema, compression="zstd") as out:
        for batch in batches:
            rows = batch.select(pl.col(name).cast(dtype) for name, dtype in schema.items())
            out.write_table(rows.to_arrow(compat_level=pl.CompatLevel.oldest()))
