"""Answers from chats: who said what."""

import pytest

from graphrag_query.answering.answer_ranking import rank_answers
from graphrag_query.answering.extractive import split_into_candidates
from graphrag_query.answering.subjects import find_questions_before
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


ASKED = """Olga (09:12): Where did you leave the projector after the talk? I need it at ten.
Jan (09:15): Oh right, sorry about that. I had to run. It is in the cupboard next to the stairs.
Olga (09:20): Thanks! Which boat is the fastest? Tea, perhaps?
Rosa (09:22): Oh yes, I like tea."""
ASKED_UNIT = {"human_readable_id": 0, "start_char": 0, "text": ASKED}


@pytest.mark.parametrize("in_turns", [True, False])
def test_a_turn_replies_to_the_last_question_of_the_turn_before(*, in_turns: bool) -> None:
    candidates = split_into_candidates([ASKED_UNIT], {0: 1.0})
    places = find_questions_before(candidates, in_turns=in_turns)
    replies = {
        c.text: candidates[place].text
        for c, place in zip(candidates, places, strict=True)
        if place is not None
    }
    question = "Where did you leave the projector after the talk?"
    asked_before = {
        "Oh right, sorry about that.": question,
        "I had to run.": question,
        "It is in the cupboard next to the stairs.": question,
    }
    asked_just_before = {
        "I need it at ten.": question,
        "Tea, perhaps?": "Which boat is the fastest?",
        "Oh yes, I like tea.": "Tea, perhaps?",
    }
    assert replies == asked_just_before | (asked_before if in_turns else {})


@pytest.mark.parametrize(
    ("question", "speaker"),
    [("Where did Jan leave the projector?", "Jan"), ("Who asked for the projector?", "Olga")],
)
def test_the_turn_after_a_question_answers_it(index: Index, question: str, speaker: str) -> None:
    candidates = split_into_candidates([ASKED_UNIT], {0: 1.0})
    best = rank_answers(Question(question, index.store), candidates, {})[0].candidate
    assert best.label == speaker
