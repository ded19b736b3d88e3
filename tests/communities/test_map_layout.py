"""The map of a hierarchy: discs do not overlap, and what is kept stays in its place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.communities import map_layout
from graphrag_index.communities.layout import pull_together, separate_discs
from graphrag_index.communities.map_layout import MapLayout, PreviousMap, layout_map
from graphrag_index.communities.simple_graph import build_graph

# Two communities of level 0, the first with the children 2 and 3; six nodes.
PARENT = np.array([-1, -1, 0, 0])
SIZE = np.array([4, 2, 2, 2])
LEVELS = [np.array([0, 0, 0, 0, 1, 1]), np.array([2, 2, 3, 3, -1, -1])]
GRAPH = build_graph(6, np.array([0, 2, 4, 1]), np.array([1, 3, 5, 4]), np.ones(4))


def overlaps(centres: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Return by how much each two discs overlap; negative: the gap between them."""
    distance = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    return radii[:, None] + radii[None] - distance


def test_nodes_lie_in_their_deepest_community_and_discs_in_their_parents() -> None:
    layout = layout_map(GRAPH, LEVELS, PARENT, SIZE)
    assert layout.community_of_node.tolist() == [2, 2, 3, 3, 1, 1]
    assert (np.linalg.norm(layout.nodes, axis=1) <= 1).all()
    for siblings in ([0, 1], [2, 3]):
        discs = layout.discs[siblings]
        assert (np.linalg.norm(discs[:, :2], axis=1) + discs[:, 2] <= 1).all()
        assert (overlaps(discs[:, :2], discs[:, 2]) < 0).all()


def test_an_unchanged_map_does_not_move() -> None:
    before = layout_map(GRAPH, LEVELS, PARENT, SIZE)
    after = layout_map(GRAPH, LEVELS, PARENT, SIZE, PreviousMap(before.discs, before.nodes))
    np.testing.assert_allclose(after.discs, before.discs, atol=1e-12)
    np.testing.assert_array_equal(after.nodes, before.nodes)


def grow(before: MapLayout) -> MapLayout:
    """Add a community 4 with one node, and a node to community 1."""
    graph = build_graph(8, np.array([0, 2, 4, 1, 6]), np.array([1, 3, 5, 4, 5]), np.ones(5))
    levels = [np.array([0, 0, 0, 0, 1, 1, 1, 4]), np.array([2, 2, 3, 3, -1, -1, -1, -1])]
    known = PreviousMap(
        np.vstack([before.discs, np.full((1, 3), np.nan)]),
        np.vstack([before.nodes, np.full((2, 2), np.nan)]),
    )
    parent, size = np.append(PARENT, -1), np.array([4, 3, 2, 2, 1])
    return layout_map(graph, levels, parent, size, known)


def test_what_is_added_moves_nothing_else() -> None:
    before = layout_map(GRAPH, LEVELS, PARENT, SIZE)
    after = grow(before)
    np.testing.assert_array_equal(after.nodes[:6], before.nodes)
    # The children of the unchanged community 0 stay where they were.
    np.testing.assert_allclose(after.discs[2:4], before.discs[2:4], atol=1e-12)
    assert np.linalg.norm(after.nodes[4:7] - after.nodes[[5, 6, 4]], axis=1).min() > 0.1
    top = after.discs[[0, 1, 4]]
    assert (overlaps(top[:, :2], top[:, 2]) <= 1e-9).all()


def test_a_graph_without_communities_has_no_discs() -> None:
    none = np.zeros(0, int)
    layout = layout_map(GRAPH, [np.full(6, -1)], none, none)
    assert layout.discs.shape == (0, 3)
    assert layout.community_of_node.tolist() == [-1] * 6


@given(st.lists(st.integers(1, 40), min_size=2, max_size=30), st.integers(0, 99))
def test_discs_that_are_pulled_together_do_not_overlap(sizes: list[int], seed: int) -> None:
    radii = np.sqrt(np.array(sizes, float))
    scattered = np.random.default_rng(seed).normal(size=(len(radii), 2)) * 5
    centres = pull_together(separate_discs(scattered[None], radii[None], 50)[0], radii)
    assert overlaps(centres, radii).max() < 1e-6


def test_drawings_that_are_separated_together_do_not_influence_each_other() -> None:
    # The first drawing has no overlap, the last one only overlaps: they stop after different moves.
    points = np.random.default_rng(2).normal(size=(6, 2))
    drawings = np.stack([points * 9, points * 0.8, points * 1e-3])
    radii = np.random.default_rng(3).uniform(0.5, 1, (3, 6))
    together = separate_discs(drawings, radii, 40)
    for at in range(3):
        alone = separate_discs(drawings[at : at + 1], radii[at : at + 1], 40)
        np.testing.assert_array_equal(together[at], alone[0])
        assert overlaps(together[at], radii[at]).max() < 1e-9


@pytest.mark.parametrize("n", [1, 300])
def test_many_or_single_siblings(n: int) -> None:
    nodes = np.arange(n)
    graph = build_graph(n, np.zeros(n - 1, int), nodes[1:], np.ones(n - 1))
    layout = layout_map(graph, [nodes], np.full(n, -1), np.ones(n, int))
    assert (overlaps(layout.discs[:, :2], layout.discs[:, 2]) < 1e-9).all()


def test_shards_of_parents_do_not_change_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    # 40 top communities of 8 nodes each; each node is a community of the next level.
    nodes, rng = np.arange(320), np.random.default_rng(0)
    graph = build_graph(320, rng.integers(0, 320, 900), rng.integers(0, 320, 900), np.ones(900))
    levels = [nodes // 8, 40 + rng.permutation(320)]
    parent = np.full(360, -1)
    parent[levels[1]] = levels[0]
    size = np.append(np.full(40, 8), np.ones(320, int))
    whole = layout_map(graph, levels, parent, size)
    monkeypatch.setattr(map_layout, "_SHARD_PARENTS", 3)
    split = layout_map(graph, levels, parent, size)
    np.testing.assert_array_equal(split.discs, whole.discs)
    for row in range(40):
        discs = whole.discs[parent == row]
        assert len(discs) == 8
        assert (overlaps(discs[:, :2], discs[:, 2]) < 0).all()
