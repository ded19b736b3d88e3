"""Answers in a few words about two things: which of them, and whether both."""

from collections.abc import Sequence

import pytest

from graphrag_query.index import Index
from tests.fixtures.direct_answers import answer


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Are Olga Nowak and Jan Blum both painters?", "Yes"),
        ("Are Olga Nowak and Ada Fox both painters?", ""),
        ("Is Olga Nowak a painter like Jan Blum?", ""),
        ("Are Olga Nowak and Jan Blum both from the same town?", ""),
        ("Are Olga Nowak and Jan Blum both not painters?", ""),
    ],
)
def test_both_need_a_sentence_that_says_so(index: Index, question: str, expected: str) -> None:
    texts = ["Olga Nowak is a painter.", "Jan Blum was a painter.", "Ada Fox is a singer."]
    assert answer(index, question, texts) == expected


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        (
            "Who is older, Olga Nowak or Jan Blum?",
            ["Jan Blum (born 7 May 1920) is a painter.", "Olga Nowak was born in 1910."],
            "Olga Nowak",
        ),
        (
            "Which film has the director born first, Alpha or Beta?",
            ["Alpha is a film of 1920.", "Beta is a film of 1910."],
            "",
        ),
        (
            "Was Olga Nowak or Jan Blum born first?",
            ["Jan Blum (born 7 May 1920) is a painter.", "Olga Nowak was born in 1910."],
            "Olga Nowak",
        ),
        (
            "Which town is larger, Altdorf or Neustadt?",
            ["Altdorf is a town of 1,200 people.", "The town of Neustadt has 970 people."],
            "Altdorf",
        ),
        (
            # "Lager" is a word for less in Dutch.
            "Welches Lager ist größer, Altdorf oder Neustadt?",
            ["Im Lager Altdorf lebten 1.200 Menschen.", "Im Lager Neustadt lebten 970 Menschen."],
            "Altdorf",
        ),
        (
            "Wer ist jünger, Olga Nowak oder Jan Blum?",
            ["Jan Blum wurde 1920 geboren.", "Olga Nowak wurde 1910 geboren."],
            "Jan Blum",
        ),
        (
            "Qui est plus jeune, Olga Nowak ou Jan Blum ?",
            ["Jan Blum est né en 1920.", "Olga Nowak est née en 1910."],
            "Jan Blum",
        ),
        (
            "¿Quién es más joven, Olga Nowak o Jan Blum?",
            ["Jan Blum nació en 1920.", "Olga Nowak nació en 1910."],
            "Jan Blum",
        ),
        (
            "Who is older, Olga Nowak or Jan Blum?",
            ["Jan Blum is a painter.", "Olga Nowak was born in 1910."],
            "",
        ),
        (
            "Who is older, Olga Nowak or Jan Blum?",
            ["Jan Blum was born in 1920.", "Olga Nowak left the town in 1910."],
            "",
        ),
        (
            "Which mill is older, Altdorf or Neustadt?",
            [
                "The mill of Altdorf (1720) is large.",
                "Neustadt (1801) is a mill that burned in 1910.",
            ],
            "Altdorf",
        ),
        (
            "Which ship is older, Altdorf or Neustadt?",
            ["Altdorf (15 May 1920) is a ship.", "Neustadt (7 June 1910) is a ship."],
            "Neustadt",
        ),
        (
            "Who was born first, Olga Nowak or Jan Blum?",
            ["Jan Blum (7 May 1920 - 1990) painted.", "Olga Nowak (1910–1980) sang."],
            "Olga Nowak",
        ),
        (
            "Who was born first, Olga Nowak or Jan Blum?",
            ["Jan Blum was born in 1920.", "Olga Nowak left the town in 1910."],
            "",
        ),
    ],
)
def test_one_of_two_things_is_chosen_by_values_of_both(
    index: Index, question: str, texts: Sequence[str], expected: str
) -> None:
    assert answer(index, question, texts) == expected


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        (
            "Is Olga Nowak older than Jan Blum?",
            ["Olga Nowak was born in 1910.", "Jan Blum was born in 1920."],
            "Yes",
        ),
        (
            "Is Jan Blum older than Olga Nowak?",
            ["Olga Nowak was born in 1910.", "Jan Blum was born in 1920."],
            "No",
        ),
        (
            "Does Altdorf have more chairs than Neustadt?",
            ["Altdorf has 12 chairs.", "Neustadt has 1,200 chairs."],
            "No",
        ),
        ("Is Altdorf older than Neustadt?", ["Altdorf is older than Neustadt."], "Yes"),
        ("Is Altdorf older than Neustadt?", ["Altdorf was built in 1801."], ""),
        (
            "Ist Olga Nowak älter als Jan Blum?",
            ["Olga Nowak wurde 1930 geboren.", "Jan Blum wurde 1920 geboren."],
            "Nein",
        ),
        (
            "Est-ce que Jan Blum est plus vieux qu'Olga Nowak ?",
            ["Olga Nowak est née en 1910.", "Jan Blum est né en 1920."],
            "Non",
        ),
        (
            "Is Olga Nowak not older than Jan Blum?",
            ["Olga Nowak was born in 1910.", "Jan Blum was born in 1920."],
            "",
        ),
        (
            "Is Olga Than older, as Jan Blum is?",
            ["Olga Than was born in 1910.", "Jan Blum was born in 1920."],
            "",
        ),
        (
            "Does House Without Doors have more chairs than Neustadt?",
            ["House Without Doors has 12 chairs.", "Neustadt has 1,200 chairs."],
            "No",
        ),
    ],
)
def test_a_comparison_of_two_things_is_decided_by_values_of_both(
    index: Index, question: str, texts: Sequence[str], expected: str
) -> None:
    assert answer(index, question, texts) == expected
