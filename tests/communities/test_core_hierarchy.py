import json
import os
import subprocess
import sys
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.communities.cores import find_core_numbers
from graphrag_index.communities.leiden import build_hierarchy
from graphrag_index.communities.simple_graph import build_graph, build_sparse_rows, find_components
from graphrag_index.schema.settings.step_sections import CreateCommunities
from tests.fixtures.examples import examples
from tests.fixtures.small_graphs import graph_of, graphs, parts, ring_of_rings

ENGINES = ["rkh", "m2hc", "mrc"]
CORE = CreateCommunities(engine="core")


def hierarchy(graph, engine="rkh", **values):
    settings = CreateCommunities.model_validate({"engine": engine, **values})
    return [parts(labels) for labels in build_hierarchy(graph, settings)]


# A clique of 5 (a 4-core); a ring of 4 beside it (a 2-core), joined by one link; at node 0 a chain
# of three and a chain of two; at node 1 two leaves; at node 2 three leaves; at node 3 one leaf.
CLIQUE, RING = frozenset(range(5)), frozenset({5, 6, 7, 8})
CHAIN, PAIR, TWO_LEAVES, THREE_LEAVES = {9, 10, 11}, {12, 13}, {14, 15}, {16, 17, 18}
PLANTED = graph_of(
    20,
    *combinations(range(5), 2),
    *((5, 6), (6, 7), (7, 8), (5, 8), (4, 5)),
    *((0, 9), (9, 10), (10, 11), (0, 12), (12, 13)),
    *((1, 14), (1, 15), (2, 16), (2, 17), (2, 18), (3, 19)),
)


@pytest.mark.parametrize(
    ("engine", "outside"),
    [
        ("rkh", [CHAIN, PAIR, TWO_LEAVES, THREE_LEAVES]),
        ("m2hc", [CHAIN, PAIR, THREE_LEAVES]),
        ("mrc", [CHAIN, THREE_LEAVES]),
    ],
)
def test_heuristics_differ_in_the_residual_that_is_too_small(engine, outside):
    levels = hierarchy(PLANTED, engine, max_cluster_size=8)
    assert levels[0] == {frozenset(range(20))}
    core = frozenset(range(20)).difference(*outside)
    # What is too small joins the part to which it is linked.
    assert levels[1] == {core, *map(frozenset, outside)}
    # The 4-core with what joined it, and the ring as the residual of the 2-core.
    assert {part for part in levels[2] if part & (CLIQUE | RING)} >= {RING}


def test_the_clique_and_the_ring_are_told_apart_by_their_core_numbers():
    cores = graph_of(9, *combinations(range(5), 2), (5, 6), (6, 7), (7, 8), (5, 8), (4, 5), (3, 5))
    assert hierarchy(cores, max_cluster_size=5) == [{frozenset(range(9))}, {CLIQUE, RING}]


def test_a_dense_core_that_is_too_large_is_cut_into_pieces():
    clique = graph_of(12, *combinations(range(12), 2))
    assert hierarchy(clique, max_cluster_size=5)[1] == {
        frozenset(range(5)),
        frozenset(range(5, 10)),
        frozenset({10, 11}),
    }


def test_leaves_of_one_hub_are_divided_evenly():
    star = graph_of(8, *((0, leaf) for leaf in range(1, 8)), (1, 2))
    # The triangle is the 2-core; five leaves of the hub remain, at most three in a part.
    levels = hierarchy(star, "m2hc", max_cluster_size=3)
    assert levels[1] == {frozenset({0, 1, 2}), frozenset({3, 4, 5, 6, 7})}
    levels = hierarchy(star, "rkh", max_cluster_size=3)
    assert levels[1] == {frozenset({0, 1, 2}), frozenset({3, 4, 5}), frozenset({6, 7})}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_nodes", [0, 1, 3])
def test_a_graph_without_links_has_one_level(engine, n_nodes):
    graph = graph_of(n_nodes)
    assert hierarchy(graph, engine) == [{frozenset({node}) for node in range(n_nodes)}]


@pytest.mark.parametrize("engine", ENGINES)
def test_each_component_is_a_part_of_level_0(engine):
    triangles = graph_of(7, (0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5))
    expected = [{frozenset({0, 1, 2}), frozenset({3, 4, 5}), frozenset({6})}]
    assert hierarchy(triangles, engine) == expected


@pytest.mark.parametrize("engine", ENGINES)
@given(graph=graphs(), size=st.integers(2, 8), n_levels=st.integers(1, 6))
@examples(60)
def test_levels_are_nested_partitions(engine, graph, size, n_levels):
    levels = hierarchy(graph, engine, max_cluster_size=size, max_levels=n_levels)
    assert len(levels) <= n_levels
    assert levels[0] == parts(find_components(graph))
    for upper, lower in pairwise(levels):
        assert sum(map(len, lower)) == len(frozenset().union(*lower))
        for part in lower:
            [parent] = [one for one in upper if one & part]
            assert len(parent) > size
            assert part < parent
        covered = frozenset().union(*lower)
        assert all(one <= covered or not one & covered for one in upper)


@pytest.mark.parametrize("engine", ENGINES)
@given(graph=graphs(), seed=st.integers(0, 2**32))
@examples(40)
def test_the_order_and_the_direction_of_links_change_nothing(engine, graph, seed):
    order = np.random.default_rng(seed).permutation(len(graph.weights))
    turned = build_graph(
        graph.n_nodes, graph.targets[order], graph.sources[order], graph.weights[order]
    )
    assert hierarchy(turned, engine, max_cluster_size=4) == hierarchy(
        graph, engine, max_cluster_size=4
    )


PROGRAM = """
import json, sys
import numpy as np
from graphrag_index.communities.leiden import build_hierarchy
from graphrag_index.communities.simple_graph import build_graph
from graphrag_index.schema.settings.step_sections import CreateCommunities
# Sets of strings, in the order of their hashes.
names = [f"entity {i}" for i in range(120)]
links = {(a, b) for i, a in enumerate(names) for b in (names[i // 2], names[i * 7 % 120]) if a != b}
sources, targets = (np.array([names.index(one) for one in ends]) for ends in zip(*links))
graph = build_graph(120, sources, targets, np.ones(len(links)))
for engine in ("core", "rkh", "m2hc", "mrc"):
    found = build_hierarchy(graph, CreateCommunities(engine=engine))
    print(json.dumps([labels.tolist() for labels in found]))
"""


def test_the_hash_seed_of_python_changes_nothing():
    outputs = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True
        )
        outputs.append(run.stdout)
    assert outputs[0] == outputs[1]
    levels = [json.loads(line) for line in outputs[0].splitlines()]
    assert [len(found) > 1 for found in levels] == [True] * 4


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
