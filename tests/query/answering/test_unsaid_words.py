"""The nearest sentences of questions that no sentence answers clearly."""

import pytest

from graphrag_query.answering.answer_ranking import rank_answers
from graphrag_query.answering.extractive import Candidate
from graphrag_query.answering.unsaid_words import (
    choose_nearest,
    introduce_nearest,
    state_what_is_unsaid,
)
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
LEBEN = (
    "{name} wurde in Graz geboren und studierte Recht.",
    "{name} schrieb einen Roman über das Meer.",
    "{name} zog in ein Dorf an der Küste und hielt Bienen.",
    "{name} mochte Musik und lange Spaziergänge.",
    "Der Garten von {name} stand Besuchern offen.",
)


def candidates_of(life: tuple[str, ...], name: str) -> list[Candidate]:
    return [Candidate(text.format(name=name), 0, 0, 0) for text in life]


@pytest.mark.parametrize(
    ("question", "life", "said"),
    [
        ("Which animals did Tom Berg raise?", LIFE, "kept bees"),
        ("Which insects lived with Tom Berg?", LIFE, "kept bees"),
        ("What hobbies did Tom Berg enjoy?", LIFE[:2] + LIFE[3:], "walking and music"),
        ("What did reviewers say about the book of Tom Berg?", LIFE, "Critics praised"),
        ("Welche Insekten lebten bei Tom Berg?", LEBEN, "hielt Bienen"),
        ("Welche Hobbys pflegte Tom Berg?", LEBEN, "Musik"),
    ],
)
def test_what_is_most_similar_to_the_lacking_words_is_near_too(
    index: Index, question: str, life: tuple[str, ...], said: str
) -> None:
    asked = Question(question, index.store)
    first, second = choose_nearest(asked, candidates_of(life, "Tom Berg"))
    assert first.text == life[0].format(name="Tom Berg")
    assert said in second.text


def test_the_first_sentence_is_enough_if_it_is_most_similar_to_the_lacking_words(
    index: Index,
) -> None:
    first, *others = candidates_of(LIFE, "Tom Berg")
    asked = Question("Which university degree did Tom Berg take?", index.store)
    assert choose_nearest(asked, [first, *others]) == [first]


def test_the_second_sentence_is_left_out_if_both_are_long(index: Index) -> None:
    first, *_, bees = candidates_of(LIFE[:4], "Tom Berg")
    asked = Question("Which animals did Tom Berg raise?", index.store)
    long = Candidate(f"{bees.text[:-1]}{' and more bees' * 13}.", 0, 0, 0)
    assert choose_nearest(asked, [first, long]) == [first]


def test_words_with_hyphens_are_quoted_as_a_whole(index: Index) -> None:
    asked = Question("What did Tom Berg think of e-mail and co-operation?", index.store)
    before = introduce_nearest(asked, candidates_of(LIFE, "Tom Berg"), "")
    assert before.endswith(' without "e-mail", "co-operation":')


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("Olga Nowak has three ovens in her bakery.", True),
        ("Olga Nowak has no ovens.", True),
        ("Olga Nowak bakes in two, of the kind that is called ovens.", True),
        ("Olga Nowak bakes 340,000 loaves a year in her ovens.", False),
        ("Olga Nowak bakes in a bakery with ovens.", False),
        ("Jan Kowal has three ovens.", False),
    ],
)
def test_a_number_of_other_things_is_no_count(index: Index, text: str, is_told: bool) -> None:
    texts = (text, "Olga Nowak was born in Graz.", "Olga Nowak sells bread.")
    candidates = [Candidate(text, i, 0, len(text)) for i, text in enumerate(texts)]
    asked = Question("How many ovens does Olga Nowak have?", index.store)
    unsaid = state_what_is_unsaid(asked, rank_answers(asked, candidates, {}), candidates, {})
    assert unsaid == ("" if is_told else "No sentence that was read on this says how many.")


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many kids does Olga Nowak have?", "Olga Nowak has three sons."),
        ("How many employees does Olga Nowak have?", "Olga Nowak has a staff of 40."),
        ("How many cars does Olga Nowak own?", "Olga Nowak owns five vehicles."),
        ("How many siblings does Olga Nowak have?", "Olga Nowak has two brothers."),
        ("How many languages does Olga Nowak speak?", "Olga Nowak speaks Polish, Czech and Thai."),
    ],
)
def test_a_number_of_what_is_nearly_the_same_is_a_count(
    index: Index, question: str, text: str
) -> None:
    texts = (text, "Olga Nowak was born in Graz.", "Olga Nowak sells bread.")
    candidates = [Candidate(text, i, 0, len(text)) for i, text in enumerate(texts)]
    asked = Question(question, index.store)
    assert not state_what_is_unsaid(asked, rank_answers(asked, candidates, {}), candidates, {})
