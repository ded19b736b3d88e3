"""The explorer as one HTML file: as the server sends it, and as a static page with its data.

`explorer.html` is built from `explorer/`. A static page has the data in a script element as
compressed JSON in base64, so that no text of a document can become markup.
"""

import gzip
import html
import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.errors import TableError, format_count
from graphrag_index.storage.atomic import write_text_file
from graphrag_index.storage.memo import join_batches
from graphrag_index.storage.table_store import TableStore, open_index, scan_table
from graphrag_index.storage.versions import Version
from graphrag_nlp.text.document_dates import Period, divide_time, find_document_dates

_Scan = Callable[[str], pl.LazyFrame]


@dataclass(frozen=True)
class PartLimits:
    """Maximum size of an embedded part of an index."""

    entities: int
    relationships: int
    characters: int  # of documents; the same limit counts for reports


def embed_index(store: TableStore, version: Version, limits: PartLimits) -> dict[str, Any]:
    """Read the entities with the most neighbours, and what belongs to them, within the limits.

    Raises TableError if the index has no entities.
    """
    scan = partial(scan_table, store, version)
    chosen = (
        scan("entities")
        .select("id", "degree", "frequency", entity="human_readable_id")
        .sort("degree", "frequency", "entity", descending=[True, True, False])
        .head(limits.entities)
        .select("id", "entity")
        .collect(engine="streaming")
    )
    if chosen.is_empty():
        raise TableError(
            f"The index in {store.place} has no entities to draw: "
            "`graphrag-index show` without --html tells what it has."
        )
    relationships = _read_relationships(scan, chosen, limits.relationships)
    places, discs = _read_map(scan, version, chosen, relationships)
    documents, units = _read_documents(scan, chosen, limits.characters)
    documents, periods = _add_dates(scan, documents)
    entities = _read_entities(scan, chosen, places, documents)
    relationships = _with_numbers(relationships, "text_unit_ids", units)
    shown = {
        "entities": entities,
        "relationships": _with_spans(relationships, documents),
        "communities": _read_communities(scan, discs, limits.characters),
        "documents": documents.drop("id"),
        "text_units": units.drop("id"),
        "mentions": _read_mentions(scan, chosen, units),
    }
    return {
        "version": version.number,
        "workflow": version.workflow,
        "periods": periods,
        "rows": {name: table.rows for name, table in version.tables.items() if name in shown},
        "tables": {name: frame.to_dict(as_series=False) for name, frame in shown.items()},
    }


def _read_entities(
    scan: _Scan, chosen: pl.DataFrame, places: pl.DataFrame, documents: pl.DataFrame
) -> pl.DataFrame:
    return (
        scan("entities")
        .join(chosen.lazy(), on="id", maintain_order="right")
        .select(
            pl.col("human_readable_id").alias("number"),
            pl.col("title", "type", "description").fill_null(""),
            pl.col("degree", "frequency"),
            pl.col("aliases").fill_null([]),
            "evidence",
        )
        .collect(engine="streaming")
        .join(places, left_on="number", right_on="entity", how="left", maintain_order="left")
        .with_columns(
            pl.col("community").fill_null(-1),
            pl.col("x", "y").fill_null(0.0).cast(pl.Float64).round(5),
        )
        .pipe(_with_spans, documents)
    )


def _read_relationships(scan: _Scan, chosen: pl.DataFrame, max_rows: int) -> pl.DataFrame:
    """Return the strongest relationships between the chosen entities."""
    ends = chosen.lazy()
    return (
        scan("relationships")
        .drop("source", "target")
        .join(ends.rename({"entity": "source"}), left_on="source_id", right_on="id")
        .join(ends.rename({"entity": "target"}), left_on="target_id", right_on="id")
        .sort("weight", "human_readable_id", descending=[True, False])
        .head(max_rows)
        .select(
            pl.col("human_readable_id").alias("number"),
            *("source", "target"),
            pl.col("type", "description").fill_null(""),
            pl.col("weight").round_sig_figs(5),
            *("text_unit_ids", "evidence"),
            stated=(pl.col("type").fill_null("") != "") | (pl.col("evidence").list.len() > 0),
        )
        .collect(engine="streaming")
    )


