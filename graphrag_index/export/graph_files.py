"""GraphML, GEXF and node-link JSON, for programs that draw graphs or compute on them.

The ids of nodes and edges are those of their rows in the tables.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from graphrag_index.export.exported_graph import Graph
from graphrag_index.export.text_rows import TextFile, fields, xml

# Programs draw a node some ten wide, where the layout goes from about -1 to 1.
_SCALE = 1_000
# The GraphML attribute of each column, and its type.
_GRAPHML_NODE = {
    "title": ("label", "string"),
    "type": ("type", "string"),
    "description": ("description", "string"),
    "number": ("number", "long"),
    "degree": ("degree", "long"),
    "frequency": ("frequency", "long"),
    "x": ("x", "double"),
    "y": ("y", "double"),
}
_GRAPHML_EDGE = {
    "weight": ("weight", "double"),
    "type": ("type", "string"),
    "description": ("description", "string"),
    "number": ("number", "long"),
    "text_units": ("text_units", "long"),
}
_GRAPHML_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns \
http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
# GEXF has elements of its own for the other columns.
_GEXF_NODE = {
    "type": "string",
    "description": "string",
    "number": "long",
    "degree": "long",
    "frequency": "long",
}
_GEXF_EDGE = {"type": "string", "description": "string", "number": "long", "text_units": "long"}
_GEXF_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://gexf.net/1.3 http://gexf.net/1.3/gexf.xsd" version="1.3">
"""
_GREY = 153
# Degrees; the golden angle keeps the hues of consecutive communities apart.
_HUE_STEP = 137.508
_SATURATION, _LIGHTNESS = 0.6, 0.5
_NODE_LINK_EDGE = ("source", "target", "id", "number", "type", "description", "weight")


def write_graphml(graph: Graph, path: Path) -> list[str]:
    """Write GraphML, with all attributes, for Gephi, yEd, Cytoscape, igraph and networkx."""
    node = _GRAPHML_NODE | {name: (name, "long") for name in graph.communities}
    node_line = _line('<node id="', xml("id"), '">', _graphml_data("node", node), "</node>\n")
    edge_line = _line(
        '<edge id="',
        xml("id"),
        '" source="',
        xml("source"),
        '" target="',
        xml("target"),
        '">',
        _graphml_data("edge", _GRAPHML_EDGE),
        "</edge>\n",
    )
    with TextFile(path) as file:
        file.write(_GRAPHML_HEAD)
        for kind, attributes in (("node", node), ("edge", _GRAPHML_EDGE)):
            for name, dtype in attributes.values():
                file.write(
                    f'<key id="{kind}_{name}" for="{kind}" attr.name="{name}" '
                    f'attr.type="{dtype}"/>\n'
                )
        file.write('<graph edgedefault="undirected">\n')
        for nodes in graph.nodes():
            scaled = nodes.with_columns((pl.col("x", "y") * _SCALE).round(3))
            file.write_column(scaled.select(node_line).to_series())
        for edges in graph.edges():
            file.write_column(_with_counts(edges).select(edge_line).to_series())
        file.write("</graph>\n</graphml>\n")
    return []


def _graphml_data(kind: str, attributes: Mapping[str, tuple[str, str]]) -> pl.Expr:
    """Return the attributes of a row without those that are null."""
    parts = []
    for column, (name, dtype) in attributes.items():
        text = xml(column) if dtype == "string" else pl.col(column).cast(pl.String)
        parts.append(_line(f'<data key="{kind}_{name}">', text, "</data>").fill_null(""))
    return pl.concat_str(parts)


