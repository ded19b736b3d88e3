"""German: adjectives inside of names, owners without an apostrophe, nouns that meet names."""

import pytest

from graphrag_nlp.text.languages import find_language_ranges
from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "title", "aliases"),
    [
        (
            "Die Deutsche Bank sitzt in Frankfurt. Der Chef der Deutschen Bank ging nach Ulm.",
            "Deutsche Bank",
            {"Deutschen Bank"},
        ),
        (
            "Das Rote Kreuz half sofort. Dem Roten Kreuz fehlte Geld. Die Helfer des Roten "
            "Kreuzes kamen nach Ulm. Ein Rotes Kreuz war nicht zu sehen. Das Rote Kreuz kam.",
            "Rote Kreuz",
            {"Roten Kreuz", "Roten Kreuzes", "Rotes Kreuz"},
        ),
        (
            "Am Schwarzen Meer liegt Odessa. Die Tiefe des Schwarzen Meeres ist bekannt. "
            "Das Schwarze Meer ist salzig.",
            "Schwarze Meer",
            {"Schwarzen Meer", "Schwarzen Meeres"},
        ),
        (
            "In der Frankfurter Allgemeinen Zeitung stand es. Ein Redakteur der Frankfurter "
            "Allgemeinen Zeitung schrieb. Die Frankfurter Allgemeine Zeitung ist alt.",
            "Frankfurter Allgemeine Zeitung",
            {"Frankfurter Allgemeinen Zeitung"},
        ),
    ],
)
def test_adjectives_inside_of_a_name_are_inflected(
    text: str, title: str, aliases: set[str]
) -> None:
    found = extract(text)
    assert found.aliases[title] == aliases


def test_names_of_persons_are_not_inflected_like_adjectives() -> None:
    found = extract(
        "Helen Berg wohnt in Ulm. Helene Berg wohnt in Bonn. Hans Meer kam aus Bonn. "
        "Das Schwarze Meer ist tief. Die Gräfin Anna Meer kam nie an das Schwarze Meer."
    )
    assert {"Helen Berg", "Helene Berg", "Hans Meer", "Schwarze Meer"} <= {*found.titles}
    assert found.aliases["Schwarze Meer"] == set()


@pytest.mark.parametrize(
    ("text", "owner", "mentions"),
    [
        ("Lena Hart lebte in Ulm. Lena Harts Bruder kam aus Bonn.", "Lena Hart", 2),
        ("Der Lehrer Peter Lang starb. In Peter Langs Garten war es still.", "Peter Lang", 2),
        ("Heinrich Brandt war auf See. Heinrich Brandts Schiff sank.", "Heinrich Brandt", 2),
        ("Vogts Mann Ralf Vogt kam aus Bern. Maria Vogt weinte.", "Ralf Vogt", 1),
    ],
)
def test_the_owner_is_cut_off_what_is_owned(text: str, owner: str, mentions: int) -> None:
    found = extract(text)
    assert found.mentioned[owner] == mentions
    nouns = {"Bruder", "Garten", "Schiff", "Mann"}
    assert {word for title in found.titles for word in title.split()} & nouns == set()


def test_two_brothers_own_their_houses_each_by_himself() -> None:
    found = extract(
        "Peter Lang traf seinen Bruder Paul Lang in Bonn. Peter Langs Haus war groß. "
        "Paul Langs Haus war klein."
    )
    assert found.mentioned["Peter Lang"] == found.mentioned["Paul Lang"] == 2


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Karl Richard Lepsius Meyer kam nach Ulm. Alle kannten ihn.", "Lepsius Meyer"),
        ("Otto Jens Weber kam nach Ulm. Alle kannten Otto Jens Weber.", "Otto Jens Weber"),
        ("Anna Harms Weber kam. Auch Otto Weber kam nach Ulm.", "Anna Harms Weber"),
    ],
)
def test_an_s_at_the_end_of_a_name_does_not_always_mark_an_owner(text: str, name: str) -> None:
    assert any(title.endswith(name) for title in extract(text).titles)


