"""Splitting of the entity graph into a hierarchy of communities.

An island community gathers small connected components of the graph.
"""

import html
import logging
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import polars as pl

from graphrag_index.communities.hierarchy_update import find_changed_nodes, update_hierarchy
from graphrag_index.communities.leiden import (
    MICROSOFT_CLUSTER_SIZE,
    build_hierarchy,
    build_microsoft_hierarchy,
    choose_resolution,
    group_small_components,
)
from graphrag_index.communities.lineage import (
    PreviousCommunities,
    add_community_columns,
    keep_previous_ids,
    number_communities,
    read_old_communities,
    renumber_communities,
    trace_lineage,
)
from graphrag_index.communities.simple_graph import (
    Graph,
    Integers,
    build_graph,
    check_weights,
    compute_modularity,
)
from graphrag_index.schema.list_columns import find_rows
from graphrag_index.schema.settings.step_sections import CreateCommunities
from graphrag_index.step import step
from graphrag_index.storage.memo import locate_list_values
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
    """Split the entity graph into a hierarchy of communities, or update the last hierarchy.

    The algorithm is hierarchical Leiden. The communities of level 0 contain all entities. A
    community of more than `max_cluster_size` entities is split again, if possible, into
    sub-communities of the next level. Connected components of fewer than `min_component_size`
    entities are gathered into island communities: components in the same documents come together.
    So every entity belongs to one community of level 0.

    If the setting `stability` is `keep`, and the last version has the same settings, only new
    entities and entities with changed relationships are moved. A community that shares most of its
    members with an earlier community keeps its number. `community_lineage` has the communities of
    both versions.

    The result depends on the ids of the entities, not on the order of rows.
    """
    check_weights("relationships", relationships)
    # Sort by id, because the code below uses the row numbers of the sorted rows.
    nodes = entities.select("id", "title").sort("id").collect()
    links = relationships.select("id", "source_id", "target_id", "weight").sort("id").collect()
    text_units = _read_text_units(base_text_units, documents)
    pairs = np.stack([find_rows(links[f"{e}_id"], nodes["id"]) for e in ("source", "target")], 1)
    is_known = (pairs >= 0).all(axis=1)
    links, pairs = links.filter(pl.Series(is_known)), pairs[is_known]
    graph = build_graph(len(nodes), pairs[:, 0], pairs[:, 1], links["weight"].to_numpy())
    named = _pair_with_text_units(entities, nodes["id"], text_units["id"])
    shown = _pair_with_text_units(relationships, links["id"], text_units["id"])
    _log_unnamed_documents(named, text_units)

    before = read_old_communities(previous, nodes["id"]) if settings.stability == "keep" else None
    rebuild: Callable[[Graph, CreateCommunities], list[Integers]] = build_hierarchy
    if settings.engine == "microsoft":
        rebuild = partial(_build_microsoft_levels, nodes["title"])
    if before and before.communities.height and _has_same_settings(before.settings, settings):
        levels = _update_levels(graph, before, rebuild, settings)
    else:
        levels = rebuild(graph, settings)
    islands = before.island_of_nodes if before else None
    levels, is_island = group_small_components(graph, levels, named, text_units, settings, islands)
    communities, levels = number_communities(levels, is_island)
    numbers, lineage = trace_lineage(communities, levels, before)
    communities, levels = renumber_communities(communities, levels, numbers)
    rows = add_community_columns(
        communities, levels, pairs, named, shown, nodes["id"], links["id"], text_units
    )
    if before is not None:
        rows = keep_previous_ids(rows, before.communities)
    return {"communities": rows, "community_lineage": lineage}


def _read_text_units(base_text_units: pl.LazyFrame, documents: pl.LazyFrame) -> pl.DataFrame:
    """Return text units, sorted by id, with `document` number, `date` and `position`.

    `position` is the number of the text unit in reading order.
    """
    known = documents.select(
        document_id="id",
        document="human_readable_id",
        date=pl.col("creation_date").str.head(10).fill_null(""),
    )
    return (
        base_text_units.select("id", "document_id", position="human_readable_id")
        .join(known, on="document_id")
        .sort("id")
        .collect()
    )


def _pair_with_text_units(
    table: pl.LazyFrame, ids: pl.Series, text_unit_ids: pl.Series
) -> Integers:
    """Return an array of pairs: position of a row in `ids`, position in `text_unit_ids`."""
    row, text_unit = locate_list_values(table.select("text_unit_ids"), text_unit_ids)
    number = find_rows(table.select("id").collect()["id"], ids)[row]
    known: Integers = np.stack([number, text_unit], axis=1)[number >= 0]
    return known


def _log_unnamed_documents(named: Integers, text_units: pl.DataFrame) -> None:
    document = text_units["document"]
    n_unnamed = document.n_unique() - document.gather(np.unique(named[:, 1])).n_unique()
    if n_unnamed:
        logger.warning(
            "%d documents name no entity: they are in no community, but a search can find them.",
            n_unnamed,
        )


def _update_levels(
    graph: Graph,
    before: PreviousCommunities,
    rebuild: Callable[[Graph, CreateCommunities], list[Integers]],
    settings: CreateCommunities,
) -> list[Integers]:
    """Return the communities of each level; keep the communities of the last version.

    Logs a warning if the modularity is much lower than the modularity of new communities.
    """
    used = settings
    if settings.engine == "microsoft":
        # Split communities again with the values of Microsoft's engine, which ignores the settings.
        limits = {"max_cluster_size": MICROSOFT_CLUSTER_SIZE - 1, "max_levels": graph.n_nodes}
        used = CreateCommunities(scale_resolution=False, iterations=1).model_copy(update=limits)
    is_changed = find_changed_nodes(graph, before.graph, before.is_new)
    levels = update_hierarchy(graph, before.levels, is_changed, used)
    resolution = choose_resolution(used, graph.n_nodes) if used.quality == "modularity" else 1.0
    rebuilt = rebuild(graph, settings.model_copy(update={"max_levels": 1}))
    now, then = (compute_modularity(graph, labels[0], resolution) for labels in (levels, rebuilt))
    if then - now > settings.max_drift:
        logger.warning(
            "The kept communities have a modularity of %.3f; new communities would have %.3f. "
            "`graphrag-index run --set create_communities.stability=rebuild` creates new "
            "communities, with other numbers and other reports.",
            now,
            then,
        )
    return levels


def _has_same_settings(before: Mapping[str, object], settings: CreateCommunities) -> bool:
    """Return True if all settings that change communities are equal."""
    new = settings.model_dump(mode="json", exclude={"stability", "max_drift"})
    return all(before.get(name) == value for name, value in new.items())


def _build_microsoft_levels(
    titles: pl.Series, graph: Graph, settings: CreateCommunities
) -> list[Integers]:
    """Build the hierarchy of a graph with the engine of Microsoft, which ignores the settings."""
    # Number the nodes by cleaned title, because Microsoft's engine sorts the edges by it.
    cleaned = [html.unescape(title).upper().strip() for title in titles]
    number = np.argsort(sorted(range(len(cleaned)), key=cleaned.__getitem__))
    by_title = build_graph(
        graph.n_nodes, number[graph.sources], number[graph.targets], graph.weights
    )
    return [labels[number] for labels in build_microsoft_hierarchy(by_title)]
