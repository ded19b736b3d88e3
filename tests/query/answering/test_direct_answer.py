"""Answers in a few words: part of a sentence, yes or no."""

import pytest

from graphrag_query.index import Index
from tests.fixtures.direct_answers import answer

MILL = "The mill was built in 1801. The mill has 17 chairs. Olga Nowak owns the mill."
MÜHLE = "Die Mühle wurde 1801 gebaut. In der Mühle stehen 17 Stühle. Dort wohnt niemand."
MOULIN = "Le moulin fut construit en 1801. Le moulin a 17 chaises. Personne ne vit dedans."
MOLINO = "El molino fue construido en 1801. El molino tiene 17 sillas. El molino no es azul."


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("How many chairs does the mill have?", MILL, "17 chairs"),
        ("When was the mill built?", MILL, "1801"),
        ("Who owns the mill?", MILL, "Olga Nowak"),
        (
            "How long did the mill stand?",
            "The mill stood for more than 90 years.",
            "more than 90 years",
        ),
        ("How many chairs does the mill have?", "The mill has about 17 chairs.", "about 17 chairs"),
        (
            "Combien de chaises a le moulin ?",
            "Le moulin a près de 17 chaises.",
            "près de 17 chaises",
        ),
        ("Wann wurde die Mühle gebaut?", MÜHLE, "1801"),
        ("Wie viele Stühle stehen in der Mühle?", MÜHLE, "17 Stühle"),
        ("Combien de chaises a le moulin ?", MOULIN, "17 chaises"),
        ("¿Cuántas sillas tiene el molino?", MOLINO, "17 sillas"),
    ],
)
def test_the_only_part_of_the_likeliest_sentence_answers(
    index: Index, question: str, text: str, expected: str
) -> None:
    assert answer(index, question, [text], {"olga nowak": "person"}) == expected


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("How many men survived?", "In 1916 all 28 men survived.", "28 men"),
        ("How many men survived?", "The men of 1914 and survived shipwrecks.", "1914"),
        ("Who rescued Ada Fox?", "Olga Nowak rescued Ada Fox and Jan Blum.", "Olga Nowak"),
        ("Who rescued Ada Fox?", "Ada Fox and Jan Blum were rescued by Olga Nowak.", "Olga Nowak"),
        ("By whom was Ada Fox rescued?", "Olga Nowak rescued Ada Fox and Jan Blum.", "Olga Nowak"),
        ("Who did Ada Fox rescue?", "Olga Nowak and Ada Fox rescued Jan Blum.", ""),
        (
            "Wer rettete Ada Fox?",
            "Ada Fox und Jan Blum wurden von Olga Nowak gerettet.",
            "Olga Nowak",
        ),
        (
            "Qui sauva Ada Fox ?",
            "Ada Fox et Jan Blum furent sauvés par Olga Nowak.",
            "Olga Nowak",
        ),
    ],
)
def test_of_several_parts_the_counted_one_or_the_agent_answers(
    index: Index, question: str, text: str, expected: str
) -> None:
    types = dict.fromkeys(("ada fox", "jan blum", "olga nowak"), "person")
    assert answer(index, question, [text], types) == expected


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        (
            "How many continents has the quartet played on?",
            "The quartet has played in 30 countries on five continents.",
            "five continents",
        ),
        (
            "How many newly built houses does Ada Fox own?",
            "Ada Fox owns 20 newly built houses and 9 trucks.",
            "20 newly built houses",
        ),
        (
            "How many vehicles use Stone Bridge every day?",
            "Every day 12,000 cars and 800 cyclists use Stone Bridge.",
            "",
        ),
        (
            "How many people were arrested?",
            "300 people marched, and 23 students were arrested.",
            "",
        ),
    ],
)
def test_a_number_before_what_is_asked_for_answers_beside_numbers_of_other_things(
    index: Index, question: str, text: str, expected: str
) -> None:
    assert answer(index, question, [text]) == expected


def test_of_two_parts_none_answers(index: Index) -> None:
    texts = ["The mill was built in 1801 and in 1812. It is red."]
    assert answer(index, "When was the mill built?", texts) == ""


def test_one_of_two_things_is_no_other_name(index: Index) -> None:
    texts = ["Altdorf is a much larger town in Bavaria than any other."]
    types = {"bavaria": "geo", "altdorf": "geo"}
    assert answer(index, "Which town is larger, Altdorf or Neustadt?", texts, types) == ""


