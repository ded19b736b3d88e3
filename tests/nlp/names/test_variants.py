"""When two forms are one name, and when they are not."""

import pytest

from graphrag_index.schema.settings.step_sections import ExtractGraphNlp
from tests.fixtures.extraction import extract


def test_short_and_titled_forms_join_the_one_full_name() -> None:
    found = extract(
        "Agent Alex Mercer came to Berlin in spring. Everybody there trusted Alex Mercer. "
        "Mercer was careful. In the evening Alex wrote a long letter."
    )
    assert found.aliases["Alex Mercer"] == {"Agent Alex Mercer", "Mercer", "Alex"}
    assert found.mentioned == {"Alex Mercer": 4, "Berlin": 1}


def test_a_shortened_title_is_one_in_any_case_with_or_without_a_full_stop() -> None:
    found = extract(
        "They met Capt. Sorley in Oslo. It was Capt. J. R. Sorley who wrote it. The book of "
        "J.R. Sorley sold well. Nobody trusted CAPT. Sorley. They followed Cpt Sorley. "
        "Then J. R. Sorley left, and Sorley was forgotten."
    )
    assert found.mentioned == {"J.R. Sorley": 7, "Oslo": 1}


@pytest.mark.parametrize(
    "text",
    [
        "They met {} Anna Berg in Oslo. Later Anna Berg left.",
        "Er traf {} Anna Berg in Oslo. Später ging Anna Berg nach Hause.",
    ],
)
@pytest.mark.parametrize(
    "title",
    [
        *("Lt. Col.", "Brig. Gen.", "Lieutenant-Colonel", "Rear Admiral", "Private First Class"),
        *("Rev.", "Adm", "Cmdr.", "Sgt", "Hptm.", "Gén.", "Mme", "Płk", "Sig.", "Sra."),
    ],
)
def test_titles_of_many_words_and_languages_are_no_part_of_a_name(text: str, title: str) -> None:
    assert extract(text.format(title)).mentioned["Anna Berg"] == 2


def test_what_a_title_stands_before_may_be_no_person() -> None:
    found = extract(
        "The President of Peru came to Lima. They played in Major League Baseball. "
        "Everybody wants to be President of Peru."
    )
    assert "of Peru" not in found.titles
    assert {"Peru", "Major League Baseball"} <= {*found.titles}


def test_a_word_that_mostly_stands_alone_is_not_short_for_a_longer_name() -> None:
    found = extract(
        "They flew home with Air Canada.",
        "The winters of Canada are long. People from Canada know.",
        "They told us much about Canada. It was cold.",
    )
    assert found.mentioned["Canada"] == 3
    assert found.mentioned["Air Canada"] == 1
    assert "person" not in found.types.values()


def test_a_surname_that_two_people_bear_stays_by_itself() -> None:
    found = extract(
        "Alex Mercer met his brother Paul Mercer in Berlin. Later that evening Mercer left town."
    )
    assert found.aliases["Alex Mercer"] == found.aliases["Paul Mercer"] == set()
    assert found.mentioned["Mercer"] == 1


def test_a_given_name_that_two_people_bear_stays_by_itself() -> None:
    found = extract(
        "Agent Alex Mercer met Alex Hayes in Berlin. Everybody knew that Alex was late. "
        "Mercer waited for Hayes."
    )
    assert found.mentioned["Alex"] == 1
    assert found.mentioned["Alex Mercer"] == 2
    assert found.mentioned["Alex Hayes"] == 2


def test_a_short_form_means_the_full_name_of_its_own_document() -> None:
    found = extract(
        "Alex Mercer lives in Boston. People say that Mercer paints at night.",
        "Paul Mercer lives in Chicago. People say that Mercer never paints.",
    )
    assert found.mentioned["Alex Mercer"] == found.mentioned["Paul Mercer"] == 2
    assert found.aliases["Alex Mercer"] == found.aliases["Paul Mercer"] == {"Mercer"}
    assert "Mercer" not in found.titles


def test_a_place_is_not_the_person_named_like_it() -> None:
    found = extract(
        "Jack London wrote about the Klondike. Later he lived in London for a while. "
        "He crossed London Bridge every day. The fog in London made him ill."
    )
    assert found.aliases["Jack London"] == set()
    assert found.mentioned["London"] == 2
    assert found.mentioned["London Bridge"] == 1


def test_a_name_inside_of_another_is_another_name() -> None:
    found = extract(
        "Sydney lies in New South Wales. Cardiff lies in South Wales. "
        "The mines of South Wales were deep, those of New South Wales were not."
    )
    assert found.mentioned["New South Wales"] == found.mentioned["South Wales"] == 2


def test_a_ship_is_not_the_person_it_is_named_after() -> None:
    found = extract(
        "The Gauss was built in Kiel. It bore the name of Carl Friedrich Gauss. "
        "The crew of the Gauss wintered in the ice."
    )
    assert found.aliases["Carl Friedrich Gauss"] == set()
    assert found.mentioned["Gauss"] == 2


