import shutil
from pathlib import Path

import polars as pl
import pytest

import graphrag_query
from graphrag_index.schema.settings.project_settings import init_project
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.question.question import Question
from graphrag_query.searches import main_entities
from graphrag_query.searches.main_entities import are_of_type, asked_type
from graphrag_query.store.index_store import IndexStore
from tests.conftest import copy_project, run_project
from tests.fixtures.fake_llm import question_to
from tests.fixtures.sample_questions import check_citations, count_words


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


def test_asked_for_people_of_a_subject_it_lists_them(index: Index) -> None:
    answer = index.global_("Which people died of scurvy?")
    assert "**Arnold Spencer-Smith**" in answer.text
    assert "[Data: Entities (" in answer.text
    answer = index.global_("How did people survive scurvy?")
    assert answer.outcome is Outcome.ANSWERED
    assert "[Data: Entities (" not in answer.text


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Which people died of scurvy?", "person"),
        ("Which kinds of people died of scurvy?", "person"),
        ("Which Norwegian companies sold ships?", "organization"),
        ("Which disasters killed people?", None),
        ("What are the effects of scurvy on people?", None),
        ("Quelles grandes entreprises ont payé ?", "organization"),
    ],
)
def test_what_stands_before_the_word_for_a_type_may_be_asked_for(
    index: Index, question: str, kind: str | None
) -> None:
    assert main_entities.asked_type(question_to(index, question))[0] == kind


@pytest.mark.parametrize(
    ("question", "titles"),
    [
        ("What are the most important people?", ("Ernest Shackleton", "Robert Falcon Scott")),
        ("Which places are the main ones?", ("South Pole", "Cape Evans")),
        ("Main events?", ("Discovery Expedition",)),
    ],
)
def test_asked_for_the_main_ones_of_a_kind_it_lists_entities(
    index: Index, sample_project: Path, question: str, titles: tuple[str, ...]
) -> None:
    answer = index.global_(question)
    assert answer.outcome is Outcome.ANSWERED
    assert all(f"**{title}** (" in answer.text for title in titles)
    assert "[Data: Entities (" in answer.text
    assert 6 < len(answer.citations) <= answer.looked_at["entities_listed"]
    assert count_words(answer) <= 350
    check_citations(answer, sample_project / "output")


def test_a_kind_of_which_there_is_none_is_no_evidence(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    shutil.rmtree(project / "input")
    (project / "input").mkdir()
    (project / "input" / "a.txt").write_text(
        "Anna Berg met Tom Crean. Tom Crean met Anna Berg again.", encoding="utf-8"
    )
    run_project(project)
    answer = graphrag_query.open(project / "output").global_("What are the main events?")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text == "The index knows no events of these documents."
