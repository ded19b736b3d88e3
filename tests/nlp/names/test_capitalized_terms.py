"""Terms that manuals and contracts write with capitals."""

import pytest

from graphrag_nlp.names.used_names import is_capitalized_term
from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("term", "code"),
    [
        ("Rain Cover", "en"),
        ("Payment Details", "en"),
        ("Installation Kit", "en"),
        ("Terms of Service", "en"),
        ("Válvula de Vapor", "es"),
        ("Datos Personales", "es"),
        ("Fecha de Actualización", "es"),
    ],
)
def test_a_listed_head_beside_plain_words_is_a_term(term: str, code: str) -> None:
    assert is_capitalized_term(term.split(" "), code)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Zelnika Cover", "en"),  # a rare word
        ("Google Account", "en"),  # a known name
        ("Anna Price", "en"),  # a given name
        ("Bill of Rights", "en"),  # the head is "Bill"
        ("Apache License", "en"),
        ("Válvula Zelnika", "es"),
        ("Código Civil", "es"),
        # Words that often are the heads of names, too.
        ("Homeland Security", "en"),
        ("Northern Lights", "en"),
        ("New International Version", "en"),
        ("Shining Path", "en"),
        ("Libro Blanco", "es"),
        ("Rain Cover", "de"),  # a language without a list
    ],
)
def test_other_names_are_no_terms(name: str, code: str) -> None:
    assert not is_capitalized_term(name.split(" "), code)


def test_a_surname_and_a_town_that_are_words_stay_names() -> None:
    found = extract("We met Emma Price in Leeds. Then Price left. El viento sopla en Tarifa.")
    assert {"Emma Price", "Leeds"} <= {*found.titles}
    assert "Tarifa" in extract("El viento sopla mucho en Tarifa. Allí vive Emma Wilson.").types


def test_stage_directions_are_terms() -> None:
    assert all(is_capitalized_term([word], "es") for word in ("Aplausos", "Risas", "Rumores"))
