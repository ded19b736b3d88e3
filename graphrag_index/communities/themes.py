"""Themes: levels of communities above those that the graph gives.

A large graph has hundreds of communities at its coarsest level, and no link says which of them
belong together. Themes group them until the coarsest level is small enough to be read.

The coarsest themes are clusters of the texts by what they are about. A community comes under the
theme that most of its texts are about, and a text unit under the theme of its own words: entities
that are named everywhere, such as a country, draw no text into a theme. If there are further levels
of themes, each coarsest theme is split by bisecting k-means [1]_ along the principal direction
[2]_ of its communities, so that its parts are of similar size.

References
----------
.. [1] Steinbach, Karypis & Kumar, A comparison of document clustering techniques, KDD (2000).
.. [2] Boley, Principal direction divisive partitioning, Data Min. Knowl. Discov. 2 (1998).
"""

import logging
from collections.abc import Sequence
from math import ceil, log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from graphrag_index.communities.simple_graph import (
    Floats,
    Graph,
    Integers,
    build_sparse_rows,
    contract_graph,
    sum_edge_weights,
)
from graphrag_index.communities.text_clusters import (
    BATCH_SCORES,
    Vectors,
    add_section_vectors,
    compute_means,
    find_cluster_means,
    find_highest,
    find_main_directions,
    find_most_similar,
    normalize_rows,
)
from graphrag_nlp.list_columns import NumberLists

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Weight of the share of a text unit's entities in a theme, added to the similarity of texts.
ENTITY_WEIGHT = 0.3
# Number of rounds in which text units move to the theme that they are about.
N_ROUNDS = 3
# Number of nodes per batch whose text units are read. It limits memory.
BATCH_NODES = 1_000_000
logger = logging.getLogger(__name__)

# Minimum number of communities of a theme, on average.
MIN_CHILDREN = 5
# Minimum share of a split part that each of its two sides gets.
MIN_SHARE_OF_SPLIT = 0.2
# A part with less than this share of the mean size joins the most similar parts.
MIN_SHARE_OF_MEAN = 0.25
# Warn if texts are this many times as far from kept themes as they would be from new ones.
MAX_DRIFT = 1.5
# Exponent of the power of 2 to which the covariance matrix of a part is raised.
N_SQUARINGS = 8
# Maximum number of rounds in which communities move to the most similar part.
MAX_ROUNDS = 20
# Minimum share of the entities in the texts of a new theme that belong to it. With fewer, it could
# not be described: its texts join the themes of their entities.
MIN_OWN_SHARE = 0.2
# Number of communities per batch of vectors. It limits memory.
BATCH_COMMUNITIES = 4_096


class Mentions(NamedTuple):
    """The text units of each node, with weights: a rare entity says more than a frequent one."""

    named: NumberLists
    weights: Floats
    # The sum of the weights of each text unit's entities.
    totals: Floats

    def take(self, nodes: Integers) -> tuple[Integers, npt.NDArray[np.int32], Floats]:
        """Return pairs of a node and a text unit, and the node's share in the text unit."""
        position, units = self.named.take(nodes)
        node = nodes[position]
        return node, units, self.weights[node] / self.totals[units]


def weigh_mentions(named: NumberLists, n_texts: int) -> Mentions:
    """Weigh each node by its rarity. `named` has the text units that name each node."""
    weights = 1 + np.log(max(n_texts, 1) / np.maximum(named.lengths, 1))
    totals = np.zeros(n_texts)
    for start in range(0, len(weights), BATCH_NODES):
        nodes = np.arange(start, min(start + BATCH_NODES, len(weights)))
        position, units = named.take(nodes)
        totals += np.bincount(units, weights[nodes[position]], n_texts)
    return Mentions(named, weights, totals)


def measure_own_shares(
    themes: Integers,
    labels: Integers,
    mentions: Mentions,
    texts: Vectors,
    vectors: Floats,
    sizes: Floats,
) -> Floats:
    """Return, for each theme, the mean share of its text units' entities that are in it.

    The parameters are as for `assign_text_units_to_themes`, with `themes` as its only level.
    """
    [theme_of_unit] = assign_text_units_to_themes([themes], labels, mentions, texts, vectors, sizes)
    node, units, shares = mentions.take(np.arange(len(labels)))
    n_themes = int(themes.max(initial=-1)) + 1
    own = np.where(themes[labels[node]] == theme_of_unit[units], shares, 0)
    counts = np.bincount(theme_of_unit[mentions.totals > 0], minlength=n_themes)
    return np.bincount(theme_of_unit[units], own, n_themes) / np.maximum(counts, 1)


