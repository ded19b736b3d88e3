from pathlib import Path

import numpy as np
import pytest

import graphrag_query
from graphrag_query.index import Index
from graphrag_query.retrieval.filtered_index import FilteredIndex
from graphrag_query.searches.registry import METHODS

CREAN = "people/tom-crean.txt"


@pytest.fixture(scope="module")
def index(sample_project: Path) -> Index:
    return graphrag_query.open(sample_project / "output")


@pytest.fixture(scope="module")
def crean(index: Index) -> Index:
    return index.where({"path": CREAN})


@pytest.mark.parametrize("method", ["local", "basic"])
def test_an_answer_rests_on_documents_inside(crean: Index, method: str) -> None:
    answer = crean.search(method, "Who crossed South Georgia?")
    assert answer.outcome == "answered"
    assert {citation.path for citation in answer.citations} == {CREAN}
    assert answer.parameters["filters"] == {"path": [CREAN]}
    assert answer.context is not None
    assert set(answer.context.tables["Sources"]["id"]) <= set(
        np.flatnonzero(crean.store.masks.text_units).tolist()  # type: ignore[attr-defined]
    )


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("global", "structured")])
@pytest.mark.parametrize(
    "question",
    [
        "What connects Tom Crean and Ernest Shackleton?",
        "What does Ernest Shackleton tell of Crean?",
    ],
)
def test_a_document_outside_whose_title_is_named_stays_outside(
    crean: Index, method: str, question: str
) -> None:
    answer = crean.search(method, question)
    assert {citation.path for citation in answer.citations} <= {CREAN}
    if answer.context is not None and "Sources" in answer.context.tables:
        numbers = answer.context.tables["Sources"]["id"].to_numpy()
        assert crean.store.holds_text_units(numbers).all()


def test_what_stands_outside_is_no_evidence(index: Index, crean: Index) -> None:
    question = "How did the Gauss get free of the ice?"
    assert index.local(question).outcome == "answered"
    assert crean.local(question).outcome == "no_evidence"


def test_reports_are_chosen_by_filters(index: Index) -> None:
    people = index.where(entity_types=["person"])
    answer = people.global_("What did the men do?")
    assert isinstance(people.store, FilteredIndex)
    whole = index.global_("What did the men do?")
    inside = people.store.masks.communities
    assert answer.looked_at["community_reports"] <= len(inside)
    assert answer.looked_at["community_reports"] < whole.looked_at["community_reports"]


@pytest.mark.parametrize("question", ["What are the main themes?", "What did Crean do?"])
def test_reports_are_quoted_where_they_rest_on_documents_inside(
    crean: Index, question: str
) -> None:
    answer = crean.global_(question)
    assert answer.outcome == "answered"
    assert {citation.path for citation in answer.citations} == {CREAN}


def test_entities_near_a_question_are_of_the_types_asked_for(index: Index) -> None:
    answer = index.where(entity_types=["geo"]).local("Where did Tom Crean live?")
    assert answer.context is not None
    assert set(answer.context.tables["Entities"]["type"]) == {"geo"}


def test_links_end_at_the_scope(index: Index, crean: Index) -> None:
    masks = crean.store.masks  # type: ignore[attr-defined]
    for text_unit in np.flatnonzero(masks.text_units).tolist():
        entities, is_subject = crean.store.links.entities_of(text_unit)
        assert len(entities) == len(is_subject)
        assert masks.entities[entities].all()
    for entity in np.flatnonzero(masks.entities).tolist():
        assert masks.text_units[crean.store.links.text_units_of(entity)[0]].all()
        found = crean.store.links.relationships_of(entity)
        assert masks.entities[found.entities].all()
        rows = crean.store.map("relationship_rows")
        for relationship in found.relationships.tolist():
            assert masks.text_units[rows.numbers("text_units", relationship)].any()
        assert set(crean.store.links.communities_of(entity)[1].tolist()) <= masks.communities


def test_all_relationships_inside_are_found_the_heaviest_first(index: Index, crean: Index) -> None:
    masks = crean.store.masks  # type: ignore[attr-defined]
    rows = crean.store.map("relationship_rows")
    n_inside = 0
    for entity in np.flatnonzero(masks.entities).tolist():
        whole = index.store.links.relationships_of(entity)
        expected = [
            relationship
            for neighbour, relationship in zip(
                whole.entities.tolist(), whole.relationships.tolist(), strict=True
            )
            if masks.entities[neighbour]
            and masks.text_units[rows.numbers("text_units", relationship)].any()
        ]
        found = crean.store.links.relationships_of(entity)
        assert found.relationships.tolist() == expected
        two = crean.store.links.relationships_of(entity, 2)
        assert two.relationships.tolist() == expected[:2]
        n_inside += len(expected) < len(whole.relationships)
    assert n_inside > 0


def test_searches_of_vectors_find_enough_inside(index: Index) -> None:
    people = index.where(entity_types=["person"]).store
    vector = index.store.embed(["ice"])[0]
    found = people.vectors("entity_description").nearest(vector, 20, ["id", "type"])
    assert found.columns == ["id", "type", "similarity"]
    assert found["type"].to_list() == ["person"] * 20
    whole = index.store.vectors("entity_description").nearest(vector, 1_000, ["id", "type"])
    expected = [id for id, kind, _ in whole.iter_rows() if kind == "person"][:20]
    assert found["id"].to_list() == expected


def test_a_view_is_one_index_for_all_that_it_shares(index: Index, crean: Index) -> None:
    assert crean.store.embedder is index.store.embedder
    assert crean.store.version is index.store.version
