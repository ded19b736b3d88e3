"""Which capitalized spans are names, where they are cut, and what kind they are of."""

import pytest

from graphrag_nlp.names.compounds import is_german_noun, is_loan_word
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import count_title_chars
from graphrag_nlp.text.languages import read_lists
from tests.fixtures.extraction import extract


def test_a_number_word_at_the_start_of_a_sentence_needs_proof() -> None:
    found = extract(
        "One Ton Depot was far away. They turned back before One Ton Depot. Two Norwegians came. "
        "One Canadian stayed in Hobart. First Scott wrote home. Everybody liked Scott."
    )
    assert found.mentioned["One Ton Depot"] == 2
    assert found.mentioned["Scott"] == 2
    assert not {*found.titles} & {"Ton Depot", "Two Norwegians", "One Canadian", "First Scott"}


def test_a_number_behind_a_name_belongs_to_it_where_it_often_stands_there() -> None:
    found = extract(
        "Pilots love the Boeing 747 most. The first Boeing 747 flew in May. In Spain 12 men left. "
        "Nobody stayed in Spain. Of England 6 and Wales 3 he dreamed. England is big, he said."
    )
    assert found.mentioned["Boeing 747"] == 2
    assert {"Spain", "Wales"} <= {*found.titles}
    assert not {*found.titles} & {"Spain 12", "Wales 3"}


def test_a_heading_on_the_line_above_is_no_part_of_a_name() -> None:
    text = (
        "Perry Mason\nPerry Mason is a lawyer who never loses any of his cases in Los Angeles, as "
        "everybody in the town says.\n\nWater\nRunning late is all that it ever did in the houses."
    )
    assert extract(text).mentioned == {"Perry Mason": 2, "Los Angeles": 1}


def test_a_name_may_go_on_behind_the_end_of_a_wrapped_line() -> None:
    found = extract("It was long after that winter that Anna\nWeber came back to the old house.")
    assert found.titles == ["Anna Weber"]


def test_what_belongs_to_a_name_is_none_by_itself() -> None:
    found = extract(
        "They sold it to Acme, Inc. in spring. He met Henry Ford, Jr. in town. The Captain and the "
        "General left. We saw the house of J.R. with its garden, and the Sir laughed."
    )
    assert {*found.titles} == {"Acme, Inc.", "Henry Ford, Jr."}


def test_dotted_acronyms_are_names_where_they_are_used_as_such() -> None:
    found = extract("They sailed to the U.S. in May. Nobody in the US knew. It was 9 P.M. by then.")
    assert [title for title in found.titles if title in ("U.S.", "U.S", "US", "P.M")] == ["U.S."]


def test_two_names_that_meet_behind_a_preposition_are_two() -> None:
    found = extract(
        "They lived at Cape Evans for a year. The leader was Robert Scott. Everyone liked Scott. "
        "Nobody left Cape Evans. At Cape Evans Scott wrote letters. The hut of Scott still stands "
        "at Cape Evans."
    )
    assert "Cape Evans Scott" not in found.titles
    assert found.mentioned["Cape Evans"] == 4
    assert found.mentioned["Robert Scott"] == 4


def test_a_person_and_a_place_joined_by_of_are_two() -> None:
    found = extract("Mayor Bob Trent of Tampa opened shelters. The people of Tampa thanked him.")
    assert {"Bob Trent", "Tampa"} <= {*found.titles}


def test_a_name_made_of_a_kind_and_a_place_is_one() -> None:
    found = extract(
        "She taught at the University of Oslo. The Battle of Hastings was her subject. "
        "In Oslo she read much about Hastings."
    )
    assert {"University of Oslo", "Battle of Hastings"} <= {*found.titles}


def test_roles_before_a_german_name_are_no_part_of_it() -> None:
    found = extract("Nach Angaben von Innensenatorin Petra Lindner war der Anwalt Jan Voss dort.")
    assert {"Petra Lindner", "Jan Voss"} <= {*found.titles}
    assert not any("Angaben" in title or "Anwalt" in title for title in found.titles)


def test_a_verb_or_noun_before_a_slavic_name_is_no_part_of_it() -> None:
    found = extract(
        "Учился Пушкин в Москве. Александр Пушкин писал много. Стихи Пушкина знали все.",
        "Zdaniem Wrony port wystarczy. Tomasz Wrona mieszka w Gdyni. Dzieło Wrony nie jest małe.",
    )
    assert found.mentioned["Александр Пушкин"] == 3
    assert found.mentioned["Tomasz Wrona"] == 3


def test_words_that_the_corpus_writes_in_lower_case_are_no_names() -> None:
    found = extract(
        "Penguins live in the south. We saw many penguins near Cape Royds. Ice was everywhere. "
        "The ice and the penguins delighted Frank Hurley."
    )
    assert {*found.titles} & {"Penguins", "Ice"} == set()


def test_headings_and_shouting_prove_no_names() -> None:
    found = extract(
        "# Food And Clothing Of The Men\n\nThe men of Frank Wild wore wool and ate seal meat all "
        "winter.\n\nTHE MEN WERE HUNGRY AND COLD.\n\nNobody complained about Frank Wild."
    )
    assert found.titles == ["Frank Wild"]


def test_months_days_and_function_words_are_no_names() -> None:
    found = extract("On Monday, 3 March, They met Anna Weber. However, It rained in April.")
    assert found.titles == ["Anna Weber"]


def test_terms_in_lower_case_are_found_where_they_recur() -> None:
    text = (
        "The ship was held by the pack ice. It drifted with the pack ice for months. "
        "Wind drove the pack ice north. Nobody left. The good men left the whole ship."
    )
    assert extract(text).mentioned["pack ice"] == 3


