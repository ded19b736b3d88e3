"""A partition that is brought up to date: only what a change touches is moved."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.communities.hierarchy_update import find_changed_nodes, update_hierarchy
from graphrag_index.communities.leiden import (
    ENGINES,
    build_hierarchy,
    partition_graph,
    select_large_parts,
)
from graphrag_index.communities.simple_graph import (
    Graph,
    build_graph,
    compute_modularity,
    find_components,
)
from graphrag_index.schema.settings.step_sections import CreateCommunities
from tests.fixtures.examples import examples
from tests.fixtures.small_graphs import graph_of, graphs, parts, ring_of_rings

SMALL = CreateCommunities(max_cluster_size=4, max_levels=4)
DEFAULT = CreateCommunities()


def cliques(n: int, size: int, first: int = 0) -> list[tuple[int, int, float]]:
    """Edges of cliques, one after the other, each joined to the next by a light edge."""
    inner = [
        (first + i * size + a, first + i * size + b, 5.0)
        for i in range(n)
        for a, b in combinations(range(size), 2)
    ]
    return [*inner, *((first + i * size, first + (i + 1) * size, 0.5) for i in range(n - 1))]


def with_edges(graph: Graph, n_nodes: int, edges: list[tuple[int, int, float]]) -> Graph:
    sources, targets, weights = (np.array(column) for column in zip(*edges, strict=True))
    return build_graph(
        n_nodes,
        np.concatenate([graph.sources, sources]),
        np.concatenate([graph.targets, targets]),
        np.concatenate([graph.weights, weights]),
    )


def grown(labels: np.ndarray, n_nodes: int) -> np.ndarray:
    return np.concatenate([labels, np.full(n_nodes - len(labels), -1)])


def check_levels(graph: Graph, levels: list[np.ndarray], max_cluster_size: int) -> None:
    """Check that parts are connected, and refine those above."""
    assert (levels[0] >= 0).all()
    for number, labels in enumerate(levels):
        inside = (labels[graph.sources] >= 0) & (labels[graph.sources] == labels[graph.targets])
        connected = find_components(
            Graph(
                graph.n_nodes, graph.sources[inside], graph.targets[inside], graph.weights[inside]
            )
        )
        whole = parts(connected)
        assert all(any(part <= other for other in whole) for part in parts(labels))
        if number:
            above = select_large_parts(levels[number - 1], max_cluster_size)
            assert not (labels[above < 0] >= 0).any()
            for part in parts(above):
                below = {int(labels[node]) for node in part}
                assert below == {-1} or (len(below) > 1 and -1 not in below)


@given(graph=graphs(), engine=st.sampled_from(sorted(ENGINES)))
@examples(60)
def test_of_a_graph_that_did_not_change_all_is_kept(graph, engine):
    settings = SMALL.model_copy(update={"engine": engine})
    before = build_hierarchy(graph, settings)
    after = update_hierarchy(graph, before, np.zeros(graph.n_nodes, dtype=bool), settings)
    assert [parts(labels) for labels in after] == [parts(labels) for labels in before]


@given(before=graphs(), after=graphs(), quality=st.sampled_from(["modularity", "cpm"]))
@examples(150)
def test_whatever_changed_the_hierarchy_is_whole(before, after, quality):
    settings = SMALL.model_copy(update={"quality": quality})
    n = max(before.n_nodes, after.n_nodes)
    before, after = before._replace(n_nodes=n), after._replace(n_nodes=n)
    previous = build_hierarchy(before, settings)
    is_changed = find_changed_nodes(after, before, np.zeros(n, dtype=bool))
    levels = update_hierarchy(after, previous, is_changed, settings)
    check_levels(after, levels, SMALL.max_cluster_size)
    again = update_hierarchy(after, levels, np.zeros(n, dtype=bool), settings)
    assert [parts(labels) for labels in again] == [parts(labels) for labels in levels]


def test_a_part_that_lost_nodes_and_became_small_is_not_split_any_more():
    settings = SMALL.model_copy(update={"quality": "cpm"})
    ends, weights = [(0, 1), (0, 2), (0, 3), (0, 5)], [6.0, 6.0, 2.0, 1.0]
    before, after = (
        build_graph(6, *np.transpose([*ends, *more]), np.array(weights + heavy))
        for more, heavy in (([(1, 3), (2, 5)], [2.0, 4.0]), ([(1, 4), (2, 5)], [5.0, 4.0]))
    )
    is_changed = find_changed_nodes(after, before, np.zeros(6, dtype=bool))
    levels = update_hierarchy(after, build_hierarchy(before, settings), is_changed, settings)
    check_levels(after, levels, SMALL.max_cluster_size)


def test_a_node_joins_the_clique_that_it_is_linked_to():
    graph = graph_of(30, *cliques(5, 6))
    before = build_hierarchy(graph, DEFAULT)
    changed = with_edges(graph, 31, [(30, 12, 5.0), (30, 13, 5.0)])
    is_new = np.arange(31) == 30
    is_changed = find_changed_nodes(changed, graph._replace(n_nodes=31), is_new)
    assert np.flatnonzero(is_changed).tolist() == [12, 13, 30]
    after = update_hierarchy(changed, [grown(labels, 31) for labels in before], is_changed, DEFAULT)
    joined = frozenset({12, 13, 14, 15, 16, 17, 30})
    assert parts(after[0]) == (parts(before[0]) - {joined - {30}}) | {joined}


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_in_which_unit_weights_are_is_nothing_to_it(unit):
    graph = graph_of(30, *cliques(5, 6))
    before = grown(build_hierarchy(graph, DEFAULT)[0], 31)
    changed = with_edges(graph, 31, [(30, 12, 5.0), (30, 13, 5.0)])
    is_new = np.arange(31) == 30
    is_changed = find_changed_nodes(changed, graph, is_new)
    labels, in_units = (
        update_hierarchy(one, [before], is_changed, DEFAULT)[0]
        for one in (changed, changed._replace(weights=changed.weights * unit))
    )
    assert parts(in_units) == parts(labels)
    assert labels[30] == labels[12]


def test_new_nodes_that_hold_together_are_a_part_of_their_own():
    graph = graph_of(30, *cliques(5, 6))
    before = build_hierarchy(graph, DEFAULT)
    changed = with_edges(graph, 38, [*cliques(1, 8, first=30), (30, 0, 0.5)])
    previous = [grown(labels, 38) for labels in before]
    is_changed = find_changed_nodes(changed, graph._replace(n_nodes=38), grown(before[0], 38) < 0)
    after = update_hierarchy(changed, previous, is_changed, DEFAULT)
    assert parts(after[0]) == parts(before[0]) | {frozenset(range(30, 38))}


def test_a_part_that_falls_apart_is_cut():
    graph = graph_of(12, *cliques(2, 6))
    one = np.zeros(12, dtype=np.int64)
    cut = graph_of(12, *cliques(1, 6), *cliques(1, 6, first=6))
    is_changed = find_changed_nodes(cut, graph, np.zeros(12, dtype=bool))
    assert np.flatnonzero(is_changed).tolist() == [0, 6]
    after = update_hierarchy(cut, [one], is_changed, DEFAULT)
    assert parts(after[0]) == {frozenset(range(6)), frozenset(range(6, 12))}


def test_a_part_that_loses_the_node_that_links_it_is_cut():
    # Node 6 links two triangles, until the edges to another clique are far heavier.
    graph = graph_of(
        16,
        *(*cliques(1, 3), *cliques(1, 3, first=3), (2, 6, 5.0), (3, 6, 5.0)),
        *(*cliques(1, 9, first=7), *((6, node, 50.0) for node in range(7, 16))),
    )
    previous = np.repeat([0, 1], [7, 9])
    levels = update_hierarchy(graph, [previous], np.arange(16) == 6, DEFAULT)
    assert parts(levels[0]) == {
        frozenset(range(3)),
        frozenset(range(3, 6)),
        frozenset(range(6, 16)),
    }


def test_a_part_that_becomes_too_large_is_split_unless_it_is_a_clique():
    ring = ring_of_rings()
    before = build_hierarchy(ring, CreateCommunities(max_cluster_size=25))
    assert len(before) == 1
    nothing = np.zeros(80, dtype=bool)
    assert len(update_hierarchy(ring, before, nothing, CreateCommunities(max_cluster_size=6))) > 1
    graph = graph_of(20, *cliques(1, 20))
    assert len(update_hierarchy(graph, [np.zeros(20, np.int64)], nothing[:20], DEFAULT)) == 1


def test_weights_that_moved_a_little_change_nothing():
    graph = graph_of(3, (0, 1, 1.0), (1, 2, 1.0))
    nothing = np.zeros(3, dtype=bool)
    moved = graph_of(3, (0, 1, 1.05), (1, 2, 1.2))
    assert find_changed_nodes(moved, graph, nothing).tolist() == [False, True, True]
    assert find_changed_nodes(graph, graph_of(3, (0, 1, 1.0)), nothing).tolist() == [
        False,
        True,
        True,
    ]
    assert find_changed_nodes(graph_of(3, (0, 1, 1.0)), graph, nothing).tolist() == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("seed", range(3))
def test_with_all_nodes_free_the_partition_gets_no_worse(seed):
    numbers = np.random.default_rng(seed)
    edges = [(int(a), int(b), 1.0) for a, b in numbers.integers(0, 60, (150, 2))]
    graph = graph_of(60, *cliques(10, 6), *edges)
    start = numbers.integers(0, 8, 60)
    after = update_hierarchy(graph, [start], np.ones(60, dtype=bool), DEFAULT)[0]
    assert compute_modularity(graph, after) > compute_modularity(graph, start)
    rebuilt = compute_modularity(graph, partition_graph(graph, DEFAULT))
    assert compute_modularity(graph, after) > rebuilt - 0.05


def test_what_another_program_split_or_left_apart_stays_until_something_changes_in_it() -> None:
    # Four cliques without an edge between them: two and two are a part, split into its cliques.
    graph = graph_of(24, *(edge for at in range(0, 24, 6) for edge in cliques(1, 6, first=at)))
    top = np.repeat([0, 0, 1, 1], 6)
    below = np.repeat([0, 1, 2, 3], 6)
    nothing = np.zeros(24, dtype=bool)
    left = update_hierarchy(graph, [top, below], nothing, CreateCommunities(max_cluster_size=100))
    assert [parts(labels) for labels in left] == [parts(top), parts(below)]
    touched = nothing.copy()
    touched[0] = True
    after = update_hierarchy(graph, [top, below], touched, CreateCommunities(max_cluster_size=100))
    assert parts(after[0]) == {
        frozenset(range(6)),
        frozenset(range(6, 12)),
        frozenset(range(12, 24)),
    }
    assert parts(after[1]) == {frozenset(range(12, 18)), frozenset(range(18, 24))}
