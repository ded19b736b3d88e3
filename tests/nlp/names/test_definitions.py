"""Names that the first sentence of a paragraph defines."""

import pytest

from graphrag_nlp.names.whole_names import find_defined_names
from graphrag_nlp.text.languages import language_of


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
