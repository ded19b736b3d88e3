"""The HTML page of `graphrag-index show --html`, which draws the graph by community.

The page is self-contained: `graph_page.html` has its style and script, and the data is embedded as
JSON. Each table is embedded column by column; references are row positions instead of ids.
"""

import html
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.errors import TableError, format_count
from graphrag_index.storage.atomic import write_text_file
from graphrag_index.storage.table_store import TableStore, open_index, scan_table
from graphrag_index.storage.versions import Version

# Maximum entities and relationships that a browser draws smoothly without a graphics card.
MAX_DRAWN_ENTITIES = 20_000
MAX_DRAWN_RELATIONSHIPS = 60_000
_MAX_ENTITIES_IN_TABLE = 50  # in the HTML table for screen readers
_MAX_DOCUMENTS_PER_ENTITY = 20  # documents that the page lists
# Maximum characters of a description, a summary and a sentence on the page.
_MAX_DESCRIPTION, _MAX_SUMMARY, _MAX_SENTENCE = 600, 1_500, 260


@dataclass(frozen=True)
class _DrawnGraph:
    """Tables to draw. They refer to each other's rows by position, not by id."""

    entities: pl.DataFrame  # sorted by number of neighbours, descending
    relationships: pl.DataFrame  # sorted by weight, descending; between rows of `entities`
    communities: pl.DataFrame  # communities of the drawn entities
    documents: pl.DataFrame


def write_page(
    output: Path,
    file: Path,
    *,
    max_entities: int = MAX_DRAWN_ENTITIES,
    max_relationships: int = MAX_DRAWN_RELATIONSHIPS,
) -> None:
    """Write a page that draws the graph of an index, replacing `file` atomically.

    If the graph exceeds the limits, the page draws the entities with most neighbours and the
    strongest relationships among them, and shows a notice. Raises TableError if the index has no
    entities.
    """
    store, version = open_index(output)
    graph = _read_drawn_graph(store, version, max_entities, max_relationships)
    # Do not convert line ends: the page allows only the script with the exact hash.
    write_text_file(file, _stream_page(graph, version))


def _read_drawn_graph(
    store: TableStore, version: Version, max_entities: int, max_relationships: int
) -> _DrawnGraph:
    table = partial(scan_table, store, version)
    drawn = (
        table("entities")
        .select("id", "human_readable_id", "degree", "frequency")
        .sort("degree", "frequency", "human_readable_id", descending=[True, True, False])
        .head(max_entities)
        .select("id")
        .with_row_index("entity")
        .collect(engine="streaming")
    )
    if drawn.is_empty():
        raise TableError(
            f"The index in {store.output} has no entities to draw: "
            "`graphrag-index show` without --html tells what it has."
        )
    relationships = (
        table("relationships")
        .filter(pl.col("source_id") != pl.col("target_id"))
        .drop("source", "target")
        .join(drawn.lazy().rename({"entity": "source"}), left_on="source_id", right_on="id")
        .join(drawn.lazy().rename({"entity": "target"}), left_on="target_id", right_on="id")
        .sort("weight", "human_readable_id", descending=[True, False])
        .head(max_relationships)
        .select("source", "target", "weight", _shorten_text("description", _MAX_SENTENCE))
        .collect(engine="streaming")
    )
    communities, deepest = _read_communities(table, drawn)
    documents, mentions = _read_documents(table, drawn)
    entities = (
        table("entities")
        .join(drawn.lazy(), on="id")
        .select(
            pl.col("entity", "human_readable_id", "degree", "frequency", "x", "y"),
            pl.col("title", "type").fill_null(""),
            _shorten_text("description", _MAX_DESCRIPTION),
            pl.col("aliases").list.head(20).fill_null([]),
        )
        .join(deepest.lazy(), on="entity", how="left")
        .join(mentions.lazy(), on="entity", how="left")
        .sort("entity")
        .with_columns(
            pl.col("community").fill_null(-1),
            pl.col("documents").fill_null([]),
            pl.col("n_documents").fill_null(0),
        )
        .collect(engine="streaming")
    )
    levels = _read_theme_levels(table, drawn)
    entities = _add_layout(entities, relationships, levels)
    return _DrawnGraph(entities, relationships, communities, documents)


