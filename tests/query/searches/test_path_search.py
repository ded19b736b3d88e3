from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphrag_query
from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.request import Request
from graphrag_index.schema.settings.searches import PathSearch
from graphrag_index.schema.tables import TABLES
from graphrag_index.steps.generate_text_embeddings import create_search_tables
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index
from graphrag_query.searches.path_search import (
    MAX_RELATIONSHIPS_OF_ENTITY,
    VisitedGraph,
    find_paths,
    path_search,
)
from graphrag_query.searches.path_search import (
    Path as GraphPath,
)
from tests.fixtures.examples import examples
from tests.fixtures.fake_links import Edge, FakeLinks
from tests.fixtures.fake_llm import FakeLLM, question_to
from tests.fixtures.sample_questions import QUESTIONS, check_citations
from tests.fixtures.small_index import table, write_index


def check_path(answer: Answer, *ends: str) -> None:
    """The ends stand in the graph of the answer and are connected in it."""
    assert answer.graph is not None
    graph = answer.graph.to_networkx()
    assert nx.is_connected(graph)
    assert set(ends) <= {node["title"] for _, node in graph.nodes(data=True)}


@pytest.mark.parametrize(
    "question",
    [
        "How is Tom Crean connected to Fridtjof Nansen?",
        "how are crean and nansen connected?",
        "Jak Crean jest powiązany z Nansenem?",
    ],
)
def test_a_question_that_names_two_gives_their_paths(
    index: Index, sample_project: Path, question: str
) -> None:
    answer = index.path(question)
    assert answer.outcome is Outcome.ANSWERED
    assert "Tom Crean and Fridtjof Nansen are connected by 3 paths" in answer.text
    assert answer.looked_at["paths"] == 3
    check_path(answer, "Tom Crean", "Fridtjof Nansen")
    check_citations(answer, sample_project / "output")


def test_names_may_be_given_and_are_found_by_any_of_an_entitys(index: Index) -> None:
    by_alias = index.path("Crean", "Nansen")
    by_title = index.path("Tom Crean", "Fridtjof Nansen")
    assert by_alias.question == "How are Crean and Nansen connected?"
    assert by_alias.text == by_title.text


def test_each_hop_has_the_passage_that_names_both(index: Index) -> None:
    answer = index.path("Louis Bernacchi", "Gauss", max_paths=1)
    # 1. A – B – C, and a line for each hop.
    _, way, *hops = [line for line in answer.text.splitlines() if line]
    titles = way.removeprefix("1. ").rsplit(" (", 1)[0].split(" – ")
    assert len(hops) == len(titles) - 1
    for (one, other), hop in zip(pairwise(titles), hops, strict=True):
        assert hop.strip().startswith(f"- {one} – {other}: “")
    for citation in answer.citations:
        assert citation.cited_as.startswith("Relationships (")
        named = [title for title in titles if title.split()[-1] in citation.quote]
        assert len(named) >= 2


def test_more_than_two_are_connected_by_a_tree(index: Index) -> None:
    names = ("Tom Crean", "Gauss", "Fram", "Bay of Whales")
    answer = index.path(*names)
    assert answer.outcome is Outcome.ANSWERED
    assert "Tom Crean, Gauss, Fram and Bay of Whales are connected by a tree of 3 paths" in (
        answer.text
    )
    check_path(answer, *names)


def test_many_are_connected_each_with_the_next(index: Index) -> None:
    names = ["Tom Crean", "Gauss", "Fram", "Bay of Whales", "Oates", "Discovery", "Frank Wild"]
    answer = index.path(*names)
    assert answer.looked_at["paths"] == 6
    check_path(answer, "Tom Crean", "Gauss", "Frank Wild")


def test_an_unknown_name_is_said_with_similar_ones(index: Index) -> None:
    answer = index.path("Crean", "Amundberg")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text.startswith("The index knows no entity named Amundberg; similar names: ")
    assert "Roald Amundsen" in answer.text
    assert not answer.citations


def test_an_unknown_name_in_a_question_is_said(index: Index) -> None:
    answer = index.path("How is Napoleon Bonaparte connected to Scott?")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert "no entity named Napoleon Bonaparte" in answer.text


def test_an_unknown_name_beside_two_known_is_a_note(index: Index) -> None:
    answer = index.path("How are Marie Curie, Tom Crean and Fridtjof Nansen connected?")
    assert answer.outcome is Outcome.ANSWERED
    assert any("Marie Curie" in note for note in answer.notes)


def test_another_spelling_is_told(index: Index) -> None:
    answer = index.path("Shakleton", "Nansen")
    assert answer.outcome is Outcome.ANSWERED
    assert answer.notes == ("“shakleton” is taken for Ernest Shackleton.",)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How is Tom Crean connected?", "names one that the index knows: Tom Crean"),
        ("How are we all connected with each other here?", "names none that the index knows"),
        ("有什么关系？", "knows no entity named 有什么关系."),
        ("What are the themes?", "knows no entity named What are the themes; similar"),
    ],
)
def test_fewer_than_two_names_have_no_path(index: Index, question: str, said: str) -> None:
    answer = index.path(question)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert said in answer.text


def test_no_path_within_the_hops_tells_what_was_visited(index: Index) -> None:
    answer = index.path("Tom Crean", "Fridtjof Nansen", max_hops=1)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text.startswith("No path of at most 1 hops connects Tom Crean and Fridtjof")
    assert answer.looked_at["entities"] > 2
    assert answer.looked_at["paths"] == 0


def test_a_search_that_was_cut_short_says_so(index: Index) -> None:
    answer = index.path("Mount Crean", "Carl Friedrich Gauss", max_visited=10)
    assert answer.looked_at["entities"] <= 10
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert "(max_visited)" in answer.text


