from typing import Any

import numpy as np
import polars as pl
import pytest

from graphrag_index.errors import SettingsError
from graphrag_query.index import Index
from graphrag_query.searches.router import METHODS
from graphrag_query.store.filtered_index import FilteredIndex, FilterMasks, Filters
from graphrag_query.store.index_store import IndexStore
from tests.fixtures.cases import cases


def paths(masks: FilterMasks) -> set[str]:
    found = masks.index.documents(np.flatnonzero(masks.documents).tolist())
    return set(found["path"])


def test_documents_are_chosen_by_patterns(store: IndexStore) -> None:
    people = FilterMasks(store, Filters({"path": ["people/*"]}))
    assert paths(people)
    assert all(path.startswith("people/") for path in paths(people))
    both = FilterMasks(store, Filters({"path": ["PEOPLE/tom-crean*", "people/r*amundsen*"]}))
    assert len(paths(both)) == 2


def test_text_units_and_entities_follow_from_documents(store: IndexStore) -> None:
    masks = FilterMasks(store, Filters({"path": ["people/tom-crean.txt"]}))
    document = store.scan("documents").filter(pl.col("path") == "people/tom-crean.txt").collect()
    units = store.scan("text_units").filter(pl.col("document_id") == document["id"][0])
    numbers = units.select("human_readable_id").collect()["human_readable_id"]
    assert np.flatnonzero(masks.text_units).tolist() == numbers.to_list()
    mentions = store.scan("mentions").filter(pl.col("text_unit").is_in(numbers.to_list()))
    named = mentions.select(pl.col("entity").unique().sort()).collect()["entity"]
    assert np.flatnonzero(masks.entities).tolist() == named.to_list()
    assert masks.document_condition == f"document_id IN ('{document['id'][0]}')"


def test_a_community_is_in_it_if_half_of_its_entities_are(store: IndexStore) -> None:
    masks = FilterMasks(store, Filters(entity_types=["person"]))
    communities = store.scan("communities").select("community", "entity_ids").collect()
    people = store.scan("entities").filter(pl.col("type") == "person").select("id").collect()
    expected = {
        community
        for community, ids in communities.iter_rows()
        if 2 * len(set(ids) & set(people["id"])) >= len(ids)
    }
    assert masks.communities == expected
    assert masks.document_condition is None


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (Filters({"path": ["a/*", "b"]}), r"No document matches the filter: path=a/\* or path=b\."),
        (Filters({"colour": ["red"]}), "the key 'colour'. The keys are: path, title"),
        (Filters(since="3000"), "No document matches the filter: since 3000"),
    ],
)
def test_a_filter_that_nothing_fits_is_told(store: IndexStore, filters: Filters, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        FilterMasks(store, filters)


@pytest.mark.parametrize("date", ["yesterday", "14", "1914-13", "1914-08-45", "8/1914"])
def test_what_is_no_date_is_told(date: str) -> None:
    with pytest.raises(SettingsError, match="is not a date: write a year"):
        Filters(until=date)
    with pytest.raises(SettingsError, match="is not a date: write a year"):
        Filters(since=date)


def test_an_unknown_type_is_told(store: IndexStore) -> None:
    with pytest.raises(SettingsError, match=r"No entity has the type dragon\. The types"):
        assert FilterMasks(store, Filters(entity_types=["dragon"])).entities.any()


@cases("start, end, since, until, holds")
def test_claims_are_held_to_a_span_of_time(
    store: IndexStore, start: str | None, end: str | None, since: str, until: str, holds: bool
) -> None:
    masks = FilterMasks(store, Filters())
    masks.filters = Filters(since=since, until=until)
    assert masks.keeps_claim(0, start, end) is holds
    assert FilterMasks(store, Filters(), masks).keeps_claim(0, start, end) is holds
    assert not masks.keeps_claim(10**6, start, end)


CREAN = "people/tom-crean.txt"


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
        numbers = answer.context.tables["Sources"]["id"]
        assert all(crean.store.text_units_behind("Sources", number) for number in numbers)


def test_what_stands_outside_is_no_evidence(index: Index, crean: Index) -> None:
    question = "How did the Gauss get free of the ice?"
    assert index.local(question).outcome == "answered"
    assert crean.local(question).outcome == "no_evidence"


def test_reports_are_chosen_by_filters(index: Index) -> None:
    people = index.where(entity_types=["person"])
    answer = people.global_("What did the men do?", level=1)
    assert isinstance(people.store, FilteredIndex)
    whole = index.global_("What did the men do?", level=1)
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


def test_a_filtered_index_keeps_its_filters_if_it_is_restricted_further(index: Index) -> None:
    filters: list[dict[str, Any]] = [{"documents": {"path": CREAN}}, {"entity_types": ["person"]}]
    alone = [index.where(**values).store for values in filters]
    for first, second in (filters, filters[::-1]):
        both = index.where(**first).where(**second).store
        for name in ("documents", "text_units", "entities"):
            one, other, found = (getattr(vars(s)["masks"], name) for s in (*alone, both))
            assert (found == one & other).all()
    assert both.filters == {"path": [CREAN], "within": {"entity_types": ["person"]}}
    with pytest.raises(SettingsError, match="No document matches"):
        index.where({"path": CREAN}).where({"path": "people/roald-amundsen.txt"})


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
        rows = crean.store.open_mapped("relationship_rows")
        for relationship in found.relationships.tolist():
            assert masks.text_units[rows.numbers("text_units", relationship)].any()
        assert set(crean.store.links.communities_of(entity)[1].tolist()) <= masks.communities


def test_all_relationships_inside_are_found_the_heaviest_first(index: Index, crean: Index) -> None:
    masks = crean.store.masks  # type: ignore[attr-defined]
    rows = crean.store.open_mapped("relationship_rows")
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
    vector = index.store.embedder.embed(["ice"])[0]
    found = people.vectors("entity_description").nearest(vector, 20, ["id", "type"])
    assert found.columns == ["id", "type", "similarity"]
    assert found["type"].to_list() == ["person"] * 20
    whole = index.store.vectors("entity_description").nearest(vector, 1_000, ["id", "type"])
    expected = [id for id, kind, _ in whole.iter_rows() if kind == "person"][:20]
    assert found["id"].to_list() == expected


def test_a_view_is_one_index_for_all_that_it_shares(index: Index, crean: Index) -> None:
    assert crean.store.embedder is index.store.embedder
    assert crean.store.version is index.store.version