def _read_map(
    scan: _Scan, version: Version, chosen: pl.DataFrame, relationships: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the place of each entity in its deepest community, and the discs around them."""
    numbers = chosen["entity"].implode()
    if "map_communities" in version.tables:
        places = scan("map_entities").filter(pl.col("entity").is_in(numbers)).collect()
        discs = scan("map_communities").collect()
    else:
        places, discs = layout_map(scan, chosen, relationships)
    parents = dict(discs.select("community", "parent").iter_rows())
    kept = set[int]()
    for community in places["community"].unique().to_list():
        while community in parents and community not in kept:
            kept.add(community)
            community = parents[community]
    return places, discs.filter(pl.col("community").is_in(sorted(kept))).sort("community")


def layout_map(
    scan: _Scan, chosen: pl.DataFrame, relationships: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Place the chosen entities of an index that has no map, and their communities.

    The columns of `chosen` are the `id` and the number (`entity`) of an entity; `source` and
    `target` of the relationships are such numbers.
    """
    from graphrag_index.communities.map_layout import create_map
    from graphrag_index.communities.simple_graph import build_graph

    nodes = chosen.with_row_index("node")
    position = dict(nodes.select("entity", "node").iter_rows())
    source, target = (
        relationships[end].replace_strict(position).to_numpy() for end in ("source", "target")
    )
    graph = build_graph(len(nodes), source, target, relationships["weight"].to_numpy())
    members = (
        scan("communities")
        .select("community", "level", "parent", id="entity_ids")
        .explode("id")
        .join(nodes.lazy(), on="id")
        .sort("level", "community", "node")
        .collect(engine="streaming")
    )
    keys = ("community", "level", "parent")
    communities = members.group_by(keys, maintain_order=True).agg(size=pl.len().cast(pl.Int64))
    communities = communities.with_row_index("row")
    rows = dict(communities.select("community", "row").iter_rows())
    communities = communities.with_columns(
        above=pl.col("parent").replace_strict(rows, default=-1, return_dtype=pl.Int64)
    )
    levels = []
    for _, part in members.group_by("level", maintain_order=True):
        labels = np.full(len(nodes), -1)
        labels[part["node"].to_numpy()] = part["community"].replace_strict(rows).to_numpy()
        levels.append(labels)
    drawn = join_batches(
        create_map(graph, communities, levels, chosen["id"], np.arange(len(nodes)))
    )
    return drawn["map_entities"].with_columns(entity=chosen["entity"]), drawn["map_communities"]


def _read_communities(scan: _Scan, discs: pl.DataFrame, max_characters: int) -> pl.DataFrame:
    """Read communities with their reports, the full ones of the largest communities first."""
    reports = scan("community_reports").select(
        *("community", "summary", "full_content", "rank"), report="title"
    )
    return (
        scan("communities")
        .select("community", "level", "title", "size")
        .join(discs.lazy(), on="community")
        .join(reports, on="community", how="left")
        .sort("level", "size", "community", descending=[False, True, False])
        .with_columns(
            pl.col("x", "y", "radius").cast(pl.Float64).round(5),
            pl.col("summary").fill_null(""),
            title=pl.coalesce("report", "title", pl.lit("")),
            full_content=_within("full_content", max_characters),
        )
        .drop("report")
        .collect(engine="streaming")
    )


def _read_documents(
    scan: _Scan, chosen: pl.DataFrame, max_characters: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the documents and text units that name the chosen entities.

    The documents that name most of them come with their texts, up to `max_characters`.
    """
    links = scan("entities").select("id", text_unit="text_unit_ids").join(chosen.lazy(), on="id")
    named = links.explode("text_unit").group_by("text_unit").agg(times=pl.len())
    found = (
        scan("text_units")
        .join(named, left_on="id", right_on="text_unit", how="left")
        .group_by("document_id")
        .agg(times=pl.col("times").sum())
    )
    documents = (
        scan("documents")
        .join(found, left_on="id", right_on="document_id", how="left")
        .sort("times", "human_readable_id", descending=[True, False], nulls_last=True)
        .select(
            pl.col("human_readable_id").alias("number"),
            "id",
            pl.col("title", "path", "creation_date", "language").fill_null(""),
            "metadata",
            n_characters=pl.col("text").str.len_chars(),
            n_text_units=pl.col("text_unit_ids").list.len(),
            type=file_type("path"),
            text=_within("text", max_characters),
        )
        .filter(pl.col("text").is_not_null())
        .collect(engine="streaming")
        .sort("number")
    )
    units = (
        scan("text_units")
        .join(documents.lazy().select("number", "id"), left_on="document_id", right_on="id")
        .select(
            "id",
            pl.col("number").alias("document"),
            pl.col("human_readable_id").alias("number"),
            *("start_char", "end_char"),
            pl.col("headings").fill_null(""),
        )
        .sort("number")
        .collect(engine="streaming")
    )
    return documents, units


def file_type(path: str) -> pl.Expr:
    """Return the suffix of the paths in a column, such as "pdf"; empty if a path has none."""
    suffix = pl.col(path).str.extract(r"\.([A-Za-z0-9]{1,9})$")
    return suffix.str.to_lowercase().fill_null("")


def _add_dates(scan: _Scan, documents: pl.DataFrame) -> tuple[pl.DataFrame, list[Period]]:
    """Add the `date` and the position of its `period` to documents; return the periods."""
    # All documents together tell whether a number in a title is a year.
    titles = scan("documents").select("human_readable_id", "title", "creation_date").collect()
    dates = find_document_dates(titles)
    periods, position = divide_time(dates)
    found = titles.select(pl.col("human_readable_id").alias("number"), date=dates, period=position)
    return documents.join(found, on="number", how="left", maintain_order="left"), periods


def _read_mentions(scan: _Scan, chosen: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Read the places where the text units name the chosen entities."""
    mentions = scan("mentions").select(
        pl.col("entity", "text_unit").cast(pl.Int64), "start_char", "end_char"
    )
    return (
        mentions.join(chosen.lazy(), on="entity", how="semi")
        .join(units.lazy(), left_on="text_unit", right_on="number", how="semi")
        .sort("text_unit", "start_char", "end_char", "entity")
        .collect(engine="streaming")
    )


def _within(column: str, max_characters: int) -> pl.Expr:
    """Return the texts of the first rows up to the limit of all characters; null for others.

    A single text that is longer than the limit is skipped, and does not count.
    """
    length = pl.col(column).str.len_chars().fill_null(0)
    fits = length <= max_characters
    sum_of_fitting = pl.when(fits).then(length).otherwise(0).cum_sum()
    return pl.when(fits & (sum_of_fitting <= max_characters)).then(column)


def _with_numbers(rows: pl.DataFrame, column: str, numbers: pl.DataFrame) -> pl.DataFrame:
    """Replace the ids in a column of lists by numbers; ids without a number are left out."""
    lists = (
        rows.select("number", id=column)
        .explode("id")
        .join(numbers.select("id", value="number"), on="id", maintain_order="left")
        .group_by("number", maintain_order=True)
        .agg(pl.col("value").alias(column))
    )
    return _with_lists(rows, lists, column)


def _with_lists(rows: pl.DataFrame, lists: pl.DataFrame, column: str) -> pl.DataFrame:
    """Replace a column by that of `lists`; a row that `lists` lacks gets an empty list."""
    joined = rows.drop(column).join(lists, on="number", how="left", maintain_order="left")
    return joined.with_columns(pl.col(column).fill_null([]))


def _with_spans(rows: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Replace the evidence of rows by lists of document, first character and end."""
    lists = (
        rows.select("number", "evidence")
        .explode("evidence")
        .unnest("evidence")
        .join(
            documents.select(document_id="id", document="number"),
            on="document_id",
            maintain_order="left",
        )
        .group_by("number", maintain_order=True)
        .agg(evidence=pl.concat_list("document", "start_char", "end_char"))
    )
    return _with_lists(rows, lists, "evidence")


# Maximum size of a static page.
MAX_BYTES = 2_000_000
# Parts of an index, the largest first: the first one that fits into the page is embedded.
PARTS = (
    PartLimits(entities=10_000, relationships=30_000, characters=4_000_000),
    PartLimits(entities=6_000, relationships=20_000, characters=1_500_000),
    PartLimits(entities=4_000, relationships=12_000, characters=500_000),
    PartLimits(entities=2_000, relationships=6_000, characters=200_000),
    PartLimits(entities=500, relationships=1_500, characters=50_000),
)
_INLINE = {
    "script-src": re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL),
    "style-src": re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL),
}
_ROOT, _CHARSET, _TITLE = '<div id="app"></div>', '<meta charset="utf-8" />', r"<title>.*?</title>"


def read_explorer() -> str:
    """Return the page of the explorer. It holds no data."""
    return files(__package__).joinpath("explorer.html").read_text(encoding="utf-8")


def security_policy(page: str, connections: str) -> str:
    """Return a security policy that allows only the scripts and styles of the page."""
    parts = ["default-src 'none'", f"connect-src {connections}", "img-src data: blob:"]
    for name, pattern in _INLINE.items():
        digests = [
            b64encode(sha256(text.encode()).digest()).decode() for text in pattern.findall(page)
        ]
        if digests:
            parts.append(" ".join([name, *(f"'sha256-{digest}'" for digest in digests)]))
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])


def write_page(output: Path, file: Path, *, name: str, max_bytes: int = MAX_BYTES) -> str:
    """Write the explorer with the data of an index as one file, replacing `file` atomically.

    If the index is too large for a page of `max_bytes`, the page shows the entities with the most
    neighbours and says so. Returns what the page holds, in words. Raises TableError if the index
    has no entities.
    """
    store, version = open_index(output)
    page = read_explorer()
    for limits in PARTS:
        part = {"name": name, **embed_index(store, version, limits)}
        content = json.dumps(part, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        data = b64encode(gzip.compress(content.encode(), 9, mtime=0)).decode()
        if len(page.encode()) + len(data) <= max_bytes:
            break
    title = f"{name}: {format_count('entities', version.tables['entities'].rows)}"
    policy = html.escape(security_policy(page, "'none'"))
    head, root, tail = page.rpartition(_ROOT)
    data_element = f'<script type="text/plain" id="index-data">{data}</script>'
    head = re.sub(_TITLE, lambda _: f"<title>{html.escape(title)}</title>", head, count=1)
    rule = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    head = head.replace(_CHARSET, _CHARSET + rule, 1)
    write_text_file(file, [head, root, data_element, tail])
    return _describe_part(part)


def _describe_part(part: Mapping[str, Any]) -> str:
    """Describe what a page holds: "2,248 of 2,248 entities, the texts of 9 of 10 documents"."""
    held = {name: len(part["tables"][name]["number"]) for name in ("entities", "documents")}
    entities, documents = (f"{n:,} of {part['rows'].get(name, n):,}" for name, n in held.items())
    return f"{entities} entities, the texts of {documents} documents"
