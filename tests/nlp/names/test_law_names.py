"""Names in legal texts."""

import pytest

from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "IN THE SUPREME COURT OF VICTORIA\n\nThe plaintiff was hurt.",
            "SUPREME COURT OF VICTORIA",
        ),
        (
            "IN THE HIGH COURT OF JUSTICE\nKING'S BENCH DIVISION\nThe high case was heard.",
            "HIGH COURT OF JUSTICE",
        ),
        ("TRIBUNAL SUPREMO\nSala de lo Civil\nEl recurso se desestima.", "TRIBUNAL SUPREMO"),
        ("BUNDESGERICHTSHOF\nIm Namen des Volkes\nDie Klage ist weg.", "BUNDESGERICHTSHOF"),
        ("COUR DE CASSATION, CHAMBRE SOCIALE\n\nLe pourvoi est rejeté.", "COUR DE CASSATION"),
        (
            "CONVENTION ENTRE LE ROYAUME DE BELGIQUE ET LE PREMIER PAYS\n\nElle est conclue.",
            "ROYAUME DE BELGIQUE",
        ),
        ("Vu l'article 5 du code du travail, le tribunal rejette.", "code du travail"),
        ("Das Gesetz über befriedete Bezirke gilt auch hier.", "Gesetz über befriedete Bezirke"),
        (
            "It applies under Title V of Part Three of the Treaty on the Functioning of the Union.",
            "Treaty on the Functioning of the Union",
        ),
        ("Der Kredit kam von der Volksbank Baumberge eG in Ulm.", "Volksbank Baumberge eG"),
        (
            "La Cour de justice de l'Union européenne a jugé.",
            "Cour de justice de l'Union européenne",
        ),
        (
            "Nous remercions l'Agence nationale de la recherche pour son aide.",
            "Agence nationale de la recherche",
        ),
        (
            "L'Agence nationale de la recherche a financé cette étude.",
            "Agence nationale de la recherche",
        ),
        (
            "La Convention européenne des droits de l'homme est invoquée.",
            "Convention européenne des droits de l'homme",
        ),
        (
            "El Estado firma la Convención Americana sobre Derechos Humanos en la reunión.",
            "Convención Americana sobre Derechos Humanos",
        ),
        (
            "Das Übereinkommen über die Rechte des Kindes bleibt unberührt.",
            "Übereinkommen über die Rechte des Kindes",
        ),
        ("Die Kündigung ist nach § 1 Kündigungsschutzgesetz unwirksam.", "Kündigungsschutzgesetz"),
        ("Die Heizkostenverordnung gilt für alle Mieter.", "Heizkostenverordnung"),
        ("Gerügt wird, dass die Strafprozessordnung verletzt ist.", "Strafprozessordnung"),
        (
            "Die Verordnung (EG) Nr. 1008/2008 ist hier anzuwenden.",
            "Verordnung (EG) Nr. 1008/2008",
        ),
        ("Die Klage der Bundeswettbewerbsbehörde wurde abgewiesen.", "Bundeswettbewerbsbehörde"),
        (
            "Die Generalstaatsanwaltschaft Celle war daran beteiligt.",
            "Generalstaatsanwaltschaft Celle",
        ),
        (
            "It is permitted under the Clean Water Act of 1972 and later law.",
            "Clean Water Act of 1972",
        ),
        (
            "The Working Time Regulations 1998 apply to this agreement.",
            "Working Time Regulations 1998",
        ),
        (
            "This agreement is with Tessera Robotics (UK) Limited for one year.",
            "Tessera Robotics (UK) Limited",
        ),
        (
            "The court considered this in Caparo Industries plc v Dickman last year.",
            "Caparo Industries plc v Dickman",
        ),
        (
            "Counsel cited Brown Shoe Co. v. United States in the motion.",
            "Brown Shoe Co. v. United States",
        ),
        (
            "The Maritime and Coastguard Agency wrote to the owner.",
            "Maritime and Coastguard Agency",
        ),
        (
            "They read data that the National Oceanic and Atmospheric Administration keeps.",
            "National Oceanic and Atmospheric Administration",
        ),
        (
            "The grant came from the National Endowment for the Humanities in May.",
            "National Endowment for the Humanities",
        ),
        ("This was done at the University at Buffalo by the staff.", "University at Buffalo"),
        ("It was referred to the County Court at Telford by a judge.", "County Court at Telford"),
        (
            "Notice was given under Part II of the Landlord and Tenant Act 1954 last week.",
            "Landlord and Tenant Act 1954",
        ),
        ("He lives in Trinidad and Tobago with his family.", "Trinidad and Tobago"),
        (
            "The letter is by the Government of Bosnia and Herzegovina and its staff.",
            "Government of Bosnia and Herzegovina",
        ),
        (
            "El acto es del Ilustre Colegio de Castilla y León y de otros.",
            "Ilustre Colegio de Castilla y León",
        ),
        (
            "El agua es de Flores del Valle S.A. de C.V. desde 1990, sin consulta previa.",
            "Flores del Valle S.A. de C.V.",
        ),
        ("Die Nachzucht im Opel-Zoo soll die Bestände stützen.", "Opel-Zoo"),
        (
            "Sie zog nach Esslingen am Neckar, das liegt in der Nähe von Stuttgart.",
            "Esslingen am Neckar",
        ),
        ("Die Firma sitzt in Mülheim an der Ruhr und in Köln.", "Mülheim an der Ruhr"),
        ("Sie wohnt in der Aachener Straße und er in Bonn.", "Aachener Straße"),
        ("Er wohnt seit März in der Lindenallee 7 in Detmold.", "Lindenallee"),
        ("Das Spiel gegen den 1. FC Köln wird verlegt.", "1. FC Köln"),
        ("Die Richterin am Arbeitsgericht Dr. Wenzel-Thoma hat entschieden.", "Wenzel-Thoma"),
        ("In May, New York Gov. Kathy Hochul opened the library.", "Kathy Hochul"),
        ("Laden Sie die App HomeCook auf das Telefon.", "HomeCook"),
        ("Schließen Sie den PrintJet 4200 mit dem Kabel an.", "PrintJet 4200"),
        (
            "In der Stadt stellte das Leibniz-Institut für Zoo- und Wildtierforschung sie vor.",
            "Leibniz-Institut für Zoo- und Wildtierforschung",
        ),
        ("Das Geld kam von der Kulturstiftung des Bundes im Mai.", "Kulturstiftung des Bundes"),
        ("Der Präsident des Landtags Brandenburg war dagegen.", "Landtags Brandenburg"),
        (
            "Das Gericht hat die Klage gegen die Rheinlogistik GmbH & Co. KG abgewiesen.",
            "Rheinlogistik GmbH & Co. KG",
        ),
        (
            "The case of the Office of the High Commissioner for Refugees is closed.",
            "Office of the High Commissioner for Refugees",
        ),
        (
            "Les données viennent du Muséum national d'histoire naturelle.",
            "Muséum national d'histoire naturelle",
        ),
        (
            "Nous avons étudié cela avec l'Institut national de recherche pour l'agriculture.",
            "Institut national de recherche pour l'agriculture",
        ),
        (
            "Mme Delarue-Petit, conseillère, a été entendue hier par le tribunal.",
            "Delarue-Petit",
        ),
        ("Der Staat hat gegen das Haager Übereinkommen verstoßen.", "Haager Übereinkommen"),
        (
            "Die Aufsicht führt die Medienanstalt Berlin-Brandenburg in Potsdam.",
            "Medienanstalt Berlin-Brandenburg",
        ),
        ("Die Serie ist mit Liv Lisa Fries und ihrem Bruder.", "Liv Lisa Fries"),
        ("In der Gegend wurde Vulpes vulpes seltener gesehen.", "Vulpes vulpes"),
        ("It is under the Apache License 2.0 for everybody.", "Apache License 2.0"),
        ("Das Dokument lässt sich mit LibreOffice Writer öffnen.", "LibreOffice Writer"),
        ("Sie arbeitet seit Mai an der Uni Potsdam.", "Uni Potsdam"),
        (
            "Gehört wurde auch die Industrie- und Handelskammer Stade in der Sache.",
            "Industrie- und Handelskammer Stade",
        ),
        ("Es gilt die Genfer Flüchtlingskonvention für alle.", "Genfer Flüchtlingskonvention"),
        (
            "Verletzt ist die Charta der Grundrechte der Europäischen Union in zwei Fällen.",
            "Charta der Grundrechte der Europäischen Union",
        ),
        ("Das regelt die Datenschutz-Grundverordnung für alle.", "Datenschutz-Grundverordnung"),
        ("Der Vertrag mit dem Königreich der Niederlande gilt.", "Königreich der Niederlande"),
        ("Die Frage geht an Frau Lindqvist von der Datev in der Stadt.", "Datev"),
        (
            "The Nationality, Immigration and Asylum Act 2002 applies to him.",
            "Nationality, Immigration and Asylum Act 2002",
        ),
        ("Notices go to Kirkwood, Hale & Dunn LLP in the city.", "Kirkwood, Hale & Dunn LLP"),
        (
            "It is in the Berne Convention for the Protection of Literary and Artistic Works.",
            "Berne Convention for the Protection of Literary and Artistic Works",
        ),
        ("His sister lives in Newcastle upon Tyne with him.", "Newcastle upon Tyne"),
        ("The seller is Blue Mesa Holdings, L.P. of this town.", "Blue Mesa Holdings, L.P."),
        (
            "La Organización de Consumidores y Usuarios se personó en la causa.",
            "Organización de Consumidores y Usuarios",
        ),
        ("Vu le code de la commande publique et la loi.", "code de la commande publique"),
        ("Dresdens Oberbürgermeister Dirk Hilbert ließ die Brücke sperren.", "Dresden"),
        (
            "Am Montag hat Baden-Württembergs Verkehrsminister Winfried Hermann geschwiegen.",
            "Baden-Württemberg",
        ),
        ("Die Kuratorin Mareike Vossen zeigt hier ihre Arbeiten.", "Mareike Vossen"),
        ("Das teilte der Batteriehersteller Varthold AG am Montag mit.", "Varthold AG"),
        ("Read this before you start the Grassmaster 46S in the garden.", "Grassmaster 46S"),
    ],
)
def test_bodies_and_laws_are_found_whole(text: str, name: str) -> None:
    assert extract(text).types.get(name, "noun phrase") != "noun phrase"


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


