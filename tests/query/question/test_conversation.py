import dataclasses
import json
import threading
from pathlib import Path

import pytest

from graphrag_index.errors import SettingsError
from graphrag_index.llm.prompts import quote_text
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index
from graphrag_query.question.conversation import Conversation, suggest_questions
from tests.fixtures.fake_llm import FakeLLM, question_to


def after(*questions: str) -> Conversation:
    """A conversation in which these were asked."""
    conversation = Conversation()
    for question in questions:
        conversation.add(question, Answer(question, "So it was.", Outcome.ANSWERED, "local"))
    return conversation


@pytest.mark.parametrize(
    ("before", "question", "rewritten"),
    [
        ((), "Where was he born?", "Where was he born?"),
        (("Who was Tom Crean?",), "Where was he born?", "Where was Tom Crean born?"),
        (("Who was Tom Crean?",), "What was his rank?", "What was Tom Crean's rank?"),
        (("Who was Tom Crean?",), "And in 1916?", "And in 1916 (Tom Crean)?"),
        (("Who was Tom Crean?",), "Who was Frank Wild?", "Who was Frank Wild?"),
        (("Who was Tom Crean?",), "What is scurvy caused by?", "What is scurvy caused by?"),
        (("Who was Tom Crean?", "What about Frank Wild?"), "Did he die?", "Did Frank Wild die?"),
        (("Wer war Tom Crean?",), "Wo wurde er geboren?", "Wo wurde Tom Crean geboren?"),
        (("What is ice?",), "Where is it?", "Where is it?"),
    ],
)
def test_by_rule_the_last_name_takes_the_place_of_a_pronoun(
    index: Index, before: tuple[str, ...], question: str, rewritten: str
) -> None:
    assert after(*before).rewrite(question, index.store, None) == rewritten


def test_a_model_rewrites_from_the_newest_turns(index: Index) -> None:
    llm = FakeLLM(lambda request: {"question": "Where was Tom Crean born?"})
    conversation = after("Old question", *(f"Question {n}" for n in range(4)))
    rewritten = conversation.rewrite("Where was he born?", index.store, llm)
    assert rewritten == "Where was Tom Crean born?"
    [prompt] = llm.prompts_sent
    assert "Question 3" in prompt
    assert "Old question" not in prompt
    assert prompt.endswith("New question: Where was he born?")


@pytest.mark.parametrize("reply", [None, {"question": " "}, {"answer": 3}])
def test_a_question_that_cannot_be_rewritten_is_asked_as_it_is(index: Index, reply: object) -> None:
    llm = FakeLLM(lambda request: reply)
    assert after("Who?").rewrite("Where was he born?", index.store, llm) == "Where was he born?"


def test_a_first_question_costs_no_call(index: Index) -> None:
    llm = FakeLLM(lambda request: {"question": "Else?"})
    assert Conversation().rewrite("Who was he?", index.store, llm) == "Who was he?"
    assert llm.asked == []


def test_a_conversation_goes_on_in_its_file(index: Index, tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "crean.json"
    first = index.converse(index.conversation(path), "Who was Tom Crean?", "local")
    answer = index.converse(index.conversation(path), "Where was he born?", "local")
    assert first.question == "Who was Tom Crean?"
    assert answer.question == "Where was Tom Crean born?"
    assert "Annascaul" in answer.text
    turns = json.loads(path.read_text(encoding="utf-8"))
    assert [turn["question"] for turn in turns] == ["Who was Tom Crean?", "Where was he born?"]
    assert turns[1]["asked"] == answer.question


def test_two_that_go_on_with_a_file_lose_no_turn(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    conversations = [Conversation(path) for _ in range(6)]
    threads = [
        threading.Thread(
            target=conversation.add,
            args=(f"Question {n}", Answer("?", "So it was.", Outcome.ANSWERED, "local")),
        )
        for n, conversation in enumerate(conversations)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked = {turn.question for turn in Conversation(path).turns}
    assert asked == {f"Question {n}" for n in range(6)}


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "{", "{}", '[{"question": "x"}]', '[{"question": 1, "asked": "", "answer": ""}]'],
)
def test_a_file_that_is_no_session_is_told_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match="contains no conversation"):
        Conversation(path)
    assert path.read_text(encoding="utf-8") == text


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
    assert quote_text("A seaman.") in llm.prompts_sent[0]
