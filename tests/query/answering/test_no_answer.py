"""Questions that nothing answers, also in another language than the documents."""

from types import SimpleNamespace
from typing import Any

import pytest

from graphrag_query.answer import Outcome
from graphrag_query.answering.no_answer import refuse_in_words
from graphrag_query.index import Index
from tests.fixtures.sentence_answers import ask

ABOUT_BREAD = "The baker sells bread and rolls at the old market on Fridays."


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who won the chess tournament?", "No passage that was read answers this."),
        (
            "Wer gewann das Schachturnier?",
            "Keine gelesene Stelle beantwortet das. Die Dokumente sind auf Englisch.",
        ),
        (
            "Qui a gagné le tournoi d’échecs ?",
            "Aucun passage lu n’y répond. Les documents sont en anglais.",
        ),
        (
            "¿Quién ganó el torneo de ajedrez?",
            "Ningún pasaje leído responde a esto. Los documentos están en inglés.",
        ),
    ],
)
def test_a_refusal_speaks_the_language_of_the_question(
    index: Index, question: str, expected: str
) -> None:
    answer = ask(index, question, [ABOUT_BREAD])
    assert answer.text == expected
    assert answer.outcome is Outcome.NO_EVIDENCE


def test_an_unknown_language_gets_no_word_on_languages(index: Index) -> None:
    assert ask(index, "1 1", [ABOUT_BREAD]).text == "No passage that was read answers this."


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        ("de en", "Los documentos están en alemán e inglés."),
        ("de fr", "Los documentos están en alemán y francés."),
    ],
)
def test_several_languages_are_joined(languages: str, expected: str) -> None:
    store = SimpleNamespace(
        main_languages=frozenset(languages.split()), share_of_known_languages=1.0
    )
    question: Any = SimpleNamespace(language=SimpleNamespace(code="es"), index=store)
    assert refuse_in_words(question).endswith(expected)


def test_no_language_is_named_if_that_of_many_documents_is_unknown() -> None:
    store = SimpleNamespace(main_languages=frozenset(["it"]), share_of_known_languages=0.5)
    question: Any = SimpleNamespace(language=SimpleNamespace(code="en"), index=store)
    assert refuse_in_words(question) == "No passage that was read answers this."
