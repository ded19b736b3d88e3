import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.nlp.base_forms import base_forms, is_given_name
from graphrag_index.text.languages import language_of
from graphrag_index.text.normalize import fold

POLISH, GERMAN, RUSSIAN, ENGLISH = map(language_of, ("pl", "de", "ru", "en"))


@pytest.mark.parametrize(
    ("base", "forms"),
    [
        ("Warszawa", ["Warszawy", "Warszawie", "Warszawę", "Warszawą"]),
        ("Kraków", ["Krakowa", "Krakowie", "Krakowem"]),
        ("Polska", ["Polski", "Polsce", "Polskę"]),
        ("Praga", ["Pragi", "Pradze"]),
        ("Kopernik", ["Kopernika", "Kopernikowi", "Kopernikiem", "Koperniku"]),
        ("Zieliński", ["Zielińskiego", "Zielińskiemu", "Zielińskim"]),
        ("Paweł", ["Pawła", "Pawłem"]),
        ("Skłodowska-Curie", ["Skłodowskiej-Curie", "Skłodowską-Curie"]),
    ],
)
def test_polish_cases_have_one_base_form(base: str, forms: list[str]) -> None:
    words = dict.fromkeys([*forms, base], 1)
    assert base_forms(words, POLISH) == dict.fromkeys(words, base)


def test_russian_cases_have_one_base_form() -> None:
    words = dict.fromkeys(["Пушкина", "Пушкину", "Пушкин", "Пушкиным"], 1)
    assert set(base_forms(words, RUSSIAN).values()) == {"Пушкин"}


def test_names_that_only_begin_alike_are_kept_apart() -> None:
    words = dict.fromkeys(["Maria", "Mariusz", "Karol", "Karolina", "Jan", "Janina"], 1)
    assert base_forms(words, POLISH) == {word: word for word in words}


def test_the_german_genitive_belongs_to_its_owner() -> None:
    words = {"Goethe": 2, "Goethes": 1, "Thomas": 1, "Jonas": 1, "Paris": 1}
    assert base_forms(words, GERMAN) == {**dict.fromkeys(words, ""), "Goethe": "Goethe"} | {
        "Goethes": "Goethe",
        "Thomas": "Thomas",
        "Jonas": "Jonas",
        "Paris": "Paris",
    }


def test_a_known_given_name_is_the_base_form_even_if_no_text_writes_it() -> None:
    assert base_forms({"Adamem": 1}, POLISH) == {"Adamem": "Adam"}


def test_languages_without_cases_leave_words_alone() -> None:
    words = dict.fromkeys(["Mercer", "Mercers", "Alexa", "Alex"], 1)
    assert base_forms(words, ENGLISH) == {word: word for word in words}


def test_given_names_are_known_in_their_cases() -> None:
    assert is_given_name("Marii", POLISH)
    assert is_given_name("Александра", RUSSIAN)
    assert not is_given_name("Marii", ENGLISH)
    assert not is_given_name("Stocznia", POLISH)


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.integers(1, 9), max_size=12))
def test_base_forms_do_not_depend_on_the_order_of_the_words(counts: dict[str, int]) -> None:
    backwards = dict(reversed(counts.items()))
    assert base_forms(counts, POLISH) == base_forms(backwards, POLISH)
    assert base_forms(counts, GERMAN) == base_forms(backwards, GERMAN)


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)
