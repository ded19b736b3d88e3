"""The nearest sentences of questions that no sentence answers clearly."""

from dataclasses import replace

import pytest

from graphrag_query.answering.answer_ranking import rank_answers
from graphrag_query.answering.extractive import Candidate
from graphrag_query.answering.unsaid_words import (
    choose_nearest,
    introduce_nearest,
    is_unclear,
    keep_about_names,
    says_everything,
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
        ("How many husbands has Olga Nowak had?", "Olga Nowak has been married three times."),
        ("How many villagers does Olga Nowak have?", "Olga Nowak has 17 sailors at home."),
        ("How many men were killed in 1890?", "In a flood in 1890, 17 workers were killed."),
        ("How many men drowned off Dover?", "In all, 17 sailors drowned off Dover."),
        ("How many buildings were damaged?", "The storm damaged 23 churches and a pier."),
        ("How many recently published books does Olga Nowak have?", "Olga Nowak has 11 books."),
    ],
)
def test_a_number_of_what_is_nearly_the_same_is_a_count(
    index: Index, question: str, text: str
) -> None:
    texts = (text, "Olga Nowak was born in Graz.", "Olga Nowak sells bread.")
    candidates = [Candidate(text, i, 0, len(text)) for i, text in enumerate(texts)]
    asked = Question(question, index.store)
    assert not state_what_is_unsaid(asked, rank_answers(asked, candidates, {}), candidates, {})


STEPS = (
    "The mayor of Altdorf is Rita Vogel.",
    "The town hall of Altdorf was built in brick.",
    "Rita Vogel has three children and a dog.",
)


@pytest.mark.parametrize(
    ("question", "is_told"),
    [
        ("How many children does the mayor of Altdorf have?", True),
        ("How many dogs does the mayor of Altdorf have?", True),
        ("How many cats does the mayor of Altdorf have?", False),
    ],
)
def test_a_count_of_a_name_that_a_sentence_leads_to_is_told(
    index: Index, question: str, is_told: bool
) -> None:
    candidates = [Candidate(text, i, 0, len(text)) for i, text in enumerate(STEPS)]
    asked = Question(question, index.store)
    unsaid = state_what_is_unsaid(asked, rank_answers(asked, candidates, {}), candidates, {})
    assert unsaid == ("" if is_told else "No sentence that was read on this says how many.")


@pytest.mark.parametrize(
    ("text", "is_told"), [("Four houses collapsed.", True), ("Houses collapsed.", False)]
)
def test_a_count_that_is_no_evidence_is_told_too(index: Index, text: str, is_told: bool) -> None:
    texts = ("The flood happened on 3 May 1910.", "The flood reached the church.", text)
    candidates = [Candidate(text, i, 0, len(text)) for i, text in enumerate(texts)]
    asked = Question("How many houses collapsed in the flood?", index.store)
    evidence = rank_answers(asked, candidates[:2], {})
    unsaid = state_what_is_unsaid(asked, evidence, candidates, {})
    assert unsaid == ("" if is_told else "No sentence that was read on this says how many.")


@pytest.mark.parametrize(
    ("question", "texts", "nearest"),
    [
        (
            "How many children does Olga Nowak have?",
            ("Olga Nowak was born in 1950.", "Olga Nowak has a daughter, Lea, and a son, Tom."),
            (1, 0),
        ),
        (
            "How old is Olga Nowak?",
            ("Olga Nowak was born in 1950.", "Eva Roth is 44 years old."),
            (0,),
        ),
    ],
)
def test_the_nearest_sentences_are_about_the_name_and_have_related_words(
    index: Index, question: str, texts: tuple[str, ...], nearest: tuple[int, ...]
) -> None:
    candidates = [Candidate(text, i, 0, len(text)) for i, text in enumerate(texts)]
    asked = Question(question, index.store)
    ranked = rank_answers(asked, candidates, {})
    assert choose_nearest(asked, candidates, ranked) == [candidates[i] for i in nearest]


@pytest.mark.parametrize(
    ("thing", "is_said"), [("violins", True), ("orchestras", True), ("instruments", False)]
)
def test_no_count_is_clear_if_no_sentence_says_what_is_counted(
    index: Index, thing: str, is_said: bool
) -> None:
    text = "Olga Nowak owns violins and plays in two orchestras."
    asked = Question(f"How many {thing} does Olga Nowak own?", index.store)
    text = text if is_said else "Olga Nowak plays about 90 concerts every year."
    ranked = rank_answers(asked, [Candidate(text, 0, 0, len(text))], {})
    assert is_unclear(asked, ranked) != is_said


def test_a_part_of_a_german_compound_is_said(index: Index) -> None:
    asked = Question("Wer plant die Grabung im Bergwerk?", index.store)
    near = candidates_of(("Die Grabungsleiterin wartet im Silberbergwerk.",), "")
    assert introduce_nearest(asked, near, "").endswith('ohne "plant":')


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("What caused the death of Tom Berg?", "Tom Berg died after a fall.", True),
        ("What caused the death of Tom Berg?", "Tom Berg moved to the coast.", False),
        ("How many deaths did Tom Berg see?", "Tom Berg saw deaths.", False),
    ],
)
def test_a_sentence_says_everything_without_the_word_cause(
    index: Index, question: str, text: str, *, expected: bool
) -> None:
    asked = Question(question, index.store)
    ranked = rank_answers(asked, [Candidate(text, 0, 0, len(text))], {})
    assert says_everything(asked, ranked[0]) is expected


def test_a_cell_about_another_name_does_not_answer(index: Index) -> None:
    asked = Question("Who is the keeper of the station at Graz?", index.store)
    cell = Candidate("Jan Blum", 0, 0, 8, label="Altdorf, Keeper", about="Altdorf Jan Blum Keeper")
    other = Candidate("Graz has a bridge and a mill.", 1, 0, 29)
    ranked = rank_answers(asked, [cell, other], {})
    assert ranked[0].candidate is cell
    assert [s.candidate for s in keep_about_names(asked, ranked)] == [other]


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        (
            "What caused the deaths on the expedition of Berg?",
            "Otto Lenz walked to his death.",
            True,
        ),
        ("What caused the fires in the mills of Berg?", "A fire broke out in Graz.", True),
        ("What caused the fires in the mills of Berg?", "A mill of Berg was on fire.", False),
    ],
)
def test_no_cause_is_clear_if_the_best_sentence_lacks_a_name(
    index: Index, question: str, text: str, *, expected: bool
) -> None:
    asked = Question(question, index.store)
    others = ("The expedition of Berg and the mills of Berg were large.", "Berg has mills.")
    candidates = [Candidate(t, i, 0, len(t)) for i, t in enumerate((text, *others))]
    ranked = rank_answers(asked, candidates, {})
    best = next(s for s in ranked if s.candidate.text == text)
    # As unlikely as the others.
    ranked = [replace(s, score=8.0) for s in (best, *(s for s in ranked if s is not best))]
    assert is_unclear(asked, ranked) is expected
