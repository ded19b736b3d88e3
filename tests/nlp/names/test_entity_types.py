"""Types of names: known places, given names, words in the name, and its usage."""

import pytest

from graphrag_nlp.names.entity_types import find_type_of_acronym, is_product
from graphrag_nlp.names.head_types import find_head_type
from graphrag_nlp.names.name_shapes import is_no_person
from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "title", "kind"),
    [
        # Known places.
        ("Voters of Arizona met. Later Arizona counted again.", "Arizona", "geo"),
        ("They all moved to New Mexico. Some left Mexico for good.", "New Mexico", "geo"),
        ("Wir fuhren nach Bayern. Dort regnete es.", "Bayern", "geo"),
        ("Ils sont partis dans le Gers hier soir.", "Gers", "geo"),
        ("Nadaron en el Mediterráneo toda la tarde.", "Mediterráneo", "geo"),
        ("DETROIT (AP) - Cars are recalled. In spring DETROIT was closed.", "DETROIT", "geo"),
        # Names that can mean a place, used for a person.
        ("The coach praised Jordan Belfort. Then Jordan said no.", "Jordan Belfort", "person"),
        ("They met Paris Hilton at noon.", "Paris Hilton", "person"),
        # Persons need evidence.
        ("Many poor families depend on Medicaid. Congress cut Medicaid.", "Medicaid", "name"),
        ("A judge sided with Planned Parenthood.", "Planned Parenthood", "organization"),
        ("Later Subhash Ghai paid the bill.", "Subhash Ghai", "person"),
        ("On a rencontré Élodie Marchand hier.", "Élodie Marchand", "person"),
        # Members of a party name the party; peoples and religions keep the type "name".
        ("The bill passed with votes of Democrats.", "Democrats", "organization"),
        ("In the city Muslims prayed together.", "Muslims", "name"),
        # A common noun beside the name, or a colon after a speaker.
        ("They rented it from the company Zipvan.", "Zipvan", "organization"),
        ("Then came Orvelda, a composer of operas.", "Orvelda", "person"),
        ("They live in the village of Umbrino.", "Umbrino", "geo"),
        ("Er las. Der Konzern kaufte Kaffa. Kaffa ist eine Firma.", "Kaffa", "organization"),
        ("Thrall: who is coming?\nJarvo: I will.\nThrall: fine.", "Thrall", "person"),
        # An article, in English: a ship or a work.
        ("Ice held the Nimrod for a week. Then the crew left the Nimrod.", "Nimrod", "name"),
        ("Ice held Nimrod for a week. Then the crew left Nimrod.", "Nimrod", "person"),
        # The head of a name.
        ("She studies at the University of Cape Town.", "University of Cape Town", "organization"),
        ("El Partido Popular ganó las elecciones.", "Partido Popular", "organization"),
        ("Er klagte gegen die Deutsche Bank.", "Deutsche Bank", "organization"),
        ("They bought shares of Halden Foods Plc today.", "Halden Foods Plc", "organization"),
        ("They passed the Clean Air Act in May.", "Clean Air Act", "name"),
    ],
)
def test_a_type_follows_from_knowledge_and_usage(text: str, title: str, kind: str) -> None:
    assert extract(text).types[title] == kind


@pytest.mark.parametrize(
    ("name", "code", "kind"),
    [
        ("Bank of Scotland", "en", "organization"),
        ("Ministerio de Salud", "es", "organization"),
        ("Bahnhofstraße", "de", "geo"),
        ("Datenschutzgesetz", "de", "name"),
        ("Weltkrieg", "de", "event"),
        ("Roe v Wade", "en", "name"),
        ("Anna Weber", "en", ""),
        ("Bank", "en", ""),
    ],
)
def test_the_head_of_a_name_shows_its_type(name: str, code: str, kind: str) -> None:
    words = name.split(" ")
    assert find_head_type(words, [word.lower() for word in words], code) == kind


