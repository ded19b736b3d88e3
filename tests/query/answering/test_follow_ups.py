import dataclasses
from pathlib import Path

import pytest

import graphrag_query
from graphrag_query.answer import Outcome
from graphrag_query.answering.follow_ups import suggest_questions
from graphrag_query.index import Index
from tests.fixtures.fake_llm import FakeLLM, question_to


@pytest.fixture(scope="module")
def index(sample_project: Path) -> Index:
    return graphrag_query.open(sample_project / "output")


@pytest.fixture
def asking(index: Index) -> Index:
    search = index.settings.search.with_values({"follow_ups": 3})
    return Index(index.store, index.settings.model_copy(update={"search": search}))


def test_without_a_model_they_ask_about_what_was_found_near(asking: Index) -> None:
    answer = asking.local("Who was Tom Crean?")
    assert len(answer.follow_ups) == 3
    assert all(question.endswith("?") for question in answer.follow_ups)
    assert not any("Crean" in question for question in answer.follow_ups)
    titles = set(asking.store.scan("entities").select("title").collect()["title"])
    about = [question.rstrip("?").removeprefix("Who is ") for question in answer.follow_ups]
    about = [text.removeprefix("What do the documents say about ") for text in about]
    assert set(about) <= titles
    # Each can be asked.
    assert asking.local(answer.follow_ups[0]).outcome is Outcome.ANSWERED


def test_they_are_in_the_language_of_the_question(asking: Index) -> None:
    answer = asking.local("Wer war Tom Crean?")
    assert answer.follow_ups
    assert all(q.startswith(("Wer ist", "Was sagen")) for q in answer.follow_ups)


def test_none_are_suggested_unless_wanted_or_without_an_answer(index: Index, asking: Index) -> None:
    assert index.local("Who was Tom Crean?").follow_ups == ()
    assert asking.local("What is the capital of Mongolia?").follow_ups == ()


@pytest.mark.parametrize(
    ("reply", "suggested"),
    [
        ({"questions": ["Who was he?", " Who\nwas  she? ", 3, "Who was he?"]},
         ("Who was he?", "Who was she?")),
        (["One?", "Two?", "Three?", "Four?"], ("One?", "Two?", "Three?")),
        ({"answer": "no"}, ()),
        (None, ()),
    ],
)  # fmt: skip
def test_a_model_suggests_them(index: Index, reply: object, suggested: tuple[str, ...]) -> None:
    llm = FakeLLM(lambda request: reply)
    answer = dataclasses.replace(index.local("Who was Tom Crean?"), text="A seaman.")
    assert suggest_questions(answer, 3, question_to(index, answer.question, llm)) == suggested
    assert "Answer: A seaman." in llm.prompts_sent[0]
