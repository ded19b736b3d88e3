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


@pytest.mark.parametrize(
    ("text", "no_name"),
    [
        ("Then attach the Rain Cover to the pram. Emma Wilson did.", "Rain Cover"),
        ("Then Emma Wilson sent the Payment Details to us.", "Payment Details"),
        ("Check Rain Cover and brake. Emma Wilson did.", "Rain Cover"),
        ("Luego Emma Wilson abrió la Válvula de Vapor.", "Válvula de Vapor"),
        ("Then Emma Wilson filled the Reservoir again.", "Reservoir"),
    ],
)
def test_terms_are_no_names(text: str, no_name: str) -> None:
    types = extract(text).types
    assert "Emma Wilson" in types
    assert types.get(no_name, "noun phrase") == "noun phrase"


def test_a_surname_and_a_town_that_are_words_stay_names() -> None:
    found = extract("We met Emma Price in Leeds. Then Price left. El viento sopla en Tarifa.")
    assert {"Emma Price", "Leeds"} <= {*found.titles}
    assert "Tarifa" in extract("El viento sopla mucho en Tarifa. Allí vive Emma Wilson.").types


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Officials from Homeland Security met them in Leeds.", {"Homeland Security", "Leeds"}),
        ("He gets money from Social Security every month, in Leeds.", {"Social Security"}),
        ("They saw the Northern Lights in Leeds. It was late then.", {"Northern Lights"}),
        ("He reads The New International Version in Leeds.", {"New International Version"}),
        # Surnames behind a role.
        ("Prime Minister Key said so. Officials met Key in the evening.", {"Key"}),
        ("Judge Lens said so in court. Later he left the town of Leeds.", {"Lens"}),
        ("Judge Button said so in court. Later he left the town of Leeds.", {"Button"}),
    ],
)
def test_names_with_such_words_are_kept(text: str, names: set[str]) -> None:
    types = extract(text).types
    assert names <= {title for title, kind in types.items() if kind != "noun phrase"}


def test_stage_directions_are_terms() -> None:
    assert all(is_capitalized_term([word], "es") for word in ("Aplausos", "Risas", "Rumores"))