@pytest.mark.parametrize(
    ("text", "title", "kind"),
    [
        ("In the race Korvil wants a parliamentary republic.", "Korvil", "person"),
        ("In the end Korvil handed over his key.", "Korvil", "person"),
        ("It was told in Prelion's house.", "Prelion", "name"),
        ("It was told by Korvil's widow.", "Korvil", "person"),
        ("As Korvil said, this is no break.", "Korvil", "person"),
        ("In May Korvil acquired the mine.", "Korvil", "organization"),
        (
            "They asked for Korvil's quarterly earnings and Korvil's shareholders.",
            "Korvil",
            "organization",
        ),
        ("They built centres in the camps and Korvil village.", "Korvil", "geo"),
        ("They met.\n\nSomalia: The state has no funds.", "Somalia", "geo"),
        (
            "It is the title of a Stanley Kubrick film of Mark Wahlberg.",
            "Stanley Kubrick",
            "person",
        ),
        ("It is the title of a Stanley Kubrick film of Mark Wahlberg.", "Mark Wahlberg", "person"),
        ("A cow made for the Iowa state fair won.", "Iowa", "geo"),
        ("They like a drama with Brooke Shields. He shields her.", "Brooke Shields", "person"),
        ("They asked the Korvil spokesman.", "Korvil", "organization"),
        ("In May Iran is a partner of militia groups.", "Iran", "geo"),
        ("Korvil Shamrock Corp grew. In May Korvil fell.", "Korvil", "organization"),
        ("They have a house in Java and Korvil.", "Korvil", "geo"),
        ("They have a house in Java and Korvil.", "Java", "geo"),
        ("They have a house in northern Korvil.", "Korvil", "geo"),
        ("In May the founder of Weight Watchers is a singer.", "Weight Watchers", "organization"),
        ("We saw the 1982 film Korvil. In May Korvil died. Then Korvil wept.", "Korvil", "person"),
    ],
)
def test_words_behind_a_name_suggest_its_type(text: str, title: str, kind: str) -> None:
    assert extract(text).types[title] == kind


@pytest.mark.parametrize(
    ("text", "title", "kind"),
    [
        ("The prose of McCullers is wooden.", "McCullers", "person"),
        ("The call began with Bergstrom and Ulrichsen.", "Ulrichsen", "person"),
        ("They went to court in Ulrichsen.", "Ulrichsen", "geo"),
    ],
)
def test_a_surname_is_known_by_its_end(text: str, title: str, kind: str) -> None:
    assert extract(text).types[title] == kind


@pytest.mark.parametrize(
    ("text", "title", "kind"),
    [
        # The last word is a frequent noun, and no surname.
        ("They played Savannah Spirits. Then Savannah Spirits lost.", "Savannah Spirits", "name"),
        ("They met Roger Rogers. Later Roger Rogers paid them.", "Roger Rogers", "person"),
        ("The farm is in Austin Township. Later Austin Township grew.", "Austin Township", "geo"),
        # Doctrines, and adjectives with a hyphen.
        ("They taught Roman Catholicism. Few left Roman Catholicism.", "Roman Catholicism", "name"),
        (
            "Some hold that Balto-Slavic split early. Then Balto-Slavic spread.",
            "Balto-Slavic",
            "name",
        ),
        ("They went to Nagorno-Karabakh. It rained.", "Nagorno-Karabakh", "geo"),
        # Known works, software and organizations, and places by their head.
        ("He wrote for SQL Server. Later SQL Server was slow.", "SQL Server", "name"),
        ("He wrote for Windows Mobile. Windows Mobile was slow.", "Windows Mobile", "name"),
        ("He loves Atlas Shrugged. They hate Atlas Shrugged.", "Atlas Shrugged", "name"),
        ("He borrows from Freddie Mac. Freddie Mac lends.", "Freddie Mac", "organization"),
        ("They played the Aragon Ballroom. The Aragon Ballroom shut.", "Aragon Ballroom", "geo"),
        # A place named after a saint.
        ("They met in St. Moritz. He worked in St. Moritz for years.", "St. Moritz", "geo"),
    ],
)
def test_a_name_of_a_thing_or_a_place_is_no_person(text: str, title: str, kind: str) -> None:
    found = extract(text)
    assert found.types[title] == kind


