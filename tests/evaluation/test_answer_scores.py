"""Scores of answers that are given as literal values."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import graphrag_query
from graphrag_evaluation.answer_scores import citation_scores, outcome_scores
from graphrag_evaluation.coverage import WordWeights
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_query.answer import Answer, Citation, Outcome
from graphrag_query.index import Index

ANSWERABLE = EvaluationQuestion("1", "Who led it?", answers=("Scott", "R. F. Scott"))
UNANSWERABLE = EvaluationQuestion("2", "Who runs the bakery?", is_answerable=False)


@pytest.mark.parametrize(
    ("question", "outcome", "text", "expected"),
    [
        (ANSWERABLE, "answered", "It was r.f. scott!", {"outcome_right": 1, "said": 1}),
        # A name is not part of another one.
        (ANSWERABLE, "answered", "It was Scotty.", {"outcome_right": 1, "said": 0}),
        (
            ANSWERABLE,
            "no_evidence",
            "",
            {"outcome_right": 0, "no_evidence_precision": 0, "said": 0},
        ),
        (UNANSWERABLE, "answered", "Scott.", {"outcome_right": 0, "no_evidence_recall": 0}),
        (
            UNANSWERABLE,
            "no_evidence",
            "",
            {"outcome_right": 1, "no_evidence_precision": 1, "no_evidence_recall": 1},
        ),
        # A failure is right for no question.
        (ANSWERABLE, "provider_error", "", {"outcome_right": 0}),
        (UNANSWERABLE, "index_incomplete", "", {"outcome_right": 0}),
    ],
)
def test_scores_of_an_outcome(
    question: EvaluationQuestion, outcome: str, text: str, expected: dict[str, float]
) -> None:
    assert outcome_scores(question, Answer(question.text, text, Outcome(outcome))) == expected


@pytest.fixture(scope="module")
def index(sample_project: Path) -> Iterator[Index]:
    with graphrag_query.open(sample_project / "output") as index:
        yield index


def cite(index: Index, quote: str, number: int = 1) -> Citation:
    """Return the citation of a sentence of the sample."""
    unit = next(
        unit for unit in index.store.scan("text_units").collect().rows(named=True)
        if quote in unit["text"]
    )  # fmt: skip
    start = unit["start_char"] + unit["text"].index(quote)
    place = (start, start + len(quote), quote, unit["human_readable_id"])
    return Citation(number, "", unit["document_id"], "", *place)


def answered(text: str, *citations: Citation) -> Answer:
    return Answer("?", text, Outcome.ANSWERED, citations=citations)


def test_quotations_must_stand_at_their_place(index: Index) -> None:
    weights = WordWeights([])
    found = cite(index, "Tom Crean")
    others = [
        replace(found, start_char=found.start_char + 1),
        replace(found, quote="Tom Green"),
        replace(found, text_unit=10**6),
    ]
    scores = citation_scores(index, answered("Said [1].", found, *others), weights)
    assert scores["citations_valid"] == 1 / 4
    assert "citations_valid" not in citation_scores(index, answered("Said."), weights)


def test_sentences_are_supported_by_what_they_cite(index: Index) -> None:
    weights = WordWeights(unit["text"] for unit in index.store.text_units(range(20)).values())
    crean = cite(index, "Annascaul")
    said = "Crean was born near Annascaul in County Kerry."
    for text, share in [
        (f"{said} [1]", 1.0),
        (f"{said} [2]", 0.0),
        (f"{said} [1] The bakery in Zürich sells chocolate croissants. [1]", 0.5),
        ("A bakery in Kerry sells chocolate croissants and bread. [1]", 0.0),
    ]:
        assert citation_scores(index, answered(text, crean), weights)["supported"] == share, text
    rows = index.store.scan("community_reports").select("community", "title").collect().rows()
    (number, title), (other, _) = rows[0], rows[-1]
    for cited, share in ((number, 1.0), (other, 0.0), (10**6, 0.0)):
        answer = answered(f"This is {title}. [Data: Reports ({cited})]")
        assert citation_scores(index, answer, weights)["supported"] == share, cited


def test_an_answer_without_evidence_has_no_citation_scores(index: Index) -> None:
    answer = Answer("?", "Nobody knows of this bakery. [1]", Outcome.NO_EVIDENCE)
    assert citation_scores(index, answer, WordWeights([])) == {}
