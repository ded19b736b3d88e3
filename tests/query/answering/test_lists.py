"""Answers as lists, and lists that several documents give together."""

from collections.abc import Sequence

import pytest

from graphrag_query.index import Index
from tests.fixtures.sentence_answers import ask


@pytest.mark.parametrize(
    ("question", "above", "items"),
    [
        ("Which tools does the miller need?", "The miller needs these tools", "a saw|two files"),
        ("Welche Werkzeuge braucht der Müller?", "Werkzeuge für Müller", "eine Säge|zwei Feilen"),
        ("Quels outils faut-il au meunier ?", "Outils du meunier", "une scie|deux limes"),
        ("¿Qué herramientas usa el molinero?", "Herramientas del molinero", "una sierra|dos limas"),
    ],
)
def test_a_list_answers_as_a_list(index: Index, question: str, above: str, items: str) -> None:
    first, second = items.split("|")
    text = f"{above}:\n\n- {first}\n- {second}\n"
    expected = f"{above}:\n- {first} [1]\n- {second} [2]"
    assert ask(index, question, [text]).text == expected


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        (
            "Which parts does the mill have?",
            "The mill has three parts: the first is a wheel; the second, a stone; and a sieve.",
            "The mill has three parts|the first is a wheel|the second, a stone|a sieve",
        ),
        (
            "Which parts does the mill have?",
            "The mill has two parts. The first part is a wheel. It is red. The second is a stone.",
            "The mill has two parts|The first part is a wheel.|The second is a stone.",
        ),
        (
            "Which parts does the mill have?",
            "The mill has 2 components. First comes a wheel. Finally, there is a stone.",
            "The mill has 2 components|First comes a wheel.|Finally, there is a stone.",
        ),
        (
            "Welche Teile hat die Mühle?",
            "Die Mühle hat zwei Teile. Der erste ist ein Rad. Der zweite ist ein Stein.",
            "Die Mühle hat zwei Teile|Der erste ist ein Rad.|Der zweite ist ein Stein.",
        ),
        (
            "Quelles parties a le moulin ?",
            "Le moulin a deux parties : une roue en bois ; et une meule grise.",
            "Le moulin a deux parties|une roue en bois|une meule grise",
        ),
        (
            "¿Qué partes tiene el molino?",
            "El molino tiene dos partes. La primera es una rueda. La segunda es una piedra.",
            "El molino tiene dos partes|La primera es una rueda.|La segunda es una piedra.",
        ),
    ],
)
def test_a_list_in_running_text_answers_as_a_list(
    index: Index, question: str, text: str, expected: str
) -> None:
    above, *items = expected.split("|")
    lines = (f"- {item} [{number}]" for number, item in enumerate(items, 1))
    assert ask(index, question, [text]).text == "\n".join([f"{above}:", *lines])


@pytest.mark.parametrize(
    ("question", "text"),
    [
        # The number says something else.
        (
            "Which parts did the mill sell?",
            "The mill sold parts in two years. The first was hard. The second was good.",
        ),
        # One item is missing.
        (
            "Which parts has the mill?",
            "The mill has three parts. The first is red. The second too.",
        ),
        # One item answers.
        ("What is the last part of the mill?", "The mill has two parts: a red wheel; and a stone."),
        ("Which part of the mill is red?", "The mill has two parts: a red wheel; and a stone."),
    ],
)
def test_other_sentences_are_no_list(index: Index, question: str, text: str) -> None:
    assert "- " not in ask(index, question, [text]).text


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        (
            "Which ships did Olga Nowak use?",
            [
                "Olga Nowak sailed in the ship Alpha. The Alpha was a small ship.",
                "The Beta was a ship of oak. In 1912 Olga Nowak led a voyage in the Beta.",
                "The Gamma was a ship. Jan Blum followed Olga Nowak and sailed in the Gamma.",
            ],
            ["Alpha", "Beta"],
        ),
        (
            "Which ships were burnt by pirates?",
            [
                "The ship Alpha was burnt by pirates.",
                "The Beta was a ship of oak. The Beta was burnt by pirates in May.",
                "The Gamma was a ship. The Gamma was not burnt by pirates.",
                "Pirates burnt the Old Mill.",
            ],
            ["Alpha", "Beta"],
        ),
        (
            "Quels navires furent coulés par des pirates ?",
            [
                "Le navire Alpha fut coulé par des pirates.",
                "Le navire Beta fut coulé par des pirates en mai.",
            ],
            ["Alpha", "Beta"],
        ),
        (
            "¿Qué barcos hundieron los piratas?",
            [
                "Los piratas hundieron el barco Alpha.",
                "En mayo los piratas hundieron el barco Beta.",
            ],
            ["Alpha", "Beta"],
        ),
        (
            "Welche Schiffe wurden von Piraten versenkt?",
            [
                "Das Schiff Alpha wurde von Piraten versenkt.",
                "Das Schiff Beta wurde im Mai von Piraten versenkt.",
            ],
            ["Alpha", "Beta"],
        ),
        (
            "Welche Schiffe benutzte Otto Nordenskjöld?",
            [
                "Otto Nordenskjöld benutzte das Schiff Alpha.",
                "Otto Nordenskjöld benutzte im Mai das Schiff Beta.",
            ],
            ["Alpha", "Beta"],
        ),
    ],
)
def test_a_list_is_gathered_from_several_documents(
    index: Index, question: str, texts: Sequence[str], expected: Sequence[str]
) -> None:
    answer = ask(index, question, texts)
    assert answer.text.startswith(f"{', '.join(expected)} — ")
    assert all(
        name in citation.quote for name, citation in zip(expected, answer.citations, strict=True)
    )


def test_a_long_list_has_a_line_for_each_member(index: Index) -> None:
    names = ["Alpha", "Beta", "Gamma", "Delta"]
    texts = [f"The ship {name} was burnt by pirates." for name in names]
    expected = "\n".join(f"- {name} [{number}]" for number, name in enumerate(names, 1))
    assert ask(index, "Which ships were burnt by pirates?", texts).text == expected


def test_a_name_that_a_line_break_splits_is_listed_on_one_line(index: Index) -> None:
    names = ["Old\nAlpha", "Beta", "Gamma", "Delta"]
    texts = [f"The ship {name} was burnt by pirates." for name in names]
    answer = ask(index, "Which ships were burnt by pirates?", texts)
    assert answer.text.startswith("- Old Alpha [1]\n- Beta [2]\n")


@pytest.mark.parametrize(
    "question", ["Which ship was burnt by pirates?", "Where did pirates burn the ships?"]
)
def test_a_question_for_one_thing_gathers_no_list(index: Index, question: str) -> None:
    texts = ["The ship Alpha was burnt by pirates.", "The ship Beta was burnt by pirates."]
    assert not ask(index, question, texts).text.startswith(("Alpha, Beta", "- "))
