"""Further sentences behind the best one, and short sentences that answer."""

import pytest

from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.answering.extractive import Candidate, split_into_candidates
from graphrag_query.answering.further_sentences import adds_nothing, cut_dateline, is_short_answer
from graphrag_query.index import Index
from graphrag_query.question.question import Question

TABLE = """| id | name | maker | state |
| --- | --- | --- | --- |
| M-1 | Lathe Alpha | Altdorf Works | in use |
| M-2 | Drill Beta | Graz Works | under repair |
"""


def test_only_cells_with_a_word_of_the_question_are_quoted_further(index: Index) -> None:
    unit = {"human_readable_id": 0, "start_char": 0, "text": TABLE}
    cells = split_into_candidates([unit], {0: 1.0})
    asked = AskedWords(Question("Which state has the drill Beta?", index.store))
    kept = [c.text for c in cells if c.label and not adds_nothing(c, asked)]
    assert kept == ["in use", "Drill Beta", "under repair"]


@pytest.mark.parametrize(
    ("text", "label", "expected"),
    [
        ("And the party?", "Jan", True),
        ("How about tea at the mill?", "Jan", False),
        ("Home", "Manual", True),
        ("The mill", "Manual", False),
        ("See you tomorrow.", "Jan", False),
        ("Thanks!", "Jan", False),
        ("| Name | Place |", "", True),
        ("Olga baked bread", "", False),
    ],
)
def test_questions_and_values_without_a_word_of_the_question_add_nothing(
    index: Index, text: str, label: str, *, expected: bool
) -> None:
    asked = AskedWords(Question("Who drank tea at the mill?", index.store))
    assert adds_nothing(Candidate(text, 0, 0, len(text), label=label), asked) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Four houses collapsed.", True),
        ("Houses collapsed.", False),
        ("Four houses burned.", False),
        ("Four collapsed houses", False),
    ],
)
def test_a_short_sentence_with_all_words_of_the_question_may_answer(
    index: Index, text: str, *, expected: bool
) -> None:
    question = Question("How many houses collapsed?", index.store)
    candidate = Candidate(text, 0, 0, len(text), prose=False)
    assert is_short_answer(candidate, question) is expected


def test_one_or_two_words_of_a_speaker_add_nothing(index: Index) -> None:
    asked = AskedWords(Question("Who drank tea at the mill?", index.store))
    turn = Candidate("Thanks!", 0, 0, 7, label="Jan", in_turn=True)
    assert adds_nothing(turn, asked)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("ROME, May 3. /ANSA/. Ann Bell won.", "Ann Bell won."),
        ("/ANSA/.Ann Bell won.", "Ann Bell won."),
        ("BERN (AP) - Ann Bell won.", "Ann Bell won."),
        ("LONDON, May 3 (Reuters) - Ann Bell won.", "Ann Bell won."),
        ("BERLIN (dpa) – Ann Bell won.", "Ann Bell won."),
        ("NATO (an alliance) - the oldest - grew.", "NATO (an alliance) - the oldest - grew."),
        ("NATO (Brussels) grew.", "NATO (Brussels) grew."),
        ("DNS (Domain Name System) - The system of names.", None),
        ("OPEC (Oil cartel) – The group of exporters.", None),
        ("(AP) - Ann Bell won.", None),
    ],
)
def test_datelines_are_not_quoted(index: Index, text: str, rest: str | None) -> None:
    asked = AskedWords(Question("Who won?", index.store))
    rest = rest or text
    cut = cut_dateline(Candidate(text, 0, 10, 10 + len(text)), asked)
    assert cut.text == rest
    assert cut.start_char == 10 + len(text) - len(rest)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is NASA?", "NASA (USA) - The agency for space flights."),
        ("What does MOMA show?", "MOMA (NYC) – Modern art is shown there."),
        ("Who won in Bern?", "BERN (AP) - Ann Bell won."),
    ],
)
def test_a_term_of_the_question_is_no_dateline(index: Index, question: str, text: str) -> None:
    candidate = Candidate(text, 0, 0, len(text))
    assert cut_dateline(candidate, AskedWords(Question(question, index.store))) == candidate
