"""Names that the first sentence of a paragraph defines."""

import pytest
from graphrag_nlp.names.definitions import find_defined_names, find_quoted_titles

from graphrag_nlp.text.languages import language_of
from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        # Function words and articles.
        ("en", "Life of Crime is a 2013 film by Daniel Schechter.", "Life of Crime"),
        ("en", "Third from the Right was an American song.", "Third from the Right"),
        ("en", "The Jump is a British series about sport.", "Jump"),
        ("en", "In Love and War (1987) is a Vietnam war-based drama.", "In Love and War"),
        ("en", "Aviation Museum of Kentucky is an aviation museum.", "Aviation Museum of Kentucky"),
        ("de", "Das Leben der Anderen ist ein deutscher Film von 2006.", "Leben der Anderen"),
        ("fr", "L'Auberge des Pins est un film de Lyon.", "Auberge des Pins"),
        ("es", "La Casa de los Padres es una película de 1990.", "Casa de los Padres"),
        # Words that would not be names by themselves.
        ("en", "Hill is a town in Merrimack County.", "Hill"),
        ("en", "12 Monkeys, also known as Twelve Monkeys, is a film.", "12 Monkeys"),
        ("en", "Bankview is a part of Drumheller.", "Bankview"),
        # Quotation marks, italics, brackets and explanations.
        ("en", '"Freak Out" (1992) is a single by 311.', "Freak Out"),
        ("de", "„Der Sprung“ ist ein Roman.", "Sprung"),
        ("fr", "« Le grand Soir » est une chanson de 1950.", "Le grand Soir"),
        ("es", "*Vuelta al mar de Plata* es una novela.", "Vuelta al mar de Plata"),
        ("en", "Nicholas the Small (1322 – 1358) was a Duke.", "Nicholas the Small"),
        # Ordinals and dashes before the noun.
        ("en", "Walking on Stone is the second novel by Ann Lee.", "Walking on Stone"),
        ("en", "The Corner is a 2004 comedy - drama film.", "Corner"),
        # Titles in another language than the text.
        ("en", "Ples v dežju is a 1961 film by Boštjan Hladnik.", "Ples v dežju"),
        ("en", "Cotula alpina is a species of plant.", "Cotula alpina"),
        # Below a heading.
        ("en", "Films\n\nA Good Day for Tea is a film.", "Good Day for Tea"),
    ],
)
def test_the_name_before_a_definition_is_found(language: str, text: str, name: str) -> None:
    found = find_defined_names(text, language_of(language))
    assert [text[start:end] for start, end in found] == [name]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Apple CEO Tim Cook is a director."),
        ("en", "Mayor of Paris Anne Hidalgo is a politician."),
        ("en", "This is a film about trees."),
        ("en", "In 1990 Kowalski was a member of the party."),
        ("en", "Kenya and Uganda are countries."),
        ("en", "Walnut trees are a species of plant."),
        ("en", "Water is a liquid."),
        ("en", "The Company is a corporation."),
        ("en", "Life of Crime was shown on Tuesday."),
        ("de", "Mitarbeiter der Firma sind eine Gruppe."),
        ("de", "Wasser ist ein Stoff."),
        ("fr", "Le maire de Lyon est un homme."),
        ("es", "En Madrid el Rey es una figura."),
    ],
)
def test_other_words_before_a_verb_are_left_to_other_rules(language: str, text: str) -> None:
    assert not [*find_defined_names(text, language_of(language))]


