"""Fragments of English names: cut owners, bare adjectives, prefixes and countries."""

import pytest

from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "They asked the Supreme People's Court in Kiel.",
            {"Supreme People's Court": "organization", "Kiel": "geo"},
        ),
        (
            "They outlawed the Kurdistan Workers' Party there.",
            {"Kurdistan Workers' Party": "organization"},
        ),
        (
            "She led the Fuyang Women's Federation then.",
            {"Fuyang Women's Federation": "organization"},
        ),
        (
            "It is the self-proclaimed Donetsk People's Republic.",
            {"Donetsk People's Republic": "geo"},
        ),
        # Two names: the second is no body.
        (
            "They liked the Kiel Students' Lena Hart.",
            {"Kiel Students": "name", "Lena Hart": "person"},
        ),
    ],
)
def test_a_group_that_owns_a_body_belongs_to_its_name(text: str, expected: dict[str, str]) -> None:
    assert extract(text).types == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "She met French Presidential candidate Marine Le Pen in Kiel.",
            {"Marine Le Pen": "person", "Kiel": "geo"},
        ),
        ("They left. East Libyan forces claim victory in Kiel.", {"Kiel": "geo"}),
        ("They met Crimean Tatar movements and French envoys in Kiel.", {"Kiel": "geo"}),
        ("They like Masonic lodges and Nordic countries in Kiel.", {"Kiel": "geo"}),
        ("The US Olympic swimmer left Kiel.", {"US": "geo", "Kiel": "geo"}),
        # A given name that is an adjective too, and a party.
        ("Then Christian said so in Kiel.", {"Christian": "person", "Kiel": "geo"}),
        (
            "The Scottish National party left Kiel.",
            {"Scottish National": "organization", "Kiel": "geo"},
        ),
    ],
)
def test_adjectives_before_a_noun_are_no_names(text: str, expected: dict[str, str]) -> None:
    assert extract(text).types == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Ex-IMF boss Rato was jailed in Kiel.",
            {"IMF": "organization", "Rato": "name", "Kiel": "geo"},
        ),
        (
            "Anti-Brexit campaigners left Kiel. They dislike Brexit.",
            {"Brexit": "name", "Kiel": "geo"},
        ),
        ("They saw that Pro-Fac left Kiel.", {"Pro-Fac": "name", "Kiel": "geo"}),
        ("They saw a Fine Gael TD in Kiel.", {"Fine Gael": "organization", "Kiel": "geo"}),
        ("They saw Indian MPs and some Wales MPs there.", {"Wales": "geo"}),
        (
            "They met the Ambassador to Iran Levan Dzhagaryan. Dzhagaryan slept.",
            {"Iran": "geo", "Levan Dzhagaryan": "person"},
        ),
        ("They met Iran Khodro Zamyad there.", {"Iran Khodro Zamyad": "name"}),
    ],
)
def test_prefixes_roles_and_countries_are_cut_off(text: str, expected: dict[str, str]) -> None:
    assert extract(text).types == expected


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("They heard it on KSBW-TV there.", "KSBW-TV", "organization"),
        (
            "It is in the Police and Criminal Evidence Act 1984, they say.",
            "Police and Criminal Evidence Act 1984",
            "name",
        ),
        (
            "They saw the One City Partnership Nottingham at work.",
            "One City Partnership Nottingham",
            "organization",
        ),
        ("They asked the Supreme Procuratorate.", "Supreme Procuratorate", "organization"),
        ("It was like the Olympics then.", "Olympics", "event"),
        ("They saw Neuralink grow.", "Neuralink", "organization"),
    ],
)
def test_parts_of_a_name_show_its_type(text: str, name: str, kind: str) -> None:
    assert extract(text).types[name] == kind
