from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphrag_query
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.searches.neighbourhood import gather_relationships
from graphrag_query.searches.path_search import (
    MAX_RELATIONSHIPS_OF_ENTITY,
    VisitedGraph,
    find_paths,
)
from graphrag_query.searches.path_search import Path as GraphPath
from tests.fixtures.examples import examples
from tests.fixtures.fake_links import Edge, FakeLinks, subgraph
from tests.fixtures.sample_questions import QUESTIONS, check_citations

# Two triangles and a bridge: 0-1-2, 2-3, 3-4-5.
BRIDGE = [(0, 1, 1.0), (1, 2, 2.0), (0, 2, 3.0), (2, 3, 1.0), (3, 4, 1.0), (4, 5, 9.0), (3, 5, 2.0)]


def numbers(hops: int, most: int = 100, centre: int = 0) -> list[int]:
    _, found, _ = gather_relationships(FakeLinks(BRIDGE), [centre], hops, most)
    return [number for number, _, _ in found]


def test_relationships_come_hop_by_hop_and_the_strongest_first() -> None:
    # 0-2, 0-1, then 1-2, which joins two that were reached.
    assert numbers(1) == [2, 0, 1]
    assert numbers(2) == [2, 0, 1, 3]
    assert numbers(3) == [2, 0, 1, 3, 6, 4, 5]


def test_the_strongest_are_kept() -> None:
    assert numbers(3, most=2) == [2, 0]


def test_entities_have_the_hops_to_them() -> None:
    rings, _, n_read = gather_relationships(FakeLinks(BRIDGE), [0], 2, 100)
    assert rings == {0: 0, 2: 1, 1: 1, 3: 2}
    assert n_read == 4


def test_several_centres_are_joined() -> None:
    rings, found, _ = gather_relationships(FakeLinks(BRIDGE), [2, 3], 1, 100)
    assert [number for number, _, _ in found][:2] == [2, 1]
    assert rings[2] == rings[3] == 0


def test_nothing_around_nothing() -> None:
    assert gather_relationships(FakeLinks(BRIDGE), [], 2, 10) == ({}, [], 0)


@pytest.mark.parametrize(
    "question", ["Mount Crean", "What is the neighbourhood of Mount Crean?", "mount crean"]
)
def test_the_surroundings_of_an_entity_are_listed_and_cited(
    index: Index, sample_project: Path, question: str
) -> None:
    answer = index.neighbourhood(question)
    assert answer.outcome is Outcome.ANSWERED
    assert answer.text.startswith("- Mount Crean – ")
    assert answer.graph is not None
    assert "Crean Glacier" in answer.graph.entities["title"].to_list()
    check_citations(answer, sample_project / "output")


def test_the_graph_is_that_of_networkx(index: Index) -> None:
    found = index.neighbourhood("Gauss", hops=2, max_relationships=30).graph
    assert found is not None
    graph = found.to_networkx()
    assert graph.number_of_edges() == found.relationships.height == 30
    assert graph.number_of_nodes() == found.entities.height
    number = found.entities["human_readable_id"].to_list()[0]
    assert graph.nodes[number]["title"] == "Gauss"
    assert graph.nodes[number]["ring"] == 0
    _, other, key, edge = next(iter(graph.edges(number, keys=True, data=True)))
    assert key in found.relationships["human_readable_id"].to_list()
    assert {edge["source"], edge["target"]} == {"Gauss", graph.nodes[other]["title"]}
    assert edge["weight"] > 0


def test_what_is_left_out_is_noted(index: Index) -> None:
    answer = index.neighbourhood("Ernest Shackleton", max_relationships=5)
    assert answer.graph is not None
    assert answer.graph.relationships.height == 5
    assert answer.notes[0].endswith("weaker relationships are left out (max_relationships).")


def test_an_entity_that_is_not_known_is_no_evidence(index: Index) -> None:
    answer = index.neighbourhood("Xerxes")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text.startswith("The index knows no entity named Xerxes")


def test_a_question_that_names_nothing_is_no_evidence(index: Index) -> None:
    answer = index.neighbourhood("What are all the things that lie around here on the floor?")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text == "The question names no entity that the index knows."


def test_an_entity_without_relationships_is_no_evidence(index: Index, sample_project: Path) -> None:
    entities = pl.read_parquet(sample_project / "output" / "entities.parquet")
    alone = entities.filter(pl.col("degree") == 0)["title"].to_list()[0]
    answer = index.neighbourhood(alone, "Tom Crean", max_relationships=1)
    assert answer.outcome is Outcome.ANSWERED
    answer = index.neighbourhood(alone)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text == f"The index knows no relationships of {alone}."


@examples(8)
@given(QUESTIONS)
def test_any_question_gives_what_can_be_followed(sample_project: Path, text: str) -> None:
    index = graphrag_query.open(sample_project / "output")
    answer = index.neighbourhood(text, max_relationships=20, max_context_tokens=500)
    check_citations(answer, sample_project / "output")
    assert bool(answer.graph and answer.graph.relationships.height) == bool(answer.citations)
    assert answer.context is None or answer.context.n_tokens <= 500


def test_a_subgraph_as_triples_and_sentences() -> None:
    assert subgraph().triples() == [("Bo", "belongs_to", "Ada"), ("Ada", "", "Bo")]
    assert subgraph().sentences() == ["Bo – Ada: belongs to.", "Ada feeds Bo."]
    assert repr(subgraph()) == "<Subgraph: 2 entities, 2 relationships>"


def test_two_relationships_between_two_are_two_edges() -> None:
    assert subgraph().to_networkx().number_of_edges() == 2


def test_fake_links_are_read_as_links_are() -> None:
    near = FakeLinks(BRIDGE).relationships_of(2, 2)
    assert near.relationships.tolist() == [2, 1]
    assert near.weights.dtype == np.float32


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
