"""Parts of a text that are not read for names, and what stands beside them."""

import pytest

from graphrag_nlp.names.span_boundaries import find_nameless_ranges
from graphrag_nlp.text.code import is_inside


@pytest.mark.parametrize(
    ("text", "nameless"),
    [
        ("the Minister for Rural Affairs, Ann Lee", "Affairs"),
        ("ministro de Asuntos Exteriores y Pesca", "Pesca"),
        ("la ministra del Interior, Ann Lee", "Interior"),
        ("le ministre de l'Intérieur et des Outre-mer", "Outre-mer"),
        ("ministre des Affaires étrangères et de l'Europe", "Europe"),
        ("a <ref name=Abc> here", "Abc"),
        ("a &lt;ref name=Abc&gt; here", "Abc"),
        ("Después pulse en Guardar.", "Guardar"),
    ],
)
def test_nameless_parts(text: str, nameless: str) -> None:
    assert is_inside(find_nameless_ranges(text), text.index(nameless))


@pytest.mark.parametrize("text", ["le ministre de l'Inde"])
def test_other_parts_have_names(text: str) -> None:
    assert find_nameless_ranges(text) == []


@pytest.mark.parametrize("name", ["Carey", "Waters", "Homer", "Foodman", "Workman"])
def test_a_field_of_a_minister_is_a_whole_word(name: str) -> None:
    text = f"the Minister for Health {name} left"
    assert not is_inside(find_nameless_ranges(text), text.index(name))
