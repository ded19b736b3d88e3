"""Path search: how the entities that a question names are connected."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphrag_query
from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.request import Request
from graphrag_index.schema.settings.searches import PathSearch
from graphrag_index.schema.tables import TABLES
from graphrag_index.steps.generate_text_embeddings import create_search_tables
from graphrag_index.storage.memo import join_batches
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index
from graphrag_query.searches.path_search import path_search
from tests.fixtures.cases import cases
from tests.fixtures.examples import examples
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


def test_a_hop_with_a_passage_that_is_quoted_above_says_so(index: Index) -> None:
    text = index.path("Crean", "Worsley").text
    assert "Stromness – Frank Worsley: the same passage, [2]" in text
    assert ": [" not in text


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


@cases("question, said")
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
    assert answer.notes[-1] == "1 citation was removed, because the context has no such row."
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


@pytest.mark.parametrize(
    ("question", "note"),
    [
        (
            "How is Tom Crean connected to Shackleton?",
            "“shackleton” is taken for Ernest Shackleton, not for Shackleton Ice Shelf or "
            "Emily Shackleton.",
        ),
        (
            "How is Crean connected to Fridtjof Nansen?",
            "“crean” is taken for Tom Crean, not for Mount Crean or Crean Glacier.",
        ),
    ],
)
def test_an_answer_says_which_entity_a_part_of_a_name_is_taken_for(
    index: Index, question: str, note: str
) -> None:
    assert index.path(question).notes == (note,)


def test_a_whole_name_needs_no_note(index: Index) -> None:
    assert index.path("How is Tom Crean connected to Fridtjof Nansen?").notes == ()


def test_filters_hold_for_paths_their_passages_and_similar_names(index: Index) -> None:
    people = index.where({"path": "people/*"})
    answer = people.path("Crean", "Nansen")
    assert answer.outcome is Outcome.ANSWERED
    assert all(citation.path.startswith("people/") for citation in answer.citations)
    lines = [line for line in answer.text.splitlines() if line.startswith("   - ")]
    # No description from elsewhere stands before the quotation.
    assert lines
    assert all(line.split(": ", 1)[1].startswith(("“", "the same passage, [")) for line in lines)
    around = people.neighbourhood("Gauss")
    assert around.outcome is Outcome.NO_EVIDENCE
    assert "similar names: Gauss," not in around.text


def small_index(folder: Path, *titles: str) -> Index:
    """Entities, each related to the next, without text units."""
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
    made = join_batches(create_search_tables(**lazy))
    tables = {one.name: made.get(one.name, one.empty()) for one in create_search_tables.writes}
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
