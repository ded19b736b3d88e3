"""Clusters of texts by what they are about, for the coarsest level of the hierarchy.

A section is a short document, or a part of a long one: a few text units in reading order. Sections
are grouped by spherical k-means [1]_, from the best of several starts that are far apart [2]_.

References
----------
.. [1] Dhillon & Modha, Concept decompositions for large sparse text data, Mach Learn 42 (2001).
.. [2] Arthur & Vassilvitskii, k-means++: the advantages of careful seeding, SODA (2007).
"""

import numpy as np
import polars as pl

from graphrag_index.communities.simple_graph import Floats, Integers
from graphrag_index.communities.text_vectors import Vectors, normalize_rows

# Maximum number of text units of a section.
MAX_SECTION = 8
# Maximum number of sections from which the clusters are learned.
MAX_LEARNED_SECTIONS = 5_000
# Number of starts of k-means, of which the best counts, and maximum number of rounds of each.
N_STARTS, MAX_ROUNDS = 8, 30
# Decimals of a similarity. Equal texts are then equally similar, on every machine.
DECIMALS = 6
# Number of text units whose vectors are changed at once, and of similarities that are computed at
# once. They limit memory.
BATCH_TEXT_UNITS, BATCH_SCORES = 65_536, 2_000_000


def number_sections(text_units: pl.DataFrame) -> Integers:
    """Return the section of each text unit; sections are numbered by their first row.

    `text_units` has the `document` and the `position` in reading order. Sections of one document
    have nearly the same number of text units.
    """
    document, position = (text_units[name].to_numpy() for name in ("document", "position"))
    order = np.lexsort((position, document))
    ordered = document[order]
    first = np.searchsorted(ordered, ordered)
    n_units = np.searchsorted(ordered, ordered, side="right") - first
    n_sections = -(-n_units // MAX_SECTION)
    place = (np.arange(len(order)) - first) * n_sections // np.maximum(n_units, 1)
    is_first = (np.diff(ordered, prepend=-1) != 0) | (np.diff(place, prepend=-1) != 0)
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.cumsum(is_first) - 1
    # Number by row, since rows are in order of ids: the order of documents must not matter.
    _, rows, section = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(rows))[section]


def add_section_vectors(texts: Vectors, sections: Integers) -> Floats:
    """Add to each text unit's vector the mean of its section; return the vectors of sections.

    Changes `texts` in place. A text unit of which few words are known is then about what its
    neighbours are about.
    """
    if not len(sections):
        return np.zeros((0, texts.shape[1]))
    sums = np.stack([np.bincount(sections, column) for column in texts.T], axis=1)
    means = sums / np.bincount(sections)[:, None]
    for start in range(0, len(texts), BATCH_TEXT_UNITS):
        batch = slice(start, start + BATCH_TEXT_UNITS)
        texts[batch] = normalize_rows(texts[batch] + means[sections[batch]])
    return normalize_rows(means)


def find_cluster_means(vectors: Floats, n_clusters: int) -> Floats:
    """Group unit vectors into at most `n_clusters` clusters; return the direction of each mean.

    Vectors of zeros do not count. Of many vectors, every n-th is a sample.
    """
    vectors = vectors[vectors.any(axis=1)]
    vectors = vectors[:: max(1, -(-len(vectors) // MAX_LEARNED_SECTIONS))]
    best, best_means = -1.0, np.zeros((0, vectors.shape[1]))
    for seed in range(N_STARTS if len(vectors) else 0):
        means = _choose_starts(vectors, n_clusters, seed)
        labels = np.zeros(0, dtype=np.int64)
        for _ in range(MAX_ROUNDS):
            moved = find_most_similar(vectors, means)
            if np.array_equal(moved, labels):
                break
            labels = moved
            means = compute_means(vectors, np.ones(len(vectors)), labels, len(means))
        quality = round(float((vectors * means[labels]).sum()), DECIMALS)
        if quality > best:
            best, best_means = quality, means
    return best_means


def _choose_starts(vectors: Floats, n: int, seed: int) -> Floats:
    """Return vectors chosen at random: the farther from those chosen before, the likelier."""
    random = np.random.default_rng(seed)
    distance = np.ones(len(vectors))
    chosen: list[int] = []
    while len(chosen) < n and distance.any():
        sums = np.cumsum(distance)
        place = int(np.searchsorted(sums, random.random() * sums[-1], side="right"))
        chosen.append(min(place, len(vectors) - 1))
        similarity = np.round(vectors @ vectors[chosen[-1]], DECIMALS)
        distance = np.minimum(distance, np.maximum(1 - similarity, 0))
    return vectors[chosen]


def compute_means(
    vectors: Floats | Vectors, weights: Floats, labels: Integers, n_parts: int
) -> Floats:
    """Return the direction of the mean of each part's vectors; the label -1 is of no part."""
    sums = [np.bincount(labels + 1, column * weights, n_parts + 1)[1:] for column in vectors.T]
    return normalize_rows(np.stack(sums, axis=1))


def find_most_similar(vectors: Floats | Vectors, means: Floats) -> Integers:
    """Return the number of the mean that is most similar to each vector, the first of equals."""
    found = np.zeros(len(vectors), dtype=np.int64)
    n_rows = max(1, BATCH_SCORES // len(means))
    for start in range(0, len(vectors), n_rows):
        batch = slice(start, start + n_rows)
        found[batch] = find_highest(vectors[batch] @ means.T)
    return found


def find_highest(scores: Floats) -> Integers:
    """Return the column with the highest rounded score of each row, the first of equals.

    Rounds in place, since copies of many scores take longer than the scores.
    """
    scores *= 10**DECIMALS
    highest: Integers = np.rint(scores, out=scores).argmax(axis=1)
    return highest
