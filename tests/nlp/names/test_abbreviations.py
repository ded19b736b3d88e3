"""Acronyms and short forms stand for a longer name of the same documents, or for none."""

import pytest

from graphrag_nlp.names.abbreviations import find_acronyms
from tests.fixtures.extraction import extract

FDA = [
    "The Food and Drug Administration approved the drug. The FDA said on Monday it was safe.",
    "The U.S. Food and Drug Administration met in Boston. Later FDA officials left.",
    "The FDA said nothing.",
]
CDC = [
    "The Centers for Disease Control and Prevention warned of it. The CDC said so on Monday.",
    "Officials of the Centers for Disease Control and Prevention met. Later the CDC agreed.",
    "The CDC said nothing.",
]
BIDEN = [
    "President Joe Biden spoke on Monday. The Biden administration welcomed it.",
    "Joe Biden met them in Boston. The Biden campaign was glad. The Biden team left.",
    "Biden said nothing. The Biden administration said nothing.",
]


@pytest.mark.parametrize(
    ("texts", "title", "aliases", "n_mentions"),
    [
        (FDA, "Food and Drug Administration", {"FDA", "U.S. Food and Drug Administration"}, 5),
        (CDC, "Centers for Disease Control and Prevention", {"CDC"}, 5),
        # The article before "Biden administration" is that of the noun.
        (BIDEN, "Joe Biden", {"Biden"}, 7),
    ],
)
def test_a_short_form_is_the_longer_name_of_its_documents(
    texts: list[str], title: str, aliases: set[str], n_mentions: int
) -> None:
    found = extract(*texts)
    assert found.aliases[title] == aliases
    assert found.mentioned[title] == n_mentions


@pytest.mark.parametrize(
    ("texts", "short"),
    [
        # The acronym stands first: it has another meaning.
        (["The FDA met in Boston. Then the Food and Drug Administration left."], "FDA"),
        # No document has both.
        (["The FDA met in Boston.", "The Food and Drug Administration met in Boston."], "FDA"),
        # Two names fit, each in half of the documents.
        (
            [
                f"The {name} met in Boston. Later the ABL said no."
                for name in ("American Basketball League", "Australian Baseball League")
            ],
            "ABL",
        ),
        # Two letters in one document prove little.
        (["The Arts Palace opened in Boston. Later the AP said no."], "AP"),
        # A person.
        (["Then Ruth Bader Ginsburg spoke. Later the RBG said no."], "RBG"),
    ],
)
def test_an_acronym_without_enough_evidence_stays_apart(texts: list[str], short: str) -> None:
    assert extract(*texts).aliases[short] == set()


@pytest.mark.parametrize(
    ("words", "acronyms"),
    [
        ("Food and Drug Administration", {"FDA", "FADA"}),
        ("Centers for Disease Control and Prevention", {"CDCP", "CFDCAP", "CDC", "CFDC"}),
        # Two letters before "and" are no acronym.
        ("Health Care and Education", {"HCE", "HCAE"}),
    ],
)
def test_initials_of_a_name(words: str, acronyms: set[str]) -> None:
    assert find_acronyms(tuple(words.split())) == acronyms


@pytest.mark.parametrize(
    ("dateline", "person"),
    [("AUSTIN, Texas", "Lloyd Austin"), ("HOWELL, Mich.", "Ada Howell")],
)
def test_a_dateline_is_no_short_form_of_a_person(dateline: str, person: str) -> None:
    surname = person.split()[1]
    found = extract(
        f"{dateline} (AP) — The bill passed on Monday near Detroit.",
        f"Then {person} left. {surname} said no.",
        f"We saw {person} at home. Then {surname} spoke.",
        f"{dateline} — The rally began at noon.",
    )
    assert found.aliases[person] == {surname}
    assert found.mentioned[surname.upper()] == 2


def test_words_in_capitals_are_the_name_that_they_spell() -> None:
    found = extract("They left London. Later the bus reached LONDON again.")
    assert found.mentioned["London"] == 2
