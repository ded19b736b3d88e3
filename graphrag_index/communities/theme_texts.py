"""Text units of themes: each is under the theme of its words and of some of its entities."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from graphrag_index.communities.simple_graph import Floats, Integers
from graphrag_index.communities.text_clusters import BATCH_SCORES, compute_means, find_highest
from graphrag_index.communities.text_vectors import Vectors
from graphrag_nlp.list_columns import NumberLists

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# A text unit's share of entities in a theme counts this much, beside the cosine with its texts.
ENTITY_WEIGHT = 0.3
# Number of rounds in which text units move to the theme that they are about.
N_ROUNDS = 3
# Number of nodes whose text units are read at once. It limits memory.
BATCH_NODES = 1_000_000


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
    """Return the mean share of the entities in each theme's text units that are in the theme.

    The parameters are as for `find_homes`, with `themes` for its levels.
    """
    home = find_homes([themes], labels, mentions, texts, vectors, sizes)[0]
    node, units, shares = mentions.take(np.arange(len(labels)))
    n_themes = int(themes.max(initial=-1)) + 1
    own = np.where(themes[labels[node]] == home[units], shares, 0)
    counts = np.bincount(home[mentions.totals > 0], minlength=n_themes)
    return np.bincount(home[units], own, n_themes) / np.maximum(counts, 1)


def find_homes(
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
    home = np.where(texts.any(axis=1) | (mentions.totals > 0), 0, -1)
    parents = np.zeros(len(sizes), dtype=np.int64)
    homes = []
    for themes in levels:
        n_themes = int(themes.max()) + 1
        # Without words, the vectors of communities are of another space: entities decide.
        means = np.zeros((n_themes, texts.shape[1]))
        if texts.any():
            means = compute_means(vectors, sizes, themes, n_themes)
        shares = csr_array((weights, (units, themes[labels][nodes])), shape=(len(texts), n_themes))
        above, below = np.full(n_themes, -1), np.full(len(texts), -1)
        above[themes] = parents
        order = np.argsort(home, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(home[order])) + 1):
            children = np.flatnonzero(above == home[rows[0]]) if len(rows) else rows
            if len(children):
                # Indexing copies, so the first level is not indexed.
                are_all = len(rows) == len(texts), len(children) == n_themes
                own = shares if are_all[0] else shares[rows]
                own = own if are_all[1] else own[:, children]
                read = texts if are_all[0] else texts[rows]
                below[rows] = children[_choose_homes(read, means[children], own)]
        homes.append(below)
        home, parents = below, themes
    return homes


def _choose_homes(texts: Vectors, means: Floats, shares: "csr_array") -> Integers:
    """Return the theme of each text unit, as a position in `means`.

    `shares` has the share of entities that each text unit has in each theme. The means are computed
    anew from the text units of each theme, a few times.
    """
    homes = np.zeros(len(texts), dtype=np.int64)
    n_rows = max(1, BATCH_SCORES // len(means))
    for _ in range(N_ROUNDS):
        for start in range(0, len(texts), n_rows):
            batch = slice(start, start + n_rows)
            score = texts[batch] @ means.T + ENTITY_WEIGHT * shares[batch].toarray()
            homes[batch] = find_highest(score)
        means = compute_means(texts, np.ones(len(texts)), homes, len(means))
    return homes
