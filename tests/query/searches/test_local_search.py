import json
import re
import shutil
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given

import graphrag_query
from graphrag_index.errors import SettingsError, TableError
from graphrag_nlp.answers.rank_statements import MAX_WORDS
from graphrag_nlp.text.sentences import are_near_duplicates, distinctive_words
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.question.question import Question
from graphrag_query.retrieval.foreign_text_units import add_foreign_text_units
from graphrag_query.store.index_store import RankedTextUnit
from tests.conftest import copy_project, run_project
from tests.fixtures.cases import cases
from tests.fixtures.examples import examples
from tests.fixtures.sample_questions import QUESTIONS, check_citations

DOCUMENTS = {
    "mill": "The Altdorf Mill was founded in 1801 by Olga Nowak. The mill employs 40 people. "
    "Jan Blum leads the mill and lives near the river.",
    "Fähre": "Die Reederei Seeblick streicht 120 Stellen in Neustadt. Der Grund sei der hohe Preis "
    "des Öls. Die Grabungsleiterin Ada Fuchs fand bei Neustadt ein altes Boot.",
    "moulin": "L'usine Brunet de Valmont ferme en juin. La directrice, Claire Petit, invoque le "
    "prix de l'énergie. Les ouvriers ont demandé un médiateur à la ville.",
    "letter": "Tom Crean sailed to the south with his brother. He wrote about the cold weather.",
}


@cases("question, said")
def test_questions_with_known_answers_are_answered(index: Index, question: str, said: str) -> None:
    answer = index.local(question)
    assert answer.outcome is Outcome.ANSWERED
    assert said in answer.text


@cases("question, said")
def test_the_first_sentence_answers(index: Index, question: str, said: str) -> None:
    assert said in index.local(question).text.split("[1]")[0]


def test_an_answer_is_short(index: Index) -> None:
    answer = index.local("What did Shackleton do on Elephant Island?")
    assert len(answer.text.split()) <= MAX_WORDS + len(answer.citations)


@cases("question")
def test_what_the_documents_do_not_say_is_no_evidence(index: Index, question: str) -> None:
    answer = index.local(question)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.citations == ()
    assert answer.looked_at["text_units"] > 0


@cases("question, name")
def test_a_name_that_the_documents_do_not_hold_is_said_so(
    index: Index, question: str, name: str
) -> None:
    answer = index.local(question)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text == f"The documents do not mention {name}."


@pytest.mark.parametrize(
    "question", ["When did the Fram leave Norway?", "Who wintered at Cape Adare?"]
)
def test_no_sentence_of_an_answer_repeats_another(index: Index, question: str) -> None:
    said = [distinctive_words(citation.quote) for citation in index.local(question).citations]
    assert not any(are_near_duplicates(one, other) for one, other in combinations(said, 2))


@examples(10)
@given(QUESTIONS)
def test_every_citation_resolves_for_any_question(sample_project: Path, question: str) -> None:
    answer = graphrag_query.open(sample_project / "output").local(question)
    check_citations(answer, sample_project / "output")
    assert bool(answer.citations) == (answer.outcome is Outcome.ANSWERED)


def test_the_same_question_gets_the_same_answer(index: Index) -> None:
    first, second = (index.local("Who was Frank Wild?") for _ in range(2))
    assert (first.text, first.citations) == (second.text, second.citations)


def test_sentences_of_the_answer_are_bounded(index: Index) -> None:
    assert len(index.local("Who was Frank Wild?", max_sentences=2).citations) <= 2


def test_unknown_parameters_are_refused(index: Index) -> None:
    with pytest.raises(SettingsError, match="did you mean 'max_sentences'"):
        index.local("Who?", max_sentence=2)


def test_an_empty_question_is_refused(index: Index) -> None:
    with pytest.raises(SettingsError, match="empty"):
        index.local("  ")


def test_no_index_is_one_sentence_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="graphrag-index run"):
        graphrag_query.open(tmp_path)


def test_each_source_tells_why_it_was_taken(index: Index) -> None:
    answer = index.local("Which ship rescued the men of Tom Crean's expedition?")
    assert answer.context is not None
    sources = answer.context.tables["Sources"]
    numbers = set(index.store.scan("text_units").select("human_readable_id").collect().to_series())
    kinds = set()
    for why in sources["why"]:
        found = re.fullmatch(
            r"(it matches the question)|(it is about .+, which the question names|its document .+)"
            r"|Sources \((\d+)\) leads to it over .+|it is next to Sources \(\d+\) in the document",
            why,
        )
        assert found is not None, why
        kinds.add(found.lastindex)
        if found[3]:
            assert int(found[3]) in numbers
    assert {1, 3} <= kinds
    assert "leads to it" not in answer.context.text


def test_the_scope_graph_reads_what_the_entities_near_touch(index: Index) -> None:
    question = "How did Tom Crean come to the Antarctic?"
    answer = index.local(question, scope="graph")
    assert answer.outcome is Outcome.ANSWERED
    assert answer.context is not None
    tables = answer.context.tables
    mentions = index.store.scan("mentions")
    near = tables["Entities"]["id"].implode()
    touched = mentions.filter(pl.col("entity").is_in(near)).select("text_unit").collect()
    linked = index.store.relationships(tables["Relationships"]["id"])["text_units"].explode()
    assert set(tables["Sources"]["id"]) <= {*touched["text_unit"], *linked}


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


@cases("question, said")
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
