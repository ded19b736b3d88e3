from pathlib import Path

import polars as pl
import pytest

import graphrag_query
from graphrag_query.index import Index
from graphrag_query.retrieval.text_unit_search import (
    find_named,
    find_text_units,
    find_titled,
    words_held,
)


@pytest.fixture(scope="module")
def index(sample_project: Path) -> Index:
    return graphrag_query.open(sample_project / "output")


def test_words_are_held_with_other_endings_and_not_inside_of_words() -> None:
    texts = pl.Series(["Two countries.", "In this country", "Upcountry", "A ship", "Worship"])
    assert words_held(texts, ["country", "ship"]).tolist() == [
        *([True, False], [True, False], [False, False], [False, True], [False, False]),
    ]


def test_the_entities_of_whole_names_are_named(index: Index) -> None:
    titles = index.model.map("entity_rows").rows(
        find_named(index.model, "Did Tom Crean meet Roald Amundsen at the South Pole?"), "title"
    )["title"]
    assert {"Tom Crean", "Roald Amundsen", "South Pole"} <= set(titles)


def test_the_text_units_of_a_title_in_the_question_are_found(index: Index) -> None:
    title = index.model.documents([0])["title"][0]
    found = find_titled(index.model, f"What is told in {title} of ships?")
    documents = index.model.map("text_unit_rows").rows(list(found), "document")["document"]
    assert set(documents) == {0}
    assert all(0 <= worth <= 1 for worth in found.values())


@pytest.mark.parametrize("question", ["", "?!", "the of it", "吉田", "Tom " * 40])
def test_any_question_gets_text_units_once_each(index: Index, question: str) -> None:
    vector = index.model.embed([question or " "])[0]
    numbers = [unit.number for unit in find_text_units(index.model, question, vector)]
    assert numbers
    assert len(numbers) == len(set(numbers))
