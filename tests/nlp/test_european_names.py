"""German, French and Spanish: towns, surnames behind roles, makers behind products."""

import pytest

from tests.fixtures.extraction import extract


def find_names(text: str) -> dict[str, str]:
    """Return the names in a text with their types."""
    types = extract(text).types
    return {title: kind for title, kind in types.items() if kind != "noun phrase"}


@pytest.mark.parametrize(
    "text", ["Wir trafen uns in Braunlage.", "Das Werk in Braunlage schließt."]
)
def test_small_towns_are_known(text: str) -> None:
    assert find_names(text) == {"Braunlage": "geo"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Gestern sprach Förster Hohlfeld vor Kindern.", {"Hohlfeld"}),
        ("Der Verteidiger Kowalke schwieg gestern.", {"Kowalke"}),
        ("Wir fragten gestern Bäcker Huber danach.", {"Huber"}),
        ("Dort war gestern Richter Radtke zu Gast.", {"Radtke"}),
        ("Ich danke Kollege Zwickel und Minister Töpfer.", {"Töpfer", "Zwickel"}),
        ("Wenn die Ministerin Geld hat, baut sie.", set()),
        ("Sie nannte im Entwickler Tätigkeitsfeld und Dauer.", set()),
    ],
)
def test_german_nouns_of_persons_stand_before_surnames(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Wir nutzen das Jira von Kopano.", {"Jira", "Kopano"}),
        ("Das Active Directory von Microsoft lief nicht.", {"Active Directory", "Microsoft"}),
        ("L'équipe de l'IRD de Montpellier a gagné.", {"IRD", "Montpellier"}),
        ("Il travaille au CHU de Nantes depuis mai.", {"CHU de Nantes"}),
        ("Elle a vu que le Nagios de Roubaix est en panne.", {"Nagios", "Roubaix"}),
        ("Lo dice el IPHES de Tarragona en su informe.", {"IPHES", "Tarragona"}),
        ("Nació en Alhama de Murcia hace tiempo.", {"Alhama de Murcia"}),
        ("Hier est venu X. de Lamballe avec sa sœur.", {"X. de Lamballe"}),
    ],
)
def test_things_stand_before_their_maker_or_place(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names
