from pathlib import Path

import numpy as np
import polars as pl
import pytest

import graphrag_query
from graphrag_index.errors import SettingsError
from graphrag_query.retrieval.filters import FilterMasks, Filters
from graphrag_query.retrieval.index_store import IndexStore


@pytest.fixture(scope="module")
def store(sample_project: Path) -> IndexStore:
    return graphrag_query.open(sample_project / "output").store


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
    assert masks.where == f"document_id IN ('{document['id'][0]}')"


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
    assert masks.where is None


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (Filters({"path": ["nowhere/*"]}), "No document fits"),
        (Filters({"colour": ["red"]}), "No document has 'colour'; they have: path, title"),
        (Filters(since="3000"), "No document fits"),
    ],
)
def test_a_filter_that_nothing_fits_is_told(store: IndexStore, filters: Filters, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        FilterMasks(store, filters)


@pytest.mark.parametrize("date", ["yesterday", "14", "1914-13", "1914-08-45", "8/1914"])
def test_what_is_no_date_is_told(date: str) -> None:
    with pytest.raises(SettingsError, match="is no date: write a year"):
        Filters(until=date)
    with pytest.raises(SettingsError, match="is no date: write a year"):
        Filters(since=date)


def test_an_unknown_type_is_told(store: IndexStore) -> None:
    with pytest.raises(SettingsError, match="No entity is of type dragon; there are: "):
        assert FilterMasks(store, Filters(entity_types=["dragon"])).entities.any()


@pytest.mark.parametrize(
    ("start", "end", "since", "until", "holds"),
    [
        ("1914-08-01", "1917-01-10", "1915", "1916", True),
        ("1914-08-01", "1917-01-10", "1917-01-11", "", False),
        ("1914-08-01", "1917-01-10", "", "1914", True),
        ("1914-08-01", None, "", "1913", False),
        (None, None, "1915", "1916", True),
    ],
)
def test_claims_are_held_to_a_span_of_time(
    store: IndexStore, start: str | None, end: str | None, since: str, until: str, holds: bool
) -> None:
    masks = FilterMasks(store, Filters())
    masks.filters = Filters(since=since, until=until)
    assert masks.keeps_claim(0, start, end) is holds
    assert not masks.keeps_claim(10**6, start, end)
