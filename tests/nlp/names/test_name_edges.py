"""Where names begin and end in English and Spanish text."""

import pytest

from tests.fixtures.extraction import extract

OPENINGS = [
    # Verbs at the start of a sentence. Behind the verb of a button, a lone word is a label.
    ("Call Zelnika Parts today. It is open.", {"Zelnika Parts"}, {"Call Zelnika Parts"}),
    ("Ask Orvelda about it. It was late.", {"Orvelda"}, {"Ask Orvelda"}),
    ("Open Microsoft Word now. It was late.", {"Microsoft Word"}, {"Open Microsoft Word"}),
    (
        "Distribuye Relojes Zelnika. Era muy tarde para ellos.",
        {"Relojes Zelnika"},
        {"Distribuye Relojes Zelnika"},
    ),
    ("Dice Antonio que no. Es tarde.", {"Antonio"}, {"Dice Antonio"}),
    # Groups of people and parts of things.
    ("Residents of Gurzheim complained about it in May.", {"Gurzheim"}, {"Residents of Gurzheim"}),
    (
        "The Trustees of the Harrow Pension Scheme met.",
        {"Harrow Pension Scheme"},
        {"Trustees of the Harrow Pension Scheme"},
    ),
    # Occupations, and roles with their field.
    ("Curator Nell Fraser wrote it. It was late.", {"Nell Fraser"}, {"Curator Nell Fraser"}),
    ("El Notario Fernando Acedo lo firmó.", {"Fernando Acedo"}, {"Notario Fernando Acedo"}),
    (
        "La Secretaria del Ayuntamiento de Cuenca lo firmó.",
        {"Ayuntamiento de Cuenca"},
        {"Secretaria del Ayuntamiento de Cuenca"},
    ),
    # A letter ends the sentence before a name.
    ("See Appendix B. Emma Wilson wrote it.", {"Emma Wilson"}, {"Appendix B. Emma Wilson"}),
    # Full names before "of", and given names beside "&".
    ("We met Tammy Sizemore of Gurzheim.", {"Tammy Sizemore"}, {"Tammy Sizemore of Gurzheim"}),
    ("We met Sulo Linwood of Michigan.", {"Sulo Linwood", "Michigan"}, set()),
    ("They met Inspector Lowe of Zelnika Foods.", {"Lowe", "Zelnika Foods"}, set()),
    ("They met Mr D. Haynes of Autotest UK.", {"D. Haynes", "Autotest UK"}, set()),
    ("They met Queen Anne of Denmark.", {"Queen Anne of Denmark"}, set()),
    (
        "Historian David Oluwole of Queen Mary University wrote it. It was late.",
        {"David Oluwole", "Queen Mary University"},
        set(),
    ),
    (
        "Trabaja en el Instituto de Biología de la UNAM desde mayo.",
        {"Instituto de Biología", "UNAM"},
        set(),
    ),
    ("Then Emma & Maria left the house.", {"Emma", "Maria"}, {"Emma & Maria"}),
    # Titles.
    ("It was said by U.S. Rep. Hal Burke today.", {"Hal Burke"}, {"U.S. Rep"}),
    ("Ayer habló la C. Leticia Arámbula en la sala.", {"Leticia Arámbula"}, set()),
    # A people that begins the name of a body stays.
    ("The Canadian Red Cross helped them.", {"Canadian Red Cross"}, {"Red Cross"}),
]

ENDINGS = [
    ("Lo vendió Sotheby's en Londres el año pasado.", {"Sotheby's"}, {"Sotheby"}),
    ("Ayer vino Marta de Endesa por la factura.", {"Marta", "Endesa"}, {"Marta de Endesa"}),
    ("Se aplica la Ley 599 de 2000 en este caso.", {"Ley 599 de 2000"}, {"Ley 599"}),
    (
        "Así lo dijo en el caso Mellet contra Irlanda la semana pasada.",
        {"Mellet contra Irlanda"},
        {"Mellet", "Irlanda"},
    ),
    # Software and sites with a suffix, and the initial of a surname.
    ("To build it, we need Node.js and Docker on the machine.", {"Node.js"}, {"Node"}),
    ("Kwame A: Who has the key?\nBen: I don't know.\nKwame A: Oh.", {"Kwame A"}, {"Kwame"}),
    # Judges and cases.
    ("An appeal was heard by Moira Sinclair J.A. and Ada Brown.", {"Moira Sinclair"}, set()),
    ("In R. v. Sparrow the court set out the test.", {"R. v. Sparrow"}, {"Sparrow"}),
    (
        "The Court of Appeal for Saskatchewan heard it.",
        {"Court of Appeal for Saskatchewan"},
        {"Court of Appeal", "Saskatchewan"},
    ),
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
    (
        "The Court of Justice of the European Union ruled.",
        {"Court of Justice of the European Union"},
        {"European Union"},
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
        "La Comisión Nacional para la Biodiversidad lo pagó.",
        {"Comisión Nacional para la Biodiversidad"},
        {"Comisión Nacional"},
    ),
    (
        "La Fundación Ortega y Gasset lo pagó.",
        {"Fundación Ortega y Gasset"},
        {"Gasset", "Fundación Ortega"},
    ),
    # Known places and firms behind "y" are names of their own.
    ("Lo dijo el Tribunal Supremo de Polonia y Hungría.", {"Hungría"}, set()),
    ("La Academia de Cine de Portugal y Gales lo premió.", {"Gales"}, set()),
    ("La Fundación Botín y Telefónica lo pagó.", {"Telefónica"}, set()),
    (
        "El Bufete Garrigues y Zulbarán son rivales en Lugo.",
        {"Bufete Garrigues", "Zulbarán"},
        set(),
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

_MORE = "Lo dijo ayer en una entrevista con el diario de la ciudad."
NOT_OPENED = [
    # Names that begin like a sentence with a verb.
    (f"Lea Michele actuó en Lugo. {_MORE}", {"Lea Michele"}, {"Michele"}),
    (f"Monte Perdido es una montaña de los Pirineos. {_MORE}", {"Monte Perdido"}, set()),
    (f"Monte Olivia es una montaña muy alta. {_MORE}", {"Monte Olivia"}, {"Olivia"}),
    (f"Vive Latino vuelve a Lugo. {_MORE}", {"Vive Latino"}, {"Latino"}),
    (f"Elige Zelnika vuelve a Lugo. {_MORE}", {"Elige Zelnika"}, {"Zelnika"}),
    ("Even Hansen came from Oslo. Later he left the town.", {"Even Hansen"}, {"Hansen"}),
    ("Run DMC played in Leeds. It was a good evening for all.", {"Run DMC"}, {"DMC"}),
    # Known names behind such a word.
    ("Even Google said so. They left the town.", {"Google"}, {"Even Google"}),
    ("Run Gmail in the evening. It was good for all of them.", {"Gmail"}, {"Run Gmail"}),
    ("Add Gmail in the evening. It was good for all of them.", {"Gmail"}, {"Add Gmail"}),
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


@pytest.mark.parametrize(("text", "names", "no_names"), OPENINGS + ENDINGS + NOT_OPENED + NO_NAMES)
def test_names_begin_and_end_where_a_reader_sees_it(
    text: str, names: set[str], no_names: set[str]
) -> None:
    titles = {*extract(text).titles}
    assert names <= titles
    assert not titles & no_names
