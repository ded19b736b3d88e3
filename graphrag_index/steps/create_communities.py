"""Splitting of the entity graph into a hierarchy of communities.

An island community gathers small connected components of the graph.
"""

import html
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.hierarchy_update import find_changed_nodes, update_hierarchy
from graphrag_index.communities.islands import group_small_components
from graphrag_index.communities.leiden import (
    MICROSOFT_CLUSTER_SIZE,
    build_hierarchy,
    build_microsoft_hierarchy,
    choose_resolution,
)
from graphrag_index.communities.lineage import (
    PreviousCommunities,
    keep_previous_ids,
    make_community_rows,
    number_communities,
    read_old_communities,
    renumber_communities,
    trace_lineage,
)
from graphrag_index.communities.map_layout import create_map
from graphrag_index.communities.simple_graph import (
    Floats,
    Graph,
    Integers,
    build_graph,
    check_weights,
    compute_modularity,
    read_endpoints,
)
from graphrag_index.communities.text_clusters import Vectors, embed_text_units, number_sections
from graphrag_index.communities.themes import Themes, find_themes
from graphrag_index.schema.settings.step_sections import CreateCommunities
from graphrag_index.step import Shards, step
from graphrag_index.storage.memo import read_number_lists, regroup_batches
from graphrag_index.storage.table_store import Previous
from graphrag_nlp.list_columns import NumberLists
from graphrag_nlp.text.document_dates import stated_date

# A function that returns the community of each node, from coarse levels to fine ones.
FindLevels = Callable[[Graph, CreateCommunities], list[Integers]]

logger = logging.getLogger(__name__)


