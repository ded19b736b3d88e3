"""Node-link JSON: what `networkx.node_link_graph` reads, without pickles.

Nodes are named by the ids of their rows. Rows are one line each.
"""

from pathlib import Path

import polars as pl

from graphrag_index.export.exported_graph import Graph
from graphrag_index.export.text_rows import TextFile, fields


def write(graph: Graph, path: Path) -> list[str]:
    """Write the graph; it is called a multigraph only if two relationships have the same ends."""
    import numpy as np

    name = f'"version":{graph.version.number}'
    pairs = [np.zeros(0, np.int64)]
    with TextFile(path) as file:
        file.write(f'{{"directed":false,"graph":{{{name}}},\n"nodes":[')
        between = "\n"
        for nodes in graph.nodes():
            between = _write_rows(file, nodes, nodes.columns, between)
        file.write('\n],\n"edges":[')
        between = "\n"
        for edges in graph.edges():
            ends = edges.select(pl.col("source_row", "target_row").cast(pl.Int64)).to_numpy()
            pairs.append(ends.min(axis=1) * len(graph.keys) + ends.max(axis=1))
            counted = edges.with_columns(text_units=pl.col("text_unit_ids").list.len())
            columns = ["source", "target", *_EDGE]
            between = _write_rows(file, counted, columns, between)
        all_pairs = np.concatenate(pairs)
        all_pairs.sort()
        is_multiple = bool((all_pairs[1:] == all_pairs[:-1]).any())
        file.write(f'\n],\n"multigraph":{str(is_multiple).lower()}}}\n')
    return []


_EDGE = ("id", "number", "type", "description", "weight", "text_units")


def _write_rows(file: TextFile, rows: pl.DataFrame, columns: list[str], between: str) -> str:
    """Write rows behind what stands between them; return what stands before the next."""
    keys = {name: f'"{name}":' for name in columns}
    lines = rows.select(pl.concat_str(pl.lit(",\n{"), fields(keys, rows), pl.lit("}"))).to_series()
    if between == "\n":
        lines = lines.scatter(0, lines[0].removeprefix(","))
    file.write_column(lines)
    return ",\n"
