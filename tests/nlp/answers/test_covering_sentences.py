"""The choice of sentences that cover a pool, and their themes."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.answers.covering_sentences import (
    MAX_SHARE_OF_THEME,
    Floats,
    choose_sentences,
    group_by_theme,
    remove_common_part,
    score_sentences,
    split_passages,
)

# Two sentences on scurvy, two on ponies, one on both, and one on neither.
VECTORS = np.array([[1, 0, 0], [0.98, 0.2, 0], [0, 1, 0], [0.2, 0.98, 0], [0.7, 0.7, 0], [0, 0, 1]])
VECTORS = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
SCORES = np.array([0.9, 0.8, 0.9, 0.8, 0.85, 0.1])


def test_whole_statements_are_split_off_and_repetitions_are_dropped() -> None:
    text = "# Food\n\nThe men ate fresh seal meat.\nWhat did the men eat all winter? They did.\n"
    found = split_passages(
        [(7, text), (8, "The men ate fresh\nseal meat. " + "Long " * 40 + "day.")]
    )
    [sentence] = found
    assert (sentence.text, sentence.passage) == ("The men ate fresh seal meat.", 7)
    assert text[sentence.start : sentence.end] == sentence.text
    assert sentence.n_words == 6


def test_the_first_sentence_covers_most_and_the_next_ones_what_it_leaves() -> None:
    assert choose_sentences(VECTORS, SCORES, [5] * 6, 5) == [4]
    first, *others = choose_sentences(VECTORS, SCORES, [5] * 6, 15)
    assert first == 4
    assert set(others) == {0, 2}


def test_a_long_sentence_leaves_its_place_to_shorter_ones() -> None:
    assert 4 not in choose_sentences(VECTORS, SCORES, [5, 5, 5, 5, 50, 5], 20)


def test_each_theme_has_a_sentence_before_one_has_two() -> None:
    themes = ["food", "food", "transport", "transport", "food", "weather"]
    chosen = choose_sentences(VECTORS, SCORES, [5] * 6, 15, themes)
    assert {themes[row] for row in chosen} == {"food", "transport", "weather"}


def test_nothing_is_chosen_of_nothing_or_without_words() -> None:
    assert choose_sentences(np.zeros((0, 3)), np.zeros(0), [], 100) == []
    assert choose_sentences(VECTORS, SCORES, [5] * 6, 4) == []


@st.composite
def pools(draw: st.DrawFn) -> tuple[Floats, Floats, list[int], int]:
    """Draw vectors, scores and numbers of words of sentences, and a budget of words."""
    n = draw(st.integers(1, 12))
    numbers = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    vectors = numbers.normal(size=(n, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    n_words = draw(st.lists(st.integers(1, 30), min_size=n, max_size=n))
    return vectors, numbers.normal(size=n), n_words, draw(st.integers(0, 100))


@given(pools(), st.booleans())
def test_the_words_of_the_budget_are_never_exceeded_and_are_used(
    pool: tuple[Floats, Floats, list[int], int],
    by_theme: bool,
) -> None:
    vectors, scores, n_words, max_words = pool
    themes = [row % 3 for row in range(len(scores))] if by_theme else None
    chosen = choose_sentences(vectors, scores, n_words, max_words, themes)
    left = max_words - sum(n_words[row] for row in chosen)
    assert len(set(chosen)) == len(chosen)
    assert left >= 0
    assert all(n_words[row] > left for row in set(range(len(scores))) - set(chosen))


@given(pools(), st.integers(0, 99))
def test_the_order_of_the_rows_does_not_matter(
    pool: tuple[Floats, Floats, list[int], int], seed: int
) -> None:
    vectors, scores, n_words, max_words = pool
    order = list(range(len(scores)))
    random.Random(seed).shuffle(order)
    mixed = [n_words[row] for row in order]
    chosen = choose_sentences(vectors[order], scores[order], mixed, max_words)
    assert [order[row] for row in chosen] == choose_sentences(vectors, scores, n_words, max_words)


def test_what_all_texts_share_does_not_count() -> None:
    common = np.array([1.0, 0.0, 0.0])
    vectors = remove_common_part(np.array([[0.8, 0.6, 0.0], [1.0, 0.0, 0.0]]), common)
    assert np.allclose(vectors, [[0, 1, 0], [0, 0, 0]])
    assert np.allclose(remove_common_part(VECTORS, np.zeros(3)), VECTORS)


def test_a_sentence_counts_with_a_part_of_its_passage() -> None:
    question, passages = np.array([1.0, 0, 0]), np.array([[1.0, 0, 0]] * 6)
    scores = score_sentences(VECTORS, passages, question)
    assert (scores[0], scores[5]) == (pytest.approx(1.3), pytest.approx(0.3))


PATHS = [[0, 10], [0, 11], [0, 12], [1, 13], [], [0, 10]]


def test_themes_are_those_of_the_coarsest_level_that_parts_the_sentences() -> None:
    groups, level = group_by_theme(PATHS)
    assert level == 1
    assert groups == {10: [0, 5], 11: [1], 12: [2], 13: [3], None: [4]}
    assert group_by_theme(PATHS, 0) == ({0: [0, 1, 2, 5], 1: [3], None: [4]}, 0)
    assert group_by_theme(PATHS, 9)[1] == 1
    assert group_by_theme([]) == ({}, 0)


@given(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=12))
def test_themes_part_all_rows(paths: list[list[int]]) -> None:
    groups, level = group_by_theme(paths)
    rows = [row for of_theme in groups.values() for row in of_theme]
    assert sorted(rows) == list(range(len(paths)))
    deepest = max(max(map(len, paths), default=1) - 1, 0)
    largest = max(map(len, groups.values()), default=0)
    assert largest <= MAX_SHARE_OF_THEME * len(paths) or level == deepest
