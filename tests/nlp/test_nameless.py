"""Parts of a text that are not read for names, and what stands beside them."""

import pytest

from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The Minister of Health Ann Brown said so in Leeds.", {"Ann Brown", "Leeds"}),
        ("La ministra de Hacienda María Jesús Montero viajó a Lugo.", {"María Jesús Montero"}),
        ("Le ministre des Transports Clément Beaune est venu à Lens.", {"Clément Beaune", "Lens"}),
    ],
)
def test_names_beside_nameless_parts_are_kept(text: str, names: set[str]) -> None:
    assert names <= {*extract(text).titles}
