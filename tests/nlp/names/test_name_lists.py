"""Tests of lists without commas, glued names, titles and labels beside names."""

import pytest

from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "found", "absent"),
    [
        # A table that was extracted without spaces between its cells.
        (
            "Es stimmten Petra MertensJonas Vogt, Heike BrandtUwe Rabe und Ulrich SieverDr. "
            "Karin Lott. Danach kam Anna KolbeAzra Pahl.",
            {"Petra Mertens", "Jonas Vogt", "Heike Brandt", "Uwe Rabe", "Ulrich Siever"},
            {"Petra MertensJonas Vogt", "Heike BrandtUwe Rabe", "Ulrich SieverDr"},
        ),
        ("Wir lesen JavaScript von Anna McCarthy.", {"Anna McCarthy"}, {"Anna Mc"}),
        # A compound whose end another one has.
        ("Man wandelt Miet- in Eigentum um.", set(), {"Miet"}),
        ("Der Elbe- und der Rheinweg sind lang.", {"Elbe"}, set()),
    ],
)
def test_names_end_where_a_table_or_a_compound_does(
    text: str, found: set[str], absent: set[str]
) -> None:
    titles = extract(text).types.keys()
    assert found <= titles
    assert not absent & titles


@pytest.mark.parametrize(
    ("text", "found", "absent"),
    [
        # Persons and their bodies.
        (
            "Es kam Christian Pfeiffer von Distrowatch. Auch Distrowatch half.",
            {"Christian Pfeiffer", "Distrowatch"},
            {"Christian Pfeiffer von Distrowatch"},
        ),
        (
            "Heute sprach Ricarda Stein von den Grünen.",
            {"Ricarda Stein", "Grünen"},
            {"Ricarda Stein von den Grünen"},
        ),
        ("Da kam Karl Theodor von Guttenberg.", {"Karl Theodor von Guttenberg"}, set()),
        ("Da kam Karl Freiherr von Stein.", {"Karl Freiherr von Stein"}, {"Stein"}),
        (
            "Es wurde gesagt, dass Herr Gysi Herrn Milosevic traf.",
            {"Milosevic"},
            {"Gysi Herrn Milosevic"},
        ),
        (
            "Danach sprach Norbert Lammert Deutscher Bundestag zur Sache.",
            {"Norbert Lammert"},
            {"Norbert Lammert Deutscher Bundestag"},
        ),
        (
            "Dort saßen Armin Schuster Ronja Kemmer und andere.",
            {"Armin Schuster", "Ronja Kemmer"},
            {"Armin Schuster Ronja Kemmer"},
        ),
        (
            "Es unterschrieb die Richterin am Amtsgericht Dombrowski; das Amtsgericht Bonn ging.",
            {"Dombrowski", "Amtsgericht Bonn"},
            {"Amtsgericht Dombrowski"},
        ),
        # Committees and items of an agenda.
        (
            "Es berieten Auswärtiger Ausschuss Innenausschuss Verteidigungsausschuss heute.",
            {"Auswärtiger Ausschuss", "Innenausschuss", "Verteidigungsausschuss"},
            {"Auswärtiger Ausschuss Innenausschuss Verteidigungsausschuss"},
        ),
        (
            "Er war im Gemeinsamen Bundesausschuss der Kassen.",
            {"Gemeinsamen Bundesausschuss"},
            {"Bundesausschuss"},
        ),
        (
            "Der Antrag der Fraktion DIE LINKE Export von Waffen verbieten kam.",
            {"Fraktion DIE LINKE"},
            {"Fraktion DIE LINKE Export von Waffen"},
        ),
        (
            "Er sprach über die Humanitäre Hilfe ZP 4 und anderes.",
            {"Humanitäre Hilfe"},
            {"Humanitäre Hilfe ZP 4"},
        ),
        (
            "Zur Beantwortung steht Herr Alfred Hartenbach zur Verfügung.",
            {"Alfred Hartenbach"},
            {"Alfred Hartenbach zur Verfügung"},
        ),
        (
            "Er saß im Auswärtigen Amt zur Koordinierung der Länder.",
            {"Auswärtigen Amt"},
            {"Auswärtigen Amt zur Koordinierung"},
        ),
    ],
)
def test_german_lists_are_cut_between_names(text: str, found: set[str], absent: set[str]) -> None:
    titles = extract(text).types.keys()
    assert found <= titles
    assert not absent & titles


