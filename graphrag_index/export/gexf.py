"""GEXF 1.3: the graph as Gephi draws it, with positions, sizes and a colour for each community.

Sizes grow with the number of neighbours. What lies in no community is grey.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from graphrag_index.export.exported_graph import Graph
from graphrag_index.export.graphml import SCALE
from graphrag_index.export.text_rows import TextFile, xml

NODE = {
    **{"type": "string", "description": "string", "number": "long"},
    **{"degree": "long", "frequency": "long"},
}
EDGE = {"type": "string", "description": "string", "number": "long", "text_units": "long"}
_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://gexf.net/1.3 http://gexf.net/1.3/gexf.xsd" version="1.3">
"""
_GREY = 153
# Degrees; the golden angle keeps the hues of communities that follow each other apart.
_ANGLE = 137.508
_SATURATION, _LIGHTNESS = 0.6, 0.5


def write(graph: Graph, path: Path) -> list[str]:
    """Write the graph."""
    node = NODE | dict.fromkeys(graph.communities, "long")
    made = graph.version.made
    date = f' lastmodifieddate="{made.date[:10]}"' if made else ""
    with TextFile(path) as file:
        file.write(_HEAD)
        file.write(f"<meta{date}><creator>graphrag-index</creator></meta>\n")
        file.write('<graph defaultedgetype="undirected" idtype="string">\n')
        for kind, attributes in (("node", node), ("edge", EDGE)):
            file.write(f'<attributes class="{kind}">\n')
            for name, dtype in attributes.items():
                file.write(f'<attribute id="{name}" title="{name}" type="{dtype}"/>\n')
            file.write("</attributes>\n")
        file.write("<nodes>\n")
        for nodes in graph.nodes():
            line = pl.concat_str(
                *(pl.lit('<node id="'), xml("id"), pl.lit('" label="'), xml("title").fill_null("")),
                *(pl.lit('">'), _values(node), _drawing(), pl.lit("</node>\n")),
            )
            file.write_column(_coloured(nodes).select(line).to_series())
        file.write("</nodes>\n<edges>\n")
        for edges in graph.edges():
            weight = pl.concat_str(pl.lit('" weight="'), pl.col("weight").cast(pl.String))
            line = pl.concat_str(
                *(pl.lit('<edge id="'), xml("id"), pl.lit('" source="'), xml("source")),
                *(pl.lit('" target="'), xml("target"), weight.fill_null(""), pl.lit('">')),
                *(_values(EDGE), pl.lit("</edge>\n")),
            )
            counted = edges.with_columns(text_units=pl.col("text_unit_ids").list.len())
            file.write_column(counted.select(line).to_series())
        file.write("</edges>\n</graph>\n</gexf>\n")
    return []


def _values(attributes: Mapping[str, str]) -> pl.Expr:
    parts = []
    for name, dtype in attributes.items():
        text = xml(name) if dtype == "string" else pl.col(name).cast(pl.String)
        start = pl.lit(f'<attvalue for="{name}" value="')
        parts.append(pl.concat_str(start, text, pl.lit('"/>')).fill_null(""))
    return pl.concat_str(pl.lit("<attvalues>"), *parts, pl.lit("</attvalues>"))


def _drawing() -> pl.Expr:
    place = pl.format('<viz:position x="{}" y="{}" z="0.0"/>', "x", "y").fill_null("")
    colour = pl.format('<viz:color r="{}" g="{}" b="{}"/>', "r", "g", "b")
    return pl.concat_str(colour, place, pl.format('<viz:size value="{}"/>', "size"))


def _coloured(nodes: pl.DataFrame) -> pl.DataFrame:
    """Add what is drawn: `r`, `g`, `b`, `size`, and a larger `x` and `y`."""
    hue = pl.lit(None, pl.Float64)
    if "community" in nodes.columns:
        hue = pl.col("community") * _ANGLE % 360
    # From hue, saturation and lightness, as in CSS Color Module Level 4.
    amount = _SATURATION * min(_LIGHTNESS, 1 - _LIGHTNESS)
    channels = {}
    for name, offset in (("r", 0), ("g", 8), ("b", 4)):
        k = (hue / 30 + offset) % 12
        swing = pl.min_horizontal(k - 3, 9 - k, pl.lit(1.0)).clip(lower_bound=-1.0)
        channel = ((_LIGHTNESS - amount * swing) * 255).round()
        channels[name] = pl.when(hue.is_null()).then(_GREY).otherwise(channel).cast(pl.Int64)
    size = (10 + 4 * (pl.col("degree") + 1).log(2)).round(1)
    return nodes.with_columns((pl.col("x", "y") * SCALE).round(3), size=size, **channels)
