"""Dates of questions, and names that are written as one word, in an index of chats."""

from shutil import rmtree

import pytest

import graphrag_query
from graphrag_query.index import Index
from graphrag_query.question.question_words import language_in, name_spans
from graphrag_query.retrieval.asked_dates import find_asked_dates
from tests.conftest import copy_project, run_project

CHAT = "Time: {}\nWolfgangSchulz: Let us meet {}.\nLiHua: Great, I am bringing {}!\n"
CHATS = {
    "20260408_1900": ("at the river", "bread"),
    "20260508_1900": ("at the lake", "cheese"),
    "20270408_1900": ("at the tower", "apples"),
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    root = copy_project(tmp_path_factory.mktemp("chats") / "project")
    rmtree(root / "input")
    (root / "input").mkdir()
    for title, words in CHATS.items():
        (root / "input" / f"{title}.txt").write_text(CHAT.format(title, *words), encoding="utf-8")
    run_project(root)
    return graphrag_query.open(root / "output")


@pytest.mark.parametrize(
    ("question", "dates"),
    [
        ("What was said on 20260408?", [(2026, 4, 8)]),
        ("What was said on 2026-04-08?", [(2026, 4, 8)]),
        ("What happened on April 8th, 2026?", [(2026, 4, 8)]),
        ("Was geschah am 8. April?", [(None, 4, 8)]),
        ("2026年4月8日发生了什么？", [(2026, 4, 8)]),
        ("Who came in August?", [(None, 8, None)]),
        ("May I ask who may march there?", []),
        ("Which of the 20260 bottles?", []),
    ],
)
def test_days_and_months_are_found_in_questions(
    question: str, dates: list[tuple[int | None, int, int | None]]
) -> None:
    found = find_asked_dates(question, language_in(question))
    assert [(date.year, date.month, date.day) for date in found] == dates


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("Where does Wolfgang Schulz meet LiHua on 8 May?", "20260508_1900.txt"),
        ("Where does Wolfgang Schulz meet LiHua on 2027-04-08?", "20270408_1900.txt"),
    ],
)
def test_documents_of_the_date_that_is_asked_come_first(
    index: Index, question: str, document: str
) -> None:
    assert index.local(question).citations[0].document == document


@pytest.mark.parametrize("name", ["Wolfgang Schulz", "WolfgangSchulz"])
def test_a_name_is_found_in_both_spacings(index: Index, name: str) -> None:
    answer = index.local(f"Where does {name} meet Li Hua in April?")
    assert answer.outcome == "answered"
    # The question writes Li Hua as two words, and so the answer writes all names like that.
    assert "Wolfgang Schulz (" in answer.text
    [span] = name_spans(f"Who is {name}?", language_in("Who is it?"))
    assert {span.words, *span.other_spacings} == {("wolfgang", "schulz"), ("wolfgangschulz",)}
