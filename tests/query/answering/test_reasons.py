"""Answers to why: what is asked, with the sentence that gives the reason."""

import pytest

from graphrag_query.index import Index
from tests.fixtures.sentence_answers import ask


@pytest.mark.parametrize("reverse", [False, True])
def test_a_purpose_is_a_reason(index: Index, *, reverse: bool) -> None:
    texts = ["Olga Nowak went to Altdorf to find work.", "Olga Nowak went to Altdorf in May."]
    question = "Why did Olga Nowak go to Altdorf?"
    answer = ask(index, question, texts[::-1] if reverse else texts)
    assert answer.citations[0].quote == texts[0]


def test_what_is_asked_is_quoted_with_the_sentence_behind_it(index: Index) -> None:
    text = "The mill of Altdorf is not safe. Its beams are rotten. The miller lives in Graz."
    answer = ask(index, "Why is the mill of Altdorf not safe?", [text])
    assert answer.text.startswith("The mill of Altdorf is not safe. Its beams are rotten. [1]")


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        (
            "Why did the Bank of Altdorf raise its rate?",
            "The Bank of Altdorf raised its rate in June 2020, since prices had risen.",
            "Its president Paul Stern resigned on 4 July 2020.",
        ),
        (
            "Why was the hall of Altdorf closed?",
            "The hall of Altdorf was closed in June, as the roof leaked.",
            "It was built in 1950.",
        ),
        (
            "Why did the mill of Altdorf close?",
            "Hoping for a sale, the owner had the mill of Altdorf closed.",
            "It was built in 1950.",
        ),
        (
            "Why did the mill of Altdorf close?",
            "Since the oven broke, the mill of Altdorf closed.",
            "They drank tea with the miller of Graz.",
        ),
        (
            "Why was the pool of Altdorf closed?",
            "The pool of Altdorf was closed.",
            "A new gym was opened in the town.",
        ),
        (
            "Pourquoi le moulin d'Altdorf a-t-il fermé ?",
            "Comme le toit fuyait, le moulin d'Altdorf a fermé.",
            "Il est rouge et assez grand.",
        ),
        (
            "¿Por qué cerró el molino de Altdorf?",
            "Como llovía, cerró el molino de Altdorf.",
            "Su puerta es roja y muy grande.",
        ),
        (
            "Warum schloss die Mühle von Altdorf?",
            "Durch ein Hochwasser schloss die Mühle von Altdorf.",
            "Sie ist rot und sehr groß.",
        ),
    ],
)
def test_what_follows_a_reason_or_another_subject_is_not_quoted_with_it(
    index: Index, question: str, first: str, second: str
) -> None:
    answer = ask(index, question, [f"{first} {second}"])
    assert answer.citations[0].quote == first


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (
            "Why is the mill of Altdorf closed?",
            "The mill of Altdorf is closed. It lost its old roof.",
        ),
        (
            "Why is the mill of Altdorf closed?",
            "The mill of Altdorf has been closed since May. This is due to a flood.",
        ),
        (
            "Why is the mill of Altdorf closed?",
            "The mill of Altdorf is closed. The reason is a flood.",
        ),
        (
            "Warum ist die Mühle von Altdorf zu?",
            "Die Mühle von Altdorf ist zu. Ihr Dach ist kaputt.",
        ),
    ],
)
def test_a_reason_behind_what_is_asked_is_quoted_with_it(
    index: Index, question: str, text: str
) -> None:
    assert ask(index, question, [text]).citations[0].quote == text
