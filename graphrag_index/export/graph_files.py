"""GraphML, GEXF and node-link JSON, for programs that draw graphs or compute on them.

A node has the id of its entity, and an edge has the id of its relationship.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO

import polars as pl

from graphrag_index.export.exported_graph import (
    ExportedGraph,
    escape_xml,
    format_fields,
    open_text_file,
    write_rows,
)
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
