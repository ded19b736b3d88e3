from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given

import graphrag_query
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.searches.neighbourhood import gather_relationships
from tests.fixtures.examples import examples
from tests.fixtures.fake_links import FakeLinks, subgraph
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
