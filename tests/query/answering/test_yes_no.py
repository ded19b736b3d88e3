"""Yes or no in questions that begin with a verb, in several languages."""

from collections.abc import Sequence

import pytest

from graphrag_query.answering.extractive import split_into_candidates
from graphrag_query.answering.yes_no import answer_yes_or_no
from graphrag_query.index import Index
from graphrag_query.question.question import Question


def decide(index: Index, question: str, sentences: Sequence[str]) -> str:
    """Answer a question by the last sentence of a text."""
    text = " ".join(sentences)
    unit = {"human_readable_id": 0, "start_char": 0, "text": text, "title": ""}
    candidates = split_into_candidates([unit], {0: 1.0})
    assert [c.text for c in candidates] == list(sentences)
    found = answer_yes_or_no(Question(question, index.store), candidates[-1], candidates)
    return found.text if found else ""


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("Baute Olga Nowak die Mühle?", "Olga Nowak baute die Mühle.", "Ja"),
        ("Hat Olga Nowak die Mühle gebaut?", "Olga Nowak baute die Mühle nicht.", "Nein"),
        ("Malten die Bäcker die Mühle?", "Die Bäcker haben die Mühle gemalt.", "Ja"),
        ("Gewann Olga Nowak den Preis?", "Olga Nowak hat den Preis gewonnen.", "Ja"),
        ("Baute Olga Nowak die Mühle im Jahr 1801?", "Olga Nowak baute die Mühle 1801.", "Ja"),
        ("Baute Olga Nowak die Mühle?", "Olga Nowak kaufte die Mühle.", ""),
        ("Baute Olga Nowak die Mühle?", "Olga Nowak wollte die Mühle bauen.", ""),
        ("Olga a-t-elle construit le moulin ?", "Olga construisit le moulin.", "Oui"),
        ("Olga a-t-elle peint le moulin ?", "Olga n'a jamais peint le moulin.", "Non"),
        ("Est-ce que les boulangers chantent ?", "Les boulangers ne chantent pas.", "Non"),
        ("Le moulin s'est-il effondré en 1801 ?", "Le moulin s'est effondré en 1802.", "Non"),
        ("¿Compró Olga el molino?", "Olga compró el molino en 1801.", "Sí"),
        ("¿Compraron los panaderos el molino?", "Los panaderos no compraron el molino.", "No"),
        ("¿Obtuvo Olga el premio?", "Olga ha obtenido el premio.", "Sí"),
        ("¿Cantó Olga cuando murió Jan?", "Olga lloró cuando murió Jan.", ""),
    ],
)
def test_a_question_that_begins_with_its_verb_wants_yes_or_no(
    index: Index, question: str, sentence: str, expected: str
) -> None:
    assert Question(question, index.store).wanted.kind == "yes_no"
    assert decide(index, question, [sentence]) == expected


@pytest.mark.parametrize(
    ("question", "sentences", "expected"),
    [
        (
            "¿Emigró Olga Nowak a Altdorf?",
            ["La pintora Olga Nowak nació en Jena.", "Ella emigró a Altdorf."],
            "Sí",
        ),
        (
            "¿Emigraron los panaderos a Altdorf?",
            ["Los panaderos son felices.", "Ellos emigraron a Altdorf."],
            "Sí",
        ),
        (
            "Did Olga Nowak move to Altdorf?",
            ["Olga Nowak is a painter.", "Jan Blum moved to Altdorf."],
            "",
        ),
    ],
)
def test_a_pronoun_stands_for_what_was_named_before(
    index: Index, question: str, sentences: Sequence[str], expected: str
) -> None:
    assert decide(index, question, sentences) == expected


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("Is the mill red?", "The mill is red, not blue, and most people like it.", "Yes"),
        ("Did the ship sink?", "The ship nearly sank.", ""),
        ("Was Olga elected?", "Olga failed in her bid to be elected.", ""),
        ("Did Olga open the mill?", "Olga never did open the mill.", "No"),
        ("Did Olga open the mill?", "Jan denied that Olga opened the mill.", ""),
        ("Did Olga open the mill?", "Did Olga open the mill?", ""),
        ("Öffnete Olga die Mühle?", "Öffnete Olga die Mühle?", ""),
        ("Did Olga open the mill in 1912?", "Olga, born 1870, opened the mill.", ""),
        ("Did Olga open the mill in 1912?", "In January 1913, Olga opened the mill.", "No"),
        ("Did Olga open the mill in 1912?", "Olga, a cook, opened the mill in 1913.", "No"),
        ("Does the mill have a roof?", "The mill lacks a roof, but has a wheel.", "No"),
        ("Did Olga open the mill?", "Olga failed to open the mill.", "No"),
        ("Did Olga open the mill?", "Olga must open the mill.", ""),
        ("Öffnete Olga die Mühle?", "Olga muss die Mühle öffnen.", ""),
        ("Did Olga open 3 mills?", "Olga opened 3 mills.", "Yes"),
        ("Did Olga open 3 mills?", "Olga opened 4 mills.", ""),
        ("Did Olga open 3 mills?", "Olga opened mills in 4 towns.", ""),
    ],
)
def test_only_the_part_that_tells_of_the_question_denies_it(
    index: Index, question: str, sentence: str, expected: str
) -> None:
    assert decide(index, question, [sentence]) == expected


