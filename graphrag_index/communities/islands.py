"""Islands: communities of level 0 that contain several small components of the graph.

The small components of one document share an island. Documents with few of them share the island of
documents with similar texts: the two most similar groups are merged first. Only groups in the same
leaf of a principal axis tree [1]_ are compared, so the time grows with the number of groups, not
with its square.

References
----------
.. [1] McNames, A fast nearest-neighbor algorithm based on a principal axis search tree, PAMI 23
   (2001).
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.simple_graph import Floats, Graph, Integers, find_components
from graphrag_index.communities.text_clusters import Vectors, find_main_directions, normalize_rows
from graphrag_index.schema.settings.step_sections import CreateCommunities
from graphrag_nlp.list_columns import NumberLists

# Maximum number of groups that are compared with each other.
MAX_COMPARED = 128
# Minimum similarity of a small group to a large one that it joins, unless no other group fits.
MIN_SIMILARITY = 0.5
# Decimals of a similarity. Groups with equal texts are then equally similar, on every machine.
DECIMALS = 6


def group_small_components(
    graph: Graph,
    levels: list[Integers],
    named: NumberLists,
    text_units: pl.DataFrame,
    texts: Callable[[], Vectors],
    settings: CreateCommunities,
    before: Integers | None = None,
) -> tuple[list[Integers], npt.NDArray[np.bool_]]:
    """Group small connected components into islands, which are communities of level 0.

    Returns the new levels, and a flag for each community of level 0: True for an island. `named`
    has the rows in `text_units` of the text units that name each node, and `texts` returns the
    vector of each text unit. `before` has the previous island of each node, or -1. A small
    component stays in its previous island.
    """
    component = find_components(graph)
    limit = min(settings.min_component_size, settings.max_cluster_size + 1)
    is_loose = np.bincount(component)[component] < limit
    small = _find_small_components(component, is_loose, named, text_units)
    island, sizes, n_kept = _assign_to_islands(small, len(component), settings, before)
    if np.any(sizes[n_kept:] < settings.min_component_size):
        nodes = np.flatnonzero(is_loose)
        position, units = named.take(nodes)
        sums = _sum_vectors(island[component[nodes[position]]], units, len(sizes), texts())
        island = np.append(merge_groups(sums, sizes, n_kept, settings), -1)[island]
    n_others = int(levels[0].max(initial=-1)) + 1
    top = np.where(is_loose, n_others + island[component], levels[0])
    kept, top = np.unique(top, return_inverse=True)
    deeper = [np.where(is_loose, -1, labels) for labels in levels[1:]]
    return [top, *(labels for labels in deeper if labels.max() >= 0)], kept >= n_others


def _find_small_components(
    component: Integers,
    is_loose: npt.NDArray[np.bool_],
    named: NumberLists,
    text_units: pl.DataFrame,
) -> pl.DataFrame:
    """Return one row per small component: `component`, `first` node, `size`, `document`.

    `document` is the document that mentions entities of the component most often. Rows are sorted
    by document, then by the first mention in the document, then by the first node.
    """
    nodes = np.flatnonzero(is_loose)
    small = (
        pl.DataFrame({"component": component[nodes], "first": nodes})
        .group_by("component")
        .agg(pl.col("first").min(), size=pl.len().cast(pl.Int64))
    )
    position, text_unit = named.take(nodes)
    mentions = text_units.select("document", "position")[text_unit]
    main_documents = (
        mentions.with_columns(component=component[nodes[position]])
        .group_by("component", "document")
        .agg(pl.len().alias("n"), pl.col("position").min())
        .sort("component", "n", "document", descending=[False, True, False])
        .unique("component", keep="first", maintain_order=True)
    )
    # Sort components without a mention last.
    return (
        small.join(main_documents, on="component", how="left")
        .sort("document", "position", "first", nulls_last=True)
        .select("component", "first", "size", "document")
    )


def _assign_to_islands(
    small: pl.DataFrame, n_nodes: int, settings: CreateCommunities, before: Integers | None
) -> tuple[Integers, Integers, int]:
    """Return the island of each component (-1 for large ones), and the size of each island.

    The last value is the number of kept islands, which come first. The small components of one
    document share an island. An island has at most `max_cluster_size` entities. New components
    join the previous island of their document if they all fit.
    """
    max_size = settings.max_cluster_size
    island = np.full(n_nodes, -1)
    n_entities: list[int] = []
    # The new number of an island, by its previous number.
    number: dict[int, int] = {}
    # The new number of the last previous island, by document.
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
    # Use a loop instead of arrays: each choice depends on the sizes of islands at that moment.
    for document, members in left.items():
        current = island_of.get(document)
        if current is None or n_entities[current] + sum(size for _, size in members) > max_size:
            current = len(n_entities)
            n_entities.append(0)
        for component, size in members:
            if n_entities[current] + size > max_size:
                current = len(n_entities)
                n_entities.append(0)
            island[component] = current
            n_entities[current] += size
    return island, np.array(n_entities, dtype=np.int64), len(number)


def _sum_vectors(
    groups: Integers, units: npt.NDArray[np.int32], n_groups: int, texts: Vectors
) -> Floats:
    """Sum the vectors of the text units that name the nodes of each group."""
    from scipy.sparse import csr_array

    counts = csr_array((np.ones(len(units)), (groups, units)), shape=(n_groups, len(texts)))
    sums: Floats = counts @ texts
    return sums


def merge_groups(
    sums: Floats, sizes: Integers, n_kept: int, settings: CreateCommunities
) -> Integers:
    """Merge groups of fewer than `min_component_size` entities with similar groups.

    `sums` has the sum of the vectors of each group, and `sizes` its number of entities, which is at
    most `max_cluster_size` after a merge too. The first `n_kept` groups are not merged with each
    other. Returns the label of each group: the number of one of the groups that were merged.
    """
    labels = np.arange(len(sizes))
    is_open = sizes < settings.max_cluster_size
    for members in _split_into_leaves(normalize_rows(sums), np.flatnonzero(is_open)):
        kept = members < n_kept
        labels[members] = members[_merge_similar(sums[members], sizes[members], kept, settings)]
    return labels


def _split_into_leaves(vectors: Floats, members: Integers) -> Iterator[Integers]:
    """Split members into leaves with similar vectors, of at most `MAX_COMPARED` members."""
    waiting = [members]
    while waiting:
        members = waiting.pop()
        if len(members) <= MAX_COMPARED:
            yield np.sort(members)
            continue
        differences = vectors[members] - vectors[members].mean(axis=0)
        axis = find_main_directions(differences)[:, 0]
        # Libraries of linear algebra give an axis either sign.
        place = differences @ (axis * np.sign(axis[np.abs(axis).argmax()]))
        order = np.argsort(np.round(place, DECIMALS), kind="stable")
        waiting += [members[half] for half in np.array_split(order, 2)]


def _merge_similar(
    sums: Floats, sizes: Integers, is_kept: npt.NDArray[np.bool_], settings: CreateCommunities
) -> Integers:
    """Merge the most similar two groups of which one is small, until none fit together."""
    labels = np.arange(len(sizes))
    sums, sizes, is_kept, means = sums.copy(), sizes.copy(), is_kept.copy(), normalize_rows(sums)

    def compare(one: int) -> Floats:
        """Return the similarity of `one` to each group; -inf where the two may not be merged."""
        found: Floats = np.round(means @ means[one], DECIMALS)
        is_small = sizes < settings.min_component_size
        is_allowed = (is_small | is_small[one]) & ~(is_kept & is_kept[one])
        found[~(is_small & is_small[one]) & (found < MIN_SIMILARITY)] -= 2
        # A group that was merged has no entities left.
        is_allowed &= (sizes > 0) & (sizes + sizes[one] <= settings.max_cluster_size)
        is_allowed[one] = False
        return np.where(is_allowed, found, -np.inf)

    similarity = np.array([compare(one) for one in labels.tolist()]).reshape(2 * (len(labels),))
    while similarity.max(initial=-np.inf) > -np.inf:
        one, other = divmod(int(similarity.argmax()), len(labels))
        labels[labels == other] = one
        sums[one] += sums[other]
        means[one] = normalize_rows(sums[one : one + 1])
        sizes[one] += sizes[other]
        is_kept[one] |= is_kept[other]
        sizes[other] = 0
        similarity[other] = similarity[:, other] = -np.inf
        similarity[one] = similarity[:, one] = compare(one)
    return labels
