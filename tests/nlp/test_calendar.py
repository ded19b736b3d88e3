"""Months and days that are parts of names, and those that are dates."""

import pytest

from tests.fixtures.extraction import extract


def test_people_who_are_called_like_a_month_keep_their_given_name() -> None:
    found = extract(
        "At noon the painter June Mills arrived in Oslo. Everyone liked June Mills. Her rival "
        "Robert Mills hated June Mills. A portrait of April Mills hung beside June Mills."
    )
    assert found.mentioned == {"June Mills": 4, "Robert Mills": 1, "April Mills": 1, "Oslo": 1}


@pytest.mark.parametrize(
    ("text", "title", "aliases"),
    [
        ("In 1899 Jan Smuts wrote to London. Later Smuts retired.", "Jan Smuts", {"Smuts"}),
        (
            "August Strindberg was born in Stockholm. Critics feared August Strindberg.",
            "August Strindberg",
            set(),
        ),
        ("They wept for May Parker. Nobody had known Parker.", "May Parker", {"Parker"}),
        (
            "Der Prediger Jan Hus lebte in Prag. Viele hörten Jan Hus. Später starb Hus.",
            "Jan Hus",
            {"Hus"},
        ),
        (
            "Jan Kowal mieszkał w Krakowie. Anna znała Jana Kowala od lat.",
            "Jan Kowal",
            {"Jana Kowala"},
        ),
    ],
)
def test_a_month_may_be_a_given_name(text: str, title: str, aliases: set[str]) -> None:
    assert extract(text).aliases[title] == aliases


@pytest.mark.parametrize(
    "text",
    [
        "People trusted Tom Carter. In August Carter left. He said that in June Carter sang.",
        "People trusted Tom Carter. On Monday Carter slept. Since May Carter was ill.",
        "People trusted Tom Carter. On 15 June Carter left. He said that last March Carter sang.",
        "Tom Carter sang. Then Carter wept. They said Tuesday Carter was ill.",
    ],
)
def test_behind_what_makes_a_date_a_month_is_no_name(text: str) -> None:
    assert extract(text).mentioned == {"Tom Carter": 3}


def test_a_german_day_before_a_noun_is_no_name() -> None:
    titles = extract("Am Montag Abend kam Peter Lang. Er war Sonntag Abend nicht da.").titles
    assert not any("Montag" in title or "Sonntag" in title for title in titles)


def test_a_month_or_a_day_may_open_the_name_of_a_thing() -> None:
    found = extract(
        "The October Revolution began in Petrograd. He read of the October Revolution in the "
        "Sunday Times. The Monday Club met in Leeds."
    )
    assert {"October Revolution", "Sunday Times", "Monday Club"} <= {*found.titles}
