"""The graph database for Cypher queries: its labels, and how it is built from the tables."""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import polars as pl

from graphrag_index.errors import QueryError
from graphrag_nlp.text.languages import read_lists
from graphrag_query.structured.sandbox import Files, Limits, Ready, Rows, graph_library

# Increase this when labels or properties change, so that older databases are rebuilt.
SCHEMA_VERSION = 1
# Memory in bytes for the pages of the database while it is built.
_BUFFER_BYTES = 1 << 28

Tables = Mapping[str, pl.LazyFrame]


@dataclass(frozen=True)
class GraphLabel:
    """The nodes or relationships of one label.

    `properties` maps the properties to their types; the first property of a node is its key. A
    relationship has `endpoints`: the labels of its two nodes. `rows` builds the rows from `tables`;
    rows of relationships have the columns source and target, with the keys of the two nodes.
    """

    name: str
    meaning: str
    properties: Mapping[str, str]
    tables: Sequence[str]
    rows: Callable[[Tables], pl.LazyFrame]
    endpoints: Sequence[str] = ()


def _rename_number(table: pl.LazyFrame) -> pl.LazyFrame:
    return table.rename({"human_readable_id": "number"})


def _community_rows(tables: Tables) -> pl.LazyFrame:
    communities = tables["communities"]
    if "community_reports" not in tables:
        texts = {"report": pl.lit(None, pl.String), "summary": pl.lit(None, pl.String)}
        return communities.with_columns(**texts, rank=pl.lit(None, pl.Float64))
    columns = ("community", pl.col("title").alias("report"), "summary", "rank")
    reports = tables["community_reports"].select(columns)
    # A community has at most one report.
    return communities.join(reports, on="community", how="left", maintain_order="left")


def _join_numbers(rows: pl.LazyFrame, table: pl.LazyFrame, key: str, number: str) -> pl.LazyFrame:
    """Add a column `number` with the numbers of the rows of a table whose ids are in `key`."""
    ids = table.select(pl.col("id").alias(key), pl.col("human_readable_id").alias(number))
    return rows.join(ids, on=key)


def _related_rows(tables: Tables) -> pl.LazyFrame:
    entities, relationships = tables["entities"], _rename_number(tables["relationships"])
    rows = _join_numbers(relationships.drop("source", "target"), entities, "source_id", "source")
    return _join_numbers(rows, entities, "target_id", "target")


def _mention_rows(tables: Tables) -> pl.LazyFrame:
    mentions = tables["mentions"].group_by(source="text_unit", target="entity")
    return mentions.agg(times=pl.len()).cast(pl.Int64)


def _part_of_rows(tables: Tables) -> pl.LazyFrame:
    units = tables["text_units"].select("document_id", source="human_readable_id")
    return _join_numbers(units, tables["documents"], "document_id", "target")


def _membership_rows(tables: Tables) -> pl.LazyFrame:
    members = tables["communities"].select("entity_ids", target="community").explode("entity_ids")
    return _join_numbers(members, tables["entities"], "entity_ids", "source")


def _parent_rows(tables: Tables) -> pl.LazyFrame:
    children = tables["communities"].filter(pl.col("parent") >= 0)
    return children.select(source="community", target="parent")


_ROWS_OF_LABEL: Mapping[str, Callable[[Tables], pl.LazyFrame]] = {
    "Entity": lambda tables: _rename_number(tables["entities"]),
    "Document": lambda tables: _rename_number(tables["documents"]),
    "TextUnit": lambda tables: _rename_number(tables["text_units"]),
    "Community": _community_rows,
    "RELATED": _related_rows,
    "MENTIONS": _mention_rows,
    "PART_OF": _part_of_rows,
    "IN_COMMUNITY": _membership_rows,
    "BELOW": _parent_rows,
}
# The labels of the graph: nodes first, then relationships.
GRAPH_LABELS = [
    GraphLabel(name, rows=_ROWS_OF_LABEL[name], **fields)
    for name, fields in read_lists("cypher_graph", Path(__file__).parent).items()
]


def graph_schema() -> str:
    """Describe the nodes and relationships of the graph as Cypher patterns."""
    lines = []
    for label in GRAPH_LABELS:
        listed = ", ".join(f"{name} {kind}" for name, kind in label.properties.items())
        pattern = f":{label.name} {{{listed}}}" if listed else f":{label.name}"
        if label.endpoints:
            source, target = label.endpoints
            pattern = f"(:{source})-[{pattern}]->(:{target})"
        else:
            pattern = f"({pattern})"
        lines.append(f"{pattern}\n  {label.meaning}")
    return "\n".join(lines)


def build_graph(tables: Files, target: str, limits: Limits, ready: Ready) -> Rows:
    """Build the database at `target` from Parquet files, as a task of a worker.

    Returns no rows. Raises QueryError if the engine fails.
    """
    frames = {name: pl.scan_parquet(path, glob=False) for name, path in tables.items()}
    # The engine reads Parquet files from this temporary folder.
    folder = Path(f"{target}.rows")
    folder.mkdir()
    library = import_module(graph_library())
    database = library.Database(target, buffer_pool_size=_BUFFER_BYTES)
    connection = library.Connection(database)
    try:
        for label in GRAPH_LABELS:
            columns = [f"`{name}` {kind}" for name, kind in label.properties.items()]
            if label.endpoints:
                columns.insert(0, "FROM {} TO {}".format(*label.endpoints))
            else:
                columns.append(f"PRIMARY KEY(`{next(iter(label.properties))}`)")
            kind = "REL" if label.endpoints else "NODE"
            connection.execute(f"CREATE {kind} TABLE {label.name}({', '.join(columns)})")
            if all(name in frames for name in label.tables):
                path = folder / f"{label.name}.parquet"
                endpoints = ("source", "target") if label.endpoints else ()
                label.rows(frames).select(*endpoints, *label.properties).sink_parquet(path)
                # Escape wildcards, and characters that would end the literal.
                literal = path.as_posix().replace("\\", "\\\\").replace("'", "\\'")
                literal = re.sub(r"([*?\[])", r"[\1]", literal)
                connection.execute(f"COPY {label.name} FROM '{literal}'")
                path.unlink()
        connection.execute("CHECKPOINT")
    except RuntimeError as error:
        raise QueryError(f"The graph database cannot be built: {error}") from error
    finally:
        connection.close()
        database.close()
        shutil.rmtree(folder)
    return [], []
