"""From the entity graph to a hierarchy of communities that leaves nobody out."""

import html
import logging
from collections.abc import Mapping
from functools import partial

import numpy as np
import polars as pl

from graphrag_index.communities.islands import with_islands
from graphrag_index.communities.keep import changed_nodes, kept_hierarchy
from graphrag_index.communities.leiden import (
    ENGINES,
    MICROSOFT_CLUSTER_SIZE,
    Leiden,
    hierarchy,
    hierarchy_microsoft,
)
from graphrag_index.communities.lineage import trace, without_history
from graphrag_index.communities.previous import Before, read_previous
from graphrag_index.communities.rows import describe, number, renumber, with_earlier_ids
from graphrag_index.communities.simple_graph import Graph, Integers, modularity, simple_graph
from graphrag_index.communities.weights import check_weights
from graphrag_index.schema.list_columns import spread_lists
from graphrag_index.schema.settings.embedded_steps import CreateCommunities
from graphrag_index.step import step
from graphrag_index.storage.table_store import Previous

logger = logging.getLogger(__name__)


@step(writes=["communities", "community_lineage"], code_version=4)
def create_communities(
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    *,
    settings: CreateCommunities,
    previous: Previous,
) -> Mapping[str, pl.DataFrame]:
    """Split the entity graph into a hierarchy of communities, or bring the last one up to date.

    Hierarchical Leiden: level 0 partitions all entities, and a community of
    more than `max_cluster_size` entities is split again one level down, if it
    can be. The parts of a community are all of it; what is not split does not
    appear again. Connected components of fewer than `min_component_size`
    entities are gathered into islands by the documents that name them, and
    so every entity is in one community of level 0.

    With the stability `keep` and an earlier run of the same settings, only entities that are
    new or whose relationships changed are moved; a community that has most of its members in
    common with an earlier one keeps the number of that.

    The result depends on the ids of the entities, not on the order of any rows.

    Returns
    -------
    communities
        One row per community.
    community_lineage
        What became of each community of the last run, and where those of this one come from.

    Raises
    ------
    TableError
        The weight of a relationship is not a number greater than 0.
    """
    check_weights("relationships", relationships)
    # Sorted by id: entity, relationship, text unit number i below is row i here.
    nodes = entities.select("id", "title").sort("id").collect()
    links = relationships.select("id", "source_id", "target_id", "weight").sort("id").collect()
    text_units = _text_units(base_text_units, documents)
    links, ends = _ends(links, nodes["id"])
    graph = simple_graph(len(nodes), ends[:, 0], ends[:, 1], links["weight"].to_numpy())
    named = _pairs(entities, nodes["id"], text_units["id"])
    shown = _pairs(relationships, links["id"], text_units["id"])
    _log_unnamed_documents(named, text_units)

    before = read_previous(previous, nodes["id"]) if settings.stability == "keep" else None
    levels = _levels(graph, nodes["title"], before, settings)
    islands = before.islands if before else None
    levels, is_island = with_islands(graph, levels, named, text_units, settings, islands)
    communities, levels = number(levels, is_island)
    if before is None:
        numbers, lineage = np.arange(len(communities)), without_history(communities)
    else:
        numbers, lineage = trace(communities, levels, before)
    communities, levels = renumber(communities, levels, numbers)
    rows = describe(communities, levels, ends, named, shown, nodes["id"], links["id"], text_units)
    if before is not None:
        rows = with_earlier_ids(rows, before.communities)
    return {"communities": rows, "community_lineage": lineage}


def _text_units(base_text_units: pl.LazyFrame, documents: pl.LazyFrame) -> pl.DataFrame:
    """Text units by id: `position` in reading order, number of the `document`, its `date`."""
    known = (
        documents.select("id", "human_readable_id", date=pl.col("creation_date").str.head(10))
        .with_columns(pl.col("date").fill_null(""))
        .collect()
    )
    return (
        base_text_units.select("id", "human_readable_id", "document_id")
        .collect()
        .join(known.rename({"human_readable_id": "document"}), left_on="document_id", right_on="id")
        .sort("id")
        .select("id", "document", "date", position="human_readable_id")
    )


def _ends(links: pl.DataFrame, ids: pl.Series) -> tuple[pl.DataFrame, Integers]:
    """Relationships between known entities, and the numbers of their two ends."""
    ends = np.stack([_numbers(links[end], ids) for end in ("source_id", "target_id")], axis=1)
    is_known = (ends >= 0).all(axis=1)
    return links.filter(pl.Series(is_known)), ends[is_known]


