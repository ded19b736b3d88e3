"""Statistics of an index: graph measures, levels, counts by document and language."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.communities.simple_graph import (
    Graph,
    Integers,
    build_graph,
    compute_modularity,
    count_neighbours,
    find_components,
)
from graphrag_index.health.checked_index import (
    NEEDED_COLUMNS,
    CheckedIndex,
    count_rows,
    explode_lists,
)
from graphrag_index.schema.tables import parse_columns
from graphrag_nlp.list_columns import find_rows


@dataclass(frozen=True)
class GraphStatistics:
    """Statistics of the graph without loops and directions; parallel edges are merged."""

    nodes: int
    edges: int
    average_degree: float
    largest_degree: int
    density: float  # edges / possible edges
    components: int
    largest_component: int
    isolated: int  # nodes without an edge
    modularity: float | None  # of the communities of level 0; None without communities
    edges_between_communities: int | None  # between different communities of level 0
    weight_within_communities: float | None  # share of the weight of edges, in one of level 0


@dataclass(frozen=True)
class LevelStatistics:
    """Statistics of the communities of one level; sizes are numbers of entities.

    References
    ----------
    .. [1] Hill, Diversity and evenness: a unifying notation, Ecology 54 (1973).
    """

    level: int
    communities: int
    entities: int
    smallest: int
    median: float
    largest: int
    largest_share: float  # of the entities of the level
    effective_communities: float  # number of communities of equal size that are as even [1]_


@dataclass(frozen=True)
class IndexStatistics:
    """Statistics of an index; None or empty if the index lacks the tables."""

    rows: Mapping[str, int]
    graph: GraphStatistics | None
    levels: tuple[LevelStatistics, ...]
    # One row per document: document, title, language, and the numbers of text_units, tokens,
    # entities and relationships in the document (null if unknown).
    documents: pl.DataFrame
    languages: tuple[Mapping[str, Any], ...]


def compute_statistics(index: CheckedIndex) -> IndexStatistics:
    rows = {name: count_rows(index.tables[name]) for name in NEEDED_COLUMNS if index.has(name)}
    documents = _compute_document_statistics(index)
    by_language = (
        documents.group_by("language")
        .agg(pl.len().alias("documents"), pl.col("text_units", "tokens").sum())
        .sort("documents", "language", descending=[True, False], nulls_last=True)
    )
    return IndexStatistics(
        rows,
        _compute_graph_statistics(index),
        _compute_level_statistics(index),
        documents,
        tuple(by_language.to_dicts()),
    )


def read_entity_graph(index: CheckedIndex) -> tuple[pl.DataFrame, Graph] | None:
    """Return the entities and the graph of their relationships; None without the tables.

    The entities have the hashes `id` and `name`, the key that relationships refer to. Node i is
    entity i. Of entities with the same name, the first is kept.
    """
    key, endpoints = index.relationship_keys()
    if not (index.has("entities", "id", key) and index.has("relationships", *endpoints)):
        return None
    nodes = (
        index.tables["entities"]
        .select(pl.col("id").hash(), name=pl.col(key).hash())
        .unique("name", keep="first", maintain_order=True)
        .collect()
    )
    has_weight = index.has("relationships", "weight")
    weight = pl.col("weight").cast(pl.Float64) if has_weight else pl.lit(1.0)
    rows = index.tables["relationships"].select(pl.col(endpoints).hash(), weight=weight)
    links = rows.collect(engine="streaming")
    source, target = (find_rows(links[end], nodes["name"]) for end in endpoints)
    is_known = (source >= 0) & (target >= 0)
    weights = links["weight"].to_numpy()
    weights = np.where(np.isfinite(weights) & (weights > 0), weights, 0.0)
    graph = build_graph(nodes.height, source[is_known], target[is_known], weights[is_known])
    return nodes, graph


def _compute_graph_statistics(index: CheckedIndex) -> GraphStatistics | None:
    found = read_entity_graph(index)
    if found is None:
        return None
    nodes, graph = found
    labels, component = _community_numbers(index, nodes), find_components(graph)
    degree = count_neighbours(graph)
    n, m = graph.n_nodes, len(graph.sources)
    between = within = None
    if labels is not None:
        is_within = labels[graph.sources] == labels[graph.targets]
        between, total = int((~is_within).sum()), float(graph.weights.sum())
        within = round(float(graph.weights[is_within].sum()) / total, 4) if total else 0.0
    return GraphStatistics(
        nodes=n,
        edges=m,
        average_degree=round(2 * m / n, 3) if n else 0.0,
        largest_degree=int(degree.max(initial=0)),
        density=round(2 * m / (n * (n - 1)), 6) if n > 1 else 0.0,
        components=int(component.max(initial=-1)) + 1,
        largest_component=int(np.bincount(component).max(initial=0)) if n else 0,
        isolated=int((degree == 0).sum()),
        modularity=None if labels is None else round(compute_modularity(graph, labels), 4) + 0.0,
        edges_between_communities=between,
        weight_within_communities=within,
    )


def _community_numbers(index: CheckedIndex, nodes: pl.DataFrame) -> Integers | None:
    """Return the level 0 community of each node; number nodes without a community anew."""
    if not index.has("communities", "community", "level", "entity_ids"):
        return None
    top = index.tables["communities"].filter(pl.col("level") == 0)
    members = (
        explode_lists(top.select("community", key="entity_ids"), "key")
        .select("community", pl.col("key").hash())
        .unique("key", keep="any")
    )
    keys = nodes.lazy().select(key="id")
    joined = keys.join(members, on="key", how="left", maintain_order="left").collect()
    labels = joined["community"].fill_null(-1).to_numpy()
    own = labels.max(initial=0) + 1 + np.arange(len(labels))
    numbered: Integers = np.unique(np.where(labels >= 0, labels, own), return_inverse=True)[1]
    return numbered


def _compute_level_statistics(index: CheckedIndex) -> tuple[LevelStatistics, ...]:
    members = index.first_column("communities", "entity_ids", "size")
    if members is None or not index.has("communities", "level"):
        return ()
    size = pl.col(members).list.len() if members == "entity_ids" else pl.col(members)
    sizes = (
        index.tables["communities"]
        .select("level", size=size.cast(pl.Int64).fill_null(0))
        .drop_nulls("level")
        .group_by("level")
        .agg(
            communities=pl.len(),
            entities=pl.col("size").sum(),
            smallest=pl.col("size").min(),
            median=pl.col("size").median(),
            largest=pl.col("size").max(),
            sizes=pl.col("size"),
        )
        .sort("level")
        .collect(engine="streaming")
    )
    rows = sizes.to_dicts()
    for row in rows:
        of_level = np.array(row.pop("sizes"))
        shares = of_level[of_level > 0] / max(row["entities"], 1)
        row["largest_share"] = round(float(shares.max(initial=0)), 4)
        row["effective_communities"] = round(float(np.exp(-(shares * np.log(shares)).sum())), 2)
    return tuple(LevelStatistics(**row) for row in rows)


def _compute_document_statistics(index: CheckedIndex) -> pl.DataFrame:
    schema = parse_columns(
        "document, title, language, text_units: int64, tokens: int64, entities: int64, "
        "relationships: int64"
    )
    if not index.has("documents", "id"):
        return pl.DataFrame(schema=schema)
    rows = (
        index.tables["documents"]
        .select(
            pl.col("id").hash().alias("key"),
            document=index.first_column("documents", "path", "title", "id"),
            title=index.first_column("documents", "title", "id"),
            language="language" if index.has("documents", "language") else pl.lit("und"),
        )
        .collect(engine="streaming")
    )
    units = index.text_unit_documents()
    if units is not None:
        counts = [units.group_by("key").agg(text_units=pl.len())]
        if index.has("text_units", "n_tokens"):
            tokens = index.tables["text_units"].select("n_tokens", unit=pl.col("id").hash())
            of_documents = units.join(tokens, on="unit").group_by("key")
            counts.append(of_documents.agg(tokens=pl.col("n_tokens").sum()))
        for name in ("entities", "relationships"):
            if index.has(name, "id", "text_unit_ids"):
                things = index.tables[name].select(thing=pl.col("id").hash(), unit="text_unit_ids")
                of_units = explode_lists(things, "unit").with_columns(pl.col("unit").hash())
                pairs = of_units.join(units, on="unit").select("key", "thing").unique()
                counts.append(pairs.group_by("key").agg(pl.len().alias(name)))
        for count in counts:
            found = count.collect(engine="streaming")
            rows = rows.join(found, on="key", how="left", maintain_order="left")
            rows = rows.with_columns(pl.col(found.columns[-1]).fill_null(0))
    columns = [
        pl.col(name).cast(dtype) if name in rows.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in schema.items()
    ]
    return rows.select(columns)
