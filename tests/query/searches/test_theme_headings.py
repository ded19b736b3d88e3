"""Headings of the sections of an answer."""

import pytest

from graphrag_query.answering.theme_answer import Point
from graphrag_query.index import Index
from graphrag_query.searches.theme_headings import (
    _choose_phrases,
    _shorten,
    _weigh_phrases,
    _WordCounts,
    name_by_contents,
)
from tests.fixtures.fake_llm import question_to

FOOD = "In Norway Axel Holst and Theodor Frølich produced scurvy in guinea pigs in 1907"
LESSON = "The winter of 1898 in the Belgica was an early lesson."


def test_a_section_has_the_headline_of_the_document_of_its_best_sentence(index: Index) -> None:
    units = index.store.text_units(range(1_000))
    numbers = [next(n for n in units if text in units[n]["text"]) for text in (FOOD, LESSON)]
    sections = [
        [Point(text, number, 1.0)] for text, number in zip((FOOD, LESSON), numbers, strict=True)
    ]
    names = name_by_contents(question_to(index, "What made men ill?"), sections, units)
    # No heading is used twice.
    assert names[0] == "Scurvy and Food in the Heroic Age"
    assert names[1]
    assert "Scurvy" not in names[1]


@pytest.mark.parametrize(
    ("headline", "short"),
    [
        ("The Ross Ice Shelf, then called the Great Ice Barrier", "The Ross Ice Shelf"),
        ("Mayor opens mill, bakery and school", "Mayor opens mill, bakery and school"),
        ("Oslo: one two three four five six seven eight nine", ""),
        ("one two three four five six seven eight nine ten eleven twelve thirteen", ""),
    ],
)
def test_long_headlines_end_at_their_first_mark(headline: str, short: str) -> None:
    assert _shorten(headline if short else f"{headline} ten eleven twelve") == short


def test_phrases_of_a_section_are_rare_elsewhere() -> None:
    said = "There is a worrying rise in knife crime in the constituency of the Minister."
    texts = [said + " Knife crime is rising.", "The Minister spoke.", "The constituency is large."]
    units = {n: {"text": text, "language": "en"} for n, text in enumerate(texts)}
    weights = _weigh_phrases([Point(said, 0, 1.0)], units, _WordCounts(units), {0}, {"crime"})
    assert max(weights, key=lambda phrase: weights[phrase]) == "knife crime"
    assert "Minister" not in weights


def test_parts_of_headings_share_no_words() -> None:
    weights = {"knife crime": 3.0, "rise of crime": 2.0, "the police": 1.0}
    assert _choose_phrases(weights, [], 2) == ["knife crime", "the police"]
    assert _choose_phrases(weights, ["Police"], 2) == ["knife crime"]
