"""Terms that manuals and contracts write with capitals."""

from graphrag_nlp.names.used_names import is_capitalized_term
from tests.fixtures.cases import cases
from tests.fixtures.found_names import FoundNames


@cases("term, code")
def test_a_listed_head_beside_plain_words_is_a_term(term: str, code: str) -> None:
    assert is_capitalized_term(term.split(" "), code)


@cases("name, code")
def test_other_names_are_no_terms(name: str, code: str) -> None:
    assert not is_capitalized_term(name.split(" "), code)


def test_a_surname_and_a_town_that_are_words_stay_names() -> None:
    found = FoundNames("We met Emma Price in Leeds. Then Price left. El viento sopla en Tarifa.")
    assert {"Emma Price", "Leeds"} <= {*found.titles}
    assert "Tarifa" in FoundNames("El viento sopla mucho en Tarifa. Allí vive Emma Wilson.").types


def test_stage_directions_are_terms() -> None:
    assert all(is_capitalized_term([word], "es") for word in ("Aplausos", "Risas", "Rumores"))
