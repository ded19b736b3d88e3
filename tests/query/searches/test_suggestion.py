"""A search without evidence suggests another search, only if that search finds evidence."""

from functools import cache
from pathlib import Path

import pytest

from graphrag_query.answer import Answer, Outcome, Suggestion
from graphrag_query.index import Index
from tests.fixtures.fake_llm import index_behind
from tests.model_server import ChatRequest, Server

THEMES = "What are the main themes and who matters most?"
ALL_METHODS = ("local", "basic", "global", "drift", "lazy", "path", "neighbourhood", "ask")


def follow(index: Index, answer: Answer) -> tuple[str, Outcome]:
    """Run the suggested search; return its name and its outcome."""
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.suggestion is not None
    method, arguments = answer.suggestion.method, answer.suggestion.arguments
    return method, outcome_of(index, method, arguments)


@cache
def outcome_of(index: Index, method: str, arguments: tuple[str, ...]) -> Outcome:
    """Return the outcome of a search; several searches suggest the same one."""
    return index.search(method, *arguments).outcome


@pytest.mark.parametrize(
    ("method", "question"),
    [
        *((method, THEMES) for method in ("basic", "drift", "lazy", "path", "neighbourhood")),
        ("local", "Who are the most important people?"),
        ("basic", "What do these texts have in common?"),
        ("drift", "What is this about?"),
        ("lazy", "Was sind die wichtigsten Themen?"),
        ("path", "Quels sont les thèmes principaux ?"),
        ("neighbourhood", "¿De qué tratan estos textos en conjunto?"),
    ],
)
def test_a_question_about_the_whole_is_sent_to_global(
    index: Index, method: str, question: str
) -> None:
    answer = index.search(method, question)
    assert follow(index, answer) == ("global", Outcome.ANSWERED)


@pytest.mark.parametrize("method", ["path", "neighbourhood"])
@pytest.mark.parametrize(
    "question", ["Which fossil plant was found in the rocks?", "How did they fight scurvy?"]
)
def test_a_question_about_a_fact_is_sent_to_local(index: Index, method: str, question: str) -> None:
    answer = index.search(method, question)
    assert answer.suggestion == Suggestion("local", (question,), "Local search finds an answer.")
    assert follow(index, answer) == ("local", Outcome.ANSWERED)


@pytest.mark.parametrize(
    ("method", "question"),
    [
        # A report tells who baked bread, but no document tells of sourdough.
        *((method, "How do I bake sourdough bread?") for method in ALL_METHODS),
        *((method, "What are the main themes of Moby-Dick?") for method in ALL_METHODS),
        ("local", "What is the capital of Mongolia?"),
        # Without a content word.
        *(
            (method, question)
            for method in ("local", "basic", "path")
            for question in ("Why?", "How are you?")
        ),
        *(
            (method, question)
            for method in ("global", "ask")
            for question in (
                "What are the main ingredients of sourdough?",
                "What do the documents say about blockchain?",
                "Which trends shape the smartphone market?",
                "What were the most common causes of divorce?",
                "What is the best pizza topping overall?",
            )
        ),
    ],
)
def test_a_question_about_nothing_in_the_corpus_is_a_plain_refusal(
    index: Index, method: str, question: str
) -> None:
    answer = index.search(method, question)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.suggestion is None


def test_an_answer_suggests_nothing(index: Index) -> None:
    assert index.local("Who was Tom Crean?").suggestion is None


def test_two_names_without_a_path_suggest_nothing(index: Index) -> None:
    answer = index.path("Tom Crean", "Fridtjof Nansen", max_hops=1)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.suggestion is None


def test_a_conversation_suggests_the_rewritten_question(index: Index) -> None:
    conversation = index.conversation()
    index.converse(conversation, "Who was Tom Crean?")
    answer = index.converse(conversation, "What ponies did he have?", "path")
    assert answer.suggestion is not None
    assert answer.suggestion.arguments == ("What ponies did Tom Crean have?",)


def no_record(chat: ChatRequest) -> str:
    return "NO_RECORD"


def test_a_model_is_not_asked_for_the_suggestion(sample_project: Path) -> None:
    with Server(answer=no_record) as server, index_behind(server, sample_project) as index:
        answer = index.local(THEMES)
        assert answer.usage.calls == 1
        chats = [asked for asked in server.requests if "chat" in asked.path]
        assert len(chats) == 1
    assert answer.suggestion is not None
    assert answer.suggestion.method == "global"


def test_a_named_entity_is_sent_from_global_to_local(sample_project: Path) -> None:
    with Server(answer=no_record) as server, index_behind(server, sample_project) as index:
        found = index.global_("Where was Frank Wild born?")
        unknown = index.global_("Where was Marie Curie born?")
    assert found.suggestion is not None
    assert found.suggestion.method == "local"
    assert unknown.outcome is Outcome.NO_EVIDENCE
    assert unknown.suggestion is None


def test_a_command_is_quoted_for_the_shell() -> None:
    suggestion = Suggestion("global", ("Who's who; rm?",), "Why.", ("--root", "a b"))
    assert suggestion.command == "graphrag-query global --root 'a b' 'Who'\"'\"'s who; rm?'"
    assert str(suggestion) == f"Why. Try: {suggestion.command}"
    dashed = Suggestion("global", ("-themes?",), "Why.", ("--root", "a"))
    assert dashed.command == "graphrag-query global --root a -- '-themes?'"
