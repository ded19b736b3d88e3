"""Which capitalized spans are names, where they are cut, and what kind they are of."""

import pytest

from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # The start of a sentence, and forewords.
        ("Reporters asked Anna Weber about it.", {"Anna Weber"}),
        ("At first the Norwegian Roald Amundsen stayed.", {"Roald Amundsen"}),
        ("Running was hard. We met in Boston.", {"Boston"}),
        # Possessives.
        ("The Patron's Medal was given to Louis Bernacchi.", {"Patron's Medal"}),
        ("He studied at King's College in Cambridge.", {"King's College"}),
        ("He worked at St George's Hospital in London.", {"St George's Hospital"}),
        ("We saw Campbell's Northern Party near Cape Evans.", {"Campbell", "Northern Party"}),
        # Titles and initials.
        ("They read the book of J. R. R. Tolkien twice.", {"J. R. R. Tolkien"}),
        ("They read the book of J.R.R. Tolkien twice.", {"J.R.R. Tolkien"}),
        ("We saw W.E.B. Du Bois and C.M. von Weber.", {"W.E.B. Du Bois", "C.M. von Weber"}),
        # Numbers.
        ("They marched to One Ton Depot in haste.", {"One Ton Depot"}),
        ("He works at One Canada Square in London.", {"One Canada Square"}),
        (
            "In London the Six Nations met the Thousand Islands.",
            {"Six Nations", "Thousand Islands"},
        ),
        ("Im Museum sah man den Zweiten Weltkrieg in Bildern.", {"Zweiten Weltkrieg"}),
        ("They drove along West Virginia Route 9 at night.", {"West Virginia Route 9"}),
        ("Everybody saw Apollo 11 land.", {"Apollo 11"}),
        ("Before World War I came the flu, behind World War II peace.", {"World War I"}),
        # What is joined by a plus or a hyphen.
        ("It was printed by Springer Science+Business Media.", {"Springer Science+Business Media"}),
        ("They talked to Kim Jong-il and Ban Ki-moon.", {"Kim Jong-il", "Ban Ki-moon"}),
        ("They fought in the Russo–Japanese War of old.", {"Russo–Japanese War"}),
        ("She left the Economic Co-operation Council.", {"Economic Co-operation Council"}),
        # Function words and months that belong to names.
        ("They passed Jan Mayen and Easter Island.", {"Jan Mayen", "Easter Island"}),
        ("They lost it in the First World War near Ypres.", {"First World War"}),
        ("The letter came from Carl August of Weimar.", {"Carl August"}),
        ("They thanked Theresa May for the speech.", {"Theresa May"}),
        # Organizations for something.
        ("He joined the Council for Foreign Relations in May.", {"Council for Foreign Relations"}),
        # Names with particles, hyphens and prefixes.
        ("We met Otto von Bismarck and Mohammed al-Khwarizmi.", {"Mohammed al-Khwarizmi"}),
        ("The hero of Apsley Cherry-Garrard is Lawrence.", {"Apsley Cherry-Garrard"}),
        # French elision.
        ("Il entra à L'Académie de Paris et n'en sortit pas.", {"Académie de Paris"}),
    ],
)
def test_a_name_is_found_whole(text: str, names: set[str]) -> None:
    assert names <= {*extract(text).titles}


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


@pytest.mark.parametrize(
    ("text", "title", "kind"),
    [
        ("In May Edward Atkinson came home.", "Edward Atkinson", "person"),
        ("Yesterday the Radium Institute opened.", "Radium Institute", "organization"),
        ("They sailed past Elephant Island at night.", "Elephant Island", "geo"),
        ("He lived in Osnabrück for a year.", "Osnabrück", "geo"),
        ("They fought in the Battle of Hastings.", "Battle of Hastings", "event"),
        ("They reached King Edward VII Land in May.", "King Edward VII Land", "geo"),
        ("They gave the Albert Medal to him.", "Albert Medal", "name"),
        ("In the car sat Bernard Day with a map.", "Bernard Day", "person"),
        ("Nobody forgot World War II.", "World War II", "event"),
        ("Hurricane Maria came ashore. They feared Hurricane Maria.", "Hurricane Maria", "event"),
        ("All aircraft of the BANZARE were lost.", "BANZARE", "acronym"),
        ("We asked Ngugi Thiong, who knew better.", "Ngugi Thiong", "person"),
    ],
)
def test_the_kind_of_a_name_is_told_by_its_words_and_use(text: str, title: str, kind: str) -> None:
    assert extract(text).types[title] == kind


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