def test_a_surname_has_one_entity_with_herr_in_any_case() -> None:
    types = extract("Da sprach Herr Stoiber. Wir hörten Herrn Stoiber zu.").types
    assert [title for title in types if "Stoiber" in title] == ["Stoiber"]


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        # The titles of boxes.
        ("Das steht im Kasten TIPP Auflisten der Pakete.", "TIPP Auflisten"),
        ("Voir l'encadré ASTUCE Supprimer et installer.", "ASTUCE Supprimer"),
        # What a person was, behind the years of life.
        ("Lo dijo Tácito. (54-120) Historiador romano.", "Historiador"),
        ("Il cite Balzac (1799-1850) Romancier français.", "Romancier"),
        # Readings of a law, and offices with a field.
        (
            "Wir rufen die Punkte auf: 3 a) Erste Beratung des Entwurfs der Regierung und b) Erste "
            "Beratung des Antrags der Fraktionen, die wir heute lesen.",
            "Erste Beratung",
        ),
        (
            "Es ist richtig, notwendige Sanktionen Schritt für Schritt zu lösen.",
            "Sanktionen Schritt",
        ),
        (
            "Según manifestación del secretario de Estado de Defensa del Gobierno, salió el buque.",
            "Estado de Defensa del Gobierno",
        ),
        ("Zu den Initiativen von Frau Ministerin – um bei dem Thema zu bleiben.", "Ministerin"),
        ("Er rief: Na, gut. Dann rief er: Na und?", "Na"),
        ("Das sagte Karin Roth , Parl . Staatssekretärin beim Minister , und ging .", "Parl"),
    ],
)
def test_labels_and_roles_are_no_names(text: str, absent: str) -> None:
    assert extract(text).types.get(absent, "noun phrase") == "noun phrase"


def test_a_spanish_court_is_a_name_without_its_section() -> None:
    types = extract("Lo resuelve la Sección Tercera de la Audiencia Provincial de Cádiz.").types
    assert "Audiencia Provincial de Cádiz" in types


@pytest.mark.parametrize(
    ("text", "title", "kind"),
    [
        ("Ayer habló el señor Moro. Luego el señor Moro calló.", "Moro", "person"),
        ("Ayer habló el señor Puig. Luego el señor Puig calló.", "Puig", "person"),
        (
            "Er las in § 28 des Waffengesetzes, was für die Jäger im Land gilt.",
            "Waffengesetz",
            "name",
        ),
        ("Alle Menschen sterben. Auch Sokrates starb in Athen.", "Sokrates", "person"),
        ("Nach der Rede sahen wir Dirk Wiese im Saal.", "Dirk Wiese", "person"),
        ("Die Zahlen hat das BMI. Auch das BMJV zählt.", "BMJV", "organization"),
        ("Der Bund der Steuerzahler warnt.", "Bund der Steuerzahler", "organization"),
        ("Die AOK zahlt. Man fragte die AOK Niedersachsen.", "AOK Niedersachsen", "organization"),
        ("Es half die Johanniter-Unfall-Hilfe.", "Johanniter-Unfall-Hilfe", "organization"),
        (
            "Er aß gestern mit uns bei Burger King und ging dann mit den Kindern nach Hause.",
            "Burger King",
            "organization",
        ),
        (
            "Die Leitung des Badischen Zentrums für Gartenbau schwieg zu den Plänen.",
            "Badischen Zentrums für Gartenbau",
            "organization",
        ),
        (
            "Der Verein zur Förderung der Denkmalpflege e. V. sammelt Geld für die Kirche.",
            "Verein zur Förderung der Denkmalpflege e. V.",
            "organization",
        ),
        ("Das sagt der Haushaltsausschuss.", "Haushaltsausschuss", "organization"),
        ("Eso dice la Constitución en Madrid.", "Constitución", "name"),
        # A newspaper with an article at the start of a sentence, or behind a word there.
        ("Selon Le Monde, la Banque de France hésite.", "Le Monde", "organization"),
        ("El País lo contó ayer.", "El País", "organization"),
    ],
)
def test_names_of_parliaments_and_newspapers_have_their_types(
    text: str, title: str, kind: str
) -> None:
    assert extract(text).types.get(title) == kind
