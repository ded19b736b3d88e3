"""Which capitalized spans are names, where they are cut, and what kind they are of."""

import pytest

from tests.index.extraction import extract


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
        # Function words and months that belong to names.
        ("They lost it in the First World War near Ypres.", {"First World War"}),
        ("The letter came from Carl August of Weimar.", {"Carl August"}),
        ("They thanked Theresa May for the speech.", {"Theresa May"}),
        # Organizations for something.
        (
            "He joined the Council for Foreign Relations in May.",
            {"Council for Foreign Relations"},
        ),
        # Names with particles, hyphens and prefixes.
        ("We met Otto von Bismarck and Mohammed al-Khwarizmi.", {"Mohammed al-Khwarizmi"}),
        ("The hero of Apsley Cherry-Garrard is Lawrence.", {"Apsley Cherry-Garrard"}),
        # French elision.
        ("Il entra à L'Académie de Paris et n'en sortit pas.", {"Académie de Paris"}),
    ],
)
def test_a_name_is_found_whole(text: str, names: set[str]) -> None:
    assert names <= {*extract(text).titles}


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
        ("They gave the Albert Medal to him.", "Albert Medal", "event"),
        ("In the car sat Bernard Day with a map.", "Bernard Day", "person"),
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
