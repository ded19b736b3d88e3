"""Types of names: known places, given names, words in the name, and its usage."""

import pytest

from graphrag_nlp.names.entity_types import find_type_of_acronym
from graphrag_nlp.names.head_types import find_head_type
from tests.fixtures.cases import cases


@cases("name, code, kind")
def test_the_head_of_a_name_shows_its_type(name: str, code: str, kind: str) -> None:
    words = name.split(" ")
    assert find_head_type(words, [word.lower() for word in words], code) == kind


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
