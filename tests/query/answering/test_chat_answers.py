"""Answers from chats: who said what."""

import pytest

from graphrag_query.answering.answer_ranking import rank_answers
from graphrag_query.answering.extractive import split_into_candidates
from graphrag_query.index import Index
from graphrag_query.question.question import Question

CHAT = """Time: 20260408_1900
OlgaNowak: Hi! The soup was good.
JanBlum: Please come to the party on Sunday. I will bake a cake.
OlgaNowak: Thanks, I like a party!"""
UNIT = {"human_readable_id": 0, "start_char": 0, "text": CHAT}


@pytest.mark.parametrize(
    ("question", "speaker"),
    [
        ("Who invites Olga to come to the party?", "JanBlum"),
        ("What does Olga Nowak like?", "OlgaNowak"),
    ],
)
def test_the_speaker_answers_who_and_is_named_otherwise(
    index: Index, question: str, speaker: str
) -> None:
    candidates = split_into_candidates([UNIT], {0: 1.0})
    best = rank_answers(Question(question, index.store), candidates, {})[0].candidate
    assert best.label == speaker
    assert best.quotation.startswith(f"{speaker} (20260408_1900): ")
