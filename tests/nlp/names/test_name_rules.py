"""Rules for names in free text: German nouns, species, laws, titles, headlines and codes."""

import pytest

from graphrag_nlp.names.compounds import is_german_noun, is_loan_word
from graphrag_nlp.names.name_words import count_title_chars
from graphrag_nlp.text.languages import read_lists
from tests.fixtures.extraction import extract

RULES = [
    # German nouns are names only if no list, ending or compound says otherwise.
    (
        "Die Katze lag neben der Kaffeemaschine. Dann kam Zelnika mit dem Rasenmäher. "
        "Sie las die Bedienungsanleitung.",
        {"Zelnika"},
        {"Katze", "Kaffeemaschine", "Rasenmäher", "Bedienungsanleitung"},
    ),
    ("Er zog nach Gurzheim. Dort gab es ein Tastaturlayout.", {"Gurzheim"}, {"Tastaturlayout"}),
    ("Die Firma Becker zahlte. Danach sprach Herr Becker.", {"Becker"}, {"Firma Becker"}),
    # An adjective with a capital inside a sentence shows a German name.
    ("Wir fragten das Technische Hilfswerk um Rat.", {"Technische Hilfswerk"}, {"Hilfswerk"}),
    ("Neue Pakete kamen an. Man fragte Zelnika.", {"Zelnika"}, {"Neue Pakete", "Pakete"}),
    (
        "Dann sprach der Bundesverband der Deutschen Fischerei mit uns.",
        {"Bundesverband der Deutschen Fischerei"},
        {"Deutschen Fischerei", "Bundesverband"},
    ),
    # Compounds with a hyphen: the acronym alone, or the whole name.
    ("Nun kam der CDU-Spitzenkandidat Emil Rau an.", {"CDU", "Emil Rau"}, {"CDU-Spitzenkandidat"}),
    ("Sie lehrte an der Goethe-Universität in Frankfurt.", {"Goethe-Universität"}, {"Universität"}),
    ("Bitte löschen Sie das Upload-Verzeichnis von Zelnika.", {"Zelnika"}, {"Upload-Verzeichnis"}),
    ("Das gilt z. B. Marken wie Orvelda.", {"Orvelda"}, {"B. Marken"}),
    # Species, in languages without such endings.
    ("We saw Bombus pratorum in May.", {"Bombus pratorum"}, {"Bombus"}),
    ("Man fand dort Carabus auratus im Mai.", {"Carabus auratus"}, {"Carabus"}),
    ("Le vecteur, Culex pipiens, est connu ici.", {"Culex pipiens"}, {"Culex"}),
    ("La bacteria Legionella pneumophila vive en el agua.", {"Legionella pneumophila"}, set()),
    ("Ayer Marta cantaba en la plaza de Vigo.", {"Marta", "Vigo"}, {"Marta cantaba"}),
    # Laws with a year or a number.
    ("They broke the Harbours Act 1964 twice.", {"Harbours Act 1964"}, {"Harbours Act"}),
    (
        "They amended the Rivers and Harbours Act last year.",
        {"Rivers and Harbours Act"},
        {"Rivers"},
    ),
    ("Según la Ley 12/2009 no es posible.", {"Ley 12/2009"}, {"Ley"}),
    # Institutions that go on in lower case.
    (
        "Selon l'Agence nationale de la mer, tout va bien.",
        {"Agence nationale de la mer"},
        {"Agence"},
    ),
    ("La cour d'appel de Nantes a jugé hier.", {"cour d'appel de Nantes"}, {"Nantes"}),
    # Titles of one language.
    ("Hier M. Lavigne a parlé de la pluie.", {"Lavigne"}, {"M. Lavigne"}),
    (
        "Ayer por la tarde llegó D. Emilio Barrientos a la ciudad.",
        {"Emilio Barrientos"},
        {"D. Emilio Barrientos"},
    ),
    ("It was said by State Rep. Anna Holt today.", {"Anna Holt"}, {"State Rep. Anna Holt"}),
    # Cases and judges.
    (
        "In Marlow v Hutchins Lord Penrose spoke of it.",
        {"Marlow v Hutchins", "Lord Penrose"},
        {"Marlow v Hutchins Lord Penrose"},
    ),
    # Terms that a contract defines, and buttons.
    (
        'Holt Ltd (the "Supplier") pays. The Supplier sends a bill to Anna Holt.',
        {"Anna Holt"},
        {"Supplier"},
    ),
    ("Now press MENU and wait. Anna Holt did so.", {"Anna Holt"}, {"MENU"}),
    ("Wählen Sie unter Datei > Export die Form. Anna Holt tat es.", {"Anna Holt"}, {"Export"}),
    # Codes, and models with a number.
    ("The machine shows E15 or F-12 if it is hot.", set(), {"E15"}),
    ("Man fährt den Zelnika 600 in die Werkstatt.", {"Zelnika 600"}, {"Zelnika"}),
    ("Man prüft die Zelnika Eco 9 im Mai.", {"Zelnika Eco 9"}, {"Eco 9", "Zelnika Eco"}),
    ("They fill the Zelnika Classic 3 with water.", {"Zelnika Classic 3"}, {"Zelnika Classic"}),
    ("The fair of Orvelda Optics plc begins today.", {"Orvelda Optics plc"}, set()),
    ("They found Kepler-1625 b by its shadow.", {"Kepler-1625 b"}, {"Kepler-1625"}),
    ("Man trifft sich in der Osterstraße.", {"Osterstraße"}, set()),
    ("On parle de Orvelpa de la NASA, et la NASA publie.", {"NASA"}, {"Orvelpa de la NASA"}),
    ("Ask Orvelda. We met Orvelda and left Orvelda.", {"Orvelda"}, {"Ask Orvelda"}),
    # Two places beside a dash, and a place in a line of capitals.
    ("Wir nahmen den Zug Zürich–Olten am Morgen.", {"Zürich", "Olten"}, {"Zürich–Olten"}),
    ("FLOOD COMES NEAR TO VIENNA TODAY\n\nIt rained.", {"VIENNA"}, {"FLOOD"}),
    # A line without a full stop that reads like a sentence.
    ("I asked her about it.\nso then Priya and Tom came home late", {"Priya", "Tom"}, set()),
]