def test_unknown_parameters_are_refused(index: Index) -> None:
    with pytest.raises(SettingsError, match="did you mean 'max_hops'"):
        index.path("Crean", "Nansen", max_hop=2)


def explain(index: Index, answer: Any, **values: Any) -> tuple[Answer, FakeLLM]:
    llm = FakeLLM(answer)
    question = question_to(index, "How are Crean and Nansen connected?", llm)
    return path_search(question, PathSearch(**values)), llm


def test_a_model_explains_the_hops_in_their_order(index: Index) -> None:
    def explained(request: Request) -> str:
        rows = request.messages[1]["content"].splitlines()
        first, second = (
            next(row.split(",")[0] for row in rows if f",path 1 hop {hop}," in row)
            for hop in (1, 2)
        )
        return f"Through Scott [Data: Relationships ({first}, {second}); Sources (99999)]."

    answer, llm = explain(index, explained)
    assert answer.outcome is Outcome.ANSWERED
    assert answer.text == "Through Scott [1][2]."
    assert [c.cited_as.split()[0] for c in answer.citations] == ["Relationships"] * 2
    assert answer.notes == ("1 citation was removed, because the context has no such row.",)
    assert len(llm.asked) == 1
    check_path(answer, "Tom Crean", "Fridtjof Nansen")


def test_a_model_may_find_no_meaning_in_the_paths(index: Index) -> None:
    answer, _ = explain(index, lambda _: "NO_RECORD They are only named together.")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.citations == ()


def test_a_model_that_fails_is_an_error(index: Index) -> None:
    with pytest.raises(ModelError):
        explain(index, lambda _: None)


def test_without_a_path_no_model_is_asked(index: Index) -> None:
    answer, llm = explain(index, lambda _: "?", max_hops=1)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert llm.asked == []


def test_filters_hold_for_paths_their_passages_and_similar_names(index: Index) -> None:
    people = index.where({"path": "people/*"})
    answer = people.path("Crean", "Nansen")
    assert answer.outcome is Outcome.ANSWERED
    assert all(citation.path.startswith("people/") for citation in answer.citations)
    lines = [line for line in answer.text.splitlines() if line.startswith("   - ")]
    # No description from elsewhere stands before the quotation.
    assert lines
    assert all(line.split(": ", 1)[1][0] in "“[" for line in lines)
    around = people.neighbourhood("Gauss")
    assert around.outcome is Outcome.NO_EVIDENCE
    assert "similar names: Gauss," not in around.text


# An index of a few rows, without text units.


def small_index(folder: Path, *titles: str) -> Index:
    """Entities, each related to the next."""
    entities = [
        {"id": str(n), "human_readable_id": n, "title": title, "degree": 2}
        for n, title in enumerate(titles)
    ]
    relationships = [
        {
            **{"id": str(n), "human_readable_id": n, "source": one, "target": other},
            **{"source_id": str(n), "target_id": str(n + 1), "weight": 1.0},
            **{"type": "knows", "description": "" if n else "They met."},
        }
        for n, (one, other) in enumerate(pairwise(titles))
    ]
    lazy = {
        "entities": table("entities", *entities).lazy(),
        "relationships": table("relationships", *relationships).lazy(),
    }
    for name in ("documents", "text_units", "mentions", "communities"):
        lazy[name] = TABLES[name].empty().lazy()
    written: dict[str, list[pl.DataFrame]] = {}
    for frames in create_search_tables(**lazy):
        for name, frame in frames.items():
            written.setdefault(name, []).append(frame)
    tables = {
        definition.name: pl.concat(written.get(definition.name, [definition.empty()]))
        for definition in create_search_tables.writes
    }
    return graphrag_query.open(write_index(folder, **tables))


def test_an_empty_index_knows_nobody(tmp_path: Path) -> None:
    answer = small_index(tmp_path).path("Crean", "Nansen")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text.count("The index knows no entity named") == 2


def test_hops_of_any_script_without_a_passage_are_told_as_such(tmp_path: Path) -> None:
    index = small_index(tmp_path, "罗伯特·斯科特", "Амундсен", "Łódź")
    answer = index.path("罗伯特·斯科特和Lodz有什么关系")
    assert "罗伯特·斯科特 – Амундсен – Łódź (2 hops)" in answer.text
    assert "- 罗伯特·斯科特 –(knows)→ Амундсен: They met." in answer.text
    assert "- Амундсен –(knows)→ Łódź: no passage supports this relationship." in answer.text
    assert index.path("Łódź", "Амундсен").text.count("Łódź ←(knows)– Амундсен") == 1


def test_the_same_entity_by_two_names_is_one(tmp_path: Path) -> None:
    answer = small_index(tmp_path, "Ada Berg", "Bo").path("Ada Berg", "ada berg")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text.endswith("names one that the index knows: Ada Berg.")


@examples(8)
@given(st.integers(200, 3_000), st.integers(1, 8))
def test_the_budget_holds(sample_project: Path, max_tokens: int, max_paths: int) -> None:
    index = graphrag_query.open(sample_project / "output")
    answer = index.path("Crean", "Gauss", max_context_tokens=max_tokens, max_paths=max_paths)
    assert answer.context is not None
    assert answer.context.n_tokens <= max_tokens
    assert answer.looked_at["paths"] <= max_paths


@examples(8)
@given(QUESTIONS)
def test_any_question_is_answered_alike_and_every_citation_resolves(
    sample_project: Path, text: str
) -> None:
    index = graphrag_query.open(sample_project / "output")
    answer, again = index.path(f"Crean – {text}"), index.path(f"Crean – {text}")
    assert (answer.text, answer.citations) == (again.text, again.citations)
    check_citations(answer, sample_project / "output")
    assert bool(answer.citations) == (answer.outcome is Outcome.ANSWERED)


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