def test_a_longer_name_is_another_one(index: Index) -> None:
    texts = {"South Magnetic Pole": "", "South Pole": "Yes"}
    for name, expected in texts.items():
        sentence = f"Roald Amundsen has reached the {name}."
        assert decide(index, "Did Roald Amundsen reach the South Pole?", [sentence]) == expected


def test_names_alone_ask_for_no_yes_or_no(index: Index) -> None:
    sentence = "Nowak und die Mühle sind in Altdorf."
    assert decide(index, "Nowak und die Mühle Altdorf?", [sentence]) == ""


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Did Olga Nowak defeat Jan Blum?", "Olga Nowak was defeated by Jan Blum."),
        ("Olga a-t-elle vaincu Jan ?", "Olga fut vaincue par Jan."),
        ("Besiegte die Wirtin den Jan?", "Die Wirtin wurde von dem Jan besiegt."),
        ("¿Venció Olga a Jan?", "Olga fue vencida por Jan."),
    ],
)
def test_whom_somebody_else_did_something_to_did_not_do_it(
    index: Index, question: str, sentence: str
) -> None:
    assert decide(index, question, [sentence]) == ""


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("Did Olga visit Rome?", "Olga's sister visited Rome.", ""),
        ("Did Olga visit Rome?", "The sister of Olga visited Rome.", ""),
        ("Did Olga visit Rome?", "Olga visited the mayor of Rome.", ""),
        ("Hat Olga die Stadt besucht?", "Olgas Schwester besuchte die Stadt.", ""),
        ("Olga a-t-elle visité Rome ?", "La sœur d'Olga visita Rome.", ""),
        ("¿Visitó Olga Roma?", "La hermana de Olga visitó Roma.", ""),
        ("Did the University of Oslo pay?", "The University of Oslo paid.", "Yes"),
        ("Is Rome the capital of Italy?", "Rome is Italy's capital.", "Yes"),
    ],
)
def test_what_belongs_to_a_name_is_not_the_name(
    index: Index, question: str, sentence: str, expected: str
) -> None:
    assert decide(index, question, [sentence]) == expected


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("Did Olga visit Rome?", "No one but Olga visited Rome.", ""),
        ("Did Olga visit Rome?", "Everyone but Olga visited Rome.", ""),
        ("Did Olga visit Rome?", "It was cold, but Olga visited Rome.", "Yes"),
        ("Did Olga visit Rome?", "Olga no doubt visited Rome.", ""),
        ("Hat Olga die Stadt besucht?", "Alle außer Olga besuchten die Stadt.", ""),
        ("¿Visitó Olga Roma?", "Todos menos Olga visitaron Roma.", ""),
    ],
)
def test_an_exception_decides_nothing(
    index: Index, question: str, sentence: str, expected: str
) -> None:
    assert decide(index, question, [sentence]) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Jan visited Olga in Rome.", ""),
        ("Olga told Jan to visit Rome.", ""),
        ("Olga and Jan visited Rome.", "Yes"),
        ("Olga Nowak visited Rome.", "Yes"),
        ("Olga, a cook from Altdorf, visited Rome.", "Yes"),
    ],
)
def test_the_verb_has_the_subject_of_the_question(
    index: Index, sentence: str, expected: str
) -> None:
    assert decide(index, "Did Olga visit Rome?", [sentence]) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("Roald Amundsen", "Yes"), ("Adrien de Gerlache", "")]
)
def test_a_last_name_stands_for_the_entity_of_the_text_unit(
    index: Index, name: str, expected: str
) -> None:
    """The first text unit of the sample mentions both."""
    assert decide(index, f"Did {name} keep a diary?", ["Mr Amundsen kept a diary."]) == expected