def test_a_defined_name_is_the_first_entity_of_its_document() -> None:
    found = extract(
        "Life of Crime is a 2013 film by Daniel Schechter.",
        "Hill is a town in Merrimack County, and people like it.",
        "Daniel Schechter made Life of Crime. Hill walks are popular in Scotland.",
    )
    assert {"Life of Crime", "Hill", "Daniel Schechter"} <= {*found.titles}
    assert not {"Life", "Crime"} & {*found.titles}
    # A text unit without a title is about the entity that it names first.
    first = found.mentions.group_by("text_unit", maintain_order=True).first()["entity"]
    assert [found.titles[number] for number in first][:2] == ["Life of Crime", "Hill"]
    assert found.mentioned["Life of Crime"] == 2
    assert found.mentioned["Hill"] == 1


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ('We played "Sweet Home Alabama" on Sunday.', ["Sweet Home Alabama"]),
        ("In the game “Return of the Obra Dinn,” a ship comes.", ["Return of the Obra Dinn"]),
        ('It is in the newspaper "The Daily Telegraph" again.', ["Daily Telegraph"]),
        ('"Demon\'s Souls" is a hard game.', ["Demon's Souls"]),
        ("They saw the film (“Rush 2”).", ["Rush 2"]),
        ('The song "Thank You" is old.', ["Thank You"]),
        ('The song "Blue Sky" is old.\nWe heard "Blue Sky" and "Red Sky".', ["Blue Sky"] * 2),
        # Speech, headlines and letters, also near a word for a work.
        ('He said "Come home, Anna" to us.', []),
        ('The headline "Mayor Rejects Plan" was in a magazine.', []),
        ('"Good Night," said Anna to the crew of the film.', []),
        ('"Blue Sky," the pilot replied in the film.', []),
        ('In the film, she cried "Blue Sky" to us.', []),
        ('The letter in the novel began "Dear Anna," and went on.', []),
        # Labels.
        ('Press "Save As" to keep the song.', []),
        ('The button "Apply Now" is in the game.', []),
        ('Use the "Sign In" button of the game.', []),
        ('The book has Section 6.6, "Adding Users".', []),
        # One word, or no title case.
        ('We saw the film "The Dancer" there.', []),
        ('He sang "Fire" and ran.', []),
        ('She read the book "in The Hague" there.', []),
        ('The songs "A" and "B Side" of it, 5"Long Play".', ["B Side"]),
        # No work near, or not in the same line.
        ('We flew to "New York" on Monday.', []),
        ('The national motto "In God We Trust" has been challenged.', []),
        ('They sang.\n"Apply Now" is here.\nA song.', []),
    ],
)
def test_titles_in_quotation_marks_are_found_beside_words_for_works(
    text: str, titles: list[str]
) -> None:
    found = [text[start:end] for start, end in find_quoted_titles(text, language_of("en"))]
    assert found == titles
    assert not [*find_quoted_titles(text, language_of("de"))]


def test_words_of_a_quoted_title_are_no_names_of_their_own() -> None:
    found = extract(
        'We played "Sweet Home Alabama" and “Hymn for the Weekend” at eight.',
        "Sweet Home Alabama is a good song, and the people like it.",
    )
    assert {"Sweet Home Alabama", "Hymn for the Weekend"} == {*found.types}
    assert found.mentioned["Sweet Home Alabama"] == 2


@pytest.mark.parametrize(
    ("text", "name", "type"),
    [
        ('They sang "House of Fire" and "The Road Back" in Oslo.', "House of Fire", "name"),
        ('They sang "House of Fire" and "The Road Back" in Oslo.', "Road Back", "name"),
        ('We played at "Ayacucho Library" and left.', "Ayacucho Library", "organization"),
        # Known places.
        ('They sang "New York" and left.', "New York", "geo"),
        ('In the film we went to "South Korea" by boat.', "South Korea", "geo"),
        ('We flew to "New York" on Monday.', "New York", "geo"),
    ],
)
def test_a_quoted_title_is_a_work_unless_it_is_a_known_place(
    text: str, name: str, type: str
) -> None:
    assert extract(text, "The harbour was busy when we came.").types[name] == type


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"Good Morning," said Anna to Emil Rau.', {"Anna", "Emil Rau"}),
        ('He said "Thank You" to Emil Rau.', {"Emil Rau"}),
        ('Press "Save As" and greet Emil Rau.', {"Emil Rau"}),
        ('The letter began "Dear Anna," and Emil Rau read it.', {"Anna", "Emil Rau"}),
        ('She cried "Oh My God!" and "Oh My God" to Emil Rau.', {"Emil Rau"}),
        ('The button "Apply Now" is green, as Emil Rau knew.', {"Emil Rau"}),
    ],
)
def test_quoted_speech_and_labels_are_no_names(text: str, names: set[str]) -> None:
    found = extract(text, "The harbour was busy when we came.").types
    assert {name for name, kind in found.items() if kind != "noun phrase"} == names