def test_a_common_noun_behind_a_person_is_no_surname_elsewhere() -> None:
    found = extract(
        "Wir lasen, was Peter Lang Frauen riet. Die Frauen kamen mit Otto Fischer nach Ulm. Für "
        "Frauen war das neu. Auch Thomas Mann kam. Ein Mann war da, und der Mann blieb. Dort "
        "sagte Fischer nichts."
    )
    assert not {"Frauen", "Mann"} & set(found.titles)
    assert found.mentioned["Otto Fischer"] == 2


def test_a_second_surname_and_what_is_named_after_a_person_stay_whole() -> None:
    found = extract(
        "Anna Berg traf Otto Krause in Ulm. Der Otto Hahn Preis ging an Anna Berg Krause. "
        "Auch Otto Hahn war da."
    )
    assert {"Anna Berg Krause", "Otto Hahn Preis"} <= {*found.titles}


def test_german_nouns_that_manuals_write_in_capitals_are_no_acronyms() -> None:
    text = (
        "Der Aufruf erwartet BENUTZER und dann GRUPPE. Die Gruppe nennt den Benutzer. "
        "Auch der Benutzer nennt BENUTZER und den NABU in jeder Gruppe als GRUPPE."
    )
    assert extract(text).titles == ["NABU"]


def test_options_do_not_make_a_german_paragraph_polish() -> None:
    options = " ".join(f"[-{letter} Anbindeadresse]" for letter in "iozwaiozwaio")
    text = f"Das Programm nennt die Adresse und den Port.\n\nssh {options}\n\nDie Adresse ist neu."
    assert {code for *_, code in find_language_ranges(text, "de")} == {"de"}


def test_a_word_that_a_line_end_divides_is_no_name() -> None:
    found = extract(
        "Die Firma Quorix fährt nach Anwen\u2010\n    dung zu uns, und Mozilla fährt nach Konfi-\n"
        "guration. Das freie Mo\u00adzilla von Mozilla fährt nach Rech\u00adnung."
    )
    assert set(found.titles) == {"Quorix", "Mozilla"}


def test_a_purpose_behind_a_name_is_no_part_of_it() -> None:
    found = extract(
        "Wir nehmen X2Go zur Verbindung mit Quorix. Er fragt den Verein zur Förderung von Quorix."
    )
    assert set(found.titles) == {"X2Go", "Quorix", "Verein zur Förderung von Quorix"}


def test_a_known_name_with_s_is_no_genitive() -> None:
    found = extract(
        "In Goethes Haus in Weimar lebte Goethe. Mit Windows läuft das X Window System."
    )
    assert {"Windows", "Goethe"} <= set(found.titles)
    assert not {"Window", "Goethes"} & set(found.titles)


def test_genitives_that_are_more_frequent_than_their_name_are_of_it() -> None:
    found = extract(
        "Merkels Rede war lang, und Merkels Besuch war kurz. Auch Merkels Reise endete. "
        "In Paris traf Merkel den Minister."
    )
    assert found.mentioned["Merkel"] == 4


def test_a_noun_that_is_also_a_name_is_a_name_if_it_never_has_an_article() -> None:
    band = "Kraftwerk spielte in Ulm. Kraftwerk ist eine Band. Otto Krause gründete Kraftwerk."
    assert "Kraftwerk" in extract(band).titles
    person = "Bernstein dirigierte in Wien die Neunte. Später zog Bernstein nach New York."
    assert extract(person).types["Bernstein"] == "person"
    given = "Wolfram sagte nichts dazu. Dann rief Wolfram seine Mutter an. Sie kam sofort."
    assert extract(given).types["Wolfram"] == "person"


@pytest.mark.parametrize("word", ["I", "O", "Y"])
def test_a_word_of_one_letter_is_no_part_of_a_model(word: str) -> None:
    titles = extract(f"Sie hat Windows 10 {word} und iPhone 15 gekauft. Beide laufen gut.").titles
    assert f"Windows 10 {word}" not in titles


def test_a_surname_has_one_entity_with_herr_in_any_case() -> None:
    types = extract("Da sprach Herr Stoiber. Wir hörten Herrn Stoiber zu.").types
    assert [title for title in types if "Stoiber" in title] == ["Stoiber"]
