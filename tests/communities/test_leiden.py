import random
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.communities.layout import (
    layout_graph,
    pack_discs,
    pack_drawings,
    pull_together,
    spread_over_disc,
)
from graphrag_index.communities.leiden import (
    ENGINES,
    build_hierarchy,
    build_microsoft_hierarchy,
    partition_graph,
)
from graphrag_index.communities.simple_graph import (
    Graph,
    build_graph,
    build_sparse_rows,
    compute_modularity,
    count_neighbours,
    find_components,
)
from graphrag_index.schema.settings.step_sections import CreateCommunities
from tests.fixtures.examples import examples
from tests.fixtures.small_graphs import graph_of, graphs, parts, ring_of_rings

DEFAULT = CreateCommunities()
TWO_TRIANGLES_AND_A_BRIDGE = graph_of(6, (0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3))


def test_parallel_edges_are_added_up_and_loops_dropped():
    graph = graph_of(3, (2, 0, 1.5), (0, 2, 2.0), (1, 1, 9.0), (0, 1, 1.0))
    assert graph.sources.tolist() == [0, 0]
    assert graph.targets.tolist() == [1, 2]
    assert graph.weights.tolist() == [1.0, 3.5]
    assert count_neighbours(graph).tolist() == [2, 1, 1]


def test_sparse_rows_list_each_edge_from_both_ends():
    rows = build_sparse_rows(graph_of(4, (0, 2, 5.0), (0, 1, 4.0)))
    assert rows.indptr.tolist() == [0, 2, 3, 4, 4]
    assert rows.indices.tolist() == [1, 2, 0, 0]
    assert rows.weights.tolist() == [4.0, 5.0, 4.0, 5.0]


def test_isolated_nodes_are_components_of_their_own():
    isolated = {frozenset({0}), frozenset({2})}
    assert parts(find_components(graph_of(4, (3, 1)))) == {frozenset({1, 3}), *isolated}


@given(graph=graphs())
@examples(100)
def test_components_are_what_edges_join_in_the_order_of_their_first_nodes(graph):
    joined = nx.Graph(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    joined.add_nodes_from(range(graph.n_nodes))
    in_order = sorted(nx.connected_components(joined), key=min)
    labels = {node: number for number, nodes in enumerate(in_order) for node in nodes}
    assert find_components(graph).tolist() == [labels[node] for node in range(graph.n_nodes)]


@given(graph=graphs())
@examples(100)
def test_sparse_rows_are_ascending_whatever_the_graph(graph):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphrag_index.communities.simple_graph.BATCH_EDGES", 7)
        rows = build_sparse_rows(graph)
    ends = [*zip(*graph[1:4], strict=True)]
    for node in range(graph.n_nodes):
        row = slice(rows.indptr[node], rows.indptr[node + 1])
        expected = sorted(
            [(b, w) for a, b, w in ends if a == node] + [(a, w) for a, b, w in ends if b == node]
        )
        found = zip(rows.indices[row].tolist(), rows.weights[row].tolist(), strict=True)
        assert [*found] == expected


def test_modularity_of_two_triangles_and_a_bridge():
    # 6 of 7 edges lie inside; each side has 7 of the 14 ends of edges.
    labels = np.array([0, 0, 0, 1, 1, 1])
    assert compute_modularity(TWO_TRIANGLES_AND_A_BRIDGE, labels) == pytest.approx(6 / 7 - 1 / 2)
    assert compute_modularity(graph_of(2), np.array([0, 1])) == 0


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize(("quality", "resolution"), [("modularity", 1.0), ("cpm", 0.5)])
def test_every_engine_separates_two_triangles(engine, quality, resolution):
    labels = partition_graph(
        TWO_TRIANGLES_AND_A_BRIDGE,
        CreateCommunities(engine=engine, quality=quality, resolution=resolution, seed=7),
    )
    assert parts(labels) == {frozenset({0, 1, 2}), frozenset({3, 4, 5})}


def test_microsoft_separates_two_triangles_in_each_component():
    two = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)]
    graph = graph_of(13, *two, *((source + 6, target + 6) for source, target in two))
    levels = build_microsoft_hierarchy(graph)
    assert parts(levels[0]) == {frozenset(range(i, i + 3)) for i in (0, 3, 6, 9)} | {
        frozenset({12})
    }


def test_a_graph_without_edges_falls_into_single_nodes():
    for levels in (build_hierarchy(graph_of(3), DEFAULT), build_microsoft_hierarchy(graph_of(3))):
        assert [labels.tolist() for labels in levels] == [[0, 1, 2]]


def test_a_graph_without_nodes_has_one_empty_level():
    for levels in (build_hierarchy(graph_of(0), DEFAULT), build_microsoft_hierarchy(graph_of(0))):
        assert [labels.tolist() for labels in levels] == [[]]


def test_a_star_stays_whole():
    star = graph_of(31, *((0, leaf) for leaf in range(1, 31)))
    assert [parts(labels) for labels in build_hierarchy(star, DEFAULT)] == [{frozenset(range(31))}]


def test_only_parts_above_the_size_are_split():
    levels = build_hierarchy(ring_of_rings(), CreateCommunities(max_cluster_size=6))
    assert len(levels) > 1
    for upper, lower in pairwise(levels):
        for part in parts(upper):
            assert len(part) > 6 or all(lower[node] == -1 for node in part)


def test_no_deeper_than_max_levels():
    for n in (1, 2):
        settings = CreateCommunities(max_cluster_size=2, max_levels=n)
        assert len(build_hierarchy(ring_of_rings(), settings)) == n


