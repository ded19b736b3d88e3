"""Bounds of names at particles, conjunctions and hyphens; and single words that are names."""

import pytest

from tests.fixtures.extraction import extract


def find_names(text: str) -> dict[str, str]:
    """Return the names in a text with their types."""
    types = extract(text).types
    return {title: kind for title, kind in types.items() if kind != "noun phrase"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Gestern sprach Franz zu Löwenstein lange.", {"Franz zu Löwenstein"}),
        ("Gestern kam Philipp zu Eulenburg an.", {"Philipp zu Eulenburg"}),
        ("Gestern kam Otto zu Schaumburg-Lippe an.", {"Otto zu Schaumburg-Lippe"}),
        ("Gestern ging Lena Hart zu Fuß.", {"Lena Hart"}),
        ("Dort war gestern Lena Hart zu Gast.", {"Lena Hart"}),
        ("Gestern reiste Lena Hart zu Verhandlungen an.", {"Lena Hart"}),
    ],
)
def test_only_seats_of_families_behind_zu_are_surnames(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "They asked the Department for Transport and Grant Shapps about it.",
            {"Department for Transport", "Grant Shapps"},
        ),
        (
            "They asked the Ministry of Defence and Angela Merkel about it.",
            {"Ministry of Defence", "Angela Merkel"},
        ),
        (
            "They saw that the Court of Justice and Germany agreed.",
            {"Court of Justice", "Germany"},
        ),
        (
            "They asked the Department for Scotland and Wales about it.",
            {"Department for Scotland and Wales"},
        ),
        (
            "They asked the Department of Health and Human Services about it.",
            {"Department of Health and Human Services"},
        ),
    ],
)
def test_a_person_or_country_behind_and_is_no_field_of_an_office(
    text: str, names: set[str]
) -> None:
    assert {*find_names(text)} == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Yesterday President-Elect Joe Biden met the press.", {"Joe Biden"}),
        ("Then Prime Minister-Designate Mario Draghi met the press.", {"Mario Draghi"}),
        ("Then the President-Elect met Ann Brown.", {"Ann Brown"}),
        ("Yesterday they played Has-Been Heroes again.", {"Has-Been Heroes"}),
        ("Yesterday they read How-To Geek again.", {"How-To Geek"}),
        ("Yesterday they saw Can-Am Racing again.", {"Can-Am Racing"}),
        ("They were glad. But-Dave Chappelle met the press.", {"Dave Chappelle"}),
    ],
)
def test_words_before_hyphens_are_cut_off_full_names_only(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Yesterday they saw that the Mark-I was towed.", {"Mark-I"}),
        ("Yesterday they heard the Voyager-I probe.", {"Voyager-I"}),
        ("Yesterday he saw Lena Hart-I think she is ill.", {"Lena Hart"}),
        ("Yesterday he saw Lena Hart-I’m sure of it.", {"Lena Hart"}),
    ],
)
def test_a_numeral_behind_a_hyphen_is_part_of_a_name(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names


def test_an_airline_called_by_a_direction_is_a_name() -> None:
    text = "Yesterday the airline Southwest grew. They said that Southwest will buy jets."
    assert find_names(text) == {"Southwest": "organization"}
    assert find_names("Yesterday they said that Southwest is hot.") == {}


def test_a_team_called_by_a_kind_of_laws_is_a_name() -> None:
    said = "They said that the Bills lost in May. He saw the Bills. She saw that the Bills won."
    mentioned = extract(f"Yesterday the Buffalo Bills won. {said}").mentioned
    assert mentioned.get("Buffalo Bills", 0) + mentioned.get("Bills", 0) == 4
    assert find_names(said) == {}
