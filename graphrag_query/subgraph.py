"""A part of the graph: as tables, triples, sentences, a networkx graph, or an SVG picture."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from math import log2, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    import networkx as nx

    Point = tuple[float, float]
    Box = tuple[float, float, float, float]  # left, top, right, bottom
    Label = tuple[Box, str]  # (box, SVG text anchor: start, middle or end)

ENTITY_TEXT_COLUMNS = ("title", "type", "description")
# Maximum number of entities in a drawing; the drawing states how many are left out.
MAX_ENTITIES_DRAWN = 60
# A drawing with more relationships than this does not show their types.
MAX_LINES_WITH_TYPES = 16
# Maximum number of characters of a label.
MAX_LABEL_CHARS = 28
# Sizes in pixels. LETTER is the mean width of a letter; letters of wide scripts count twice.
FONT, LETTER_WIDTH, MARGIN, RADIUS = 13, 7.2, 24, 7
# Patterns, compiled when something is drawn: no other search needs them.
_INVALID_XML_CHARACTER = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_WIDE_LETTER = r"[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]"


@dataclass(frozen=True, eq=False)
class Subgraph:
    """Entities and relationships, the most important first.

    `entities` has human_readable_id, title, type, description and `ring`: the number of hops from
    the requested entities. `relationships` has human_readable_id, source and target (titles),
    source_entity and target_entity (numbers), type, description and weight. `entities` contains
    the source and the target of every relationship.
    """

    entities: pl.DataFrame
    relationships: pl.DataFrame

    def triples(self) -> list[tuple[str, str, str]]:
        """Return a (source, type, target) for each relationship; the type may be empty."""
        return list(self.relationships.select("source", "type", "target").iter_rows())

    def sentences(self) -> list[str]:
        """Return the description of each relationship, or its entities and type if it has none."""
        said = []
        columns = ("source", "target", "type", "description")
        for source, target, kind, description in self.relationships.select(columns).iter_rows():
            related = f"{source} – {target}" + (f": {kind.replace('_', ' ')}" if kind else "")
            said.append(" ".join(description.split()) or f"{related}.")
        return said

    def to_networkx(self) -> "nx.MultiGraph[int]":
        """Return the graph for networkx; a node is the number of an entity.

        Nodes have title, type, description and ring. Edges have source and target (titles), type,
        description and weight. The key of an edge is the number of its relationship.
        """
        import networkx as nx

        graph: nx.MultiGraph[int] = nx.MultiGraph()
        for row in self.entities.iter_rows(named=True):
            graph.add_node(row.pop("human_readable_id"), **row)
        for row in self.relationships.iter_rows(named=True):
            endpoints = row.pop("source_entity"), row.pop("target_entity")
            graph.add_edge(*endpoints, key=row.pop("human_readable_id"), **row)
        return graph

    def to_dict(self) -> dict[str, Any]:
        """Return both tables as lists of objects, for JSON."""
        tables = {"entities": self.entities, "relationships": self.relationships}
        return {name: table.to_dicts() for name, table in tables.items()}

    def shown_entities(self) -> pl.DataFrame:
        """Return the entities as rows of a context."""
        return self.entities.select(pl.col("human_readable_id").alias("id"), *ENTITY_TEXT_COLUMNS)

    def shown_relationships(self) -> pl.DataFrame:
        """Return the relationships as rows of a context."""
        return self.relationships.select(
            pl.col("human_readable_id").alias("id"), "source", "type", "target", "description"
        )

    def _repr_svg_(self) -> str:
        return draw_svg(self)

    def __repr__(self) -> str:
        entities, relationships = self.entities.height, self.relationships.height
        return f"<Subgraph: {entities} entities, {relationships} relationships>"


def draw_svg(part: Subgraph) -> str:
    """Draw entities as labelled dots, and relationships as lines; a larger weight is wider.

    The requested entities have a different colour. Descriptions are tooltips.
    """
    entities = part.entities.sort("ring", maintain_order=True).head(MAX_ENTITIES_DRAWN)
    rows = {row["human_readable_id"]: row for row in entities.iter_rows(named=True)}
    lines = [
        row
        for row in part.relationships.iter_rows(named=True)
        if row["source_entity"] in rows and row["target_entity"] in rows
    ]
    width, height = (640.0 if len(rows) <= 12 else 860.0), 120 + 95 * sqrt(max(1, len(rows)))
    places = _place_entities(list(rows), lines, width, height)
    labels = dict(_place_labels(rows, places, width))
    # Extend the drawing if labels exceed the top or the bottom.
    top = min([0.0, *(box[1] - 6 for box, _ in labels.values())])
    bottom = max([height, *(box[3] + 6 for box, _ in labels.values())])
    left_out = part.entities.height - len(rows)
    # The prefix "gq-" of all classes prevents conflicts with the styles of the page.
    style = Path(__file__).with_name("subgraph.css").read_text(encoding="utf-8")
    body = [*_draw_lines(lines, places), *_draw_entities(rows, places, labels)]
    if left_out:
        bottom += 2 * FONT
        text = f"and {left_out} more entities"
        body.append(f'<text class="gq-name" x="{MARGIN}" y="{bottom - FONT:.0f}">{text}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gq-svg" role="img" '
        f'viewBox="0 {top:.0f} {width:.0f} {bottom - top:.0f}" width="{width:.0f}" '
        f'style="max-width:100%;height:auto">'
        f"<title>{_escape_xml(repr(part).strip('<>'))}</title><style>\n{style}</style>"
        f'<rect class="gq-paper" x="0" y="{top:.0f}" width="100%" height="100%" rx="6"/>'
        f"{''.join(body)}</svg>"
    )


def _place_entities(
    numbers: list[int], lines: list[dict[str, Any]], width: float, height: float
) -> "dict[int, Point]":
    """Return the position of each entity; distances in the drawing follow the number of hops."""
    import networkx as nx

    if not numbers:
        return {}
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(numbers)
    graph.add_edges_from((row["source_entity"], row["target_entity"]) for row in lines)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    start = nx.circular_layout(graph)
    if len(numbers) < 3:
        found = {number: (float(at), 0.0) for at, number in enumerate(numbers)}
    elif nx.is_connected(graph):
        found = nx.kamada_kawai_layout(graph, pos=start)
    else:
        found = nx.spring_layout(graph, pos=start, seed=0)
    xs, ys = [float(x) for x, _ in found.values()], [float(y) for _, y in found.values()]
    side = MARGIN + MAX_LABEL_CHARS * LETTER_WIDTH / 2
    across = (width - 2 * side) / (max(xs) - min(xs) or 1)
    down = (height - 2 * MARGIN) / (max(ys) - min(ys) or 1)
    flat = max(ys) == min(ys)
    return {
        number: (
            side + (x - min(xs)) * across,
            height / 2 if flat else MARGIN + (y - min(ys)) * down,
        )
        for number, x, y in zip(found, xs, ys, strict=True)
    }


def _place_labels(
    rows: Mapping[int, Mapping[str, Any]], places: "Mapping[int, Point]", width: float
) -> "Iterator[tuple[int, Label]]":
    """For each name, yield the position next to its dot that overlaps other labels least."""
    taken: list[Box] = [
        (x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in places.values()
    ]
    for number, row in rows.items():
        x, y = places[number]
        label = _shorten_title(row["title"])
        long = LETTER_WIDTH * (len(label) + len(re.findall(_WIDE_LETTER, label)))
        boxes: list[Label] = []
        for shift in (0.0, 1.0, -1.0, 2.0, -2.0):
            down = y - FONT / 2 + shift * FONT
            near = RADIUS + 4
            over = y + (RADIUS + 3 if shift >= 0 else -RADIUS - 3 - FONT) + shift * FONT / 2
            boxes += [
                ((x + near, down, x + near + long, down + FONT), "start"),
                ((x - near - long, down, x - near, down + FONT), "end"),
                ((x - long / 2, over, x + long / 2, over + FONT), "middle"),
            ]
        inside = [(box, side) for box, side in boxes if box[0] >= 2 and box[2] <= width - 2]
        best = min(inside or boxes, key=lambda label: _overlap_area(label[0], taken))
        taken.append(best[0])
        yield number, best


def _overlap_area(box: "Box", others: "list[Box]") -> float:
    return sum(
        max(0.0, min(box[2], other[2]) - max(box[0], other[0]))
        * max(0.0, min(box[3], other[3]) - max(box[1], other[1]))
        for other in others
    )


def _draw_lines(lines: list[dict[str, Any]], places: "Mapping[int, Point]") -> Iterator[str]:
    for row in lines:
        (x1, y1), (x2, y2) = places[row["source_entity"]], places[row["target_entity"]]
        wide = min(6.0, 1 + log2(1 + max(0.0, row["weight"])))
        said = row["description"] or row["type"]
        hint = f"{row['source']} – {row['target']}" + (f": {said}" if said else "")
        yield (
            f'<line class="gq-line" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke-width="{wide:.1f}"><title>{_escape_xml(hint)}</title></line>'
        )
    for row in lines if len(lines) <= MAX_LINES_WITH_TYPES else ():
        if row["type"]:
            (x1, y1), (x2, y2) = places[row["source_entity"]], places[row["target_entity"]]
            yield (
                f'<text class="gq-type" x="{(x1 + x2) / 2:.1f}" y="{(y1 + y2) / 2 + 4:.1f}">'
                f"{_escape_xml(_shorten_title(row['type'].replace('_', ' ')))}</text>"
            )


def _draw_entities(
    rows: Mapping[int, Mapping[str, Any]],
    places: "Mapping[int, Point]",
    labels: "Mapping[int, Label]",
) -> Iterator[str]:
    for number, (x, y) in places.items():
        row = rows[number]
        kind = " gq-centre" if row["ring"] == 0 else ""
        parts = [row["title"] + (f" ({row['type']})" if row["type"] else ""), row["description"]]
        yield (
            f'<circle class="gq-dot{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}">'
            f"<title>{_escape_xml(': '.join(part for part in parts if part))}</title></circle>"
        )
    for number, ((left, top, right, _), side) in labels.items():
        bold = " gq-bold" if rows[number]["ring"] == 0 else ""
        x = {"start": left, "end": right, "middle": (left + right) / 2}[side]
        yield (
            f'<text class="gq-name{bold}" x="{x:.1f}" y="{top + FONT - 2:.1f}" '
            f'text-anchor="{side}">{_escape_xml(_shorten_title(rows[number]["title"]))}</text>'
        )


def _shorten_title(title: str) -> str:
    title = " ".join(title.split())
    return title if len(title) <= MAX_LABEL_CHARS else title[: MAX_LABEL_CHARS - 1].rstrip() + "…"


def _escape_xml(text: str) -> str:
    """Escape a text for XML, and remove characters that XML does not allow."""
    return escape(re.sub(_INVALID_XML_CHARACTER, "", text))
