"""The cheapest paths between two entities of a graph."""

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_query.searches.path_search import (
    MAX_RELATIONSHIPS_OF_ENTITY,
    VisitedGraph,
    find_paths,
)
from graphrag_query.searches.path_search import Path as GraphPath
from tests.fixtures.fake_links import Edge, FakeLinks


def paths(
    edges: list[Edge], source: int, target: int, max_paths: int = 3, max_hops: int = 6
) -> list[GraphPath]:
    return find_paths(VisitedGraph(FakeLinks(edges), 1000), source, target, max_paths, max_hops)


def ways(edges: list[Edge], source: int, target: int, **more: int) -> list[tuple[int, ...]]:
    return [path.entities for path in paths(edges, source, target, **more)]


def test_a_stronger_relationship_is_a_shorter_way() -> None:
    edges = [(0, 1, 1.0), (1, 3, 1.0), (0, 2, 8.0), (2, 3, 8.0)]
    assert ways(edges, 0, 3) == [(0, 2, 3), (0, 1, 3)]


def test_relationships_are_given_in_the_order_of_the_path() -> None:
    edges = [(2, 3, 1.0), (1, 0, 1.0), (1, 2, 1.0)]
    assert paths(edges, 0, 3)[0].relationships == (1, 2, 0)
    assert paths(edges, 3, 0)[0].relationships == (0, 2, 1)


def test_the_way_through_a_hub_costs_more() -> None:
    through_hub = [(0, 1, 2.0), (1, 3, 2.0)]
    beside_it = [(0, 2, 2.0), (2, 3, 2.0)]
    hub = [(1, n, 1.0) for n in range(10, 60)]
    assert ways(through_hub + beside_it + hub, 0, 3, max_paths=1) == [(0, 2, 3)]


def test_two_strong_hops_beat_one_only_if_it_is_far_weaker() -> None:
    edges = [(0, 1, 1.0), (0, 2, 50.0), (2, 1, 50.0)]
    assert ways(edges, 0, 1)[0] == (0, 1)


def test_paths_differ_as_far_as_they_can() -> None:
    # Two bridges behind one gate: every path passes 1.
    edges = [(0, 1, 1.0), (1, 2, 1.0), (1, 3, 1.0), (2, 4, 1.0), (3, 4, 1.0)]
    assert ways(edges, 0, 4) == [(0, 1, 2, 4), (0, 1, 3, 4)]


def test_a_path_of_too_many_hops_is_none() -> None:
    chain = [(n, n + 1, 1.0) for n in range(5)]
    assert ways(chain, 0, 5, max_hops=5) == [(0, 1, 2, 3, 4, 5)]
    assert ways(chain, 0, 5, max_hops=4) == []


def test_a_dearer_way_is_taken_where_the_cheaper_one_has_too_many_hops() -> None:
    strong = [(0, 1, 1000.0), (1, 2, 1000.0), (2, 3, 1000.0)]
    weak_hub = [(0, 4, 0.0), (4, 3, 0.0), *((4, n, 1.0) for n in range(10, 200))]
    assert ways([*strong, *weak_hub], 0, 3, max_hops=3, max_paths=1) == [(0, 1, 2, 3)]
    assert ways([*strong, *weak_hub], 0, 3, max_hops=2, max_paths=1) == [(0, 4, 3)]


def test_what_is_read_is_bounded_and_said_to_be_cut() -> None:
    links = FakeLinks([(0, n, 1.0) for n in range(2, 500)])
    graph = VisitedGraph(links, 20)
    assert find_paths(graph, 0, 1, 3, 6) == []
    # Nothing leads to 1, so nothing of the other end had to be read.
    assert len(graph.visited) <= 20
    assert links.n_read <= 21


def test_a_far_end_of_a_large_graph_is_not_read() -> None:
    near = [(0, 1, 5.0), (1, 2, 5.0)]
    far = [(n, n + 1, 1.0) for n in range(2, 400)]
    graph = VisitedGraph(FakeLinks([*near, *far]), 1000)
    assert find_paths(graph, 0, 2, 1, 6)[0].entities == (0, 1, 2)
    assert len(graph.visited) < 10
    assert not graph.is_cut


@pytest.mark.parametrize("edges", [[], [(0, 2, 1.0)], [(0, 0, 1.0), (1, 1, 1.0)]])
def test_no_way_is_no_path(edges: list[Edge]) -> None:
    assert paths(edges, 0, 1) == []


EDGES = st.dictionaries(
    st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] < pair[1]),
    st.floats(0, 50, width=32),
    max_size=16,
).map(lambda found: [(a, b, weight) for (a, b), weight in found.items()])


@given(EDGES, st.integers(1, 5))
def test_the_first_path_is_the_cheapest_of_all_within_the_hops(
    edges: list[Edge], max_hops: int
) -> None:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from((0, 1))
    graph.add_edges_from((a, b) for a, b, _ in edges)
    found = paths(edges, 0, 1, max_hops=max_hops)
    visited = VisitedGraph(FakeLinks(edges), 1000)

    def cost(way: list[int]) -> float:
        hops = [
            min(cost for n, _, cost in visited.hops_from(a) if n == b) for a, b in pairwise(way)
        ]
        return sum(hops) + sum(visited.passing_costs[entity] for entity in way[1:-1])

    all_ways = list(nx.all_simple_paths(graph, 0, 1, cutoff=max_hops))
    assert bool(found) == bool(all_ways)
    for path in found:
        assert list(path.entities) in all_ways
        assert path.cost == pytest.approx(cost(list(path.entities)))
        for (a, b), number in zip(pairwise(path.entities), path.relationships, strict=True):
            assert {a, b} == set(edges[number][:2])
    if found:
        assert found[0].cost == pytest.approx(min(cost(way) for way in all_ways))
    assert len({path.entities for path in found}) == len(found) <= 3


def test_what_leads_to_a_hub_is_found_from_its_other_end() -> None:
    # The way to 1 is the weakest of a hub, of which only the heaviest relationships are followed.
    hub = [(2, n, 9.0) for n in range(10, 10 + MAX_RELATIONSHIPS_OF_ENTITY)]
    edges = [(0, 2, 9.0), (2, 1, 0.1), *hub]
    assert ways(edges, 0, 1) == [(0, 2, 1)]
    assert ways(edges, 1, 0) == [(1, 2, 0)]