def _pairs(table: pl.LazyFrame, ids: pl.Series, text_unit_ids: pl.Series) -> Integers:
    """Number of the row and of the text unit, for each text unit that a row names."""
    rows = table.select("id", "text_unit_ids").collect()
    row, named = spread_lists(rows["text_unit_ids"])
    pairs = np.stack([_numbers(rows["id"], ids)[row], _numbers(named, text_unit_ids)], axis=1)
    known: Integers = pairs[(pairs >= 0).all(axis=1)]
    return known


def _numbers(wanted: pl.Series, ids: pl.Series) -> Integers:
    """Where in `ids` each wanted one stands, -1 if nowhere."""
    places = pl.DataFrame({"id": ids, "number": np.arange(len(ids))})
    found = pl.DataFrame({"id": wanted}, schema={"id": pl.String}).join(
        places, on="id", how="left", maintain_order="left"
    )
    return found["number"].fill_null(-1).to_numpy()


def _log_unnamed_documents(named: Integers, text_units: pl.DataFrame) -> None:
    document = text_units["document"].to_numpy()
    is_named = np.zeros(len(document), dtype=bool)
    is_named[named[:, 1]] = True
    n_unnamed = len(np.setdiff1d(document, document[is_named]))
    if n_unnamed:
        logger.warning(
            "%d documents name no entity: no community speaks of them, a search in the texts does.",
            n_unnamed,
        )


def _levels(
    graph: Graph, titles: pl.Series, before: Before | None, settings: CreateCommunities
) -> list[Integers]:
    """The partition of each level: kept where there is one made in the same way, else anew."""
    leiden = _leiden(settings)
    anew = partial(_levels_anew, graph, titles, leiden, settings)
    if before is None or before.communities.is_empty():
        return anew()
    if not _is_same_way(before.settings, settings):
        return anew()
    max_cluster_size, max_levels = settings.max_cluster_size, settings.max_levels
    if settings.engine == "microsoft":
        # It knows neither setting: a graph that did not change must be split as it was.
        max_cluster_size, max_levels = MICROSOFT_CLUSTER_SIZE - 1, graph.n_nodes
    levels = kept_hierarchy(
        graph,
        before.levels,
        changed_nodes(graph, before.graph, before.is_new),
        leiden,
        max_cluster_size=max_cluster_size,
        max_levels=max_levels,
        leave_untouched=True,
    )
    _log_drift(graph, levels[0], anew(max_levels=1)[0], leiden, settings)
    return levels


def _leiden(settings: CreateCommunities) -> Leiden:
    if settings.engine == "microsoft":
        # What its hierarchy is made with; parts that a change splits are split by it too.
        return Leiden(scale_resolution=False, iterations=1)
    return Leiden(
        ENGINES[settings.engine],
        settings.quality,
        settings.resolution,
        settings.scale_resolution,
        settings.iterations,
        settings.seed,
    )


def _is_same_way(before: Mapping[str, object], settings: CreateCommunities) -> bool:
    """Tell whether communities were made with settings like these."""
    new = settings.model_dump(mode="json")
    return all(before.get(name) == new[name] for name in new.keys() - {"stability", "max_drift"})


def _log_drift(
    graph: Graph, kept: Integers, anew: Integers, leiden: Leiden, settings: CreateCommunities
) -> None:
    """Say so where the graph drifted far from the communities that are kept."""
    resolution = leiden.resolution_of(graph.n_nodes) if leiden.quality == "modularity" else 1.0
    now, then = (modularity(graph, labels, resolution) for labels in (kept, anew))
    if then - now > settings.max_drift:
        logger.warning(
            "The communities that are kept have a modularity of %.3f, made anew they would have "
            "%.3f: `graphrag-index run --set create_communities.stability=rebuild` makes them "
            "anew, with other numbers and other reports.",
            *(now, then),
        )


def _levels_anew(
    graph: Graph,
    titles: pl.Series,
    leiden: Leiden,
    settings: CreateCommunities,
    max_levels: int | None = None,
) -> list[Integers]:
    if settings.engine != "microsoft":
        return hierarchy(
            graph,
            leiden,
            max_cluster_size=settings.max_cluster_size,
            max_levels=max_levels or settings.max_levels,
        )
    # Microsoft sorts the edges by the titles, after this clean-up.
    cleaned = [html.unescape(title).upper().strip() for title in titles]
    number = np.empty(len(cleaned), dtype=np.int64)
    number[sorted(range(len(cleaned)), key=cleaned.__getitem__)] = np.arange(len(cleaned))
    by_title = simple_graph(
        graph.n_nodes, number[graph.sources], number[graph.targets], graph.weights
    )
    return [labels[number] for labels in hierarchy_microsoft(by_title)]
