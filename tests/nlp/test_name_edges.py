"""Where names begin and end in English and Spanish text."""

import pytest

from tests.fixtures.extraction import extract

ENDINGS = [
    # Series and models with a number.
    ("They used Landsat 8 images.", {"Landsat 8"}, {"Landsat"}),
    ("Wipe the Aurora Mix 5 with a cloth.", {"Aurora Mix 5"}, {"Aurora Mix"}),
    # Species.
    ("The dog, Canis lupus familiaris, sleeps.", {"Canis lupus familiaris"}, {"Canis lupus"}),
    ("Ayer vimos Lynx pardinus en el monte.", {"Lynx pardinus"}, {"Lynx"}),
    # Events that are named after a day.
    ("The Labor Day flood of 2010 was worse.", {"Labor Day flood"}, {"Labor Day"}),
    # Laws and courts with a number.
    ("Se aplica la Ley 1581 de 2012 en este caso.", {"Ley 1581 de 2012"}, set()),
    (
        "Lo vio el Juzgado de lo Social n.º 3 de Almería en mayo.",
        {"Juzgado de lo Social n.º 3 de Almería"},
        {"Almería"},
    ),
    # Companies with their forms.
    (
        "Lo paga Obras Río Bravo, S.A. de C.V. cada mes.",
        {"Obras Río Bravo, S.A. de C.V."},
        {"Obras Río Bravo"},
    ),
    ("We called Hay & Marsh LLP. They came.", {"Hay & Marsh LLP"}, {"Hay & Marsh LLP."}),
    # Bodies with several fields, for a purpose, or with two founders.
    (
        "El Ministerio de Agricultura, Pesca y Alimentación lo pagó.",
        {"Ministerio de Agricultura, Pesca y Alimentación"},
        {"Alimentación"},
    ),
    (
        "El Ministerio para la Transición Ecológica lo pagó.",
        {"Ministerio para la Transición Ecológica"},
        {"Transición Ecológica"},
    ),
    (
        "La Fundación Ortega y Gasset lo pagó.",
        {"Fundación Ortega y Gasset"},
        {"Gasset", "Fundación Ortega"},
    ),
    (
        "Rige la Ley de Arrendamientos Urbanos y el Código Civil.",
        {"Ley de Arrendamientos Urbanos", "Código Civil"},
        set(),
    ),
    (
        "The University of Aberdeen and Jesus College paid.",
        {"University of Aberdeen", "Jesus College"},
        set(),
    ),
]

NO_NAMES = [
    # Labels behind a verb of a button, and the fields of ministers.
    ("Now click Reconcile. Ada Brown wrote it.", {"Ada Brown"}, {"Reconcile"}),
    ("Después pulse Actualizar. Lo dijo Ada Brown.", {"Ada Brown"}, {"Actualizar"}),
    (
        "El ministro de Asuntos Exteriores, Luis Gil, viajó.",
        {"Luis Gil"},
        {"Asuntos Exteriores"},
    ),
    ("The Minister for Rural Affairs, Ada Brown, left.", {"Ada Brown"}, {"Rural Affairs"}),
]


@pytest.mark.parametrize(("text", "names", "no_names"), ENDINGS + NO_NAMES)
def test_names_begin_and_end_where_a_reader_sees_it(
    text: str, names: set[str], no_names: set[str]
) -> None:
    titles = {*extract(text).titles}
    assert names <= titles
    assert not titles & no_names
