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


def test_a_noun_behind_a_person_is_no_part_of_the_name() -> None:
    found = extract(
        "Mit der Bank hatte Heinrich Brandt Ärger. Dann gab Anna Vogt Auskunft. "
        "Heinrich Brandt schwieg, und Anna Vogt lachte über ihn."
    )
    assert found.mentioned["Heinrich Brandt"] == found.mentioned["Anna Vogt"] == 2
    assert {title for title in found.titles if "Ärger" in title or "Auskunft" in title} == set()


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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Zuerst startet der Bootloader das System. Dann meldet sich Kubora.", ["Kubora"]),
        # A known name before a noun is a name.
        (
            "Auf alten Unix-Systemen gab es nur Kubora. Die Benutzer-ID steht vorn.",
            ["Unix", "Kubora"],
        ),
        ("Mit Strg-C wird Kubora beendet, mit $HOME und LANG=de_DE nicht.", ["Kubora"]),
        ("Das Paket Kubora ist unter Apache-2.0 frei.", ["Kubora", "Apache-2.0"]),
        # Words of parliaments, and a town that is a frequent noun.
        ("Zum Zusatzpunkt 7 spricht am Ende die Parl. Staatssekretärin Kubora.", ["Kubora"]),
        ("Damals gab es Feld und Wiese. Alle Felder Vcs bleiben leer.", ["Vcs"]),
        ("Wir kennen die Goethe-Universität und den Glauberg.", ["Goethe-Universität", "Glauberg"]),
    ],
)
def test_german_nouns_with_an_article_and_compounds_are_no_names(
    text: str, names: list[str]
) -> None:
    assert extract(text).titles == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # Nouns without inflected forms, and with ß.
        (
            "Für Kubora wächst Lavendel, und mit Enthusiasmus wird es von Kubora gepflückt.",
            ["Kubora"],
        ),
        ("Bei Kubora gab es Späße, auch Verschleiß und Einbußen.", ["Kubora"]),
        # English words, also with German endings and in compounds.
        ("Bei Kubora gibt es Bots, Smoothies und Followern gefällt Crowdfunding.", ["Kubora"]),
        ("Auch Kubora war als Keynote-Speakerin bei Microsoft.", ["Kubora", "Microsoft"]),
        # Forms for men and women.
        ("Es kamen TeilnehmerInnen zu RheinEnergie.", ["RheinEnergie"]),
        # Names that look like inflected forms of rare words.
        ("Wir lasen in Schwerin, was Pythagoras schrieb.", ["Schwerin", "Pythagoras"]),
        ("Danach half Hermes uns allen an drei Tagen.", ["Hermes"]),
        # A town is no common noun, and a surname that is one stays a name after a given name.
        ("Oslo liegt am Wasser. Dort lebt Anna Wolf mit Kubora.", ["Oslo", "Anna Wolf", "Kubora"]),
    ],
)
def test_dictionaries_tell_common_nouns_and_loan_words_from_names(
    text: str, names: list[str]
) -> None:
    assert set(extract(text).titles) == set(names)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Danach trank Kubora von dem regionalen Mukrel.", ["Kubora"]),
        ("Wir wissen, dass der neue Mukrel leider Kubora gehört.", ["Kubora"]),
        ("Es wurden aus den kleinen Mukreln und aus allen Sukreln die von Kubora.", ["Kubora"]),
        (
            "Im schottischen Edinburgh sagte Mukrel nichts dazu, auch nicht zu uns.",
            ["Edinburgh", "Mukrel"],
        ),
        ("Mukrel sprach, dann schwieg der alte Mukrel, und Mukrel ging. Mukrel kam.", ["Mukrel"]),
    ],
)
def test_an_adjective_before_an_unknown_word_shows_a_common_noun(
    text: str, names: list[str]
) -> None:
    assert set(extract(text).titles) == set(names)


