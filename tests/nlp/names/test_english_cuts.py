import pytest

from graphrag_nlp.names.known_names import find_known_type
from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        # A body, a place or a role before a person whose surname is a common word.
        ("She told the United Nations Nikki Haley was right.", {"United Nations", "Nikki Haley"}),
        ("They met Homeland Security John Kelly.", {"Homeland Security", "John Kelly"}),
        ("They met Human Services Secretary Tom Price.", {"Tom Price"}),
        ("They met British Prime Minister Theresa May.", {"Theresa May"}),
        ("They met New York Mayor Bill de Blasio.", {"Bill de Blasio"}),
        ("He wrote to German Interior Minister Thomas de Maiziere.", {"Thomas de Maiziere"}),
        (
            "Then spoke Social Democrats TD Catherine Murphy.",
            {"Social Democrats", "Catherine Murphy"},
        ),
        ("She saw Czech General Petr Pavel.", {"Petr Pavel"}),
        (
            "He left the Commission for the Protection of Minors Briton Peter Saunders.",
            {"Commission for the Protection of Minors", "Peter Saunders"},
        ),
        ("It was written by Robert Faturechi ProPublica.", {"Robert Faturechi", "ProPublica"}),
        # But one name.
        ("They met Jordan Lee Smith.", {"Jordan Lee Smith"}),
        ("They went to St. Louis.", {"St. Louis"}),
        ("The Henry J. Kaiser Family Foundation paid.", {"Henry J. Kaiser Family Foundation"}),
        # A sentence or a headline between two names.
        ("Talks with Moscow Some Democrats believe it.", {"Moscow"}),
        ("We saw Laura Kuenssberg At Westminster today.", {"Laura Kuenssberg", "Westminster"}),
        ("It was, said Professor While Brexit has come.", {"Brexit"}),
        ("A clip of Seth Meyers Dubs Donald Trump.", {"Seth Meyers", "Donald Trump"}),
        ("For the benefit of the Minister I repeat that it ends.", set()),
        ("Membership of the European Union costs.", {"European Union"}),
        ("Friends of the Earth Mozambique wrote.", {"Friends of the Earth Mozambique"}),
        # Two names with a hyphen or a mark, and adjectives.
        ("The China-US talks went on.", {"China", "US"}),
        ("The German-Turkey row went on.", {"Turkey"}),
        ("They read of Bahrain & Saudi Arabia.", {"Bahrain", "Saudi Arabia"}),
        ("They read of Marks & Spencer.", {"Marks & Spencer"}),
        # A hyphen that stands for a space.
        ("Then Dara Calleary-said no.", {"Dara Calleary"}),
        ("But-Dave Chappelle came.", {"Dave Chappelle"}),
        ("They met Kim Jong-il.", {"Kim Jong-il"}),
        # Initials alone, and a people in brackets.
        ("Then P. L. left the wall.", set()),
        ("They named him (Algerian immigrant) here.", set()),
    ],
)
def test_glued_names_are_cut(text: str, titles: set[str]) -> None:
    types = extract(text).types
    assert {title for title in types if types[title] != "noun phrase"} == titles


@pytest.mark.parametrize(
    ("text", "title", "kind"),
    [
        ("House Republicans said no.", "House Republicans", "organization"),
        (
            "They met in the Michigan House of Representatives.",
            "Michigan House of Representatives",
            "organization",
        ),
        ("They saw the Canadian Embassy.", "Canadian Embassy", "organization"),
        ("They went to the World Summit.", "World Summit", "event"),
        ("They met two Somalis and Pakistanis in May.", "Pakistanis", "name"),
        ("The General Assembly met.", "General Assembly", "organization"),
        (
            "The new home office is small, but the Home Office is in a large office.",
            "Home Office",
            "organization",
        ),
        ("They work at General Electric.", "General Electric", "organization"),
        # A letter that was decoded wrongly.
        ("They vote for Sinn F\ufffdin.", "Sinn F\ufffdin", "organization"),
        # The state of a member of Congress.
        ("Then came Brat (R-Va) alone. R-Va it was.", "Va", "geo"),
    ],
)
def test_groups_and_bodies_have_their_types(text: str, title: str, kind: str) -> None:
    assert extract(text).types[title] == kind


def test_a_party_or_an_abbreviation_is_no_surname() -> None:
    text = "They met Tory MPs. MPs said no. House Republicans met. Republicans said yes."
    assert {"MPs", "Republicans"} <= set(extract(text).types)


def test_a_name_before_a_lost_end_is_merged() -> None:
    text = "They met President Park Geun-hye. Then President Park Geun-hye-began to go. Park left."
    assert set(extract(text).types) == {"Park Geun-hye"}


def test_a_country_is_no_short_form_of_a_person() -> None:
    text = "Ada Kuwait sang. Kuwait signed the treaty. Ada Kuwait left. Kuwait's king came."
    assert {"Ada Kuwait", "Kuwait"} <= set(extract(text).types)


def test_works_characters_towns_and_agencies_are_known() -> None:
    assert find_known_type("Hidden Figures") == "name"
    assert find_known_type("Joey Tribbiani") == "person"
    assert find_known_type("Lanhydrock") == "geo"
    assert find_known_type("United Nations Environment Programme") == "organization"
