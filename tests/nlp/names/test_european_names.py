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
    "text",
    [
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
    "name",
    [
        "accord de Schengen",
        "académie d'Aix-Marseille",
        "col du Galibier",
        "convention de Genève",
        "hôpital militaire de Lyon",
        "ministère de la Justice",
        "musée des beaux-arts de Lyon",
        "musée national de Varsovie",
        "tribunal de commerce de Nanterre",
        "université Paul Sabatier",
        "université de Nancy",
    ],
)
def test_heads_in_lower_case_begin_names_of_institutions_and_treaties(name: str) -> None:
    assert name in extract(f"Nous parlons ici de notre {name} depuis hier.").titles