def test_people_and_plurals_of_a_place_are_no_name() -> None:
    found = extract(
        "In Kubora halfen sie einst Londoner Designern und gingen durch Chemnitzer Straßen. Auch "
        "in Stuttgart kennt man Kubora und das Stuttgarter Rathaus."
    )
    assert set(found.titles) == {"Kubora", "Stuttgart", "Stuttgarter Rathaus"}


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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "Wir vertreten die Molkerei Steinbichler KG aus Ulm.",
            {"Molkerei Steinbichler KG", "Ulm"},
        ),
        ("Dort sitzt die Großbäckerei Lang & Söhne.", {"Lang & Söhne"}),
        ("Der Motor stammt von Briggs & Stratton aus Ulm.", {"Briggs & Stratton", "Ulm"}),
        (
            "Beraten hat sie die Kanzlei Dombert und Partner aus Ulm.",
            {"Dombert und Partner", "Ulm"},
        ),
        (
            "Wir sind die Tarex Handels GmbH. Sie hat ihren Sitz in Ulm.",
            {"Tarex Handels GmbH", "Ulm"},
        ),
        (
            "Der Träger ist das Klinikum Weserbergland gGmbH in Ulm.",
            {"Klinikum Weserbergland gGmbH", "Ulm"},
        ),
        (
            "Es half die Pedalwerk Oldenburg GmbH & Co. KG aus Ulm.",
            {"Pedalwerk Oldenburg GmbH & Co. KG", "Ulm"},
        ),
        ("Ihre Akustikerin, Frau Lindemann, hilft gern.", {"Lindemann"}),
        ("Legen Sie die Manschette des Cardiolux M4 an.", {"Cardiolux M4"}),
        ("Wir danken für den Kauf der Barino Compact S.", {"Barino Compact S"}),
        ("Die App Barino Home gibt es auch.", {"Barino Home"}),
        ("Der Akku der Tarex 46 R ist leer.", {"Tarex 46 R"}),
        ("Bei Störung E4 hilft Kubora aus Ulm.", {"Kubora", "Ulm"}),
        ("Ziehen Sie die Schraube bei Kubora mit 45 Nm an, Norm DIN 14676.", {"Kubora"}),
        ("Setzen Sie SMTP_HOST für Kubora.", {"Kubora"}),
        ("Dann nahm man den Renault Zoe mit.", {"Renault Zoe"}),
        ("Zuständig ist das Deutsche Patent- und Markenamt.", {"Deutsche Patent- und Markenamt"}),
        (
            "Förderung: Deutsches Zentrum für Altersforschung.",
            {"Deutsches Zentrum für Altersforschung"},
        ),
        (
            "Sie forscht am Karlsruher Institut für Technologie.",
            {"Karlsruher Institut für Technologie"},
        ),
        (
            "Das sagte Rupert Gebhard von der Archäologischen Staatssammlung.",
            {"Archäologischen Staatssammlung", "Rupert Gebhard"},
        ),
        (
            "Es gilt die Gemeindeordnung für das Land Brandenburg.",
            {"Gemeindeordnung für das Land Brandenburg"},
        ),
        (
            "Das prüft die Landesbeauftragte für Datenschutz in Ulm.",
            {"Landesbeauftragte für Datenschutz", "Ulm"},
        ),
        (
            "Maßgeblich sind die Wasserrahmenrichtlinie und die Grundrechtecharta.",
            {"Grundrechtecharta", "Wasserrahmenrichtlinie"},
        ),
        (
            "Zuletzt fragte man das Luftfahrt-Bundesamt und den Bundesanzeiger.",
            {"Bundesanzeiger", "Luftfahrt-Bundesamt"},
        ),
        (
            "Das plant das Ministerium für Wirtschaft, Tourismus und Forsten.",
            {"Ministerium für Wirtschaft, Tourismus und Forsten"},
        ),
        ("In der Rechtssache C-340/21 ging es um Kubora.", {"Kubora"}),
        ("Weil die Deutsche Bahn Flächen braucht, steigt der Preis.", {"Deutsche Bahn"}),
        (
            "Schreiben Sie an Kubora, Am Kanal 12, 49076 Osnabrück.",
            {"Am Kanal", "Kubora", "Osnabrück"},
        ),
        ("Dort kam ein Luchs (Lynx lynx) zurück.", {"Lynx lynx"}),
        ("Bei Papierstau und Rest hilft Kubora.", {"Kubora"}),
        ("Unter macOS und auf dem iPhone 15 läuft Kubora.", {"Kubora", "iPhone 15", "macOS"}),
        ("Dort warnt der Verband deutscher Musikschulen.", {"Verband deutscher Musikschulen"}),
        ("Es gab Reisen einer Gruppe deutscher Musikschulen.", set()),
        ("Das schrieb das Institut für angewandte Ökologie.", {"Institut für angewandte Ökologie"}),
        ("Sie liegen auf dem NAS von Synology.", {"NAS", "Synology"}),
        ("Das tat die American Astronomical Society.", {"American Astronomical Society"}),
        ("Gemessen wird an der Strahlungsquelle PETRA III in Ulm.", {"PETRA III", "Ulm"}),
        ("Das System der Praxis ist Debian.", {"Debian"}),
        ("Emaillierte Bleche von Silit dürfen mit.", {"Silit"}),
    ],
)
def test_german_names_are_found_whole_and_other_words_are_none(text: str, names: set[str]) -> None:
    types = extract(text).types
    assert {title for title, kind in types.items() if kind != "noun phrase"} == names


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (
            "Das Institut für Physik, Siemens und Bosch arbeiten gut zusammen.",
            {
                "Institut für Physik": "organization",
                "Siemens": "organization",
                "Bosch": "organization",
            },
        ),
        (
            "Die Stiftung für Kunst, Deutschland und Frankreich helfen dabei.",
            {
                "Stiftung für Kunst": "organization",
                "Deutschland": "geo",
                "Frankreich": "geo",
            },
        ),
        (
            "Gestern tagte der Rat von Basel in der alten Schule.",
            {"Rat von Basel": "organization"},
        ),
        ("Dort folgte sie dem Rat von Anna und fuhr nach Hause.", {"Anna": "person"}),
        ("Gestern tagte der Landfrauenrat Hessen.", {"Landfrauenrat Hessen": "name"}),
        ("Die Bibliothek Weimar ist heute zu.", {"Bibliothek Weimar": "organization"}),
        ("Das Programm Erasmus hilft beim Lernen.", {"Programm Erasmus": "name"}),
        ("Dort rechnet das Programm Blender sehr schnell.", {"Blender": "name"}),
    ],
)
def test_bodies_in_german_have_their_place_and_no_other_name(
    text: str, types: dict[str, str]
) -> None:
    found = extract(text).types
    assert {title: kind for title, kind in found.items() if kind != "noun phrase"} == types


