"""Corpora of a document or a few: as careful as large ones, and with themes in any language."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from tests.fixtures.cases import cases
from tests.fixtures.small_projects import index_texts

SOCIETY = "Karl Ost is the treasurer of the Blue Lamp Society. The society owns a house in Riga."
OPENING = "The largest themes of the documents"


@pytest.fixture(scope="module")
def of_size(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Index]:
    """Open the index of a text and of a number of others on other people and places."""

    def open_index(n: int) -> Index:
        names, places = ["Maria Lund", "Peter Holm", "Ida Krog"], ["Oslo", "Turku", "Visby"]
        things = ["bakery", "ferry", "school", "museum"]
        others = [
            f"{names[i % 3]} runs the {things[i % 4]} in {places[i % 3]}. {names[(i + 1) % 3]} "
            f"visited {places[(i + 2) % 3]} in {1900 + i} and bought a {things[(i + 1) % 4]}."
            for i in range(n)
        ]
        return index_texts(tmp_path_factory.mktemp(f"of{n}"), [SOCIETY, *others])

    return cache(open_index)


@cases("question, is_answered")
@pytest.mark.parametrize("n_others", [0, 3, 40])
def test_what_no_statement_says_is_refused_at_any_size(
    of_size: Callable[[int], Index], question: str, is_answered: bool, n_others: int
) -> None:
    answer = of_size(n_others).local(question)
    assert answer.outcome is (Outcome.ANSWERED if is_answered else Outcome.NO_EVIDENCE)
    if is_answered:
        assert answer.citations[0].document == "0.txt"


@cases("texts, about_all, about_one")
def test_themes_are_told_in_any_language(
    tmp_path: Path, texts: list[str], about_all: list[str], about_one: list[str]
) -> None:
    with index_texts(tmp_path, texts) as index:
        for question in about_all:
            answer = index.global_(question)
            assert (answer.outcome, answer.text[: len(OPENING)]) == ("answered", OPENING), question
        for question in about_one:
            assert not index.global_(question).text.startswith(OPENING), question


@cases("question")
def test_a_question_that_names_nothing_gets_the_themes(index: Index, question: str) -> None:
    assert index.global_(question).text.startswith(OPENING)


def test_a_question_about_something_else_gets_no_themes(index: Index) -> None:
    for question in ("What is quantum physics?", "Give me a recipe for sourdough"):
        assert index.global_(question).outcome is Outcome.NO_EVIDENCE
