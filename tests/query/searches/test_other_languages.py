"""Questions in another language than the documents that answer them."""

import json
import shutil

import pytest

import graphrag_query
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.question.question import Question
from graphrag_query.retrieval.foreign_text_units import add_foreign_text_units
from graphrag_query.retrieval.index_store import RankedTextUnit
from tests.conftest import copy_project, run_project

DOCUMENTS = {
    "mill": "The Altdorf Mill was founded in 1801 by Olga Nowak. The mill employs 40 people. "
    "Jan Blum leads the mill and lives near the river.",
    "Fähre": "Die Reederei Seeblick streicht 120 Stellen in Neustadt. Der Grund sei der hohe Preis "
    "des Öls. Die Grabungsleiterin Ada Fuchs fand bei Neustadt ein altes Boot.",
    "moulin": "L'usine Brunet de Valmont ferme en juin. La directrice, Claire Petit, invoque le "
    "prix de l'énergie. Les ouvriers ont demandé un médiateur à la ville.",
    "letter": "Tom Crean sailed to the south with his brother. He wrote about the cold weather.",
}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Index:
    project = copy_project(tmp_path_factory.mktemp("languages") / "project")
    shutil.rmtree(project / "input")
    (project / "input").mkdir()
    records = [{"id": name, "title": name, "text": text} for name, text in DOCUMENTS.items()]
    lines = "\n".join(map(json.dumps, records))
    (project / "input" / "records.jsonl").write_text(lines, encoding="utf-8")
    run_project(project)
    return graphrag_query.open(project / "output")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Wann wurde die Altdorf Mill gegründet?", "1801"),
        ("¿Quién fundó Altdorf Mill?", "Olga Nowak"),
        ("Qui dirige Altdorf Mill ?", "Jan Blum"),
        ("How many jobs does Seeblick cut?", "120 Stellen"),
        ("¿Cuántos puestos suprime Seeblick?", "120 Stellen"),
        ("Who led the excavation near Neustadt?", "Ada Fuchs"),
        ("When does the factory of Brunet close?", "ferme en juin"),
    ],
)
def test_a_question_is_answered_from_documents_in_another_language(
    mixed: Index, question: str, said: str
) -> None:
    assert said in mixed.local(question).text


def test_another_language_is_no_better_than_that_of_the_question(mixed: Index) -> None:
    question = Question("What about the cold weather of Neustadt?", mixed.store)
    ranked = [RankedTextUnit(number, 0.5, 0.5, "match") for number in range(4)]
    found = add_foreign_text_units(question, ranked)
    units = mixed.store.text_units(range(4))
    scores = {units[unit.number]["title"]: unit.score for unit in found}
    assert scores["letter"] > max(scores["Fähre"], scores["moulin"])


@pytest.mark.parametrize(
    "question",
    [
        "Wer gewann den Preis für Chemie?",
        "Who is the mayor of Seeblick?",
        "¿Cuántos hijos tiene Olga Nowak?",
    ],
)
def test_what_no_document_says_is_not_found_in_another_language(
    mixed: Index, question: str
) -> None:
    assert mixed.local(question).outcome is Outcome.NO_EVIDENCE


def test_a_text_unit_without_a_name_is_found_by_translated_words(mixed: Index) -> None:
    sources = mixed.context("Combien de personnes emploie le fondateur ?").tables["Sources"]
    assert "founded in 1801" in sources["text"][0]