def test_igraph_leaves_the_global_random_numbers_alone():
    random.seed(3)
    expected = random.random()
    random.seed(3)
    partition_graph(TWO_TRIANGLES_AND_A_BRIDGE, CreateCommunities(engine="igraph", seed=5))
    assert random.random() == expected


ALL_ENGINES = [*sorted(ENGINES), "microsoft"]


@pytest.mark.parametrize("engine", ALL_ENGINES)
@given(graph=graphs())
@examples(40)
def test_every_level_refines_the_one_above(engine, graph):
    if engine == "microsoft":
        levels = build_microsoft_hierarchy(graph)
    else:
        levels = build_hierarchy(graph, CreateCommunities(engine=engine, max_cluster_size=4))
    assert (levels[0] >= 0).all()
    component = find_components(graph)
    assert all(len({component[node] for node in part}) == 1 for part in parts(levels[0]))
    for upper, lower in pairwise(levels):
        assert (lower >= 0).any()
        for part in parts(upper):
            below = {lower[node] for node in part}
            # Either all of a part appears again, in pieces, or nothing of it.
            assert below == {-1} or (-1 not in below and len(below) > 1)
        assert all(len({upper[node] for node in part} - {-1}) == 1 for part in parts(lower))


@given(graph=graphs(), seed=st.integers(0, 2**32))
@examples(40)
def test_a_layout_fills_the_unit_disc_and_does_not_depend_on_the_order_of_edges(graph, seed):
    positions = layout_graph(graph, seed=3)
    assert positions.shape == (graph.n_nodes, 2)
    assert np.isfinite(positions).all()
    assert np.abs(positions).max() <= 1 + 1e-9
    order = np.random.default_rng(seed).permutation(len(graph.weights))
    turned = build_graph(
        graph.n_nodes, graph.targets[order], graph.sources[order], graph.weights[order]
    )
    assert np.array_equal(layout_graph(turned, seed=3), positions)


@given(graph=graphs())
@examples(40)
def test_discs_of_communities_do_not_overlap(graph):
    positions = layout_graph(graph, seed=3)
    labels = partition_graph(graph, CreateCommunities(seed=3))
    centres, radii = [], []
    for part in sorted(parts(labels), key=min):
        points = positions[sorted(part)]
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        centres.append(middle)
        radii.append(np.linalg.norm(points - middle, axis=1).max())
    for i, centre in enumerate(centres):
        for j in range(i):
            assert np.linalg.norm(centre - centres[j]) > radii[i] + radii[j]


@given(st.lists(st.floats(0.1, 3), min_size=1, max_size=12))
@examples(60)
def test_pulled_discs_come_closer_but_do_not_overlap(sizes):
    n, radii = len(sizes), np.array(sizes)
    start = spread_over_disc(np.arange(n), np.full(n, n)) * 12 * np.sqrt(n)
    moved = pull_together(start, radii)
    touching = radii[:, None] + radii[None]
    np.fill_diagonal(touching, 0)
    gaps = np.linalg.norm(moved[:, None] - moved[None], axis=2)
    assert (gaps >= touching - 1e-6).all()
    assert gaps.max() <= 2 * np.sqrt(n) * touching.max()


def test_many_linked_communities_are_packed_group_by_group_without_overlap():
    # 400 triangles in a ring: more discs than are moved at once.
    triangles = [
        edge for i in range(0, 1200, 3) for edge in ((i, i + 1), (i, i + 2), (i + 1, i + 2))
    ]
    ring = [(i, (i + 3) % 1200, 0.01) for i in range(0, 1200, 3)]
    graph = graph_of(1200, *triangles, *ring)
    positions = layout_graph(graph, seed=1)
    labels = partition_graph(graph, CreateCommunities(seed=1))
    centres = np.array(
        [positions[labels == label].mean(axis=0) for label in range(labels.max() + 1)]
    )
    reach = np.linalg.norm(positions - centres[labels], axis=1)
    radii = np.zeros(len(centres))
    np.maximum.at(radii, labels, reach)
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (distances > radii[:, None] + radii[None]).all()


def test_a_hub_lies_in_the_middle_of_its_community():
    star = graph_of(31, *((0, leaf) for leaf in range(1, 31)))
    distance = np.linalg.norm(layout_graph(star, seed=1), axis=1)
    assert distance.argmin() == 0
    large = graph_of(1001, *((0, leaf) for leaf in range(1, 1001)))
    assert np.linalg.norm(layout_graph(large, seed=1), axis=1).argmin() == 0


def test_isolated_nodes_lie_outside_of_the_linked_ones_and_apart():
    graph = graph_of(10, *((i, j) for i in range(5) for j in range(i)))
    positions = layout_graph(graph, seed=1)
    distance = np.linalg.norm(positions, axis=1)
    assert distance[5:].min() > distance[:5].max()
    assert len({tuple(point) for point in positions[5:].round(3)}) == 5


def test_drawings_that_are_packed_together_do_not_influence_each_other() -> None:
    chain, radii = np.arange(4, dtype=np.int32), np.random.default_rng(1).uniform(0.5, 2, (3, 5))
    drawings = [Graph(5, chain, chain + 1, np.full(4, weight)) for weight in (1.0, 2.0, 7.0)]
    together = pack_drawings(drawings, radii, seed=1, iterations=20)
    for graph, own, centres in zip(drawings, radii, together, strict=True):
        np.testing.assert_array_equal(centres, pack_discs(graph, own, seed=1, iterations=20))
