"""Sentences that say who or what a thing is."""

import pytest

from graphrag_nlp.text.languages import language_of
from graphrag_nlp.text.normalize import stem_word
from graphrag_query.answering.answer_ranking import rank_answers
from graphrag_query.answering.definitions import (
    SHARE_OF_GENERAL,
    SHARE_OF_LOOSE,
    SHARE_OF_ROLE,
    rate_definition,
)
from graphrag_query.answering.extractive import Candidate, split_into_candidates
from graphrag_query.index import Index
from graphrag_query.question.question import Question


@pytest.mark.parametrize(
    ("code", "text", "title", "expected"),
    [
        ("en", "Alpha is a ship.", "", True),
        ("en", "Alpha's captain is Olga Nowak.", "", False),
        ("en", "Alphas' captain is Olga Nowak.", "", False),
        ("en", "'Alphas' is a film.", "", True),
        ("en", "Alpha stands for ship.", "", True),
        ("en", "Alpha stands on a hill.", "", False),
        ("en", "Olga bought Alpha, a small ship.", "", True),
        ("en", "Olga bought Alpha (1901), one of two ships.", "", True),
        ("en", "Olga bought Alpha, Beta and Gamma.", "", False),
        ("en", "<ship> (AL) A vessel of Olga Nowak.", "Alpha", True),
        ("en", "A vessel of Olga Nowak.", "Beta", False),
        ("en", "The crew is small.", "Alpha", False),
        ("de", "Alpha bedeutet Schiff.", "", True),
        ("de", "Alpha steht\nfür Schiff.", "", True),
        ("de", "Alpha steht am Hafen.", "", False),
        ("de", "Sie kaufte Alpha, ein kleines Schiff.", "", True),
        ("fr", "L'Alpha est un bateau.", "", True),
        ("fr", "Elle acheta Alpha, un petit navire.", "", True),
        ("es", "Compró Alpha, un barco pequeño.", "", True),
    ],
)
def test_a_sentence_says_what_a_thing_is(
    code: str, text: str, title: str, *, expected: bool
) -> None:
    candidate = Candidate(text, 0, 0, len(text), title=title)
    assert rate_definition(candidate, {"alpha"}, language_of(code)) == float(expected)


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("en", "The gauge at Altdorf is read by hand.", SHARE_OF_LOOSE),
        ("en", "A gauge is read by hand.", 1.0),
        ("en", "A gauge is created at night.", SHARE_OF_LOOSE),
        ("en", "Gauges are deleted by the keeper.", SHARE_OF_LOOSE),
        ("en", "The gauge was created by the town.", 1.0),
        ("en", "The gauge at Altdorf is a staff.", 1.0),
        ("de", "Die Gauge bei Altdorf wird gelesen und ist alt.", SHARE_OF_LOOSE),
        ("de", "Eine Gauge ist alt.", 1.0),
    ],
)
def test_one_thing_of_a_kind_defines_the_kind_less(code: str, text: str, expected: float) -> None:
    rated = rate_definition(Candidate(text, 0, 0, len(text)), {"gaug"}, language_of(code))
    assert rated == expected


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("en", "A gauge shows the height.", SHARE_OF_GENERAL),
        ("en", "The gauge shows the height.", 0.0),
        ("de", "Eine Gauge zeigt die Höhe.", SHARE_OF_GENERAL),
        ("en", "It belonged to the old miller Gauge from Graz.", SHARE_OF_ROLE),
        ("de", "Sie gehört dem Müller Gauge aus Graz.", SHARE_OF_ROLE),
        ("en", "It belonged to the mill of Gauge.", 0.0),
        ("en", "It belonged to the miller, Gauge said.", 0.0),
        ("en", "It belonged to Miller Gauge.", 0.0),
    ],
)
def test_a_general_statement_and_a_role_define_less(code: str, text: str, expected: float) -> None:
    rated = rate_definition(Candidate(text, 0, 999, 999), {"gaug"}, language_of(code))
    assert rated == expected


def test_what_a_person_says_does_not_say_who_the_person_is(index: Index) -> None:
    text = (
        "OlgaNowak: Hi Jan, I like the soup here. The soup was really good.\n"
        "JanBlum: This is Olga Nowak, a cook of the mill.\n"
        "OlgaNowak: Please come to the party on Sunday.\n"
        "JanBlum: I will bake a cake for the party."
    )
    unit = {"human_readable_id": 0, "start_char": 0, "text": text}
    candidates = split_into_candidates([unit], {0: 1.0})
    ranked = rank_answers(Question("Who is Olga Nowak?", index.store), candidates, {})
    assert ranked[0].candidate.label == "JanBlum"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "The gauge is not even old."),
        ("de", "Die Schleuse ist nicht einmal alt."),
        ("es", "La esclusa tampoco es tan antigua."),
    ],
)
def test_what_a_thing_is_not_is_a_weak_definition(code: str, text: str) -> None:
    candidate = Candidate(text, 0, 500, 500 + len(text))
    asked = {stem_word(word) for word in ("gauge", "schleuse", "esclusa")}
    assert rate_definition(candidate, asked, language_of(code)) == SHARE_OF_LOOSE
