"""GraphML: the graph with all its attributes, for Gephi, yEd, Cytoscape, igraph and networkx.

The id of a node or an edge is that of its row in the tables. Nodes lie where the layout has
placed them, a thousand times as far apart, since programs draw a node some ten wide.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from graphrag_index.export.exported_graph import Graph
from graphrag_index.export.text_rows import TextFile, xml

# Times what the tables say, which is about -1 to 1.
SCALE = 1_000
# The attribute by the column that it comes from, and its type.
NODE = {
    **{"title": ("label", "string"), "type": ("type", "string")},
    **{"description": ("description", "string"), "number": ("number", "long")},
    **{"degree": ("degree", "long"), "frequency": ("frequency", "long")},
    **{"x": ("x", "double"), "y": ("y", "double")},
}
EDGE = {
    **{"weight": ("weight", "double"), "type": ("type", "string")},
    **{"description": ("description", "string"), "number": ("number", "long")},
    "text_units": ("text_units", "long"),
}
_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns \
http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""


def write(graph: Graph, path: Path) -> list[str]:
    """Write the graph."""
    node = NODE | {name: (name, "long") for name in graph.communities}
    with TextFile(path) as file:
        file.write(_HEAD)
        for kind, attributes in (("node", node), ("edge", EDGE)):
            for name, dtype in attributes.values():
                file.write(
                    f'<key id="{kind}_{name}" for="{kind}" attr.name="{name}" '
                    f'attr.type="{dtype}"/>\n'
                )
        file.write('<graph edgedefault="undirected">\n')
        for nodes in graph.nodes():
            line = pl.concat_str(
                *(pl.lit('<node id="'), xml("id"), pl.lit('">'), _data("node", node)),
                pl.lit("</node>\n"),
            )
            drawn = nodes.with_columns((pl.col("x", "y") * SCALE).round(3))
            file.write_column(drawn.select(line).to_series())
        for edges in graph.edges():
            line = pl.concat_str(
                *(pl.lit('<edge id="'), xml("id"), pl.lit('" source="'), xml("source")),
                *(pl.lit('" target="'), xml("target"), pl.lit('">'), _data("edge", EDGE)),
                pl.lit("</edge>\n"),
            )
            counted = edges.with_columns(text_units=pl.col("text_unit_ids").list.len())
            file.write_column(counted.select(line).to_series())
        file.write("</graph>\n</graphml>\n")
    return []


def _data(kind: str, attributes: Mapping[str, tuple[str, str]]) -> pl.Expr:
    """Write the attributes of a row; one that is null is left out."""
    parts = []
    for column, (name, dtype) in attributes.items():
        text = xml(column) if dtype == "string" else pl.col(column).cast(pl.String)
        start = pl.lit(f'<data key="{kind}_{name}">')
        parts.append(pl.concat_str(start, text, pl.lit("</data>")).fill_null(""))
    return pl.concat_str(parts)
