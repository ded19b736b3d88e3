"""Acronyms and short forms stand for a longer name of the same documents, or for none."""

import pytest

from graphrag_nlp.names.abbreviations import find_acronyms

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
