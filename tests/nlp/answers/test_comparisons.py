"""Comparisons of two named things by a year or a number of each."""

import pytest

from graphrag_nlp.answers.comparisons import compare_names
from graphrag_nlp.answers.features import Asked
from graphrag_nlp.answers.statements import Passage, find_statements, find_stems
from graphrag_nlp.text.languages import language_of
from tests.fixtures.cases import cases

LIVES = {
    "Ann Bell": "Ann Bell (3 May 1950 – 2001) was a painter. She moved in 1990.",
    "Otto Lenz": "Otto Lenz was born in 1931 in Bern. He has lived there since 1980.",
}
TOWNS = {
    "Altdorf": "Altdorf is a town of 9,500 inhabitants. It has 3 mills.",
    "Neustadt": "Neustadt is a town with 12,000 inhabitants.",
}


def compare(question: str, documents: dict[str, str], code: str = "en") -> str:
    """Return the name that a comparison chooses, or ""."""
    language = language_of(code)
    words = tuple(sorted(find_stems(question) - language.function_words - {"wer"}))
    asked = Asked(question, language, words, tuple(sorted(documents, key=question.find)))
    pairs = [
        (statement, Passage(i, text, title))
        for i, (title, text) in enumerate(documents.items())
        for statement in find_statements(text)
    ]
    found = compare_names(asked, [s for s, _ in pairs], [p for _, p in pairs])
    if found is None:
        return ""
    first = pairs[found.statements[0]][1]
    assert first.title == found.name
    return found.name


@cases("question, code, documents, name")
def test_a_year_or_a_number_of_each_decides(
    question: str, code: str, documents: dict[str, str], name: str
) -> None:
    assert compare(question, documents, code) == name


@pytest.mark.parametrize(
    ("question", "documents"),
    [
        ("Did Ann Bell meet Otto Lenz?", LIVES),
        ("Is Ann Bell older than Otto Lenz?", LIVES),
        ("Who painted more, Ann Bell or Otto Lenz?", LIVES),
        ("Who is older, Ann Bell or Otto Lenz?", {**LIVES, "Otto Lenz": "Otto Lenz sang."}),
        (
            "Which has more inhabitants, Altdorf or Neustadt?",
            {**TOWNS, "Neustadt": "Neustadt has 9,500 inhabitants."},
        ),
    ],
    ids=("no order", "yes or no", "no number", "no year", "equal"),
)
def test_nothing_is_chosen_without_two_values(question: str, documents: dict[str, str]) -> None:
    assert compare(question, documents) == ""
