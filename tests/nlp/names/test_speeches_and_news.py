"""Names in speeches of parliaments and in news: where they begin and end, and what is none."""

import pytest

from tests.fixtures.extraction import extract

GERMAN = [
    # Persons, parties and sentences in lists without commas.
    (
        "Es sprachen Ole Schröder Hans-Werner Kammer in der Debatte.",
        {"Ole Schröder": "person", "Hans-Werner Kammer": "person"},
    ),
    (
        "Dazu sprachen Ursula Schulte Sigmar Gabriel und andere.",
        {"Ursula Schulte": "person", "Sigmar Gabriel": "person"},
    ),
    (
        "Das sagte Hubert Ulrich FDP in der Debatte.",
        {"Hubert Ulrich": "person", "FDP": "organization"},
    ),
    (
        "In der Liste stand Peter Stavenhagen Die Fraktion der SPD lehnt es ab.",
        {"Peter Stavenhagen": "person", "Fraktion der SPD": "organization"},
    ),
    (
        "Er las Lena Hart Die Welt vor.",
        {"Lena Hart": "person", "Die Welt": "organization"},
    ),
    # A purpose belongs to a body or a law, but not to a power of the state.
    (
        "Wir fordern die Bundesregierung zur Reduzierung der Ausgaben auf.",
        {"Bundesregierung": "organization"},
    ),
    (
        "Die Kommission zur Reformierung des Sozialstaats tagte in Bonn.",
        {"Kommission zur Reformierung des Sozialstaats": "organization", "Bonn": "geo"},
    ),
    (
        "Die VN-Konferenz für Umwelt und Entwicklung tagte in Rio.",
        {"VN-Konferenz für Umwelt und Entwicklung": "event", "Rio": "geo"},
    ),
    (
        "Sie will, dass die Regierung Auskünfte gibt. Das sagte Lena Hart.",
        {"Lena Hart": "person"},
    ),
    # Numbers belong to laws.
    (
        "Im Zimmer Nr. 11 sah Lena Hart die Resolution Nr. 1325 der UNO.",
        {"Lena Hart": "person", "Resolution Nr. 1325": "name", "UNO": "organization"},
    ),
    # Common nouns and adjectives that look like names.
    ("Es gilt EUweit, sagte Lena Hart in den Kitas.", {"Lena Hart": "person"}),
    ("Es ist in Gänze falsch, sagte Lena Hart.", {"Lena Hart": "person"}),
]
SPANISH = [
    ("Tomó la palabra el señor Sánchez i Llibre.", {"Sánchez i Llibre": "person"}),
    (
        "Ayer votó en contra Iniciativa per Catalunya Verds.",
        {"Iniciativa per Catalunya Verds": "organization"},
    ),
    # Pages and forms of address.
    (
        "Quién va a querer *Página 11869* que siga Ana Gil, como sabe S. S., en Cuenca.",
        {"Ana Gil": "person", "Cuenca": "geo"},
    ),
    ("Pese a todo, sigue Ana Gil. Nadie dijo nada.", {"Ana Gil": "person"}),
    # A participle begins a sentence.
    ("Efectuada la votación, habló Ana Gil. " * 3, {"Ana Gil": "person"}),
    # The state and its powers.
    (
        "El Estado paga a Ana Gil. Es dinero del Estado, y lo sabe el Estado.",
        {"Ana Gil": "person"},
    ),
    # A tax is no part of a firm.
    (
        "Ayer subió el IVA de Volkswagen en Cuenca.",
        {"IVA": "acronym", "Volkswagen": "organization", "Cuenca": "geo"},
    ),
    (
        "Lo paga la Comunidad Europea, dijo Nafarroa Bai.",
        {"Comunidad Europea": "organization", "Nafarroa Bai": "organization"},
    ),
    # Weak words at the ends of terms.
    ("En segundo lugar, hay un acuerdo necesario con Ana Gil. " * 3, {"Ana Gil": "person"}),
]
ENGLISH = [
    # Known firms in the genitive, unless the text has an owner of that name.
    (
        "The agency Standard & Poor's said it. They met at Lloyd's today.",
        {"Standard & Poor's": "organization", "Lloyd's": "organization"},
    ),
    (
        "They bought McDonald's China. It was a good time for McDonald's at last.",
        {"McDonald's": "organization", "China": "geo"},
    ),
    ("Chris Christie spoke, and Christie's office confirmed it.", {"Chris Christie": "person"}),
    # Arabic names that begin in lower case.
    (
        "A base of al-Qaeda was hit near the town of al-Bab.",
        {"al-Qaeda": "organization", "al-Bab": "geo"},
    ),
    ("He fought for al Qaeda in Yemen.", {"al Qaeda": "organization", "Yemen": "geo"}),
    (
        "Ahmed al-Mismari spoke in Rome. Then al-Mismari left.",
        {"Ahmed al-Mismari": "person", "Rome": "geo"},
    ),
    # Bodies against something, and two bodies.
    (
        "It was the United Nations Special Committee against Apartheid.",
        {"United Nations Special Committee against Apartheid": "organization"},
    ),
    (
        "He called the Ministry of Defence and the BBC.",
        {"Ministry of Defence": "organization", "BBC": "organization"},
    ),
    ("Then the FBI of the Trump era came.", {"FBI": "organization"}),
    # Other words beside a name.
    ("They heard that DJ Alan Freed played.", {"Alan Freed": "person"}),
    ("It is a Texas-set drama.", {"Texas": "geo"}),
    ("She spoke from Washington, DC, today.", {"Washington": "geo"}),
    # Types by forms of companies and heads.
    (
        "They paid Zelnika FZE and Orvelda PJSC.",
        {"Zelnika FZE": "organization", "Orvelda PJSC": "organization"},
    ),
    ("They met at the Davos Forum.", {"Davos Forum": "organization"}),
]


@pytest.mark.parametrize(("text", "names"), [*GERMAN, *SPANISH, *ENGLISH])
def test_names_in_speeches_and_news(text: str, names: dict[str, str]) -> None:
    types = extract(text).types
    assert {name: kind for name, kind in types.items() if kind != "noun phrase"} == names
    terms = {name for name, kind in types.items() if kind == "noun phrase"}
    assert terms.isdisjoint({"segundo lugar", "acuerdo necesario"})