def assign_text_units_to_themes(
    levels: Sequence[Integers],
    labels: Integers,
    mentions: Mentions,
    texts: Vectors,
    vectors: Floats,
    sizes: Floats,
) -> list[Integers]:
    """Return the theme of each text unit, level by level; -1 if no word or entity is known.

    The theme has texts similar to the text unit, and some of its entities. The theme of a deeper
    level is one of those below the theme of the level above. `levels` has the theme of each
    community, `labels` the community of each node, and `vectors` and `sizes` are of communities.
    """
    from scipy.sparse import csr_array

    nodes, units, weights = mentions.take(np.arange(len(labels)))
    weights = weights.astype(np.float32)
    theme_of_unit = np.where(texts.any(axis=1) | (mentions.totals > 0), 0, -1)
    parents = np.zeros(len(sizes), dtype=np.int64)
    themes_of_units = []
    for themes in levels:
        n_themes = int(themes.max()) + 1
        # Without word vectors of texts, the communities have other vectors: compare entities only.
        means = np.zeros((n_themes, texts.shape[1]))
        if texts.any():
            means = compute_means(vectors, sizes, themes, n_themes)
        shares = csr_array((weights, (units, themes[labels][nodes])), shape=(len(texts), n_themes))
        above, below = np.full(n_themes, -1), np.full(len(texts), -1)
        above[themes] = parents
        order = np.argsort(theme_of_unit, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(theme_of_unit[order])) + 1):
            children = np.flatnonzero(above == theme_of_unit[rows[0]]) if len(rows) else rows
            if len(children):
                # Indexing copies arrays: avoid it on the first level, which needs all rows.
                are_all = len(rows) == len(texts), len(children) == n_themes
                own = shares if are_all[0] else shares[rows]
                own = own if are_all[1] else own[:, children]
                read = texts if are_all[0] else texts[rows]
                below[rows] = children[_choose_themes_of_text_units(read, means[children], own)]
        themes_of_units.append(below)
        theme_of_unit, parents = below, themes
    return themes_of_units


