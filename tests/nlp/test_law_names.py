"""Names in legal texts."""

import pytest

from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "IN THE SUPREME COURT OF VICTORIA\n\nThe plaintiff was hurt.",
            "SUPREME COURT OF VICTORIA",
        ),
        ("COUR DE CASSATION, CHAMBRE SOCIALE\n\nLe pourvoi est rejeté.", "COUR DE CASSATION"),
        (
            "CONVENTION ENTRE LE ROYAUME DE BELGIQUE ET LE PREMIER PAYS\n\nElle est conclue.",
            "ROYAUME DE BELGIQUE",
        ),
        ("Vu l'article 5 du code du travail, le tribunal rejette.", "code du travail"),
        ("Das Gesetz über befriedete Bezirke gilt auch hier.", "Gesetz über befriedete Bezirke"),
        (
            "It applies under Title V of Part Three of the Treaty on the Functioning of the Union.",
            "Treaty on the Functioning of the Union",
        ),
        ("Der Kredit kam von der Volksbank Baumberge eG in Ulm.", "Volksbank Baumberge eG"),
        (
            "La Cour de justice de l'Union européenne a jugé.",
            "Cour de justice de l'Union européenne",
        ),
    ],
)
def test_bodies_and_laws_are_found_whole(text: str, name: str) -> None:
    assert name in extract(text).titles


def test_emphasized_verbs_are_no_names() -> None:
    text = "La sala RESUELVE conceder el recurso de la parte. Debe TUTELAR los derechos de todos."
    assert not {"RESUELVE", "TUTELAR"} & {*extract(text).titles}


def test_a_model_has_its_number() -> None:
    text = "La Caléor 40 est une machine. Il faut détartrer la Caléor deux fois par an."
    assert "Caléor 40" in extract(text).titles