@pytest.mark.parametrize(("text", "names", "no_names"), RULES)
def test_a_reader_counts_the_same_words_as_names(
    text: str, names: set[str], no_names: set[str]
) -> None:
    titles = {*extract(text).titles}
    assert names <= titles
    assert not no_names & titles


@pytest.mark.parametrize(
    ("text", "title", "kind"),
    [
        ("Nach Ansicht von Rieder-Kolb war es falsch.", "Rieder-Kolb", "person"),
        ("We follow Okonjo et al. in this.", "Okonjo", "person"),
        ("Schon sagte Zelnika nichts mehr.", "Zelnika", "person"),
        ("Dann klagte man vor dem Landgericht Celle.", "Landgericht Celle", "organization"),
        ("Man las das Urteil des Bundesgerichtshofs.", "Bundesgerichtshofs", "organization"),
        ("Vivía en la calle Amerindos de joven.", "Amerindos", "geo"),
        (
            "Exmar Holding Ltd grew. The shares of Exmar Holding Ltd fell, and Exmar said so.",
            "Exmar",
            "organization",
        ),
        ("They have a stake in Exco since May.", "Exco", "name"),
        ("They have lived in Exco since May.", "Exco", "geo"),
        ("They met the EU European Commission.", "EU European Commission", "organization"),
    ],
)
def test_the_words_around_a_name_show_its_type(text: str, title: str, kind: str) -> None:
    assert extract(text).types[title] == kind


def test_german_nouns_are_known_by_their_parts() -> None:
    assert all(map(is_german_noun, ("Haus", "Häuser", "Gartenhaus", "Verantwortung", "Ladegerät")))
    assert not any(map(is_german_noun, ("Vodafone", "Zelnika", "RheinEnergie", "Miele")))
    assert is_loan_word("Updates") or is_loan_word("Channels")
    assert not is_loan_word("Zelnika")


def test_a_body_by_a_common_word_is_no_name() -> None:
    text = "In 1947 the Council of Tarvik met. It told the Council and the Senate about Tarvik."
    assert set(extract(text).titles) == {"Council of Tarvik", "Senate", "Tarvik"}


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("It went to the Economic and Social Council.", {"Economic and Social Council"}),
        ("Norway left the Senate and Security Council.", {"Norway", "Senate", "Security Council"}),
        ("They met at the Conference on Disarmament.", {"Conference on Disarmament"}),
        (
            "They left the Conference on Security and Cooperation.",
            {"Conference on Security and Cooperation"},
        ),
        ("Norway told the Trade Committee on Tuesday.", {"Norway", "Trade Committee"}),
        ("They saw Wayne Morse & Ernest Gruening.", {"Wayne Morse", "Ernest Gruening"}),
        ("They went to Abbott & Costello.", {"Abbott & Costello"}),
        (
            "A call by the Peruvian Securities and Trade Commission (PSTC) went out in Norway.",
            {"Peruvian Securities and Trade Commission", "Norway"},
        ),
        (
            "The Construction, Forestry, Mining and Energy Union's (CFMEU) John Sutton met.",
            {"Construction, Forestry, Mining and Energy Union", "CFMEU", "John Sutton"},
        ),
        (
            "They left the Covenant on Economic, Social and Cultural Rights, Norway said.",
            {"Covenant on Economic, Social and Cultural Rights", "Norway"},
        ),
        ("A meeting in Oslo of the Trade Committee ended.", {"Oslo", "Trade Committee"}),
        (
            "Businessmen Peter Lindt and Anna Holt met. The businessmen left Norway.",
            {"Peter Lindt", "Anna Holt", "Norway"},
        ),
        (
            "Then Dr Clare Maloney of the Marino Institute of Education met S. Orvel of Wessen "
            "University.",
            {"Clare Maloney", "Marino Institute of Education", "S. Orvel", "Wessen University"},
        ),
        (
            "Ada Holt Scorches Norway. Then Ada Holt left Norway. Norway saw Ada Holt.",
            {"Ada Holt", "Norway"},
        ),
        ("Norway heard Taoiseach Enda Bale.", {"Norway", "Enda Bale"}),
        ("Then the Egyptian Foreign Minister came to Norway.", {"Norway"}),
        ("And then I'ma see you again in Norway.", {"Norway"}),
        ("In Norway the Friday Night of the Adviser is long, his Majesty said.", {"Norway"}),
    ],
)
def test_bodies_are_whole_and_persons_apart(text: str, titles: set[str]) -> None:
    assert set(extract(text).titles) == titles


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
