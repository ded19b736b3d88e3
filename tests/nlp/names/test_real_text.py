"""Names in text as people have it: news, chats, manuals and laws."""

import pytest

from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "names", "no_names"),
    [
        (
            "They met CDC Director Rochelle Walker on Monday. CDC staff waited.",
            {"CDC", "Rochelle Walker"},
            {"CDC Director Rochelle Walker", "Director"},
        ),
        (
            "The plan of Foreign Minister Alexander Downer failed. The Prime Minister left.",
            {"Alexander Downer"},
            {"Prime Minister", "Foreign Minister Alexander Downer"},
        ),
        ("Reporters asked Dr. Leah Okafor about it.", {"Leah Okafor"}, {"Dr. Leah Okafor"}),
        ("We read about Roe v. Wade in school.", {"Roe v. Wade"}, {"Roe", "Wade"}),
        (
            "The Department of Health and Human Services paid Marks & Spencer.",
            {"Department of Health and Human Services", "Marks & Spencer"},
            {"Marks", "Spencer", "Human Services"},
        ),
        ("It was sold in the U.S. yesterday. The U.S. bought it.", {"U.S."}, {"U.S"}),
        ("I'm here. I've paid. Let's go, said Anna. I'm late.", {"Anna"}, {"I'm", "I've", "Let's"}),
        (
            "See Article 5 and Annex B. Article 5 is old.",
            set(),
            {"Article 5", "Annex B", "Article"},
        ),
        ("J'ai vu Paul. C'est Paul, je crois. J'ai froid.", {"Paul"}, {"J'ai", "C'est"}),
        ("It happened in Le Havre in May.", set(), {"I-Maine"}),
        ("Senator Wheeler (I-Maine) voted. He is from Maine.", {"Maine"}, {"I-Maine"}),
        (
            "Er sprach mit Nils Petersen von der TU Darmstadt. Die TU Darmstadt schwieg.",
            {"Nils Petersen", "TU Darmstadt"},
            {"Nils Petersen von der TU Darmstadt"},
        ),
        ("Elle a quitté le Parti socialiste hier.", {"Parti socialiste"}, {"Parti"}),
    ],
)
def test_names_are_found_as_a_reader_sees_them(
    text: str, names: set[str], no_names: set[str]
) -> None:
    titles = {*extract(text).titles}
    assert names <= titles
    assert not titles & no_names


def test_a_name_ends_where_the_next_speaker_begins() -> None:
    found = extract(
        "Noah: we should have ordered all of it from Deliveroo\n"
        "Sofia: yes, and I told you so before we went to the house\n"
        "Noah: Deliveroo it is then, as soon as we are back at home"
    )
    assert {"Deliveroo", "Sofia"} <= {*found.titles}
    assert "Deliveroo\nSofia" not in found.titles


def test_words_of_a_headline_are_no_names() -> None:
    found = extract("Voters Reject New Plan For Bridge\n\nThe plan was rejected, Anna Smith said.")
    assert {*found.titles} == {"Anna Smith"}
    found = extract("They met in Oslo. How Korvil Taught Us To Live With Less And Cut The Waste.")
    assert found.titles == ["Oslo"]


def test_bylines_credits_and_agencies_are_not_read_for_names() -> None:
    found = extract(
        "By Laura Ungar, Associated Press\n\n"
        "LONDON (AP) — The mayor met Sadia Karim in London. Karim smiled. (AP Photo/Kin Cheung)\n\n"
        "Photo: Kin Cheung"
    )
    assert {*found.titles} == {"London", "Sadia Karim"}


def test_names_keep_the_ends_of_their_abbreviations() -> None:
    found = extract(
        "They sued Fenwick Optical Co., Ltd. in May. Ben K. paid Fenwick Optical Co., Ltd. soon. "
        "We know Ben K. from school. They left the Nationwide Children's Hospital."
    )
    assert {"Fenwick Optical Co., Ltd.", "Ben K.", "Nationwide Children's Hospital"} <= {
        *found.titles
    }


def test_evaluating_adjectives_begin_no_terms() -> None:
    found = extract("It was the hard work of a heat pump. " * 4)
    assert {*found.titles} == {"heat pump"}


def test_a_country_is_one_entity_with_its_abbreviations() -> None:
    found = extract(
        "They flew to the United States. The US was cold. Nobody in the U.S. knew. "
        "They met in the UK. The United Kingdom was colder. England lost to England in England."
    )
    assert found.aliases["United States"] == {"US", "U.S."}
    assert found.aliases["United Kingdom"] == {"UK"}


def test_a_known_place_with_the_ending_of_a_plural_is_a_name_at_the_start_of_texts() -> None:
    found = extract("Columbus, Ohio - The strike went on.", "Columbus, Ohio - The river rose.")
    assert found.types["Columbus"] == "geo"


def test_a_name_of_two_countries_abbreviates_none() -> None:
    found = extract(
        "He left Kongo. They flew to the United States. The US was cold. He left Kongo."
    )
    assert found.aliases["United States"] == {"US"}
    assert "Kongo" in found.titles


def test_lines_of_unequal_length_are_not_one_wrapped_paragraph() -> None:
    lines = (
        "Simon and Garfunkel gave a concert for everybody in Central Park",
        "Couples on this show were asked about the habits of their partners and about each other",
        "The old ferry to the other side of the harbour was closed for good in the year 1987",
        "This is a line",
    )
    found = extract("\n".join(lines)).titles
    assert "Central Park" in found
    assert not [title for title in found if "Couples" in title]


def test_a_name_goes_on_in_the_next_line_of_a_wrapped_paragraph() -> None:
    text = (
        "The letters were found in the archive of the Royal\n"
        "Geographical Society, where nobody had looked for\n"
        "them since the day on which the librarian died.\n"
    )
    assert "Royal Geographical Society" in extract(text).titles


def test_terms_of_frequent_words_count_only_where_they_are_repeated() -> None:
    texts = [
        f"In {place}, the title track of the crew began on the sea ice of the shore."
        for place in ("Oslo", "Bergen", "Hammerfest", "Bodø")
    ]
    found = extract(*texts).titles
    assert "sea ice" in found
    assert "title track" not in found
    repeated = extract(" ".join(texts)).titles
    assert {"sea ice", "title track"} <= {*repeated}


@pytest.mark.parametrize(
    ("text", "name", "wrong"),
    [
        (
            "Yesterday Secretary of State Rice departed on a trip to Oslo.",
            "Rice",
            "State Rice",
        ),
        (
            "Then news arrived from Italy of Antonio Gramsci's death in prison.",
            "Antonio Gramsci",
            "Italy of Antonio Gramsci",
        ),
        (
            "The games were held by the European Baseball Confederation in Oslo.",
            "European Baseball Confederation",
            "Baseball Confederation",
        ),
        (
            "A letter reached the President of the Security Council, and he read it in Oslo.",
            "Security Council",
            "Council",
        ),
        (
            "Siehe die Seitenleiste GEMEINSCHAFT Ada Brown für alle.",
            "Ada Brown",
            "GEMEINSCHAFT Ada Brown",
        ),
        ("The film was shown on TV. He sold his TV, and a TV in Oslo broke.", "Oslo", "TV"),
    ],
)
def test_names_are_cut_where_they_begin(text: str, name: str, wrong: str) -> None:
    found = extract(text).titles
    assert name in found
    assert wrong not in found
