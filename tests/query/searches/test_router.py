from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import ModelError
from graphrag_index.llm.request import Outcome as CallOutcome
from graphrag_index.llm.request import ReplyError
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.question.question import Mentions, Question
from graphrag_query.retrieval.index_store import IndexStore
from graphrag_query.searches.router import (
    METHODS,
    PURPOSES,
    choose_by_rules,
    choose_search,
    read_choice,
)
from tests.fixtures.fake_llm import FakeLLM, question_to
from tests.fixtures.labelled_questions import HELD_OUT, SEEN, Labelled
from tests.fixtures.model_index import index_behind
from tests.model_server import ChatRequest, Faults, Server


def wrong(store: IndexStore, labelled: Labelled) -> list[tuple[str, str, str]]:
    """The questions for which the rules choose another search than the labelled one."""
    found = []
    for question, search in labelled:
        mentions = Mentions(store, question)
        n_names = len(mentions.likeliest_mentions) + len(mentions.unknown_names)
        chosen = choose_by_rules(question, n_names).method
        if chosen != search:
            found.append((question, search, chosen))
    return found


def test_the_rules_choose_as_labelled(index: Index) -> None:
    assert len(SEEN) >= 80
    missed = wrong(index.store, SEEN)
    assert len(missed) <= 0.02 * len(SEEN), missed


def test_the_rules_choose_questions_that_were_held_out(index: Index) -> None:
    missed = wrong(index.store, HELD_OUT)
    assert len(missed) <= 0.05 * len(HELD_OUT), missed


@pytest.mark.parametrize(
    ("question", "method"),
    [
        ("What are the main themes?", "global"),
        ("Who was Tom Crean?", "local"),
        ("How are Crean and Nansen connected?", "path"),
        ("Which passage speaks of the fossil plant Glossopteris?", "basic"),
        ("Show the neighbourhood of the Gauss.", "neighbourhood"),
    ],
)
def test_a_question_is_answered_by_the_search_that_is_chosen(
    index: Index, question: str, method: str
) -> None:
    answer = index.ask(question)
    assert answer.outcome is Outcome.ANSWERED
    assert answer.method == method
    assert answer.notes[0].startswith(f"Answered by {method} search: it ")
    assert answer.question == question


def test_an_unknown_name_is_left_to_the_search_to_say(index: Index) -> None:
    answer = index.ask("How is Albert Einstein connected to Scott?")
    assert answer.method == "path"
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert "no entity named Albert Einstein" in answer.text


def test_without_known_names_no_path_is_looked_for(index: Index) -> None:
    choice = choose_search(question_to(index, "斯科特和南森有什么关系？"))
    assert choice.method == "local"
    assert "too few of its names for path search" in choice.why


class NoReports:
    """A model whose index has no reports."""

    def __init__(self, store: IndexStore) -> None:
        self._model = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def has_table(self, table: str) -> bool:
        return table != "community_reports"


def test_an_index_without_reports_is_asked_lazily_about_the_whole(index: Index) -> None:
    store: Any = NoReports(index.store)
    choice = choose_search(Question("What are the main themes?", store))
    assert choice.method == "lazy"
    assert choice.why.endswith("and the index has no reports")


def test_a_model_chooses_in_one_call(index: Index) -> None:
    llm = FakeLLM(lambda _: {"why": "it asks for a place", "search": "basic"})
    choice = choose_search(question_to(index, "Who was Tom Crean?", llm))
    assert (choice.method, choice.why, choice.notes) == ("basic", "it asks for a place", ())
    [prompt] = llm.prompts_sent
    assert set(PURPOSES) < set(METHODS)
    assert all(f"- {search}: " in prompt for search in PURPOSES)
    assert prompt.endswith("Who was Tom Crean?")


@pytest.mark.parametrize("reply", [None, {}, {"search": "nothing"}, [], 7, {"search": None}])
def test_a_bad_reply_leaves_it_to_the_rules(index: Index, reply: Any) -> None:
    choice = choose_search(question_to(index, "Who was Tom Crean?", FakeLLM(lambda _: reply)))
    assert choice.method == "local"
    [note] = choice.notes
    assert note.startswith("The search was chosen by rules, because the model failed: ")


class DeadChat(FakeLLM):
    """A chat whose model does not answer at all."""

    def replies(self, requests: Any, rating: bool = False) -> list[CallOutcome]:
        raise ModelError("The model does not answer.")


def test_an_outage_leaves_it_to_the_rules(index: Index) -> None:
    choice = choose_search(question_to(index, "What are the themes?", DeadChat(lambda _: None)))
    assert choice.method == "global"
    assert "does not answer" in choice.notes[0]


@pytest.mark.parametrize(
    ("reply", "method"),
    [
        ({"search": "local", "why": "x"}, "local"),
        ({"search": " Global search."}, "global"),
        ({"method": "PATH"}, "path"),
        ([{"search": "basic"}], "basic"),
        ("neighborhood", "neighbourhood"),
    ],
)
def test_replies_are_read_with_patience(reply: Any, method: str) -> None:
    assert read_choice(reply).value.method == method


def test_a_reply_with_two_searches_is_none() -> None:
    with pytest.raises(ReplyError, match="names no search"):
        read_choice({"search": "local or global"})


# Over HTTP.


def answered(llm: ChatRequest) -> str:
    return '{"why": "it asks who", "search": "local"}'


@pytest.fixture
def asked(sample_project: Path) -> Iterator[tuple[Server, Index]]:
    with Server(answer=answered) as server, index_behind(server, sample_project) as index:
        yield server, index


def test_the_call_that_chooses_is_counted(asked: tuple[Server, Index]) -> None:
    _, index = asked
    answer = index.ask("Who was Tom Crean?")
    assert answer.notes[0] == "Answered by local search: it asks who."
    assert answer.usage.calls == 2


def test_an_outage_is_an_error_and_not_missing_evidence(asked: tuple[Server, Index]) -> None:
    server, index = asked
    server.faults = Faults(rate=1.0, kinds=["500"])
    answer = index.ask("How are Crean and Nansen connected?")
    assert answer.outcome is Outcome.PROVIDER_ERROR
    assert answer.method == "path"
    assert any("chosen by rules" in note for note in answer.notes)
