"""Counts over documents whose words, names and dates are known."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import graphrag_query
from graphrag_index.schema.settings.project_settings import init_project
from graphrag_nlp.text.languages import language_of
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.searches import counting
from graphrag_query.searches.counting import TermCount, is_form_of
from tests.conftest import copy_project, run_project
from tests.fixtures.cases import cases

DOCUMENTS = {
    "2024-01-03": "A fire broke out in Berlin. Anna Berg saw the fires from her house in Berlin.",
    "2024-01-20": "Anna Berg travelled to Paris. The fire brigade of Paris welcomed Anna Berg.",
    "2024-03-05": "Tom Crean wrote to Anna Berg about the firefighters of Berlin.",
    "2024-03-09": "Tom Crean stayed in Berlin and read about a Fire in France.",
    "": "Nothing happened in the village of Karl Moll.",
}


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Index:
    project = copy_project(tmp_path_factory.mktemp("counting") / "project")
    shutil.rmtree(project / "input")
    (project / "input").mkdir()
    records = [
        {"id": str(n), "title": f"letter {n}", "text": text, "date": date}
        for n, (date, text) in enumerate(DOCUMENTS.items())
    ]
    lines = "\n".join(json.dumps(record) for record in records)
    (project / "input" / "letters.jsonl").write_text(lines, encoding="utf-8")
    run_project(project)
    return graphrag_query.open(project / "output")


@cases("question, text")
def test_counts_are_exact(counted: Index, question: str, text: str) -> None:
    answer = counted.ask(question)
    assert answer.method == "global"
    assert answer.outcome is Outcome.ANSWERED
    assert answer.text.startswith(text)


@cases("question, line")
def test_documents_and_mentions_of_a_subject_are_told_apart(
    counted: Index, question: str, line: str
) -> None:
    assert line in counted.ask(question).text


def test_a_document_may_name_a_subject_otherwise() -> None:
    numbers = np.arange(1)
    term = TermCount("Anna Berg", numbers, numbers + 1, numbers, 0)
    assert term.describe() == "1 document mentions “Anna Berg”, by other names of it."
    forms = dict(zip("abcdefgh", (9, 8, 7, 6, 5, 4, 3, 2), strict=True))
    assert replace(term, term="a", n_mentions=44, forms=forms).describe() == (
        "1 document mentions “a”, 44 times in all: a 9, b 8, c 7, d 6, e 5, f 4, other forms 5."
    )


def test_what_no_document_mentions_is_no_evidence(counted: Index) -> None:
    answer = counted.global_("How many documents mention sourdough?")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text == "None of the 5 documents mentions “sourdough”."


@pytest.mark.parametrize(
    "question",
    [
        "Which documents of March 2024 mention Paris most often?",
        "When were Paris and Tom Crean first mentioned?",
        "Who is mentioned most often in letters about Paris and Tom Crean?",
    ],
)
def test_no_document_with_all_subjects_is_no_evidence(counted: Index, question: str) -> None:
    answer = counted.global_(question)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text.startswith("None of the ")


def test_filters_hold_for_counts(counted: Index) -> None:
    march = counted.where(since="2024-03")
    answer = march.global_("How many documents mention Berlin?")
    assert answer.text.startswith("2 of 2 documents (100 %) mention “Berlin”: 2 times")
    people = march.global_("Who is mentioned most often?")
    assert people.table[0] == {"name": "Tom Crean", "documents": 2}


def test_the_passages_of_filtered_documents_tell_whether_documents_are_long(
    counted: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "MAX_TEXT_UNITS_OF_ARTICLE", 1)
    one = counted.where({"title": "letter 0"})
    [row] = one.global_("Who is mentioned most often?").table
    assert row == {"name": "Anna Berg", "documents": 1}


def test_a_trend_has_a_row_for_each_month_and_cites_examples(counted: Index) -> None:
    answer = counted.global_("How many letters per month mention fire?")
    assert answer.table == (
        {"month": "2024-01", "documents": 2},
        {"month": "2024-02", "documents": 0},
        {"month": "2024-03", "documents": 1},
    )
    assert "| 2024-01 | 2 | ████████████████████ |" in answer.text
    assert {"fire" in citation.quote.lower() for citation in answer.citations} == {True}
    assert "<td>2024-02</td><td>0</td>" in answer._repr_html_()
    assert answer.to_dict()["table"] == answer.table


@cases("form, term, code, is_form")
def test_forms_of_a_word(form: str, term: str, code: str, is_form: bool) -> None:
    assert is_form_of(form, term, language_of(code)) is is_form


@pytest.fixture(scope="module")
def treaties(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    project = tmp_path_factory.mktemp("treaties")
    init_project(project)
    texts = (
        "Article 7 of the treaty has 50 lines, and Rule 5 has three.",
        "The treaty was signed in Oslo. Its first article has 5 lines.",
        "Article 500 of the code is about bridges in Oslo.",
    )
    for number, text in enumerate(texts):
        (project / "input" / f"{number}.txt").write_text(text, encoding="utf-8")
    run_project(project, "workflow=embedded")
    with graphrag_query.open(project / "output") as index:
        yield index


@cases("question, text")
def test_a_word_and_its_number_are_counted_together(
    treaties: Index, question: str, text: str
) -> None:
    assert treaties.ask(question).text.startswith(text)


@pytest.mark.parametrize(
    ("names", "said"),
    [("A", "A"), ("AB", "A and B"), ("ABC", "A, B and C"), ("ABCDE", "A, B, C, and 2 more")],
)
def test_names_mentioned_most_are_joined_by_and(names: str, said: str) -> None:
    assert counting._list_names(list(names)) == said