def _choose_themes_of_text_units(texts: Vectors, means: Floats, shares: "csr_array") -> Integers:
    """Return the theme of each text unit, as a position in `means`.

    `shares` has the share of entities that each text unit has in each theme. The means are computed
    anew from the text units of each theme, a few times.
    """
    theme_of_unit = np.zeros(len(texts), dtype=np.int64)
    n_rows = max(1, BATCH_SCORES // len(means))
    for _ in range(N_ROUNDS):
        for start in range(0, len(texts), n_rows):
            batch = slice(start, start + n_rows)
            score = texts[batch] @ means.T + ENTITY_WEIGHT * shares[batch].toarray()
            theme_of_unit[batch] = find_highest(score)
        means = compute_means(texts, np.ones(len(texts)), theme_of_unit, len(means))
    return theme_of_unit


class Themes(NamedTuple):
    """The theme of each node, and of each text unit (-1 for none); by level, coarsest first."""

    of_nodes: list[Integers]
    of_text_units: list[Integers]

    def number_text_units(self, communities: Sequence[Integers]) -> list[Integers]:
        """Return the themes of the text units as the numbers that `communities` gives the nodes."""
        numbered = []
        for themes, theme_of_unit, of_nodes in zip(
            self.of_nodes, self.of_text_units, communities, strict=False
        ):
            number = np.full(int(themes.max()) + 2, -1)
            number[themes] = of_nodes
            numbered.append(number[theme_of_unit])
        return numbered


def plan_levels(n_communities: int, max_themes: int) -> list[int]:
    """Return the number of themes of each level, the coarsest first; empty if none is needed.

    On average, a theme of the coarsest level has `MIN_CHILDREN` communities or more, and a theme
    of any level has `max_themes` children or fewer.
    """
    if n_communities <= max_themes or max_themes < 2:
        return []
    coarsest = min(max_themes, round(n_communities / MIN_CHILDREN))
    ratio = n_communities / coarsest
    # The tolerance is for rounding errors of the logarithms.
    n_levels = max(1, ceil(log(ratio) / log(max_themes) - 1e-9))
    return [round(coarsest * ratio ** (level / n_levels)) for level in range(n_levels)]


def find_themes(
    graph: Graph,
    labels: Integers,
    named: NumberLists,
    texts: Vectors,
    sections: Integers,
    max_themes: int,
    before: Sequence[Integers],
) -> Themes:
    """Group communities into themes, or keep the themes of the last version.

    `labels` has the community of each node, and `texts` the vector of each text unit, to which the
    mean of its section is added in place. `before` has the previous theme of each node, or -1,
    level by level; a community stays in the theme that most of its nodes had, and a new community
    joins the theme with the most similar texts.
    """
    n_communities = int(labels.max(initial=-1)) + 1
    sizes = np.bincount(labels).astype(np.float64)
    of_sections = add_section_vectors(texts, sections)
    mentions = weigh_mentions(named, len(texts))
    vectors = _describe_communities(graph, labels, mentions, texts)
    counts = plan_levels(n_communities, max_themes)
    if before:
        levels = _keep_levels(labels, vectors, sizes, before)
        new = _group_by_texts(vectors, of_sections, int(levels[0].max()) + 1)
        _warn_of_drift(vectors, sizes, levels[0], new)
    else:
        top = _group_by_texts(vectors, of_sections, counts[0])
        if top is None:
            levels = _build_levels(vectors, sizes, counts)
        else:
            own = measure_own_shares(top, labels, mentions, texts, vectors, sizes)
            top = _drop_themes(top, own >= MIN_OWN_SHARE, vectors, sizes)
            levels = [top, *_build_levels(vectors, sizes, counts[1:], top)]
    themes_of_units = assign_text_units_to_themes(levels, labels, mentions, texts, vectors, sizes)
    return Themes([of[labels] for of in levels], themes_of_units)


def _group_by_texts(vectors: Floats, sections: Floats, n_themes: int) -> Integers | None:
    """Return for each community the cluster of sections with the most similar texts.

    A theme has at least two communities. Returns None if no words are known.
    """
    means = find_cluster_means(sections, n_themes)
    if not len(means):
        return None
    themes = find_most_similar(vectors, means)
    is_kept = np.bincount(themes, minlength=len(means)) > 1
    themes = find_most_similar(vectors, means[is_kept if is_kept.any() else slice(None)])
    return np.unique(themes, return_inverse=True)[1]


def _drop_themes(
    themes: Integers, is_kept: npt.NDArray[np.bool_], vectors: Floats, sizes: Floats
) -> Integers:
    """Move the communities of dropped themes to the most similar kept themes."""
    if is_kept.all() or not is_kept.any():
        return themes
    kept = np.flatnonzero(is_kept)
    loose = ~is_kept[themes]
    means = compute_means(vectors, sizes, themes, len(is_kept))[kept]
    moved = themes.copy()
    moved[loose] = kept[find_most_similar(vectors[loose], means)]
    return np.unique(moved, return_inverse=True)[1]


def _describe_communities(
    graph: Graph, labels: Integers, mentions: Mentions, texts: Vectors
) -> Floats:
    """Return a unit vector of the texts of each community and of its neighbours.

    A text unit counts for a community by the share of its entities in the community. The texts of
    neighbours count by the share of the community's links that go there.
    """
    from scipy.sparse import csr_array

    n_communities = int(labels.max(initial=-1)) + 1
    nodes = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[nodes], np.arange(n_communities + 1))
    vectors = np.zeros((n_communities, texts.shape[1]))
    for start in range(0, n_communities, BATCH_COMMUNITIES):
        stop = min(start + BATCH_COMMUNITIES, n_communities)
        members = nodes[bounds[start] : bounds[stop]]
        node, units, weights = mentions.take(members)
        places = labels[node] - start, units
        vectors[start:stop] = csr_array((weights, places), shape=(stop - start, len(texts))) @ texts
    rows = build_sparse_rows(contract_graph(graph, labels))
    links = csr_array((rows.weights, rows.indices, rows.indptr), shape=(n_communities,) * 2)
    strength = np.bincount(labels, sum_edge_weights(graph), n_communities)
    share = 1 / np.where(strength > 0, strength, 1)
    if vectors.any():
        vectors = normalize_rows(vectors)
    elif len(rows.weights):
        # Without texts, communities with links to the same communities are similar.
        scale = np.sqrt(share)
        links = csr_array(links.multiply(scale[:, None]).multiply(scale))
        return normalize_rows(links @ find_main_directions(links))
    return normalize_rows(vectors + links @ vectors * share[:, None])


def _build_levels(
    vectors: Floats, sizes: Floats, counts: Sequence[int], above: Integers | None = None
) -> list[Integers]:
    """Return the theme of each community, level by level, with about `counts` themes each.

    `above` has the themes of the level above.
    """
    levels: list[Integers] = []
    if above is None:
        above = np.zeros(len(sizes), dtype=np.int64)
    for n_themes in counts:
        labels = np.empty_like(above)
        n_labels = 0
        order = np.argsort(above, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(above[order])) + 1):
            n_parts = round(n_themes * sizes[members].sum() / sizes.sum())
            parts = split_vectors(vectors[members], sizes[members], n_parts)
            labels[members] = n_labels + parts
            n_labels += int(parts.max()) + 1
        levels.append(labels)
        above = labels
    return levels


