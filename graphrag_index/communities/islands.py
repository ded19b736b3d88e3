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
    size = np.bincount(component)
    limit = min(settings.min_component_size, settings.max_cluster_size + 1)
    is_loose = size[component] < limit
    loose = np.flatnonzero(is_loose)
    island = _islands(component, loose, named, text_units, settings, before)
    top = levels[0].copy()
    n_others = int(top.max(initial=-1)) + 1
    top[loose] = n_others + island[component[loose]]
    kept, top = np.unique(top, return_inverse=True)
    deeper = [np.where(is_loose, -1, labels) for labels in levels[1:]]
    return [top, *(labels for labels in deeper if labels.max() >= 0)], kept >= n_others


def _islands(
    component: Integers,
    loose: Integers,
    named: Integers,
    text_units: pl.DataFrame,
    settings: CreateCommunities,
    before: Integers | None,
) -> Integers:
    """Return the island of each small component; -1 for the others.

    The small components of a document form an island; documents with few of them share one with
    the next. No island has more than `max_cluster_size` entities. New components first fill the
    previous islands of their document.
    """
    n_components = int(component.max(initial=-1)) + 1
    size = np.bincount(component[loose], minlength=n_components)
    document, position = _home(component, named, text_units, n_components)
    small = np.flatnonzero(size)
    # Ties in the same text unit are broken by the first entity of the component.
    first = np.full(n_components, len(component))
    np.minimum.at(first, component, np.arange(len(component)))
    small = small[np.lexsort((first[small], position[small], document[small]))]

    island = np.full(n_components, -1)
    filled: list[int] = []
    island_of: dict[int, int] = {}
    if before is not None:
        filled, island_of = _stay(island, small, size, document, before[first[small]], settings)
        small = small[island[small] < 0]
    starts = np.flatnonzero(np.diff(document[small], prepend=-1))
    # Each choice depends on how full the islands are, so this is a loop.
    current = next(
        (i for i, n in enumerate(filled) if n < settings.min_component_size), len(filled)
    )
    filled.append(0)
    for members in np.split(small, starts[1:]):
        n_members = int(size[members].sum())
        own = island_of.get(int(document[members[0]])) if len(members) else None
        if own is not None and filled[own] + n_members <= settings.max_cluster_size:
            island[members] = own
            filled[own] += n_members
            continue
        fits = filled[current] + n_members <= settings.max_cluster_size
        if filled[current] >= settings.min_component_size or not fits:
            current = _next(filled)
        for member, n in zip(members.tolist(), size[members].tolist(), strict=True):
            if filled[current] + n > settings.max_cluster_size:
                current = _next(filled)
            island[member] = current
            filled[current] += n
    return island


def _next(filled: list[int]) -> int:
    """Return the number of an empty island, adding one if the last is not empty."""
    if filled[-1]:
        filled.append(0)
    return len(filled) - 1


def _stay(
    island: Integers,
    small: Integers,
    size: Integers,
    document: Integers,
    before: Integers,
    settings: CreateCommunities,
) -> tuple[list[int], dict[int, int]]:
    """Put components into their previous islands while there is room.

    Changes `island`. Returns the size of each island, and the last island of each document.
    """
    number: dict[int, int] = {}
    filled: list[int] = []
    island_of: dict[int, int] = {}
    for member, old in zip(small.tolist(), before.tolist(), strict=True):
        n = int(size[member])
        if old < 0 or (old in number and filled[number[old]] + n > settings.max_cluster_size):
            continue
        at = number.setdefault(old, len(filled))
        if at == len(filled):
            filled.append(0)
        island[member] = at
        filled[at] += n
        island_of[int(document[member])] = at
    return filled, island_of


def _home(
    component: Integers, named: Integers, text_units: pl.DataFrame, n_components: int
) -> tuple[Integers, Integers]:
    """Return the document with most mentions of each component, and its first text unit there."""
    found = (
        pl.DataFrame(
            {
                "component": component[named[:, 0]],
                "document": text_units["document"].gather(named[:, 1]),
                "position": text_units["position"].gather(named[:, 1]),
            }
        )
        .group_by("component", "document")
        .agg(pl.len().alias("n"), pl.col("position").min())
        .sort("component", "n", "document", descending=[False, True, False])
        .unique("component", keep="first", maintain_order=True)
    )
    # Components without a mention come last.
    document = np.full(n_components, 2**62)
    position = np.full(n_components, 2**62)
    document[found["component"]] = found["document"]
    position[found["component"]] = found["position"]
    return document, position
