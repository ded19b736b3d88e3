from collections.abc import Sequence

import pytest

from graphrag_nlp.text.languages import language_of
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.question.question import Mentions
from graphrag_query.question.question_words import TextWords, language_in, name_spans
from graphrag_query.question.refusals import format_not_mentioned
from graphrag_query.question.unmentioned_names import has_full_name
from graphrag_query.store.index_store import IndexStore
from tests.fixtures.cases import cases
from tests.fixtures.fake_llm import question_to

TEXTS = [
    "Captain Scott and Douglas Mawson met Emil Racoviță at Cape Evans.",
    "Roald Amundsen stood at the South Pole. Marie Byrd Land was not yet named.",
]


@cases("question, names")
def test_runs_of_capitals_are_names(question: str, names: list[str]) -> None:
    assert [name.text for name in name_spans(question, language_in(question))] == names


@cases("question, missing")
def test_a_name_is_missing_if_no_text_holds_it_in_any_form(
    question: str, missing: list[str]
) -> None:
    language = language_in(question)
    held = TextWords(TEXTS, language)
    assert held.missing_names(name_spans(question, language)) == missing


def test_names_are_looked_for_beyond_what_was_read(store: IndexStore) -> None:
    question = "Did Albert Einstein or Emil Racovita know Drygalski and Lashly?"
    assert Mentions(store, question).unmentioned_names() == ["Albert Einstein"]


def test_a_full_name_of_two_persons_is_not_mentioned(store: IndexStore) -> None:
    # The texts have a Douglas Mawson and an Edgar Evans.
    question = "When did Douglas Evans or Edgar Evans die in Adelaide?"
    assert Mentions(store, question).unmentioned_names() == ["Douglas Evans"]
    # The texts have him with a middle name.
    assert Mentions(store, "Who was Robert Scott?").unmentioned_names() == []
    # A name that is no person's, and one that the question writes beside a nationality.
    for text in ("Where is the Nimrod Expedition?", "Who was Norwegian Amundsen?"):
        assert Mentions(store, text).unmentioned_names() == []


@cases("text, has")
def test_a_text_has_a_full_name(text: str, has: bool) -> None:
    assert has_full_name(text, "ernest", "evans") == has


@pytest.mark.parametrize("method", ["local", "basic", "global", "lazy", "drift", "ask"])
def test_every_search_refuses_a_full_name_that_no_text_has(index: Index, method: str) -> None:
    answer = index.search(method, "When did Douglas Evans die in Adelaide?")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text == "The documents do not mention Douglas Evans."
    assert any("Edgar Evans" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("names", "said"), [(["A"], "A"), (["A", "B"], "A or B"), (["A", "B", "C"], "A, B or C")]
)
def test_the_names_are_said(names: list[str], said: str) -> None:
    language = language_of("en")
    assert format_not_mentioned(names, language) == f"The documents do not mention {said}."
    german = said.replace(" or ", " oder ")
    assert (
        format_not_mentioned(names, language_of("de")) == f"Die Dokumente erwähnen {german} nicht."
    )


@cases("text, said")
@pytest.mark.parametrize("method", ["local", "global"])
def test_a_name_is_refused_in_the_language_of_the_question(
    index: Index, text: str, said: str, method: str
) -> None:
    answer = index.search(method, text)
    assert (answer.outcome, answer.text) == (Outcome.NO_EVIDENCE, said)


def test_a_name_spelt_otherwise_is_known(store: IndexStore) -> None:
    assert Mentions(store, "Who was Ernest Shakleton?").unmentioned_names() == []
    # Half of a name is not the name.
    assert Mentions(store, "Who was Xavier Shakleton?").unmentioned_names() == ["Xavier Shakleton"]


@pytest.mark.parametrize("method", ["local", "drift"])
def test_a_question_with_a_name_spelt_otherwise_is_answered(index: Index, method: str) -> None:
    answer = index.search(method, "What did Ernest Shakleton do?")
    assert answer.outcome == "answered"
    assert "Shackleton" in answer.text
    assert answer.notes[0] == "“ernest shakleton” is taken for Ernest Shackleton."


@cases("question, unseen")
def test_words_that_no_document_contains(
    index: Index, question: str, unseen: Sequence[str]
) -> None:
    assert question_to(index, question).unseen_words == unseen
