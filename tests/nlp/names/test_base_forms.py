"""Base forms of names, and words that only look like given names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.names.base_forms import find_base_forms, is_given_name
from graphrag_nlp.text.languages import language_of
from tests.fixtures.cases import cases
from tests.fixtures.found_names import FoundNames

POLISH, GERMAN, RUSSIAN, ENGLISH = map(language_of, ("pl", "de", "ru", "en"))


@cases("base, forms")
def test_polish_cases_have_one_base_form(base: str, forms: list[str]) -> None:
    words = dict.fromkeys([*forms, base], 1)
    assert find_base_forms(words, POLISH) == dict.fromkeys(words, base)


def test_russian_cases_have_one_base_form() -> None:
    words = dict.fromkeys(["Пушкина", "Пушкину", "Пушкин", "Пушкиным"], 1)
    assert set(find_base_forms(words, RUSSIAN).values()) == {"Пушкин"}


def test_names_that_only_begin_alike_are_kept_apart() -> None:
    words = dict.fromkeys(["Maria", "Mariusz", "Karol", "Karolina", "Jan", "Janina"], 1)
    assert find_base_forms(words, POLISH) == {word: word for word in words}


def test_the_german_genitive_belongs_to_its_owner() -> None:
    words = {"Goethe": 2, "Goethes": 1, "Thomas": 1, "Jonas": 1, "Paris": 1}
    assert find_base_forms(words, GERMAN) == {**dict.fromkeys(words, ""), "Goethe": "Goethe"} | {
        "Goethes": "Goethe",
        "Thomas": "Thomas",
        "Jonas": "Jonas",
        "Paris": "Paris",
    }


def test_a_known_given_name_is_the_base_form_even_if_no_text_writes_it() -> None:
    assert find_base_forms({"Adamem": 1}, POLISH) == {"Adamem": "Adam"}


def test_languages_without_cases_leave_words_alone() -> None:
    words = dict.fromkeys(["Mercer", "Mercers", "Alexa", "Alex"], 1)
    assert find_base_forms(words, ENGLISH) == {word: word for word in words}


def test_given_names_are_known_in_their_cases() -> None:
    assert is_given_name("Marii", POLISH)
    assert is_given_name("Александра", RUSSIAN)
    assert not is_given_name("Marii", ENGLISH)
    assert not is_given_name("Stocznia", POLISH)


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.integers(1, 9), max_size=12))
def test_base_forms_do_not_depend_on_the_order_of_the_words(counts: dict[str, int]) -> None:
    backwards = dict(reversed(counts.items()))
    assert find_base_forms(counts, POLISH) == find_base_forms(backwards, POLISH)
    assert find_base_forms(counts, GERMAN) == find_base_forms(backwards, GERMAN)


@cases("text, title, aliases")
def test_a_word_before_a_name_is_no_given_name(text: str, title: str, aliases: list[str]) -> None:
    found = FoundNames(text)
    assert found.aliases[title] == {*aliases}
    assert {t for t in found.titles if t.endswith(title.split()[-1])} == {title}


def test_a_given_name_is_the_base_form_though_another_case_is_more_frequent() -> None:
    counts = {"Pawła": 5, "Paweł": 1, "Adama": 3, "Adam": 1}
    bases = find_base_forms(counts, POLISH)
    assert bases == {"Pawła": "Paweł", "Paweł": "Paweł", "Adama": "Adam", "Adam": "Adam"}


@pytest.mark.parametrize("word", ["Listy", "Dary", "Rower", "Unia", "Unii", "Pokój", "Rada"])
def test_words_that_end_like_cases_are_no_given_names(word: str) -> None:
    assert not is_given_name(word, POLISH)


def test_no_given_name_is_made_up_that_the_corpus_does_not_write() -> None:
    words = dict.fromkeys(["Miny", "Karola", "Ewy"], 1)
    assert find_base_forms(words, POLISH, openings=words) == {word: word for word in words}