def test_the_plural_of_a_term_is_the_same_term() -> None:
    text = "It met an emperor penguin. He drew the emperor penguins. She saw an emperor penguin."
    found = extract(text)
    assert found.mentioned["emperor penguin"] == 3
    assert found.aliases["emperor penguin"] == {"emperor penguins"}


def test_phrases_of_weak_words_are_no_terms() -> None:
    text = "They died on the way back. It was a long day. The best dogs ran. The last place. " * 4
    assert {*extract(text).titles} & {"way back", "long day", "best dogs", "last place"} == set()


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


def test_a_river_after_a_common_noun_makes_no_town() -> None:
    titles = extract("Nach dem Hochwasser an der Elbe war die Brücke am Main gesperrt.").titles
    assert not {"Hochwasser an der Elbe", "Brücke am Main"} & {*titles}


def test_two_laws_with_a_conjunction_are_two_names() -> None:
    text = "It is illegal under the Clayton Act and the Federal Antitrust Act in this case."
    assert {"Clayton Act", "Federal Antitrust Act"} <= {*extract(text).titles}


def test_names_of_parties_in_capitals_are_found() -> None:
    heading = "UNITED STATES DISTRICT COURT\nNORTHERN DISTRICT OF CALIFORNIA\n"
    parties = "FEDERAL TRADE COMMISSION, Plaintiff, v. ORBITAL FOODS, INC., Defendant."
    text = f"{heading}{parties} The judge of the district denied the motion of the commission."
    titles = extract(text).titles
    assert {"FEDERAL TRADE COMMISSION", "ORBITAL FOODS, INC."} <= {*titles}


def test_years_and_offices_are_not_added_to_names() -> None:
    text = "In early March he met the Commissioner for Crown Lands, and PyeongChang 2018 was over."
    assert not {"PyeongChang 2018", "Commissioner for Crown Lands"} & {*extract(text).titles}


def test_emphasized_verbs_are_no_names() -> None:
    text = "La sala RESUELVE conceder el recurso de la parte. Debe TUTELAR los derechos de todos."
    assert not {"RESUELVE", "TUTELAR"} & {*extract(text).titles}


def test_a_model_has_its_number() -> None:
    text = "La Caléor 40 est une machine. Il faut détartrer la Caléor deux fois par an."
    assert "Caléor 40" in extract(text).titles


def test_german_nouns_are_known_by_their_parts() -> None:
    assert all(map(is_german_noun, ("Haus", "Häuser", "Gartenhaus", "Verantwortung", "Ladegerät")))
    assert not any(map(is_german_noun, ("Vodafone", "Zelnika", "RheinEnergie", "Miele")))
    assert is_loan_word("Updates") or is_loan_word("Channels")
    assert not is_loan_word("Zelnika")


def test_a_body_by_a_common_word_is_no_name() -> None:
    text = "In 1947 the Council of Tarvik met. It told the Council and the Senate about Tarvik."
    assert set(extract(text).titles) == {"Council of Tarvik", "Senate", "Tarvik"}


def test_a_rare_word_that_is_also_written_in_lower_case_is_no_name() -> None:
    text = "They know Turbine and Anna Holt. No turbine stayed in Norway."
    assert set(extract(text).titles) == {"Anna Holt", "Norway"}


def test_an_office_with_a_hyphen_is_no_name() -> None:
    text = "Norway told the Secretary-General and the Co-Chairmen of Under-Secretary Maria Otero."
    assert set(extract(text).titles) == {"Norway", "Maria Otero"}


def test_a_common_adjective_before_nouns_is_no_name() -> None:
    text = "We cut the Federal budget, and a Federal program, and met in Norway."
    assert "Federal" not in extract(text).titles


def test_forms_of_address_are_cut_off_every_name() -> None:
    assert count_title_chars("Frau Zeynura Yıldız") == len("Frau ")
    assert count_title_chars("General Motors Europe") == 0


@pytest.mark.parametrize("name", ["placed_acronyms", "nouns_of_zu"])
def test_lists_of_words_have_no_repeats(name: str) -> None:
    words = read_lists("graphrag_nlp/names/data/words")[name].split()
    assert len(words) == len(set(words))


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


LENA = {"Lena Hart": "person"}


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


def test_a_bracket_may_stand_between_a_name_and_its_explanation() -> None:
    assert extract("It is about Wexham (1886–1962), a composer.").types == {"Wexham": "person"}
    # A noun behind the bracket belongs to no adjective before it.
    foul = "Foul by Orlo McWean (Ireland). Orlo McWean (Ireland) right footed shot, blocked."
    assert "Orlo McWean" in extract(foul).titles


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


def test_a_party_or_an_abbreviation_is_no_surname() -> None:
    text = "They met Tory MPs. MPs said no. House Republicans met. Republicans said yes."
    assert {"MPs", "Republicans"} <= set(extract(text).types)


def test_a_country_is_no_short_form_of_a_person() -> None:
    text = "Ada Kuwait sang. Kuwait signed the treaty. Ada Kuwait left. Kuwait's king came."
    assert {"Ada Kuwait", "Kuwait"} <= set(extract(text).types)


def test_works_characters_towns_and_agencies_are_known() -> None:
    assert find_known_type("Hidden Figures") == "name"
    assert find_known_type("Joey Tribbiani") == "person"
    assert find_known_type("Lanhydrock") == "geo"
    assert find_known_type("United Nations Environment Programme") == "organization"


def find_names(text: str) -> dict[str, str]:
    """Return the names in a text with their types."""
    types = extract(text).types
    return {title: kind for title, kind in types.items() if kind != "noun phrase"}