def split_vectors(vectors: Floats, sizes: Floats, n_parts: int) -> Integers:
    """Split vectors into at most `n_parts` parts of similar vectors; return labels from 0 on.

    The largest part is split until there are enough parts. Then each vector moves to the part with
    the most similar mean. A part has at least two vectors and is not much smaller than others.
    """
    labels = np.zeros(len(sizes), dtype=np.int64)
    for part in range(1, n_parts):
        counts = np.bincount(labels)
        splittable = np.where(counts >= 4, np.bincount(labels, sizes), 0)
        if not splittable.any():
            break
        members = np.flatnonzero(labels == splittable.argmax())
        labels[members[_choose_side(vectors[members], sizes[members])]] = part
    n_parts = int(labels.max(initial=0)) + 1
    for _ in range(MAX_ROUNDS):
        moved = find_most_similar(vectors, compute_means(vectors, sizes, labels, n_parts))
        if np.array_equal(moved, labels):
            break
        labels = moved
    mass = np.bincount(labels, sizes, n_parts)
    is_kept = np.bincount(labels, minlength=n_parts) > 1
    is_kept &= mass >= MIN_SHARE_OF_MEAN * mass.sum() / n_parts
    return np.unique(_drop_themes(labels, is_kept, vectors, sizes), return_inverse=True)[1]


def _choose_side(vectors: Floats, sizes: Floats) -> Integers:
    """Return the positions of one of two parts with the most similar vectors within the parts.

    The parts are separate along the direction in which the vectors differ most.
    """
    weighted = vectors * sizes[:, None]
    differences = vectors - weighted.sum(axis=0) / sizes.sum()
    spread = differences * np.sqrt(sizes)[:, None]
    # The columns of a high power of this matrix have the direction of its main eigenvector. Power
    # iteration is faster here than `numpy.linalg.eigh`, which starts threads for small matrices.
    power = spread.T @ spread
    for _ in range(N_SQUARINGS):
        power = power @ power
        power /= max(power.diagonal().max(), 1e-300)
    direction = power[:, power.diagonal().argmax()]
    order = np.argsort(differences @ direction, kind="stable")
    sums, mass = np.cumsum(weighted[order], axis=0), np.cumsum(sizes[order])
    # The total length of the sums is the total similarity of the vectors to their mean.
    similarity = np.linalg.norm(sums, axis=1) + np.linalg.norm(sums[-1] - sums, axis=1)
    is_allowed = np.minimum(mass, mass[-1] - mass) >= MIN_SHARE_OF_SPLIT * mass[-1]
    if not is_allowed[1:-2].any():
        is_allowed[:] = True
    last = 1 + int(np.where(is_allowed[1:-2], similarity[1:-2], -1).argmax())
    return order[last + 1 :]


def _keep_levels(
    labels: Integers, vectors: Floats, sizes: Floats, before: Sequence[Integers]
) -> list[Integers]:
    """Return the previous theme of each community; a new community joins the most similar theme.

    A community is new if fewer than half of its nodes were in one theme.
    """
    from scipy.sparse import csr_array

    known = np.flatnonzero(before[-1] >= 0)
    names, first, theme = np.unique(before[-1][known], return_index=True, return_inverse=True)
    shape = len(sizes), len(names)
    counts = csr_array((np.ones(len(known)), (labels[known], theme)), shape=shape)
    largest = counts.max(axis=1).toarray().ravel()
    kept = np.where(2 * largest >= sizes, counts.argmax(axis=1).ravel(), -1)
    is_new = kept < 0
    means = compute_means(vectors[~is_new], sizes[~is_new], kept[~is_new], len(names))
    kept[is_new] = find_most_similar(vectors[is_new], means)
    used, kept = np.unique(kept, return_inverse=True)
    # Every node of a theme is in the same theme of each level above.
    above = [of[known[first[used]]][kept] for of in before[:-1]]
    return [*(np.unique(of, return_inverse=True)[1] for of in above), kept]


def _warn_of_drift(vectors: Floats, sizes: Floats, labels: Integers, new: Integers | None) -> None:
    """Log a warning if the `new` themes would have much more similar texts."""
    if new is None:
        return
    now, then = (_compute_coherence(vectors, sizes, of) for of in (labels, new))
    if 1 - now > MAX_DRIFT * (1 - then):
        logger.warning(
            "The texts of the kept themes have a mean similarity of %.3f to their theme; new "
            "themes would have %.3f. `graphrag-index run --set "
            "create_communities.stability=rebuild` creates new themes and communities, with "
            "other numbers and other reports.",
            now,
            then,
        )


def _compute_coherence(vectors: Floats, sizes: Floats, labels: Integers) -> float:
    """Return the mean cosine of the communities' vectors with the mean of their part."""
    means = compute_means(vectors, sizes, labels, int(labels.max()) + 1)
    return float(np.average((vectors * means[labels]).sum(axis=1), weights=sizes))
