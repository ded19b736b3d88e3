"""Answers to global questions by years."""

import re
from pathlib import Path

import pytest

from graphrag_query.answering.theme_answer import Point
from graphrag_query.index import Index
from graphrag_query.question.cues import asks_for_course_of_time
from graphrag_query.searches.periods import group_by_period
from tests.fixtures.sample_questions import check_citations


def test_a_question_on_change_over_time_is_answered_by_years(
    index: Index, sample_project: Path
) -> None:
    answer = index.global_("How did the exploration of Antarctica change over time?")
    years = list(map(int, re.findall(r"^\d+\. \*\*(\d{4})\*\*$", answer.text, re.MULTILINE)))
    assert len(years) >= 3
    assert years == sorted(set(years))
    check_citations(answer, sample_project / "output")


@pytest.mark.parametrize(
    ("question", "n_without", "is_by_year"),
    [
        ("How did sailing change?", 9, True),
        ("How did sailing change?", 10, False),
        ("How did sailing change over the years?", 10, True),
    ],
)
def test_years_that_few_sentences_have_are_periods_of_a_course_of_time_only(
    index: Index, question: str, n_without: int, *, is_by_year: bool
) -> None:
    texts = ["Ann sailed in 1911.", "Ben sailed in 1901.", "Eve sailed in 1907."]
    texts += ["Nobody sailed."] * n_without
    points = {number: [Point(text, number, 1.0)] for number, text in enumerate(texts)}
    units = index.store.text_units(points)
    themes, others = group_by_period(
        index.store, points, units, 9, is_over_time=asks_for_course_of_time(question)
    )
    assert [theme.name for theme in themes] == (["1901", "1907", "1911"] if is_by_year else [])
    assert len(others) == len(texts) - len(themes)
