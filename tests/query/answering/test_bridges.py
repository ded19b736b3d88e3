"""The order of two sentences that answer a question together."""

import pytest

from graphrag_query.answering.bridges import put_answer_before_bridge
from graphrag_query.answering.extractive import Candidate
from graphrag_query.index import Index
from graphrag_query.question.question import Question

DIRECTED = "Alpha Road is a film directed by Ann Bell."
BORN = "Ann Bell was born in 1910 in Bern."


def order(index: Index, question: str, texts: list[str]) -> list[str]:
    chosen = [Candidate(text, i, 0, len(text)) for i, text in enumerate(texts)]
    found = put_answer_before_bridge(Question(question, index.store), chosen, {})
    return [candidate.text for candidate in found]


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        ("In what year was the director of Alpha Road born?", [DIRECTED, BORN], [BORN, DIRECTED]),
        # Nothing leads to the other sentence.
        (
            "In what year was the director of Alpha Road born?",
            [DIRECTED, "Carl Weber was born in 1920."],
            [DIRECTED, "Carl Weber was born in 1920."],
        ),
        # The first sentence has a year, too.
        (
            "In what year was the director of Alpha Road born?",
            [f"{DIRECTED[:-1]} in 1950.", BORN],
            [f"{DIRECTED[:-1]} in 1950.", BORN],
        ),
        # The other sentence names what the question does, and leads to the first one.
        (
            "In what year was the mill by Ann Bell near Alpha Road built?",
            [
                "The mill was built for Carl Weber.",
                "Carl Weber met Ann Bell near Alpha Road in 1910.",
            ],
            [
                "The mill was built for Carl Weber.",
                "Carl Weber met Ann Bell near Alpha Road in 1910.",
            ],
        ),
        # No year is wanted.
        ("Who was the director of Alpha Road?", [DIRECTED, BORN], [DIRECTED, BORN]),
    ],
)
def test_a_sentence_that_only_leads_to_the_answer_comes_behind_it(
    index: Index, question: str, texts: list[str], expected: list[str]
) -> None:
    assert order(index, question, texts) == expected
