"""German: adjectives inside of names, owners without an apostrophe, nouns that meet names."""

from graphrag_nlp.text.languages import find_language_ranges
from tests.fixtures.cases import cases
from tests.fixtures.found_names import FoundNames


@cases("text, name")
def test_an_s_at_the_end_of_a_name_does_not_always_mark_an_owner(text: str, name: str) -> None:
    assert any(title.endswith(name) for title in FoundNames(text).titles)


def test_options_do_not_make_a_german_paragraph_polish() -> None:
    options = " ".join(f"[-{letter} Anbindeadresse]" for letter in "iozwaiozwaio")
    text = f"Das Programm nennt die Adresse und den Port.\n\nssh {options}\n\nDie Adresse ist neu."
    assert {code for *_, code in find_language_ranges(text, "de")} == {"de"}


def test_a_surname_has_one_entity_with_herr_in_any_case() -> None:
    types = FoundNames("Da sprach Herr Stoiber. Wir hörten Herrn Stoiber zu.").types
    assert [title for title in types if "Stoiber" in title] == ["Stoiber"]
