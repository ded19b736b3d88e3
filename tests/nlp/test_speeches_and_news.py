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


@pytest.mark.parametrize(("text", "names"), [*GERMAN, *SPANISH])
def test_names_in_speeches_and_news(text: str, names: dict[str, str]) -> None:
    types = extract(text).types
    assert {name: kind for name, kind in types.items() if kind != "noun phrase"} == names
    terms = {name for name, kind in types.items() if kind == "noun phrase"}
    assert terms.isdisjoint({"segundo lugar", "acuerdo necesario"})