@pytest.mark.parametrize(
    ("text", "street"),
    [
        ("Die Firma sitzt in Hessen (Hinter dem Turm 7, 26409 Wittmund).", "Hinter dem Turm"),
        ("Der Sitz ist neu: Straße des 17. Juni 135, 10623 Berlin.", "Straße des 17. Juni"),
        ("Sie wohnt dort: Untere Bergstraße 4, 8001 Zürich.", "Untere Bergstraße"),
        ("Er wohnt dort: Unter den Eichen 5, D-65195 Wiesbaden.", "Unter den Eichen"),
        ("Laut Polizei: Der Verein hat 120, 2000 Mitglieder waren es.", ""),
        ("Laut Polizei: Vereine haben 120, 20000 Mitglieder waren es.", ""),
        ("In der Mappe liegt vieles (Liste der Werke 12, 1985 Berlin).", ""),
        ("Im Spiegel: Die Zeitschrift für Physik 17, 1905 Leipzig.", ""),
    ],
)
def test_a_street_stands_before_its_number_and_the_code_of_a_town(text: str, street: str) -> None:
    types = extract(text).types
    names = {title for title, kind in types.items() if kind != "noun phrase"}
    towns = {"Berlin", "Hessen", "Leipzig", "Wittmund", "Zürich"}
    assert {name for name in names - towns if "Wiesbaden" not in name} == {street} - {""}
