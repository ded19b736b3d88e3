import pytest

from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import GIVEN_NAMES
from graphrag_nlp.text.languages import read_lists
from tests.fixtures.extraction import extract


def test_a_known_name_has_its_type_in_any_case() -> None:
    assert find_known_type("Unesco") == find_known_type("UNESCO") == "organization"
    assert find_known_type("Andes") == "geo"
    assert find_known_type("Affordable Care Act") == "name"
    assert find_known_type("Einstein") == "person"
    assert find_known_type("Nobody") == ""


@pytest.mark.parametrize("file", ["known_names", "likely_names"])
def test_each_name_of_a_list_has_one_type(file: str) -> None:
    lists = read_lists(f"graphrag_nlp/names/data/{file}").values()
    names = [name.strip() for listed in lists for name in listed.split("|")]
    assert len(names) == len(set(names))
    assert not [name for name in names if not name or "  " in name]


def test_an_acronym_that_is_a_word_is_known_as_written() -> None:
    assert find_known_type("WFP") == "organization"
    assert find_known_type("wfp") == find_known_type("Wfp") == ""
    assert find_known_type("Rom") == "geo"
    assert find_known_type("ROM") == ""  # a memory


def test_a_given_name_is_no_thing_everywhere() -> None:
    things = {"name", "event", "organization"}
    assert [name for name in sorted(GIVEN_NAMES) if find_known_type(name) in things] == []


@pytest.mark.parametrize(
    ("text", "title", "kind"),
    [
        # A name with several meanings means the usual one, unless it speaks or is a place.
        ("They wrote about Lush at noon.", "Lush", "organization"),
        ("They asked Mr Lush. Lush said no, and Lush wept.", "Lush", "person"),
        ("They lived in Orange for years.", "Orange", "geo"),
        # A known person behind an article is none the less no town.
        ("They read about the Obama plan. The plan is old.", "Obama", "person"),
        ("They met Xi Jinping.", "Xi Jinping", "person"),
        ("In Kiel lag Sachsen-Anhalt vorn.", "Sachsen-Anhalt", "geo"),
        ("Nun kam der SAP-Spezialist an.", "SAP", "organization"),
        # German cases.
        ("Er sah die Leitung des Bayerischen Rundfunks.", "Bayerischen Rundfunks", "organization"),
        ("Er fuhr mit der Deutschen Bahn.", "Deutschen Bahn", "organization"),
        ("Er las im Gemeinsamen Ausschuss vor.", "Gemeinsamen Ausschuss", "organization"),
        ("Nach Ansicht von Rieder-Kolb war es falsch.", "Rieder-Kolb", "person"),
    ],
)
def test_known_names_have_their_types_in_texts(text: str, title: str, kind: str) -> None:
    assert extract(text).types[title] == kind


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        # Known names whose parts nothing else would join.
        ("Die Fraktion Bündnis 90/Die Grünen kam.", {"Fraktion Bündnis 90/Die Grünen"}),
        ("Die Fraktion BÜNDNIS 90/ DIE GRÜNEN kam.", {"Fraktion BÜNDNIS 90/ DIE GRÜNEN"}),
        ("Es kam Herr Kollege Hunko. Die Kollegin Süssmuth ging.", {"Hunko", "Süssmuth"}),
        (
            "Es kamen Thomas Sauer Peter Schaaf Otto Schäfer. Sie sprachen gestern mit uns.",
            {"Thomas Sauer", "Peter Schaaf", "Otto Schäfer"},
        ),
        (
            "Convergència i Unió votó en Castilla y León.",
            {"Convergència i Unió", "Castilla y León"},
        ),
        ("Orlandia/Oslo ist weit. Man kam nach Oslo.", {"Oslo"}),
        ("Vi al Defensor del Pueblo en Vigo.", {"Defensor del Pueblo", "Vigo"}),
        # A German noun behind one.
        ("Wir lasen den Antrag der SPD Abrüstung und Kontrolle.", {"SPD"}),
    ],
)
def test_known_names_are_whole(text: str, titles: set[str]) -> None:
    assert titles <= set(extract(text).titles)


def test_buttons_of_pages_are_no_names() -> None:
    found = extract(
        "Ada Holt met Emil Rau. READ MORE: Send Facebook Twitter Google+ Whatsapp Tumblr digg "
        "Permalink"
    )
    assert set(found.titles) == {"Ada Holt", "Emil Rau"}


def test_roles_in_the_plural_and_adjectives_are_no_names() -> None:
    found = extract("The House Minority Leaders Ada Holt and Emil Rau saw a Midwestern town.")
    assert set(found.titles) == {"Ada Holt", "Emil Rau"}