def write_gexf(graph: Graph, path: Path) -> list[str]:
    """Write GEXF 1.3 as Gephi draws it: positions, sizes, and a colour for each community.

    Sizes grow with the number of neighbours. Nodes in no community are grey.
    """
    node = _GEXF_NODE | dict.fromkeys(graph.communities, "long")
    made = graph.version.made
    date = f' lastmodifieddate="{made.date[:10]}"' if made else ""
    node_line = _line(
        '<node id="',
        xml("id"),
        '" label="',
        xml("title").fill_null(""),
        '">',
        _gexf_values(node),
        pl.format('<viz:color r="{}" g="{}" b="{}"/>', "r", "g", "b"),
        pl.format('<viz:position x="{}" y="{}" z="0.0"/>', "x", "y").fill_null(""),
        pl.format('<viz:size value="{}"/>', "size"),
        "</node>\n",
    )
    weight = _line('" weight="', pl.col("weight").cast(pl.String)).fill_null("")
    edge_line = _line(
        '<edge id="',
        xml("id"),
        '" source="',
        xml("source"),
        '" target="',
        xml("target"),
        weight,
        '">',
        _gexf_values(_GEXF_EDGE),
        "</edge>\n",
    )
    with TextFile(path) as file:
        file.write(_GEXF_HEAD)
        file.write(f"<meta{date}><creator>graphrag-index</creator></meta>\n")
        file.write('<graph defaultedgetype="undirected" idtype="string">\n')
        for kind, attributes in (("node", node), ("edge", _GEXF_EDGE)):
            file.write(f'<attributes class="{kind}">\n')
            for name, dtype in attributes.items():
                file.write(f'<attribute id="{name}" title="{name}" type="{dtype}"/>\n')
            file.write("</attributes>\n")
        file.write("<nodes>\n")
        for nodes in graph.nodes():
            file.write_column(_with_drawing(nodes).select(node_line).to_series())
        file.write("</nodes>\n<edges>\n")
        for edges in graph.edges():
            file.write_column(_with_counts(edges).select(edge_line).to_series())
        file.write("</edges>\n</graph>\n</gexf>\n")
    return []


def _gexf_values(attributes: Mapping[str, str]) -> pl.Expr:
    parts = []
    for name, dtype in attributes.items():
        text = xml(name) if dtype == "string" else pl.col(name).cast(pl.String)
        parts.append(_line(f'<attvalue for="{name}" value="', text, '"/>').fill_null(""))
    return _line("<attvalues>", *parts, "</attvalues>")


def _with_drawing(nodes: pl.DataFrame) -> pl.DataFrame:
    """Add `r`, `g`, `b` and `size`, and scale `x` and `y`."""
    hue = pl.lit(None, pl.Float64)
    if "community" in nodes.columns:
        hue = pl.col("community") * _HUE_STEP % 360
    # From hue, saturation and lightness, as in CSS Color Module Level 4.
    amount = _SATURATION * min(_LIGHTNESS, 1 - _LIGHTNESS)
    channels = {}
    for name, offset in (("r", 0), ("g", 8), ("b", 4)):
        k = (hue / 30 + offset) % 12
        swing = pl.min_horizontal(k - 3, 9 - k, pl.lit(1.0)).clip(lower_bound=-1.0)
        channel = ((_LIGHTNESS - amount * swing) * 255).round()
        channels[name] = pl.when(hue.is_null()).then(_GREY).otherwise(channel).cast(pl.Int64)
    size = (10 + 4 * (pl.col("degree") + 1).log(2)).round(1)
    return nodes.with_columns((pl.col("x", "y") * _SCALE).round(3), size=size, **channels)


def write_node_link(graph: Graph, path: Path) -> list[str]:
    """Write node-link JSON, one row a line, as `networkx.node_link_graph` reads it.

    It is a multigraph only if two relationships have the same ends.
    """
    import numpy as np

    pairs = [np.zeros(0, np.int64)]
    with TextFile(path) as file:
        file.write(f'{{"directed":false,"graph":{{"version":{graph.version.number}}},\n"nodes":[')
        is_first = True
        for nodes in graph.nodes():
            _write_json_rows(file, nodes, nodes.columns, is_first)
            is_first = False
        file.write('\n],\n"edges":[')
        is_first = True
        for edges in graph.edges():
            ends = edges.select(pl.col("source_row", "target_row").cast(pl.Int64)).to_numpy()
            pairs.append(ends.min(axis=1) * len(graph.keys) + ends.max(axis=1))
            columns = [*_NODE_LINK_EDGE, "text_units"]
            _write_json_rows(file, _with_counts(edges), columns, is_first)
            is_first = False
        all_pairs = np.concatenate(pairs)
        all_pairs.sort()
        is_multiple = bool((all_pairs[1:] == all_pairs[:-1]).any())
        file.write(f'\n],\n"multigraph":{str(is_multiple).lower()}}}\n')
    return []


def _write_json_rows(
    file: TextFile, rows: pl.DataFrame, columns: list[str], is_first: bool
) -> None:
    keys = {name: f'"{name}":' for name in columns}
    lines = rows.select(_line(",\n{", fields(keys, rows), "}")).to_series()
    if is_first:
        lines = lines.scatter(0, lines[0].removeprefix(","))
    file.write_column(lines)


def _with_counts(edges: pl.DataFrame) -> pl.DataFrame:
    return edges.with_columns(text_units=pl.col("text_unit_ids").list.len())


def _line(*parts: str | pl.Expr) -> pl.Expr:
    """Concatenate literal texts and expressions."""
    return pl.concat_str([pl.lit(part) if isinstance(part, str) else part for part in parts])