def test_initials_stand_for_the_full_name_of_their_document() -> None:
    found = extract(
        "Robert Falcon Scott led the party. The journal of R. F. Scott was found in November."
    )
    assert found.aliases["Robert Falcon Scott"] == {"R. F. Scott"}


def test_initials_that_fit_two_people_stay_by_themselves() -> None:
    found = extract(
        "Robert Falcon Scott met Rupert Frank Scott. The journal of R. F. Scott was found."
    )
    assert "R. F. Scott" in found.titles


def test_an_abbreviation_joins_the_name_that_explains_it() -> None:
    found = extract(
        "The Royal Geographical Society (RGS) paid for the ship. Then the RGS sent a letter."
    )
    assert found.aliases["Royal Geographical Society"] == {"RGS"}


def test_an_abbreviation_may_come_before_what_it_means() -> None:
    found = extract("The ANC (African National Congress) met in May. Everybody joined the ANC.")
    assert found.aliases["African National Congress"] == {"ANC"}


def test_a_kind_alone_stands_for_the_one_name_of_that_kind() -> None:
    found = extract(
        "Anna Lindqvist leads the Institute for Polar Research. "
        "Money for the Institute comes from Norway."
    )
    assert found.aliases["Institute for Polar Research"] == {"Institute"}


def test_a_kind_alone_stays_by_itself_where_two_names_are_of_that_kind() -> None:
    found = extract(
        "The Radium Institute opened in May. The Pasteur Institute sent flowers. "
        "Money for the Institute came from Norway."
    )
    assert found.aliases["Radium Institute"] == found.aliases["Pasteur Institute"] == set()


def test_a_title_that_belongs_to_the_name_is_kept() -> None:
    titles = extract("The fleet greeted King George III in London. Lord Byron stayed away.").titles
    assert {"King George III", "Lord Byron"} <= {*titles}


def test_a_particle_before_a_surname_does_not_hide_it() -> None:
    found = extract(
        "President F. W. de Klerk released him. De Klerk and his party lost the vote. "
        "Nobody blamed de Klerk."
    )
    assert found.mentioned["F. W. de Klerk"] == 3


def test_names_that_differ_in_accents_only_are_one() -> None:
    found = extract("They sailed with Otto Nordenskjöld. The crew of Otto Nordenskjold was lost.")
    assert len([title for title in found.titles if "Norden" in title]) == 1


def test_acronyms_are_not_the_words_spelled_like_them() -> None:
    found = extract("In May WHO sent doctors. Everybody heard The Guess Who, and Who was great.")
    assert "WHO" in found.titles


@pytest.mark.parametrize(
    ("text", "title", "aliases"),
    [
        ("Man kennt Goethe in Weimar. Goethes Haus steht dort.", "Goethe", {"Goethes"}),
        ("Er kam nach Berlin. Berlins Straßen sind breit.", "Berlin", {"Berlins"}),
        ("Mieszka w Krakowie. Kraków jest stary. Z Krakowa widać góry.", "Kraków", None),
        ("Byli w Pradze latem. Praga ma wiele mostów.", "Praga", {"Pradze"}),
        ("Byłem u Pawła Nowaka. Paweł Nowak nie był sam.", "Paweł Nowak", {"Pawła Nowaka"}),
        ("Мы жили в Москве. Москва большая.", "Москва", {"Москве"}),
    ],
)
def test_case_forms_are_one_name(text: str, title: str, aliases: set[str] | None) -> None:
    found = extract(text)
    assert title in found.titles
    assert found.aliases[title] == (aliases or {"Krakowie", "Krakowa"})


def test_a_surname_with_s_is_not_the_genitive_of_a_given_name() -> None:
    found = extract("Anna Peters traf Peter in Bonn. Später lachte Peters über Peter.")
    assert found.aliases["Anna Peters"] == {"Peters"}


def test_without_merging_every_form_is_an_entity() -> None:
    text = "Agent Alex Mercer came to Berlin. Everybody trusted Alex Mercer. Mercer was careful."
    found = extract(text, settings=ExtractGraphNlp(merge_variants=False))
    assert {"Agent Alex Mercer", "Alex Mercer", "Mercer"} <= {*found.titles}
    assert all(aliases == set() for aliases in found.aliases.values())


def test_a_country_is_no_short_form_of_a_person() -> None:
    found = extract(
        "Stephen L. Angola wrote it. He lived in Angola for years. Angola has a coast. Ships of "
        "Angola sail, and trade with Angola grows. They like Angola. Many sing of Angola."
    )
    assert {"Stephen L. Angola", "Angola"} <= {*found.titles}


def test_a_city_may_be_short_for_a_person_who_speaks() -> None:
    found = extract(
        "George Washington wrote it. Then Washington said no, and Washington left. He sat in "
        "Washington. In the end Washington nodded."
    )
    assert "Washington" not in found.titles
    assert found.aliases["George Washington"] == {"Washington"}