def test_a_day_without_a_date_does_not_answer(index: Index) -> None:
    assert answer(index, "When does the mill open?", ["The mill will open tomorrow."]) == ""


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("Was the mill built in 1801?", MILL, "Yes"),
        ("Was the mill built in 1802?", MILL, "No"),
        ("Was the mill painted in 1801?", MILL, ""),
        ("Is the mill red?", "The mill is not red.", "No"),
        ("Did the ship sink in 1801?", "The ship sank in 1801.", "Yes"),
        ("Did Olga call Jan?", "Jan did call Olga.", ""),
        ("Did Olga call Jan?", "Later Olga did call Jan.", "Yes"),
        ("Did Olga leave before Jan?", "Olga did leave after Jan.", ""),
        ("Is the mill red?", "The mill is red for sure.", "Yes"),
        (
            "Was the mill damaged in May 1801?",
            "The storm came on 3 May 1801. Luckily, the mill was not damaged.",
            "No",
        ),
        ("Was the mill damaged in May 1801?", "The storm came. The mill was damaged.", ""),
        ("Wurde die Mühle 1801 gebaut?", MÜHLE, "Ja"),
        ("Wurde die Mühle 1802 gebaut?", MÜHLE, "Nein"),
        ("Est-ce que le moulin fut construit en 1801 ?", MOULIN, "Oui"),
        ("Est-ce que le moulin fut construit en 1802 ?", MOULIN, "Non"),
        ("¿Fue construido el molino en 1801?", MOLINO, "Sí"),
        ("¿Es azul el molino?", MOLINO, "No"),
    ],
)
def test_yes_or_no_is_decided_by_words_numbers_and_negations(
    index: Index, question: str, text: str, expected: str
) -> None:
    assert answer(index, question, [text]) == expected


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("Does the kit include a hammer?", "The kit features a hammer.", "Yes"),
        ("Does the kit include a hammer?", "The kit does not contain a hammer.", "No"),
        ("Does the kit include a hammer?", "The kit features a file.", ""),
        ("Was the mill constructed in 1801?", "The mill was built in 1802.", "No"),
        ("Hat Olga die Mühle gebaut?", "Olga hat die Mühle errichtet.", "Ja"),
        ("Est-ce que le coffret contient une scie ?", "Le coffret comprend une scie.", "Oui"),
        ("¿Fue construido el molino en 1801?", "El molino fue edificado en 1801.", "Sí"),
        # Words of one subject need not mean the same.
        ("Was the miller killed in May?", "The miller died in May.", ""),
        ("Is the water of the mill cold?", "The water of the mill is hot.", ""),
        # Two other words may say something else.
        ("Did the firm start to sell saws?", "The company began the sale of files.", ""),
    ],
)
def test_yes_or_no_is_decided_by_a_verb_that_means_the_same(
    index: Index, question: str, text: str, expected: str
) -> None:
    assert answer(index, question, [text]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Olga Nowak was a cook. She founded the mill.", "Olga Nowak"),
        ("Olga Nowak was a cook. In 1801 she founded the mill.", "Olga Nowak"),
        ("Olga Nowak was a cook. She says Ann founded the mill.", ""),
        ("Olga Nowak had a mill. It was founded in 1801.", ""),
    ],
)
def test_who_a_pronoun_stands_for_answers(index: Index, text: str, expected: str) -> None:
    assert answer(index, "Who founded the mill?", [text]) == expected


def test_a_number_that_is_told_of_another_thing_does_not_answer(index: Index) -> None:
    text = "The town of Altdorf is small. It has 17 green chairs in the mill."
    question = "How many green chairs are in the mill of {}?"
    assert answer(index, question.format("Altdorf"), [text]) == "17 green chairs"
    assert answer(index, question.format("Neustadt"), [text]) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("As many as 300 people came, and 23 were arrested inside the mill.", ""),
        ("In the mill 23 people were arrested by 4 men.", "23 people"),
    ],
)
def test_a_number_beside_another_verb_does_not_answer(
    index: Index, text: str, expected: str
) -> None:
    assert answer(index, "How many people were arrested in the mill?", [text]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Olga Nowak spoke of the mill that Jan Kowal had set up.", ""),
        ("Olga Nowak spoke of the mill that Jan Kowal founded in Altdorf.", ""),
        ("Jan Kowal spoke of the mill that was founded by Olga Nowak.", "Olga Nowak"),
    ],
)
def test_one_of_several_persons_answers_only_if_the_verb_is_said(
    index: Index, text: str, expected: str
) -> None:
    types = {"olga nowak": "person", "jan kowal": "noun phrase", "altdorf": "geo"}
    assert answer(index, "Who founded the mill?", [text], types) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The mill stands about 30 miles west of Altdorf.", "30 miles west of Altdorf"),
        ("The mill stands near Altdorf.", "near Altdorf"),
        ("The mill stands in Altdorf.", "Altdorf"),
    ],
)
def test_a_place_beside_another_is_told_as_such(index: Index, text: str, expected: str) -> None:
    found = answer(index, "Where does the mill stand?", [text], {"altdorf": "geo"})
    assert found.removeprefix("about ") == expected


def test_a_number_of_other_things_does_not_answer(index: Index) -> None:
    question = "How many women voted against the report?"
    assert answer(index, question, ["Only 14 delegates voted against the report."]) == ""
