"""The nearest sentences of questions that no sentence answers clearly."""

from graphrag_query.answering.extractive import Candidate
from graphrag_query.answering.unsaid_words import introduce_nearest
from graphrag_query.index import Index
from graphrag_query.question.question import Question

LIFE = (
    "{name} was born in Graz and studied law.",
    "{name} wrote a novel about the sea.",
    "Critics praised the novel.",
    "In 1950, {name} moved to a village near the coast and kept bees.",
    "{name} liked walking and music.",
    "The garden of {name} was open to visitors.",
)


def candidates_of(life: tuple[str, ...], name: str) -> list[Candidate]:
    return [Candidate(text.format(name=name), 0, 0, 0) for text in life]


def test_words_with_hyphens_are_quoted_as_a_whole(index: Index) -> None:
    asked = Question("What did Tom Berg think of e-mail and co-operation?", index.store)
    before = introduce_nearest(asked, candidates_of(LIFE, "Tom Berg"), "")
    assert before.endswith(' without "e-mail", "co-operation":')
