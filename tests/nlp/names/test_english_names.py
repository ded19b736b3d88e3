"""English names in speeches and on the web: offices, members, constituencies and cut names."""

import pytest

from tests.fixtures.extraction import extract

LENA = {"Lena Hart": "person"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Roles, their fields and words of address are no names.
        (
            "The Under-Secretary of State for the Environment, Food and Rural Affairs met Lena "
            "Hart. I asked the Secretary of State for Health. The Secretary of State was there.",
            LENA,
        ),
        (
            "As my hon. Friend said, hon. Members know the right hon. Gentleman. Hon. Members "
            "like Lena Hart.",
            LENA,
        ),
        (
            "In my year as the Member of Parliament for Wycombe, I slept.",
            {"Parliament": "organization", "Wycombe": "geo"},
        ),
        # Members of a party name it; the sides of a parliament are none.
        (
            "Ask why Labour Members left when Opposition Members stayed with SNP MPs.",
            {"Labour": "organization", "SNP": "organization"},
        ),
        # Bills and governments in general.
        (
            "We read the Bill. I hate the Bill with Lena Hart. National Governments oppose Bills.",
            LENA,
        ),
        ("All the Governments of Europe met.", {"Europe": "geo"}),
        ("They met in the Chamber. In this Chamber, Lena Hart alerted the Chamber.", LENA),
        # A direction is a name behind an article only.
        ("The hon. Member for Brent, North said so to Lena Hart.", {"Brent": "geo", **LENA}),
        ("They sat in Central. The vote was lost by North to Lena Hart.", LENA),
        ("The Deputy Prime Minister said to Lena Hart that he left.", LENA),
        ("Alongside that, we met Lena Hart. Alongside it, we slept.", LENA),
        ("Despite it, the Centre works for Lena Hart. We like the Centre.", LENA),
        (
            "Airport '79 starts in Kiel. It was the Concorde Airport.",
            {"Kiel": "geo", "Concorde Airport": "geo"},
        ),
        ("They met on New Year's Eve with Lena Hart.", LENA),
        # Whole names of bodies.
        (
            "She asked the Department for Environment, Food and Rural Affairs to wait.",
            {"Department for Environment, Food and Rural Affairs": "organization"},
        ),
        ("They left Her Majesty's Treasury early.", {"Her Majesty's Treasury": "organization"}),
        ("They saw the Solicitor General with Lena Hart. The Ombudsman saw Lena Hart.", LENA),
        ("The Sultan left. He was made captain of the Sultan by Lena Hart.", LENA),
    ],
)
def test_words_of_a_parliament_are_no_names(text: str, expected: dict[str, str]) -> None:
    assert extract(text).types == expected


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("They saw the Habomai archipelago.", "Habomai", "geo"),
        ("Then the Baoding-headquartered company left.", "Baoding", "geo"),
        ("After he left Porto Alegre, Mayor Chaise declared it.", "Porto Alegre", "geo"),
        ("They went to a Roman pot and the Roman walls.", "Roman", "name"),
        ("Like the then Indian Muslim leaders, they left.", "Indian Muslim", "name"),
        ("St Pauls is old.", "St Pauls", "geo"),
        ("Its UN correspondent, Rosiland Jordan, said so.", "Rosiland Jordan", "person"),
        ("I like the United States of America.", "United States of America", "geo"),
        ("One of them is Feng Jinfang, a former company executive.", "Feng Jinfang", "person"),
        ("They come from Hulcote, near Milton Keynes.", "Hulcote", "geo"),
        ("They left Ratoath in Co Meath.", "Co Meath", "geo"),
        ("They lived in French Guinea.", "French Guinea", "geo"),
        ("It went to C Healy after a pass.", "C Healy", "person"),
        ("It was bought by Soma Oil.", "Soma Oil", "organization"),
        (
            "They gave the Town and Country Planning General Development Order 1988 to him.",
            "Country Planning General Development Order 1988",
            "name",
        ),
    ],
)
def test_words_beside_a_name_show_its_type(text: str, name: str, kind: str) -> None:
    assert extract(text).types[name] == kind


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("My hon. Friend the Member for Brindlewick (Ann Lee) spoke.", "Brindlewick"),
        ("I saw the MP for Sherwood there.", "Sherwood"),
        ("It was the senator from Brindlewick.", "Brindlewick"),
    ],
)
def test_a_member_of_a_parliament_shows_the_constituency(text: str, place: str) -> None:
    assert extract(text).types[place] == "geo"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A hyphen that stands for a dash.
        ("Ask the Minister-give me a nod-or Lena Hart.", LENA),
        ("Thirty-five states agreed with Lena Hart.", LENA),
        # Persian names go on behind "-e".
        (
            "The village is in Torbat-e Jam County near Kabul.",
            {"Torbat-e Jam County": "geo", "Kabul": "geo"},
        ),
        ("Yesterday Governor Jeb Bush of Florida slept.", {"Jeb Bush": "person", "Florida": "geo"}),
        (
            "We flew in a much-abused DC3 of Royal Air Laos.",
            {"DC3": "name", "Royal Air Laos": "organization"},
        ),
        ("They asked a Texas Republican there.", {"Texas": "geo"}),
        ("They like the speaker of the House Paul Ryan now.", {"Paul Ryan": "person"}),
        (
            "It was shared by Pacific Coast Highway & Boston Post Road.",
            {"Pacific Coast Highway": "geo", "Boston Post Road": "geo"},
        ),
        # Bodies of several fields.
        (
            "Then the Royal College of Obstetricians and Gynaecologists sued.",
            {"Royal College of Obstetricians and Gynaecologists": "organization"},
        ),
        (
            "Then the Securities Industry and Financial Markets Association sued.",
            {"Securities Industry and Financial Markets Association": "organization"},
        ),
        (
            "Then the Housing, Planning and Local Government Committee met.",
            {"Housing, Planning and Local Government Committee": "organization"},
        ),
        (
            "Then the American Road and Transportation Builders Association sued.",
            {"American Road and Transportation Builders Association": "organization"},
        ),
        (
            "We met the Chairman of the Council for Civil Society and Human Rights in Kiel.",
            {"Council for Civil Society and Human Rights": "organization", "Kiel": "geo"},
        ),
        (
            "We asked the Office of Government Ethics and the White House.",
            {"Office of Government Ethics": "organization", "White House": "organization"},
        ),
        (
            "The former United Nations Secretary General Ban Ki-moon spoke.",
            {"Ban Ki-moon": "person"},
        ),
        ("They spoke to Mayor-Dirk Hilbert there.", {"Dirk Hilbert": "person"}),
        (
            "A lecturer at the National University of Ireland spoke. Ireland is old. We love "
            "Ireland. Ireland won. Ireland lost. Ireland left.",
            {"National University of Ireland": "organization", "Ireland": "geo"},
        ),
        (
            "They joined the Northern Party of Scott. Scott won. Scott lost. Scott left. "
            "They like Scott. Scott slept.",
            {"Northern Party": "organization", "Scott": "person"},
        ),
        (
            "It rose after Devon and Cornwall Police left.",
            {"Devon and Cornwall Police": "organization"},
        ),
        (
            "Head of the self-proclaimed Kosovo Borut Pahor left.",
            {"Kosovo": "geo", "Borut Pahor": "person"},
        ),
        ("We doubt Conservative Front-Bench Members like Lena Hart.", LENA),
        ("It returns True, and True is good for Lena Hart. It is not False.", LENA),
        (
            "He asked the White House and the Justice Department.",
            {"White House": "organization", "Justice Department": "organization"},
        ),
    ],
)
def test_names_end_where_another_begins(text: str, expected: dict[str, str]) -> None:
    assert extract(text).types == expected


