"""The sentences that are evidence for an answer, and those that only share a word with it."""

from collections.abc import Sequence

import numpy as np

from graphrag_query.answering.evidence import keep_related, leave_out_unrelated
from graphrag_query.answering.extractive import Candidate, RankedSentence
from graphrag_query.index import Index
from graphrag_query.question.question import Question

VECTOR = np.zeros(3, np.float32)


def rank(
    text: str,
    *,
    similarity: float = 0.1,
    coverage: float = 0.0,
    is_about_name: bool = False,
    in_turn: bool = False,
) -> RankedSentence:
    candidate = Candidate(text, 0, 0, len(text), in_turn=in_turn)
    return RankedSentence(candidate, 1.0, similarity, coverage, VECTOR, is_about_name=is_about_name)


def texts_of(sentences: Sequence[RankedSentence]) -> list[str]:
    return [sentence.candidate.text for sentence in sentences]


def test_a_question_for_yes_or_no_is_answered_by_a_sentence_about_it(index: Index) -> None:
    question = Question("Was Altdorf invited to the fair?", index.store)
    evidence = [
        rank("That will do her good."),
        rank("Altdorf was turned away.", is_about_name=True),
        rank("All came to the fair.", coverage=0.3),
    ]
    assert texts_of(keep_related(question, evidence)) == [
        "Altdorf was turned away.",
        "All came to the fair.",
    ]


def test_a_question_for_yes_or_no_has_no_evidence_without_a_sentence_about_it(
    index: Index,
) -> None:
    question = Question("Was Altdorf invited to the fair?", index.store)
    assert texts_of(keep_related(question, [rank("That will do her good.")])) == []


def test_a_reply_in_a_chat_needs_no_word_of_the_question(index: Index) -> None:
    question = Question("Was Altdorf invited to the fair?", index.store)
    evidence = [rank("Yes.", in_turn=True), rank("All came to the fair.", coverage=0.3)]
    assert keep_related(question, evidence) == evidence


def test_a_sentence_that_shares_a_word_by_chance_is_left_out(index: Index) -> None:
    question = Question("What share of votes did Olga Nowak win?", index.store)
    best = rank("Olga Nowak won 46 percent.", coverage=0.6, is_about_name=True)
    chance = rank("They share a belief.", coverage=0.2)
    similar = rank("The vote was counted.", coverage=0.2, similarity=0.5)
    assert leave_out_unrelated(question, [best, chance, similar]) == [best, similar]
    # If the best sentence is about none of the names, another one may be better.
    assert leave_out_unrelated(question, [similar, chance]) == [similar, chance]
