from pathlib import Path

import polars as pl
import pytest

import graphrag_query
from graphrag_index.schema.settings.project_settings import init_project
from graphrag_query.index import Index
from graphrag_query.question.question import Question
from graphrag_query.retrieval.index_store import IndexStore
from graphrag_query.searches.main_entities import are_of_type, asked_type
from tests.conftest import run_project


def test_a_large_city_is_no_region_elsewhere() -> None:
    titles = ["Portland", "New York", "Oregon", "Portland"]
    types = ["geo", "geo", "geo", "person"]
    entities = pl.DataFrame({"title": titles, "type": types})
    assert are_of_type(entities, "geo", "region").to_list() == [False, True, True, False]
    assert are_of_type(entities, "geo", "city").to_list() == [True, True, False, False]


def test_companies_are_no_institutions_or_places() -> None:
    titles = [
        "Exxon",
        "Senate",
        "Union Oil Co",
        "University of Oslo",
        "United States",
        "IBM",
        "Ford",
    ]
    types = ["organization"] * 5 + ["acronym", "person"]
    entities = pl.DataFrame({"title": titles, "type": types})
    found = entities.filter(are_of_type(entities, "organization", "company"))["title"].to_list()
    assert found == ["Exxon", "Union Oil Co"]
    assert are_of_type(entities, "organization").sum() == 6
    assert are_of_type(entities.clear(), "organization", "company").to_list() == []


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which companies are mentioned?", ("organization", "company")),
        ("Which kinds of people are named?", ("person", None)),
        ("Quels sont les principaux pays ?", ("geo", "country")),
        ("Which large and famous cities are described?", ("geo", "city")),
        ("Welche großen deutschen Firmen werden genannt?", ("organization", "company")),
        ("Welche Firmen will die Bank kaufen?", ("organization", "company")),
        ("What are companies that invest in China?", ("organization", "company")),
        ("What do people say about films?", (None, None)),
        ("What are companies doing?", (None, None)),
        ("Welche Probleme haben deutsche Firmen?", (None, None)),
        ("Quels problèmes menacent les villes ?", (None, None)),
        ("What are people afraid of?", (None, None)),
        ("Which large famous cities are described?", ("geo", "city")),
        ("Which disasters killed people?", (None, None)),
        ("Which storm killed people?", (None, None)),
        ("Which storms hit people?", (None, None)),
        ("Was sagen die Leute über Filme?", (None, None)),
        ("Que disent les gens du cinéma ?", (None, None)),
    ],
)
def test_a_word_for_a_type_is_asked_for_unless_it_names_the_agent(
    store: IndexStore, question: str, expected: tuple[str | None, str | None]
) -> None:
    assert asked_type(Question(question, store)) == expected


def test_asked_for_two_kinds_of_places_it_lists_all_places(index: Index) -> None:
    answer = index.global_("What are the main countries and cities?")
    assert answer.text.startswith("The places with the most relationships")


def test_without_known_cities_it_lists_all_places(tmp_path: Path) -> None:
    init_project(tmp_path)
    texts = (
        "Ann lives in the town of Quelmau. She moved from Brelmau to Quelmau in May.",
        "Bob sails from Brelmau to Quelmau. He was born in the town of Brelmau.",
        "The school of Quelmau has a garden. Ann went to the school in Brelmau.",
    )
    for number, text in enumerate(texts):
        (tmp_path / "input" / f"{number}.txt").write_text(text, encoding="utf-8")
    run_project(tmp_path, "workflow=embedded")
    with graphrag_query.open(tmp_path / "output") as opened:
        answer = opened.global_("What do the texts say about towns?")
    assert answer.text.startswith("The places with the most relationships")
    assert "**Quelmau**" in answer.text
    assert "Further: Brelmau." in answer.text
