import networkx as nx
from hypothesis import given

from graphrag_index.communities.cores import find_core_numbers
from graphrag_index.communities.leiden import build_hierarchy
from graphrag_index.communities.simple_graph import build_sparse_rows
from graphrag_index.schema.settings.step_sections import CreateCommunities
from tests.fixtures.examples import examples
from tests.fixtures.small_graphs import graph_of, graphs, parts, ring_of_rings

CORE = CreateCommunities(engine="core")


@given(graph=graphs())
@examples(40)
def test_core_numbers_are_those_of_networkx(graph):
    expected = nx.Graph(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    expected.add_nodes_from(range(graph.n_nodes))
    numbers = nx.core_number(expected)
    assert find_core_numbers(build_sparse_rows(graph)).tolist() == [
        numbers[node] for node in range(graph.n_nodes)
    ]


def test_cliques_are_communities_and_the_leaf_of_one_stays_with_it():
    cliques = [[*range(0, 9)], [*range(9, 18)]]
    edges = [(a, b) for clique in cliques for a in clique for b in clique if a < b]
    levels = build_hierarchy(graph_of(19, *edges, (8, 9, 0.1), (0, 18)), CORE)
    assert parts(levels[0]) == {frozenset(range(19))}
    assert parts(levels[1]) == {frozenset([*range(9), 18]), frozenset(range(9, 18))}


def test_seed_and_resolution_change_nothing():
    graph = ring_of_rings()
    other = CORE.model_copy(update={"seed": 7, "resolution": 9.0, "quality": "cpm"})
    assert [labels.tolist() for labels in build_hierarchy(graph, CORE)] == [
        labels.tolist() for labels in build_hierarchy(graph, other)
    ]
