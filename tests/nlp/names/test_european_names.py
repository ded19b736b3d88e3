"""German, French and Spanish: towns, surnames behind roles, makers behind products."""

import pytest

from tests.fixtures.extraction import extract


def find_names(text: str) -> dict[str, str]:
    """Return the names in a text with their types."""
    types = extract(text).types
    return {title: kind for title, kind in types.items() if kind != "noun phrase"}


@pytest.mark.parametrize(
    "text", ["Wir trafen uns in Braunlage.", "Das Werk in Braunlage schließt."]
)
def test_small_towns_are_known(text: str) -> None:
    assert find_names(text) == {"Braunlage": "geo"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Gestern sprach Förster Hohlfeld vor Kindern.", {"Hohlfeld"}),
        ("Der Verteidiger Kowalke schwieg gestern.", {"Kowalke"}),
        ("Wir fragten gestern Bäcker Huber danach.", {"Huber"}),
        ("Dort war gestern Richter Radtke zu Gast.", {"Radtke"}),
        ("Ich danke Kollege Zwickel und Minister Töpfer.", {"Töpfer", "Zwickel"}),
        ("Wenn die Ministerin Geld hat, baut sie.", set()),
        ("Sie nannte im Entwickler Tätigkeitsfeld und Dauer.", set()),
    ],
)
def test_german_nouns_of_persons_stand_before_surnames(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Wir nutzen das Jira von Kopano.", {"Jira", "Kopano"}),
        ("Das Active Directory von Microsoft lief nicht.", {"Active Directory", "Microsoft"}),
        ("L'équipe de l'IRD de Montpellier a gagné.", {"IRD", "Montpellier"}),
        ("Il travaille au CHU de Nantes depuis mai.", {"CHU de Nantes"}),
        ("Elle a vu que le Nagios de Roubaix est en panne.", {"Nagios", "Roubaix"}),
        ("Lo dice el IPHES de Tarragona en su informe.", {"IPHES", "Tarragona"}),
        ("Nació en Alhama de Murcia hace tiempo.", {"Alhama de Murcia"}),
        ("Hier est venu X. de Lamballe avec sa sœur.", {"X. de Lamballe"}),
    ],
)
def test_things_stand_before_their_maker_or_place(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("Toulouse sacré à Marseille", {"Marseille", "Toulouse"}),
        ("Audiard de retour à Cannes", {"Cannes"}),
        ("Zeiss kauft Dorc", {"Dorc", "Zeiss"}),
    ],
)
def test_a_headline_in_the_case_of_a_sentence_has_names(line: str, names: set[str]) -> None:
    text = {
        "Z": "Der Konzern hat den Kauf gestern bestätigt. Der Preis ist nicht bekannt.",
        "T": "Le match a été joué hier soir. Il a plu pendant tout le match.",
        "A": "Le film sera montré mardi soir. Il a été tourné il y a un an. L'équipe est là.",
    }[line[0]]
    assert {*find_names(f"{line}\n{text}")} == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Wir waren gestern im Gasthof Krone.", {"Gasthof Krone"}),
        ("Wenn das Hotel Gäste braucht, wirbt es.", set()),
        ("Dort liegt der Naturpark Altmühltal.", {"Naturpark Altmühltal"}),
        ("Gestern rief die Kantonspolizei Graubünden an.", {"Kantonspolizei Graubünden"}),
        ("Gestern streikte die IG Metall Aalen.", {"IG Metall Aalen"}),
        ("Heute gelten Keplers Gesetze noch immer.", {"Keplers"}),
        ("Es ist gut, dass die Kitas Öffnungszeiten haben.", set()),
        ("Dort half Svante Pääbos Labor mit Daten.", {"Svante Pääbos"}),
        ("Olli kommt heute nicht.", {"Olli"}),
        ("Gestern hielt der ICE auf freier Strecke.", {"ICE"}),
        ("Hier soir, la HAS a donné son accord.", {"HAS"}),
    ],
)
def test_german_bodies_owners_and_acronyms_are_whole(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("Elle travaille depuis mai chez Inmacq.", {"Inmacq": "organization"}),
        ("On mange souvent chez Nadine.", {"Nadine": "person"}),
        ("Elle a vendu ses parts, et le fonds Siparexo paie.", {"Siparexo": "organization"}),
        ("Ayer dijo que el fondo Trilantico quiere vender.", {"Trilantico": "organization"}),
        (
            "Er fuhr im Zug der Havelländischen Eisenbahn.",
            {"Havelländischen Eisenbahn": "organization"},
        ),
        (
            "Das prüft man im Deutschen Patent- und Markenamt.",
            {"Deutschen Patent- und Markenamt": "organization"},
        ),
        ("Sie sang im Großen Festspielhaus.", {"Großen Festspielhaus": "geo"}),
        ("Das hat der VGH Mannheim entschieden.", {"VGH Mannheim": "organization"}),
        (
            "Lo dijo ayer la Unidad de Fiscalidad Internacional.",
            {"Unidad de Fiscalidad Internacional": "organization"},
        ),
    ],
)
def test_nouns_beside_and_in_a_name_show_its_type(text: str, types: dict[str, str]) -> None:
    assert find_names(text) == types


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "Hay dos libros -los del Consejo General del Poder Judicial- y un pacto.",
            {"Consejo General del Poder Judicial"},
        ),
        (
            "Ayer llegaron las Fuerzas y Cuerpos de Seguridad del Estado.",
            {"Fuerzas y Cuerpos de Seguridad del Estado"},
        ),
        ("Ayer no hubo comisión tripartita Estado-Generalitat.", set()),
        ("Dijo que la Presidencia lo sabe, y la Asamblea no.", set()),
    ],
)
def test_spanish_bodies_are_whole_and_bare_powers_are_none(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            "Wir beraten den Entwurf des Gesetzes zur Änderung des Weingesetzes heute.",
            "Gesetz zur Änderung des Weingesetzes",
        ),
        (
            "Sie fragten beim Zentralverband des Deutschen Handwerks nach.",
            "Zentralverband des Deutschen Handwerks",
        ),
    ],
)
def test_german_words_behind_an_article_keep_their_case(text: str, title: str) -> None:
    # The nominative of each word occurs in the corpus, too.
    others = "Das Weingesetz gilt. Das Deutsche Handwerk lebt. Alle Gesetze gelten im Handwerk."
    assert title in extract(text, others).titles


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (
            "Das Gesetz zur Vorbereitung eines registergestützten Zensus wurde abgelehnt.",
            {"Gesetz zur Vorbereitung eines registergestützten Zensus": "name"},
        ),
        (
            "Das ist das Amt des Bundesaufsichtsamtes für das Kreditwesen in dieser Sache.",
            {"Bundesaufsichtsamt für das Kreditwesen": "organization"},
        ),
        (
            "Er rief das Bundesministerium für Bildung , Familie und Jugend an .",
            {"Bundesministerium für Bildung , Familie und Jugend": "organization"},
        ),
        (
            "Er rief das Ministerium für Arbeit und Sozialordnung an.",
            {"Ministerium für Arbeit und Sozialordnung": "organization"},
        ),
        ("Dort liegt auch der Leipziger Ring.", {"Leipziger Ring": "geo"}),
    ],
)
def test_german_bodies_and_laws_have_their_topics(text: str, types: dict[str, str]) -> None:
    assert find_names(text) == types


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Das stellt uns die Deutsche Bahn AG zur Verfügung.", {"Deutsche Bahn AG"}),
        ("Damals haben Sie mit Herrn Sarkozy Regelungen vereinbart.", {"Sarkozy"}),
        ("Heute geben Max Stadler Erklärungen zu Protokoll.", {"Max Stadler"}),
        ("Es geht um das Schicksal von Millionen Menschen in dem Land.", set()),
        ("Es geht um die gemeinsame Außenund Sicherheitspolitik von heute.", set()),
        ("Wir bauen ein WLANNetz und lösen ein Riesenpro-blem.", set()),
        ("Für uns gibt es eine klare Maxime im Land.", set()),
    ],
)
def test_german_objects_and_garbled_nouns_are_no_names(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (
            "Lo hace la Agencia Nacional de Evaluación y Prospectiva.",
            {"Agencia Nacional de Evaluación y Prospectiva": "organization"},
        ),
        (
            "Lo dijo ayer la Oficina de Recuperación y de Gestión de Activos.",
            {"Oficina de Recuperación y de Gestión de Activos": "organization"},
        ),
        (
            "Lo propuso la Comisión Española de Ayuda al Refugiado en mayo.",
            {"Comisión Española de Ayuda al Refugiado": "organization"},
        ),
        (
            "España va a entrar en la Unión Económica y Monetaria este año.",
            {"España": "geo", "Unión Económica y Monetaria": "organization"},
        ),
        (
            "Ayer hablaron el Partido Popular y Socialista en la sala.",
            {"Partido Popular": "organization", "Socialista": "organization"},
        ),
        (
            "Lo sabe el consejero de Agricultura de la Generalitat de Cataluña.",
            {"Generalitat de Cataluña": "organization"},
        ),
        (
            "Lo aprobó ayer la Organización Mundial de Turismo.",
            {"Organización Mundial de Turismo": "organization"},
        ),
        (
            "Se aprobó en el Senado del Grupo Catalán una moción.",
            {"Grupo Catalán": "organization"},
        ),
        ("Comienza la votación. (Pausa.) Efectuada la votación, dio este resultado.", {}),
        ("La votación acabó. Fíjense en eso. No es así. Fíjense en esto.", {}),
    ],
)
def test_spanish_bodies_have_their_fields(text: str, types: dict[str, str]) -> None:
    assert find_names(text) == types