@step(
    writes=["communities", "community_lineage", "map_communities", "map_entities"],
    code_version=9,
)
def create_communities(
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    *,
    settings: CreateCommunities,
    previous: Previous,
    shards: Shards,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Split the entity graph into a hierarchy of communities, or update the last hierarchy.

    The algorithm is hierarchical Leiden. The coarsest communities contain all entities. A community
    of more than `max_cluster_size` entities is split again, if possible, into sub-communities of
    the next level. Connected components of fewer than `min_component_size`
    entities are gathered into island communities: components of the same documents, and of
    documents with similar texts, come together.
    If these are more than `max_themes`, levels of themes are put above them, which group them by
    what their texts are about. So every entity belongs to one community of level 0.

    If the setting `stability` is `keep`, and the last version has the same settings, only new
    entities and entities with changed relationships are moved. A community that shares most of its
    members with an earlier community keeps its number. `community_lineage` has the communities of
    both versions. `map_communities` and `map_entities` have their places in a drawing; what is
    kept stays in its place.

    The result depends on the ids of the entities, not on the order of rows.
    """
    check_weights("relationships", relationships)
    # Sort by id, because the code below uses the row numbers of the sorted rows.
    ids, by_id = _sort_ids(entities)
    text_units = _read_text_units(base_text_units, documents)
    named = read_number_lists(entities.select("text_unit_ids"), text_units["id"])[by_id]
    links = _read_links(relationships, ids, text_units["id"])
    endpoints = links.endpoints
    # Keep the graph in memory maps of files: together with the lists it may exceed memory.
    graph = build_graph(len(ids), endpoints[:, 0], endpoints[:, 1], links.weights, shards.allocate)

    before = (
        read_old_communities(previous, ids, shards.allocate)
        if settings.stability == "keep"
        else None
    )
    find_levels = _choose_method(before, entities, by_id, settings)
    levels = find_levels(graph, settings)
    islands = before.island_of_nodes if before else None
    texts = cache(partial(embed_text_units, base_text_units, text_units["id"], shards.allocate))
    levels, is_island = group_small_components(
        graph, levels, named, text_units, texts, settings, islands
    )
    themes = _group_into_themes(
        graph, levels[0], len(is_island), named, text_units, texts, settings, before
    )
    texts.cache_clear()
    _log_unnamed_documents(named, text_units, themes)
    levels = [*themes.of_nodes, *levels]
    communities, levels = number_communities(levels, is_island, len(themes.of_nodes))
    numbers, lineage = trace_lineage(communities, levels, before)
    communities, levels = renumber_communities(communities, levels, numbers)
    yield {"community_lineage": lineage}
    known = previous if before else None
    yield from create_map(graph, communities, levels, ids, by_id, known, shards)
    rows = make_community_rows(
        communities,
        levels,
        endpoints,
        named,
        links.shown,
        ids,
        links.ids,
        text_units,
        themes.number_text_units(levels),
    )
    if before is not None:
        rows = (keep_previous_ids(batch, before.communities) for batch in rows)
    for batch in regroup_batches(rows):
        yield {"communities": batch}


def _group_into_themes(
    graph: Graph,
    labels: Integers,
    n_communities: int,
    named: NumberLists,
    text_units: pl.DataFrame,
    texts: Callable[[], Vectors],
    settings: CreateCommunities,
    before: PreviousCommunities | None,
) -> Themes:
    """Group the communities, numbered in `labels`, into themes if they are too many to read.

    The themes of the last version are kept if their maximum number has not changed.
    """
    is_same = before and before.settings.get("max_themes") == settings.max_themes
    kept = before.themes if before and is_same else []
    n_themes = 0 if settings.engine == "microsoft" else settings.max_themes
    if n_themes < 2 or not (kept or n_communities > n_themes):
        return Themes([], [])
    sections = number_sections(text_units)
    return find_themes(graph, labels, named, texts(), sections, n_themes, kept)


class _Links(NamedTuple):
    """The relationships between known entities, sorted by id."""

    ids: pl.Series
    # The rows of both entities, and the weight, of each relationship.
    endpoints: npt.NDArray[np.int32]
    weights: Floats
    # The rows of the text units of each relationship.
    shown: NumberLists


def _read_links(relationships: pl.LazyFrame, ids: pl.Series, text_unit_ids: pl.Series) -> _Links:
    link_ids, by_id = _sort_ids(relationships)
    endpoints = read_endpoints(relationships, ids)[by_id]
    weights = relationships.select("weight").collect()["weight"].to_numpy()[by_id]
    shown = read_number_lists(relationships.select("text_unit_ids"), text_unit_ids)[by_id]
    is_known = (endpoints >= 0).all(axis=1)
    if not is_known.all():
        link_ids, shown = link_ids.filter(pl.Series(is_known)), shown[np.flatnonzero(is_known)]
        endpoints, weights = endpoints[is_known], weights[is_known]
    return _Links(link_ids, endpoints, weights, shown)


def _choose_method(
    before: PreviousCommunities | None,
    entities: pl.LazyFrame,
    by_id: Integers,
    settings: CreateCommunities,
) -> FindLevels:
    """Return a function that updates the last hierarchy if the settings allow it, or finds one."""
    rebuild: FindLevels = build_hierarchy
    if settings.engine == "microsoft":
        titles = entities.select("title").collect()["title"].gather(by_id)
        rebuild = partial(build_microsoft_levels, titles)
    if before and before.communities.height and _has_same_settings(before.settings, settings):
        return partial(_update_levels, before, rebuild)
    return rebuild


def _sort_ids(table: pl.LazyFrame) -> tuple[pl.Series, Integers]:
    """Return the sorted ids of a table, and the row of each."""
    ids = table.select("id").collect()["id"]
    order = ids.arg_sort()
    return ids.gather(order), order.to_numpy()


def _read_text_units(base_text_units: pl.LazyFrame, documents: pl.LazyFrame) -> pl.DataFrame:
    """Return text units, sorted by id, with `document` number, `date` and `position`.

    `position` is the number of the text unit in reading order.
    """
    known = documents.select(
        document_id="id",
        document="human_readable_id",
        date=stated_date().str.head(10),
    )
    return (
        base_text_units.select("id", "document_id", position="human_readable_id")
        .join(known, on="document_id")
        .sort("id")
        .collect()
    )


def _log_unnamed_documents(named: NumberLists, text_units: pl.DataFrame, themes: Themes) -> None:
    is_named = np.zeros(len(text_units), dtype=bool)
    is_named[named.values] = True
    for homes in themes.of_text_units:
        is_named |= homes >= 0
    document = text_units["document"]
    n_unnamed = document.n_unique() - document.filter(pl.Series(is_named)).n_unique()
    if n_unnamed:
        logger.warning(
            "%d documents name no entity: they are in no community, but a search can find them.",
            n_unnamed,
        )


def _update_levels(
    before: PreviousCommunities,
    rebuild: FindLevels,
    graph: Graph,
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
    """Return True if all settings that change communities, apart from themes, are equal."""
    new = settings.model_dump(mode="json", exclude={"stability", "max_drift", "max_themes"})
    return all(before.get(name) == value for name, value in new.items())


def build_microsoft_levels(
    titles: pl.Series, graph: Graph, settings: CreateCommunities
) -> list[Integers]:
    """Build the hierarchy of a graph with the engine of Microsoft, which ignores the settings.

    `titles` has the title of the entity of each node.
    """
    # Number the nodes by cleaned title, because Microsoft's engine sorts the edges by it.
    cleaned = [html.unescape(title).upper().strip() for title in titles]
    number = np.argsort(sorted(range(len(cleaned)), key=cleaned.__getitem__))
    by_title = build_graph(
        graph.n_nodes, number[graph.sources], number[graph.targets], graph.weights
    )
    return [labels[number] for labels in build_microsoft_hierarchy(by_title)]