def test_a_noun_that_is_also_a_name_is_a_name_if_it_never_has_an_article() -> None:
    band = "Kraftwerk spielte in Ulm. Kraftwerk ist eine Band. Otto Krause gründete Kraftwerk."
    assert "Kraftwerk" in extract(band).titles
    person = "Bernstein dirigierte in Wien die Neunte. Später zog Bernstein nach New York."
    assert extract(person).types["Bernstein"] == "person"
    given = "Wolfram sagte nichts dazu. Dann rief Wolfram seine Mutter an. Sie kam sofort."
    assert extract(given).types["Wolfram"] == "person"


@pytest.mark.parametrize(
    "text",
    [
        "Das Kraftwerk liefert Strom. Ein Kraftwerk steht in Ulm. Aus Wolfram macht man Drähte.",
        "Der Bernstein glänzt. Der Ahorn blüht in Ulm. Dort fällt der Ahorn um.",
        "Am Ende gewann der Klub aus Ulm. In der Mitte stand ein Tisch. Ende Mai kam er.",
    ],
)
def test_a_noun_with_an_article_is_no_name_although_names_are_like_it(text: str) -> None:
    types = extract(text).types
    assert {title for title, kind in types.items() if kind != "noun phrase"} == {"Ulm"}


@pytest.mark.parametrize("word", ["I", "O", "Y"])
def test_a_word_of_one_letter_is_no_part_of_a_model(word: str) -> None:
    titles = extract(f"Sie hat Windows 10 {word} und iPhone 15 gekauft. Beide laufen gut.").titles
    assert f"Windows 10 {word}" not in titles
