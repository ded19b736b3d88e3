"""Clusters of texts by what they are about, for the coarsest level of the hierarchy.

A section is a short document, or a part of a long one: a few text units in reading order. Sections
are grouped by spherical k-means [1]_, from the best of several starts that are far apart [2]_.
Their vectors come from latent semantic analysis [3]_ of the corpus: related words give similar
vectors, in every language.

References
----------
.. [1] Dhillon & Modha, Concept decompositions for large sparse text data, Mach Learn 42 (2001).
.. [2] Arthur & Vassilvitskii, k-means++: the advantages of careful seeding, SODA (2007).
.. [3] Deerwester et al., Indexing by latent semantic analysis, JASIS 41 (1990).
.. [4] Halko, Martinsson & Tropp, Finding structure with randomness, SIAM Review 53 (2011).
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.simple_graph import Allocate, Floats, Integers
from graphrag_index.storage.memo import read_batches
from graphrag_nlp.list_columns import (
    distinct_pairs,
    find_rows,
    number_values,
    spread_lists,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Vectors = npt.NDArray[np.float32]

# Number of components of a vector.
DIMENSION = 32
# Number of characters that are read of each text: the beginning says what a text is about.
READ_CHARS = 1_200
# Maximum number of texts that word vectors are learned from, and of words that get a vector.
MAX_LEARNED_TEXTS, MAX_WORDS = 5_000, 20_000
# Words in more than this share of the texts, and in more than this number of them, say little.
MAX_SHARE_OF_TEXTS, MAX_COMMON_TEXTS = 0.15, 10
# Number of texts per batch. It limits memory and does not change the results.
BATCH_TEXTS = 10_000
# Single characters or pairs stand for words in scripts without spaces between words.
_WORD = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{M}]{1,2}"
    r"|\p{L}[\p{L}\p{M}]{2,}"
)
# Maximum number of text units of a section.
MAX_SECTION = 8
# Maximum number of sections from which the clusters are learned.
MAX_LEARNED_SECTIONS = 5_000
# Number of starts of k-means, of which the best counts, and maximum number of rounds of each.
N_STARTS, MAX_ROUNDS = 8, 30
# Decimals of a similarity. Equal texts are then equally similar, on every machine.
DECIMALS = 6
# Numbers per batch of text units whose vectors change, and of similarities. They limit memory.
BATCH_TEXT_UNITS, BATCH_SCORES = 65_536, 2_000_000


class WordVectors(NamedTuple):
    """Words with their weights (`word`, `weight`), and the vector of each word."""

    words: pl.DataFrame
    vectors: Floats

    def embed(self, texts: pl.Series) -> Vectors:
        """Return a unit vector for each text; a text without a known word has a vector of zeros."""
        vectors = _weigh_words(_split_words(texts), self.words, len(texts)) @ self.vectors
        return normalize_rows(vectors).astype(np.float32)


def embed_text_units(base_text_units: pl.LazyFrame, ids: pl.Series, allocate: Allocate) -> Vectors:
    """Return the vector of each text unit in `ids`, which are sorted."""
    # Every n-th id, since ids are hashes, is a random sample that does not depend on row order.
    learned = ids.gather_every(max(1, -(-len(ids) // MAX_LEARNED_TEXTS)))
    rows = base_text_units.select("id", pl.col("text").str.head(READ_CHARS))
    sample = rows.filter(pl.col("id").is_in(learned.implode())).collect().sort("id")
    words = learn_word_vectors(sample["text"])
    dimension = words.vectors.shape[1]
    vectors: Vectors = allocate(len(ids) * dimension, np.float32).reshape(len(ids), dimension)
    vectors[:] = 0
    for batch in read_batches(rows, BATCH_TEXTS):
        places = find_rows(batch["id"], ids)
        vectors[places[places >= 0]] = words.embed(batch["text"])[places >= 0]
    return vectors


def learn_word_vectors(texts: pl.Series) -> WordVectors:
    """Learn vectors of the words that are in several texts, but not in most of them."""
    found, n_texts = _split_words(texts), len(texts)
    _, numbers = distinct_pairs(found.texts, found.numbers)
    counts = np.bincount(numbers, minlength=len(found.distinct))
    words = (
        pl.DataFrame({"word": found.distinct, "n": counts})
        .filter(pl.col("n") > 1, pl.col("n") <= max(MAX_COMMON_TEXTS, MAX_SHARE_OF_TEXTS * n_texts))
        .sort("n", "word", descending=[True, False])
        .head(MAX_WORDS)
        .select("word", weight=(n_texts / pl.col("n")).log())
    )
    if not words.height:
        return WordVectors(words, np.zeros((0, 1)))
    matrix = _weigh_words(found, words, n_texts)
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    matrix = matrix.multiply(1 / np.maximum(lengths, 1e-12)[:, None]).tocsr()
    return WordVectors(words, find_main_directions(matrix))


def find_main_directions(matrix: "csr_array") -> Floats:
    """Return the main right singular vectors of a sparse matrix [4]_, one column each."""
    n_rows, n_columns = matrix.shape
    size = min(DIMENSION + 16, n_rows, n_columns)
    found = matrix @ np.random.default_rng(0).standard_normal((n_columns, size))
    for _ in range(3):
        found = matrix @ (matrix.T @ _find_main_axes(found))
    components = _find_main_axes(matrix.T @ _find_main_axes(found))[:, :DIMENSION]
    # A matrix of zeros has no direction.
    return components if components.shape[1] else np.zeros((n_columns, 1))


def _find_main_axes(columns: Floats) -> Floats:
    """Return orthonormal columns that span the same space, in order of their singular values.

    Unlike a QR decomposition, this needs no more than products of large matrices.
    """
    # The matrix of inner products has the singular values; columns @ its vectors has the rest.
    values, vectors = np.linalg.eigh(columns.T @ columns)
    main = np.argsort(-values)
    main = main[values[main] > max(1e-12 * values.max(initial=0), 1e-300)]
    axes: Floats = columns @ (vectors[:, main] / np.sqrt(values[main]))
    return axes


def normalize_rows(rows: Floats) -> Floats:
    """Scale each row to length 1; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


class _TextWords(NamedTuple):
    """All words of some texts: the text and the number of each, and the distinct words."""

    texts: Integers
    numbers: Integers
    distinct: pl.Series


def _split_words(texts: pl.Series) -> _TextWords:
    found = texts.str.head(READ_CHARS).str.to_lowercase().str.extract_all(_WORD)
    rows, words = spread_lists(found)
    return _TextWords(rows, *number_values(words))


def _weigh_words(found: _TextWords, words: pl.DataFrame, n_texts: int) -> "csr_array":
    """Return a sparse matrix with the weight of each known word (column) in each text (row)."""
    from scipy.sparse import csr_array

    column = find_rows(found.distinct, words["word"])[found.numbers]
    n_columns, is_known = words.height, column >= 0
    # Sorting is faster here than groups of texts and words.
    places = np.sort(found.texts[is_known] * n_columns + column[is_known])
    first = np.flatnonzero(np.diff(places, prepend=-1))
    counts = pl.Series(np.diff(first, append=len(places)))
    text, column = np.divmod(places[first], max(n_columns, 1))
    weights = (1 + counts.log()) * words["weight"][column]
    return csr_array((weights.to_numpy(), (text, column)), shape=(n_texts, n_columns))


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

    Changes `texts` in place. So a text unit with few known words gets the subject of its
    neighbours.
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