def test_a_person_after_whom_firms_are_named_stays_a_person() -> None:
    found = extract(
        "Ayn Rand said no. Then Ayn Rand sighed, and Ayn Rand's husband smiled. He runs the Ayn "
        "Rand Institute, not the Ayn Rand Society or the Ayn Rand Foundation."
    )
    types = found.types
    assert types["Ayn Rand"] == "person"
    assert types["Ayn Rand Institute"] == "organization"


@pytest.mark.parametrize(
    ("text", "title", "kind"),
    [
        ("The firm moved to Austin TX. Later Austin TX grew.", "Austin TX", "geo"),
        (
            "Fans saw the Albany Patroons win. Then the Albany Patroons lost.",
            "Albany Patroons",
            "organization",
        ),
        (
            "She read the Canterbury Tales. Then the Canterbury Tales were lost.",
            "Canterbury Tales",
            "name",
        ),
        ("They ran Edinburgh Prolog on it.", "Edinburgh Prolog", "name"),
        (
            "It was written by Gyldendal Publishing House.",
            "Gyldendal Publishing House",
            "organization",
        ),
        ("A lawyer of PETA was there. PETA said no.", "PETA", "organization"),
        ("The film with Heath Ledger won.", "Heath Ledger", "person"),
        ("They praised rapper Kanye West again.", "Kanye West", "person"),
        ("Idaho: yes.\nOhio: no.\nIdaho: no.", "Idaho", "geo"),
        ("Some flew to the Hague. The Hague was cold.", "Hague", "geo"),
        ("They saw the Taj Mahal. Then the Taj Mahal was closed.", "Taj Mahal", "geo"),
        ("She won the Halden Open in May.", "Halden Open", "event"),
        ("They signed the Articles of Confederation.", "Articles of Confederation", "name"),
        ("They read about it (see Vaxocentrism) at noon.", "Vaxocentrism", "name"),
        ("Rain fell in N.E. Ohio all day.", "N.E. Ohio", "geo"),
        ("They live in Kingston. In Kingston it rained.", "Kingston", "geo"),
        ("They met the mayor of Karien there.", "Karien", "geo"),
        ("Le habló el señor Llibre ayer.", "Llibre", "person"),
        ("Many Democrats said no. Democrats said yes.", "Democrats", "organization"),
        ("She reads the China Daily every day.", "China Daily", "organization"),
        ("Votó con Coalición Canaria en mayo.", "Coalición Canaria", "organization"),
    ],
)
def test_parts_of_a_name_show_its_type(text: str, title: str, kind: str) -> None:
    assert extract(text).types[title] == kind


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Indian Hindi", True),
        ("Win32 Rose", True),
        ("Roman Polanski", False),
        ("Hank Rose", False),
    ],
)
def test_a_name_that_begins_with_a_people_is_no_person(name: str, expected: bool) -> None:
    assert is_no_person(name) is expected


@pytest.mark.parametrize(
    ("name", "speaker_share", "listed", "kind"),
    [
        ("BIPM", 0.5, (0.0, 0.0, 0.0), "organization"),
        ("TAROM", 0.0, (0.0, 0.0, 2.0), "organization"),
        ("PDF", 0.0, (0.0, 0.0, 0.1), "acronym"),
        ("AMA", 0.0, (0.0, 1.0, 1.0), "acronym"),
        ("NY", 0.0, (0.0, 1.0, 0.0), "geo"),
        ("LA", 0.0, (0.0, 0.0, 1.0), "acronym"),
    ],
)
def test_an_acronym_is_of_the_type_of_those_listed_beside_it(
    name: str, speaker_share: float, listed: tuple[float, ...], kind: str
) -> None:
    assert find_type_of_acronym(name, speaker_share, listed) == kind


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("DEC SunOS", True),
        ("Microsoft Office Standard Edition", True),
        ("Parallel Prolog", True),
        ("Apple Computer", False),
        ("Kim Python", False),
    ],
)
def test_a_product_is_told_by_its_maker_and_the_thing(name: str, expected: bool) -> None:
    kinds = {"DEC": "acronym", "SunOS": "name", "Apple": "organization", "Computer": "name"}
    assert is_product(name, kinds) is expected
