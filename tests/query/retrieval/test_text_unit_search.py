from pathlib import Path

import polars as pl
import pytest

import graphrag_query
from graphrag_index.text.normalize import stem
from graphrag_query.index import Index
from graphrag_query.retrieval.text_unit_search import (
    named_entities,
    start_search,
    titled_text_units,
    words_held,
)
from tests.fixtures.fake_llm import question_to


@pytest.fixture(scope="module")
def index(sample_project: Path) -> Index:
    return graphrag_query.open(sample_project / "output")


def test_words_are_held_with_other_endings_and_not_inside_of_words() -> None:
    texts = pl.Series(["Two countries.", "In this country", "Upcountry", "A ship", "Worship"])
    assert words_held(texts, [stem("country"), stem("ship")]).tolist() == [
        *([True, False], [True, False], [False, False], [False, True], [False, False]),
    ]


def test_the_entities_of_whole_names_are_named(index: Index) -> None:
    question = question_to(index, "Did Tom Crean meet Roald Amundsen at the South Pole?")
    titles = index.store.entities(named_entities(question))["title"]
    assert {"Tom Crean", "Roald Amundsen", "South Pole"} <= set(titles)


def test_the_text_units_of_a_title_in_the_question_are_found(index: Index) -> None:
    title = index.store.documents([0])["title"][0]
    found = titled_text_units(question_to(index, f"What is told in {title} of ships?"))
    documents = index.store.map("text_unit_rows").rows(list(found), "document")["document"]
    assert set(documents) == {0}
    assert all(0 <= worth <= 1 for worth in found.values())


@pytest.mark.parametrize("question", ["", "?!", "the of it", "吉田", "Tom " * 40])
def test_any_question_gets_text_units_once_each(index: Index, question: str) -> None:
    asked = question_to(index, question or " ")
    numbers = [unit.number for unit in start_search(asked)()]
    assert numbers
    assert len(numbers) == len(set(numbers))