def test_a_bracket_may_stand_between_a_name_and_its_explanation() -> None:
    assert extract("It is about Wexham (1886–1962), a composer.").types == {"Wexham": "person"}
    # A noun behind the bracket belongs to no adjective before it.
    foul = "Foul by Orlo McWean (Ireland). Orlo McWean (Ireland) right footed shot, blocked."
    assert "Orlo McWean" in extract(foul).titles


def test_a_given_name_in_the_middle_shows_a_person() -> None:
    types = extract("The report names Dahir Ahmed Adan, too.").types
    assert types == {"Dahir Ahmed Adan": "person"}


def test_a_frequent_word_may_be_the_name_of_a_thing_or_a_direction() -> None:
    text = "We like the Quest and its crew. They like the Quest, and Lena Hart saw the Quest twice."
    assert extract(text).types == {"Quest": "name", **LENA}
    assert extract("They live in the West with Lena Hart.").types["West"] == "name"


def test_things_and_places_with_several_meanings_have_their_likely_type() -> None:
    types = extract("They like Troma, Strangeways and Twinkies.").types
    assert types == {"Troma": "organization", "Strangeways": "geo", "Twinkies": "name"}


def test_a_direction_stays_with_its_place() -> None:
    north = "They went to the North. They like the North, and the North likes them. They saw Wales."
    found = extract(
        f"{north} They saw Wales. They saw Wales. A plant at Deeside in North Wales left."
    )
    assert found.types["North Wales"] == "geo"
