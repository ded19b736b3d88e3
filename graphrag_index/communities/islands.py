"""Islands: communities of level 0 that gather small connected components."""

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.simple_graph import Graph, Integers, components
from graphrag_index.schema.settings.step_sections import CreateCommunities


def with_islands(
    graph: Graph,
    levels: list[Integers],
    named: Integers,
    text_units: pl.DataFrame,
    settings: CreateCommunities,
    before: Integers | None = None,
) -> tuple[list[Integers], npt.NDArray[np.bool_]]:
    """Join small components at level 0; also return flags of the communities that are islands.

    `before` is the previous island of each node, or -1; small components stay in theirs.
    """
    component = components(graph)
    limit = min(settings.min_component_size, settings.max_cluster_size + 1)
    is_loose = np.bincount(component)[component] < limit
    small = _small_components(component, is_loose, named, text_units)
    island = _islands(small, int(component.max(initial=-1)) + 1, settings, before)
    n_others = int(levels[0].max(initial=-1)) + 1
    top = np.where(is_loose, n_others + island[component], levels[0])
    kept, top = np.unique(top, return_inverse=True)
    deeper = [np.where(is_loose, -1, labels) for labels in levels[1:]]
    return [top, *(labels for labels in deeper if labels.max() >= 0)], kept >= n_others


def _small_components(
    component: Integers, is_loose: npt.NDArray[np.bool_], named: Integers, text_units: pl.DataFrame
) -> pl.DataFrame:
    """Return `component`, `first` node, `size` and `document` of each small component.

    The document is that with most mentions. Sorted by document, then by the first mention in it;
    ties in the same text unit are broken by the first node.
    """
    nodes = np.flatnonzero(is_loose)
    small = (
        pl.DataFrame({"component": component[nodes], "first": nodes})
        .group_by("component")
        .agg(pl.col("first").min(), size=pl.len().cast(pl.Int64))
    )
    mentions = pl.DataFrame(
        {
            "component": component[named[:, 0]],
            "document": text_units["document"].gather(named[:, 1]),
            "position": text_units["position"].gather(named[:, 1]),
        }
    )
    homes = (
        mentions.group_by("component", "document")
        .agg(pl.len().alias("n"), pl.col("position").min())
        .sort("component", "n", "document", descending=[False, True, False])
        .unique("component", keep="first", maintain_order=True)
    )
    # Components without a mention come last.
    return (
        small.join(homes, on="component", how="left")
        .sort("document", "position", "first", nulls_last=True)
        .select("component", "first", "size", "document")
    )


def _islands(
    small: pl.DataFrame, n_components: int, settings: CreateCommunities, before: Integers | None
) -> Integers:
    """Return the island of each small component; -1 for the others.

    The small components of a document form an island; documents with few of them share one with
    the next. No island has more than `max_cluster_size` entities. New components first fill the
    previous islands of their document.
    """
    min_size, max_size = settings.min_component_size, settings.max_cluster_size
    island = np.full(n_components, -1)
    n_entities: list[int] = []
    # New numbers of previous islands, and the last one of each document.
    number: dict[int, int] = {}
    island_of: dict[int, int] = {}
    left: dict[int, list[tuple[int, int]]] = {}
    for component, first, size, document in small.iter_rows():
        old = -1 if before is None else int(before[first])
        if old < 0 or (old in number and n_entities[number[old]] + size > max_size):
            left.setdefault(document, []).append((component, size))
            continue
        if old not in number:
            number[old] = len(n_entities)
            n_entities.append(0)
        island[component] = island_of[document] = number[old]
        n_entities[number[old]] += size
    # Each choice depends on how full the islands are, so this is a loop.
    current = next((i for i, n in enumerate(n_entities) if n < min_size), len(n_entities))
    n_entities.append(0)
    for document, members in left.items():
        total = sum(size for _, size in members)
        own = island_of.get(document)
        if own is not None and n_entities[own] + total <= max_size:
            island[[component for component, _ in members]] = own
            n_entities[own] += total
            continue
        if n_entities[current] >= min_size or n_entities[current] + total > max_size:
            current = _empty_island(n_entities)
        for component, size in members:
            if n_entities[current] + size > max_size:
                current = _empty_island(n_entities)
            island[component] = current
            n_entities[current] += size
    return island


def _empty_island(n_entities: list[int]) -> int:
    """Return the number of an empty island, adding one if the last is not empty."""
    if n_entities[-1]:
        n_entities.append(0)
    return len(n_entities) - 1
