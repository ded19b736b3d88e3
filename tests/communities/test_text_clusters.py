"""Clusters of texts: their sections, means and starts."""

import numpy as np
import polars as pl
import pytest

from graphrag_index.communities.text_clusters import (
    MAX_SECTION,
    add_section_vectors,
    find_cluster_means,
    find_highest,
    find_most_similar,
    number_sections,
)


def text_units(*documents: int) -> pl.DataFrame:
    """Text units in reading order, one for each number of a document."""
    return pl.DataFrame({"document": documents, "position": range(len(documents))})


def near(axes: list[int], n_axes: int) -> np.ndarray:
    """Return unit vectors near to these axes."""
    vectors = np.eye(n_axes)[axes] + 0.02 * np.random.default_rng(3).random((len(axes), n_axes))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_short_document_is_one_section_and_a_long_one_several_of_similar_size() -> None:
    found = number_sections(text_units(7, 7, *[4] * (2 * MAX_SECTION + 1), 5))
    assert found[:2].tolist() == [0, 0]
    assert np.bincount(found).tolist() == [2, 6, 6, 5, 1]
    assert np.all(np.diff(found) >= 0)


@pytest.mark.parametrize("seed", range(3))
def test_sections_are_numbered_by_rows_whatever_the_numbers_of_documents(seed: int) -> None:
    units = text_units(*[0] * 20, *[1] * 3, *[2] * 9).sample(fraction=1, shuffle=True, seed=seed)
    other = units.with_columns(document=pl.col("document").replace({0: 2, 2: 0}))
    found = number_sections(units)
    assert found.tolist() == number_sections(other).tolist()
    first = np.unique(found, return_index=True)[1]
    assert np.all(np.diff(first) > 0)


def test_no_text_units_have_no_sections() -> None:
    assert not len(number_sections(text_units().cast(pl.Int64)))
    assert add_section_vectors(np.zeros((0, 4), np.float32), np.zeros(0, np.int64)).shape == (0, 4)


def test_a_text_unit_without_words_is_about_what_its_section_is_about() -> None:
    texts = np.array([[1, 0], [0, 0], [0, 0]], np.float32)
    assert add_section_vectors(texts, np.array([0, 0, 1])).tolist() == [[1, 0], [0, 0]]
    assert texts.tolist() == [[1, 0], [1, 0], [0, 0]]


def test_clusters_of_very_different_size_are_found() -> None:
    axes = [0] * 300 + [1] * 3 + [2] * 40 + [3] * 4
    vectors = near(axes, 4)
    means = find_cluster_means(np.vstack([vectors, np.zeros((5, 4))]), 4)
    found = find_most_similar(vectors, means)
    assert sorted(np.bincount(found).tolist()) == [3, 4, 40, 300]
    assert len(set(zip(axes, found.tolist(), strict=True))) == 4


def test_equal_vectors_give_one_cluster_and_vectors_of_zeros_none() -> None:
    assert find_cluster_means(np.tile([0.6, 0.8], (9, 1)), 5).shape == (1, 2)
    assert find_cluster_means(np.zeros((9, 2)), 5).shape == (0, 2)


def test_the_first_of_scores_that_differ_in_last_digits_only_is_the_highest() -> None:
    scores = np.array([[0.1, 0.5, 0.5 + 1e-9], [-0.2, -0.2 + 1e-5, -0.2], [0.0, -1e-9, 1e-9]])
    assert find_highest(scores).tolist() == [1, 1, 0]
