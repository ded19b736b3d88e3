"""Parts of a text that are not read for names, and what stands beside them."""

import pytest

from graphrag_nlp.names.span_boundaries import find_nameless_ranges
from graphrag_nlp.text.ranges import is_inside
from tests.fixtures.extraction import extract


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The Minister of Health Ann Brown said so in Leeds.", {"Ann Brown", "Leeds"}),
        ("La ministra de Hacienda María Jesús Montero viajó a Lugo.", {"María Jesús Montero"}),
        ("Le ministre des Transports Clément Beaune est venu à Lens.", {"Clément Beaune", "Lens"}),
        # A name that begins like a field.
        ("The Minister of Health Carey said so in Leeds.", {"Carey", "Leeds"}),
        ("The Minister of Home Affairs Homer said so in Leeds.", {"Homer", "Leeds"}),
        # Ministers of a country.
        ("La ministre du Québec a rencontré le ministre du Luxembourg.", {"Québec", "Luxembourg"}),
        ("La ministre des Pays-Bas est venue avec celui de l'Inde.", {"Pays-Bas", "Inde"}),
        ("Le ministre de l'Inde est venu à Lens.", {"Inde", "Lens"}),
        # Other words that end like the verbs of buttons, and places behind those verbs.
        ("El gobierno impulsa Andalucía, según dijo Ada Brown.", {"Andalucía", "Ada Brown"}),
        ("Hay que impulsar Barcelona, y hay repulsa Marruecos, dice.", {"Barcelona", "Marruecos"}),
        ("The pulsar Geminga, which Ada Brown saw, is near.", {"Geminga", "Ada Brown"}),
        ("Then click Berlin, as Ada Brown did.", {"Berlin", "Ada Brown"}),
        # No terms of a contract.
        (
            "Ci-après l'Espagne et la France signent. L'Espagne gagne à Madrid.",
            {"Espagne", "France", "Madrid"},
        ),
        ("Voir ci-après la Loire à Tours. La Loire est longue.", {"Loire", "Tours"}),
        ("Le Royaume, ci-après l'Espagne, signe. L'Espagne gagne à Madrid.", {"Espagne"}),
    ],
)
def test_names_beside_nameless_parts_are_kept(text: str, names: set[str]) -> None:
    assert names <= {*extract(text).titles}


@pytest.mark.parametrize(
    ("text", "nameless"),
    [
        ("the Minister for Rural Affairs, Ann Lee", "Affairs"),
        ("ministro de Asuntos Exteriores y Pesca", "Pesca"),
        ("la ministra del Interior, Ann Lee", "Interior"),
        ("le ministre de l'Intérieur et des Outre-mer", "Outre-mer"),
        ("ministre des Affaires étrangères et de l'Europe", "Europe"),
        ("see Section 6.6.1, “Checking Packages” and Ann", "Packages"),
        ("a <ref name=Abc> here", "Abc"),
        ("a &lt;ref name=Abc&gt; here", "Abc"),
        ("Mme Lee, ci-après la Salariée, vient", "Salariée"),
        ("une banque (ci-après « la Banque ») paie", "Banque"),
        ("une banque ci-après dénommée la Banque paie", "Banque"),
        ("Después pulse en Guardar.", "Guardar"),
    ],
)
def test_nameless_parts(text: str, nameless: str) -> None:
    assert is_inside(find_nameless_ranges(text), text.index(nameless))


@pytest.mark.parametrize(
    "text", ["in 7.1, “Ann Lee” came", "ci-après la Loire", "le ministre de l'Inde"]
)
def test_other_parts_have_names(text: str) -> None:
    assert find_nameless_ranges(text) == []


@pytest.mark.parametrize("name", ["Carey", "Waters", "Homer", "Foodman", "Workman"])
def test_a_field_of_a_minister_is_a_whole_word(name: str) -> None:
    text = f"the Minister for Health {name} left"
    assert not is_inside(find_nameless_ranges(text), text.index(name))