def _read_communities(
    table: Callable[[str], pl.LazyFrame], drawn: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the communities of the drawn entities, and the deepest community of each entity."""
    communities = table("communities")
    reports = table("community_reports").select("community", "summary", report="title")
    members = (
        communities.select("community", "level", id="entity_ids")
        .explode("id")
        .join(drawn.lazy(), on="id")
        .select("entity", "level", "community")
        .collect(engine="streaming")
    )
    shown = (
        communities.join(members.lazy().select("community").unique(), on="community", how="semi")
        .join(reports, on="community", how="left")
        .select(
            pl.col("community", "level", "parent", "size", "island"),
            title=pl.coalesce("report", "title"),
            summary=_shorten_text("summary", _MAX_SUMMARY),
        )
        .sort("level", "community")
        .collect(engine="streaming")
        .with_columns(row=pl.int_range(pl.len()))
    )
    row_of_parent = pl.col("parent").replace_strict(shown["community"], shown["row"], default=-1)
    shown = shown.with_columns(parent=row_of_parent)
    deepest = (
        members.join(shown.select("community", "row"), on="community")
        .sort("entity", "level")
        .group_by("entity", maintain_order=True)
        .agg(community=pl.col("row").last())
    )
    return shown, deepest


def _read_documents(
    table: Callable[[str], pl.LazyFrame], drawn: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the documents to list, and for each entity the documents that mention it most.

    `times` is the number of text units of a document that mention the entity.
    """
    text_units = table("text_units").select("document_id", text_unit_id="id")
    documents = table("documents")
    counted = (
        table("entities")
        .select("id", text_unit_id="text_unit_ids")
        .join(drawn.lazy(), on="id")
        .select("entity", "text_unit_id")
        .explode("text_unit_id")
        .join(text_units, on="text_unit_id")
        .group_by("entity", "document_id")
        .agg(times=pl.len())
        .join(documents.select("human_readable_id", document_id="id"), on="document_id")
        .select("entity", "times", "human_readable_id")
        .collect(engine="streaming")
        .sort("entity", "times", "human_readable_id", descending=[False, True, False])
    )
    most = counted.group_by("entity", maintain_order=True).head(_MAX_DOCUMENTS_PER_ENTITY)
    shown = (
        documents.select("human_readable_id", pl.col("title", "path").fill_null(""))
        .join(most.lazy().select("human_readable_id").unique(), on="human_readable_id", how="semi")
        .sort("human_readable_id")
        .collect(engine="streaming")
        .with_row_index("document")
    )
    mentions = (
        most.join(shown, on="human_readable_id", maintain_order="left")
        .group_by("entity", maintain_order=True)
        .agg(documents=pl.concat_list("document", "times"))
        .join(counted.group_by("entity").agg(n_documents=pl.len()), on="entity")
    )
    return shown, mentions


def _read_theme_levels(
    table: Callable[[str], pl.LazyFrame], drawn: pl.DataFrame
) -> list[pl.Series]:
    """Return the themes of the drawn entities, level by level, and then their communities.

    The list is empty if the index has no themes.
    """
    communities = table("communities")
    if "theme" not in communities.collect_schema():
        return []
    n_levels = communities.filter("theme").select(pl.col("level").n_unique()).collect().item()
    members = communities.filter(pl.col("level") <= n_levels).select(
        "community", "level", id="entity_ids"
    )
    found = (
        drawn.lazy().join(members.explode("id"), on="id").sort("entity").collect(engine="streaming")
    )
    by_level = found.partition_by("level", as_dict=True)
    return [by_level[level,]["community"] for level in range(n_levels + 1)] if n_levels else []


def _add_layout(
    entities: pl.DataFrame, relationships: pl.DataFrame, levels: Sequence[pl.Series]
) -> pl.DataFrame:
    """Compute positions of the entities by theme, or if the index has none."""
    if (
        not levels
        and not entities.select(pl.any_horizontal(pl.col("x", "y").is_null().any())).item()
    ):
        return entities
    from graphrag_index.communities.layout import layout_graph, layout_hierarchy
    from graphrag_index.communities.simple_graph import build_graph

    columns = ("source", "target", "weight")
    source, target, weight = (relationships[name].to_numpy() for name in columns)
    graph = build_graph(len(entities), source, target, weight)
    parts = [level.to_numpy() for level in levels]
    x, y = (layout_hierarchy(graph, parts, seed=0) if levels else layout_graph(graph, seed=0)).T
    return entities.with_columns(x=pl.Series(x), y=pl.Series(y))


def _compute_median_spacing(entities: pl.DataFrame) -> float:
    """Return the median distance from an entity to the nearest other entity."""
    if len(entities) < 2:
        return 0.1
    from scipy.spatial import KDTree

    positions = entities.select("x", "y").to_numpy()
    distance = KDTree(positions).query(positions, k=2)[0][:, 1]
    # Return at least 0.001: the median is 0 if most entities have the same position.
    return max(float(pl.Series(distance).median() or 0), 1e-3)  # type: ignore[arg-type]


def _stream_page(graph: _DrawnGraph, version: Version) -> Iterator[str]:
    """Yield the text of the page in pieces, to keep memory low."""
    template = files(__package__).joinpath("graph_page.html").read_text(encoding="utf-8")
    program = template.partition("<script>")[2].partition("</script>")[0]
    digest = b64encode(sha256(program.encode()).digest()).decode()
    n_drawn, n_strongest = len(graph.entities), len(graph.relationships)
    notice, tables = "", version.tables
    if n_drawn < tables["entities"].rows:
        notice = (
            f"Drawn: the {n_drawn:,} entities with the most neighbours and the "
            f"{n_strongest:,} strongest relationships among them."
        )
    elif "relationships" in tables and n_strongest < tables["relationships"].rows:
        notice = f"Drawn: the {n_strongest:,} strongest relationships."
    names = ("entities", "relationships", "communities", "documents")
    counts = [format_count(name, tables[name].rows if name in tables else 0) for name in names]
    texts = {
        # The security policy of the page allows only the script with this hash.
        "digest": digest,
        "title": f"Knowledge graph: {counts[0]}",
        "counts": "{}, {}, {} on all levels, {}, version {}".format(*counts, version.number),
        "notice": notice,
        "hide_notice": "" if notice else "hidden",
    }
    for at, part in enumerate(re.split(r"\{\{(\w+)\}\}", template)):
        if at % 2 == 0:
            yield part
        elif part == "data":
            yield from _stream_graph_json(graph)
        elif part == "rows":
            yield from _stream_table_rows(graph.entities)
        else:
            yield html.escape(texts[part])


def _stream_table_rows(entities: pl.DataFrame) -> Iterator[str]:
    """Yield the rows of the HTML table for screen readers."""
    columns = ("human_readable_id", "title", "type", "degree", "frequency")
    rows = entities.select(columns).head(_MAX_ENTITIES_IN_TABLE).rows()
    for number, title, kind, degree, frequency in rows:
        yield (
            f'<tr><td dir="auto"><a href="#entity-{number}">{html.escape(title)}</a></td>'
            f"<td>{html.escape(kind)}</td>"
            f'<td class="number">{degree:,}</td><td class="number">{frequency:,}</td></tr>'
        )


def _stream_graph_json(graph: _DrawnGraph) -> Iterator[str]:
    """Yield the graph as JSON text for a script element, in pieces."""
    entities, communities, relationships = graph.entities, graph.communities, graph.relationships
    # Relationships often share a sentence: embed each sentence once.
    sentences = relationships.select(description=pl.col("description").unique(maintain_order=True))
    places = sentences.with_row_index("sentence")
    sentence = relationships.join(places, on="description", how="left", maintain_order="left")
    yield from _stream_json(
        {
            "spacing": _compute_median_spacing(entities),
            "entities": {
                "number": entities["human_readable_id"],
                "x": entities["x"].round(5),
                "y": entities["y"].round(5),
                **entities.select(
                    pl.col("title", "type", "description", "aliases", "degree", "frequency"),
                    pl.col("community", "documents", "n_documents"),
                ).to_dict(),
            },
            "relationships": {
                **relationships.select("source", "target").to_dict(),
                "weight": relationships["weight"].round_sig_figs(4),
                "sentence": sentence["sentence"],
            },
            "sentences": sentences["description"],
            "communities": {
                "number": communities["community"],
                **communities.select(
                    "level", "parent", "size", "island", "title", "summary"
                ).to_dict(),
            },
            "documents": graph.documents.select("title", "path").to_dict(),
        }
    )


def _stream_json(value: Any) -> Iterator[str]:
    """Yield JSON text in pieces, one piece per value that is not a dict."""
    if not isinstance(value, dict):
        plain = value.to_list() if isinstance(value, pl.Series) else value
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # Escape `<`, since `</script` or `<!--` in a name would end the script element.
        yield text.replace("<", "\\u003c")
        return
    opening = "{"
    for name, part in value.items():
        yield f'{opening}"{name}":'
        yield from _stream_json(part)
        opening = ","
    yield "}"


def _shorten_text(column: str, max_chars: int) -> pl.Expr:
    """Shorten texts over `max_chars` characters, and end them with an ellipsis."""
    text = pl.col(column).fill_null("")
    return (
        pl.when(text.str.len_chars() > max_chars)
        .then(text.str.head(max_chars - 1) + "…")
        .otherwise(text)
        .alias(column)
    )
