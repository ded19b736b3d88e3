"""Whoever did what a question asks about."""

import pytest

from graphrag_query.answering.agents import find_agents, is_passive
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.index import Index
from graphrag_query.question.question import Question

HOW = "How were the men rescued?"
CREW = "How did the crew rescue the men?"


@pytest.mark.parametrize(
    ("question", "sentence", "agents"),
    [
        (HOW, "In May, the vessel Alpha rescued the 22 men.", "the vessel Alpha"),
        (HOW, "The men were rescued by the Alpha, a vessel.", "the Alpha"),
        (HOW, "They stayed until the rescue by the Alpha.", "the Alpha"),
        (HOW, "A vessel saved the men.", "A vessel"),
        (HOW, "The rescued men were landed in May.", ""),
        (HOW, "They were rescued, and the men ate.", ""),
        (HOW, "They rescued the men.", ""),
        (HOW, "The men rescued the Alpha.", ""),
        ("Wie wurden die Männer gerettet?", "Ein Schiff rettete die Männer.", "Ein Schiff"),
        ("Wie wurden sie gerettet?", "Sie wurden von der Alpha gerettet.", "der Alpha"),
        ("Wie wurden sie gerettet?", "Die geretteten Männer kamen im Mai.", ""),
        (
            "Comment furent-ils sauvés ?",
            "Ils furent sauvés par le navire Alpha.",
            "le navire Alpha",
        ),
        ("¿Cómo fueron rescatados?", "Fueron rescatados por el buque Alpha.", "el buque Alpha"),
        ("How did Jan Blum die?", "Olga Nowak died with Jan Blum.", ""),
        ("How did Jan Blum die?", "Olga Nowak died beside Jan Blum.", ""),
        # What the question does already says who did it.
        (CREW, "The crew rescued the men.", ""),
        (CREW, "The vessel Alpha rescued the men.", ""),
    ],
)
def test_who_did_it_stands_before_the_verb_or_after_by(
    index: Index, question: str, sentence: str, agents: str
) -> None:
    asked = Question(question, index.store)
    found = find_agents(sentence, AskedWords(asked), asked.language, only_passive=True)
    assert "|".join(sentence[agent.start : agent.end] for agent in found) == agents


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How were the men rescued?", True),
        ("How did the men die?", False),
        ("Wie wurden die Männer gerettet?", True),
        ("Wie kamen die Männer an Bord?", False),
        ("Comment les hommes furent-ils sauvés ?", True),
        ("¿Cómo fueron rescatados los hombres?", True),
    ],
)
def test_the_passive_is_told_by_its_auxiliary(index: Index, question: str, expected: bool) -> None:
    assert is_passive(question, Question(question, index.store).language) == expected
