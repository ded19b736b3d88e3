"""Which capitalized spans are names, where they are cut, and what kind they are of."""

import pytest

from graphrag_nlp.names.compounds import is_german_noun, is_loan_word
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import count_title_chars
from graphrag_nlp.text.languages import read_lists
from tests.fixtures.found_names import FoundNames


def test_dotted_acronyms_are_names_where_they_are_used_as_such() -> None:
    found = FoundNames(
        "They sailed to the U.S. in May. Nobody in the US knew. It was 9 P.M. by then."
    )
    assert [title for title in found.titles if title in ("U.S.", "U.S", "US", "P.M")] == ["U.S."]


def test_german_nouns_are_known_by_their_parts() -> None:
    assert all(map(is_german_noun, ("Haus", "Häuser", "Gartenhaus", "Verantwortung", "Ladegerät")))
    assert not any(map(is_german_noun, ("Vodafone", "Zelnika", "RheinEnergie", "Miele")))
    assert is_loan_word("Updates") or is_loan_word("Channels")
    assert not is_loan_word("Zelnika")


def test_forms_of_address_are_cut_off_every_name() -> None:
    assert count_title_chars("Frau Zeynura Yıldız") == len("Frau ")
    assert count_title_chars("General Motors Europe") == 0


@pytest.mark.parametrize("name", ["placed_acronyms", "nouns_of_zu"])
def test_lists_of_words_have_no_repeats(name: str) -> None:
    words = read_lists("graphrag_nlp/names/data/words")[name].split()
    assert len(words) == len(set(words))


def test_lines_of_unequal_length_are_not_one_wrapped_paragraph() -> None:
    lines = (
        "Simon and Garfunkel gave a concert for everybody in Central Park",
        "Couples on this show were asked about the habits of their partners and about each other",
        "The old ferry to the other side of the harbour was closed for good in the year 1987",
        "This is a line",
    )
    found = FoundNames("\n".join(lines)).titles
    assert "Central Park" in found
    assert not [title for title in found if "Couples" in title]


def test_works_characters_towns_and_agencies_are_known() -> None:
    assert find_known_type("Hidden Figures") == "name"
    assert find_known_type("Joey Tribbiani") == "person"
    assert find_known_type("Lanhydrock") == "geo"
    assert find_known_type("United Nations Environment Programme") == "organization"