@pytest.mark.parametrize(
    "text",
    [
        "Wir sprachen über den Prüfungsprozeß, auch aus Fairneßgründen.",
        "Wir trafen uns vor Inkrafttreten und bei Wiederaufflammen der Kämpfe.",
        "Das ist gut, wenn andere Sanierungsmaßnahmen greifen.",
    ],
)
def test_german_nouns_in_old_spelling_and_infinitives_are_no_names(text: str) -> None:
    assert find_names(text) == {}


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("Daran wird aus tierschutzrechtlichen Gründen nichts entschieden.", "Gründen"),
        ("Muchas gracias, señora presidenta. Señoría, ustedes oyen la alarma.", "alarma"),
    ],
)
def test_a_text_without_names_has_a_noun_as_entity(text: str, entity: str) -> None:
    assert extract(text).titles == [entity]


def test_spanish_and_german_bodies_are_known() -> None:
    text = "Lo dijo ayer el presidente del CIS a Els Verds y a Viesgo, que era de Enel."
    assert find_names(text) == dict.fromkeys(["CIS", "Els Verds", "Viesgo", "Enel"], "organization")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "Wir fordern heute den Beitritt der EU zur EMRK in Straßburg.",
            {"EU", "EMRK", "Straßburg"},
        ),
        ("Gestern hat die Bundesregierung Auskünfte verlangt.", {"Bundesregierung"}),
        ("Es ist gut, wenn in Rumänien Gesellschaften entstehen.", {"Rumänien"}),
        ("Das zahlt der Bund für die Arbeitslosenhilfe im Land.", set()),
        ("Der Bankmanager spekuliert mit seinen fetten Boni.", set()),
    ],
)
def test_german_purposes_and_nouns_are_no_names(text: str, names: set[str]) -> None:
    assert {*find_names(text)} == names