def test_a_famous_surname_means_no_relative_who_is_named_in_full() -> None:
    full = ["Donald Marlow came home. People say that Marlow was tired."] * 10
    bare = ["People say that Marlow paints. They asked Marlow why."] * 5
    relative = "Ivana Marlow lives in Boston. People say that Marlow won. Mrs Marlow agreed."
    found = extract(*(f"{n} {text}" for n, text in enumerate([*full, *bare, relative])))
    assert found.mentioned["Donald Marlow"] == 20 + 10 + 1
    assert found.mentioned["Ivana Marlow"] == 2


def test_a_namesake_keeps_the_surname_in_a_document_of_its_own() -> None:
    full = ["Donald Marlow came home. People say that Marlow was tired."] * 10
    found = extract(
        *(f"{n} {text}" for n, text in enumerate(full)),
        "Ivana Marlow lives in Boston. People say that Marlow won.",
    )
    assert found.mentioned["Ivana Marlow"] == 2


def test_a_word_is_the_given_name_of_nobody_where_it_is_the_usual_surname() -> None:
    usual = ["Robert Ryan came home. People say that Ryan was tired."] * 3
    found = extract(
        *(f"{n} {text}" for n, text in enumerate(usual)),
        "The family of Ryan Owens wept. They like the plan of Ryan.",
    )
    assert found.mentioned["Ryan Owens"] == 1
    assert found.mentioned["Robert Ryan"] == 7


def test_a_surname_may_come_first_where_the_corpus_uses_it_so() -> None:
    usual = ["They met Kim Jong Un. Later Kim smiled."] * 3
    found = extract(
        *(f"{n} {text}" for n, text in enumerate(usual)),
        "They met Kim Jong Un. Later Kim smiled, Connie Kim said.",
    )
    assert found.mentioned["Connie Kim"] == 1
    assert found.mentioned["Kim Jong Un"] == 8


@pytest.mark.parametrize(("surname", "n_merged"), [("Wang", 1), ("Simon", 1), ("Scalisi", 2)])
def test_one_full_name_shows_little_about_other_documents(surname: str, n_merged: int) -> None:
    found = extract(
        f"In Boston they met Davis {surname}, who paints.",
        f"In Oslo they talked to Mr {surname}. Then Mr {surname} left.",
    )
    assert found.mentioned[f"Davis {surname}"] == (1 if n_merged == 1 else 3)


def test_a_country_is_no_reporter_with_its_name() -> None:
    found = extract(
        "Rosalind Jordan reports from Amman. Jordan and Egypt met. The border with Jordan was "
        "closed. They like Jordan."
    )
    assert found.mentioned["Rosalind Jordan"] == 1


def test_a_word_that_stands_alone_elsewhere_is_no_head_noun() -> None:
    found = extract(
        "The group Congress for Peace spoke. Then Congress passed a bill. They like Congress.",
        "On Monday Congress met. The members of Congress left.",
        "The members of Congress stayed. They like Congress.",
    )
    assert found.mentioned["Congress for Peace"] == 1
    assert found.mentioned["Congress"] == 6


def test_a_house_is_not_the_white_house() -> None:
    found = extract(
        "They came to the White House. Later the House of Representatives voted. "
        "The bill that the House passed went to the White House.",
        "They came to the White House. The bill that the House passed went to the White House.",
    )
    assert found.mentioned["White House"] == 4
    assert found.mentioned["House of Representatives"] == 2


@pytest.mark.parametrize(
    ("usual", "other"),
    [
        ("Sergei Lavrin", "Sergey Lavrin"),
        ("Alexei Novin", "Aleksey Novin"),
        ("Michael Flinner", "Mike Flinner"),
    ],
)
def test_two_forms_of_a_given_name_are_one_person(usual: str, other: str) -> None:
    found = extract(f"They met {usual}. Later {usual} left.", f"In Oslo they met {other}.")
    assert found.mentioned[usual] == 3
    assert found.aliases[usual] == {other}


def test_a_short_given_name_may_be_another_person_with_a_surname_of_many() -> None:
    found = extract(
        "They met Michael Flinner. Later Michael Flinner left.",
        "In Oslo they met Mike Flinner. They also met Paul Flinner.",
    )
    assert {"Michael Flinner", "Mike Flinner", "Paul Flinner"} <= {*found.titles}


def test_a_known_body_is_one_with_its_abbreviation() -> None:
    found = extract(
        "Ministers of the EU met in Oslo. They like the EU.",
        "Poland joined the European Union. Everybody in the European Union knows.",
    )
    assert found.mentioned["European Union"] == 4


def test_a_surname_with_two_capitals_is_no_people() -> None:
    found = extract(
        "The carpenter Harry McNish raised the boat with Tom Crean. The men liked Harry McNish. "
        "Worsley went to fetch McNish and Crean. McNish was tired."
    )
    assert found.aliases["Harry McNish"] == {"McNish"}
