"""Bounds of names at particles, conjunctions and hyphens; and single words that are names."""

import pytest

from tests.fixtures.extraction import extract


def find_names(text: str) -> dict[str, str]:
    """Return the names in a text with their types."""
    types = extract(text).types
    return {title: kind for title, kind in types.items() if kind != "noun phrase"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Gestern sprach Franz zu Löwenstein lange.", {"Franz zu Löwenstein"}),
        ("Gestern kam Philipp zu Eulenburg an.", {"Philipp zu Eulenburg"}),
        ("Gestern kam Otto zu Schaumburg-Lippe an.", {"Otto zu Schaumburg-Lippe"}),
        ("Gestern ging Lena Hart zu Fuß.", {"Lena Hart"}),
        ("Dort war gestern Lena Hart zu Gast.", {"Lena Hart"}),
        ("Gestern reiste Lena Hart zu Verhandlungen an.", {"Lena Hart"}),
    ],
)
def test_only_seats_of_families_behind_zu_are_surnames(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names
