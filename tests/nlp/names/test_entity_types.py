"""Types of names: known places, given names, words in the name, and its usage."""

import pytest

from graphrag_nlp.names.entity_types import find_type_of_acronym
from graphrag_nlp.names.head_types import find_head_type
from tests.fixtures.extraction import extract


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


def test_a_person_after_whom_firms_are_named_stays_a_person() -> None:
    found = extract(
        "Ayn Rand said no. Then Ayn Rand sighed, and Ayn Rand's husband smiled. He runs the Ayn "
        "Rand Institute, not the Ayn Rand Society or the Ayn Rand Foundation."
    )
    types = found.types
    assert types["Ayn Rand"] == "person"
    assert types["Ayn Rand Institute"] == "organization"


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
