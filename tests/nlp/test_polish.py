"""Polish: cases of short and of changing words, and words that only look like given names."""

import pytest

from graphrag_index.nlp.base_forms import base_forms, is_given_name
from graphrag_index.text.languages import language_of
from tests.fixtures.extraction import extract

POLISH = language_of("pl")


@pytest.mark.parametrize(
    ("text", "title", "aliases"),
    [
        (
            "Czesław Miłosz mieszkał w Wilnie. Listy Czesława Miłosza czytała Anna Kos. "
            "Czesław Miłosz wrócił.",
            "Czesław Miłosz",
            {"Czesława Miłosza"},
        ),
        (
            "Adam Wilk mieszkał w Łodzi. Dary Adama Wilka były drogie. Adam Wilk wrócił.",
            "Adam Wilk",
            {"Adama Wilka"},
        ),
        (
            "Miny Adama Wilka były smutne. Adam Wilk mieszkał w Łodzi.",
            "Adam Wilk",
            {"Adama Wilka"},
        ),
        (
            "Rower Ewy Kos był nowy. Na nim Ewa Kos jechała do Gdyni. Znali tam Ewę Kos.",
            "Ewa Kos",
            {"Ewy Kos", "Ewę Kos"},
        ),
        (
            "Dom Marii Kowal stoi w Łodzi. Maria Kowal tu pisała. Poznałem Marię Kowal w kinie.",
            "Maria Kowal",
            {"Marii Kowal", "Marię Kowal"},
        ),
        (
            "Rola Ewy Sowy była trudna. Ewa Sowa mieszka w Gdyni. Znam Ewę Sowę od lat.",
            "Ewa Sowa",
            {"Ewy Sowy", "Ewę Sowę"},
        ),
    ],
)
def test_a_word_before_a_name_is_no_given_name(text: str, title: str, aliases: set[str]) -> None:
    found = extract(text)
    assert found.aliases[title] == aliases
    assert {t for t in found.titles if t.endswith(title.split()[-1])} == {title}


def test_a_given_name_is_the_base_form_though_another_case_is_more_frequent() -> None:
    counts = {"Pawła": 5, "Paweł": 1, "Adama": 3, "Adam": 1}
    bases = base_forms(counts, POLISH)
    assert bases == {"Pawła": "Paweł", "Paweł": "Paweł", "Adama": "Adam", "Adam": "Adam"}


def test_what_a_sentence_writes_inside_is_whole_at_the_start_of_another() -> None:
    found = extract(
        "Pałac Kultury stoi w Warszawie. Grano też w Pałacu Kultury. Banku Polskiego nie ma. "
        "Kiedyś stał tam Bank Polski, ale to było dawno."
    )
    assert found.aliases["Bank Polski"] == {"Banku Polskiego"}
    assert found.mentioned["Pałac Kultury"] == 2


def test_two_given_names_stay_together() -> None:
    found = extract(
        "Maria Anna Kos mieszka w Łodzi. Listy do Marii Anny Kos są długie. Marii Anny Kos nie ma."
    )
    assert found.mentioned["Maria Anna Kos"] == 3


@pytest.mark.parametrize(
    ("base", "forms"),
    [
        ("Ewa", ["Ewy", "Ewie", "Ewę", "Ewą"]),
        ("Ida", ["Idy", "Idę", "Idą"]),
        ("Teatr", ["Teatru", "Teatrem", "Teatrze"]),
        ("Uniwersytet", ["Uniwersytetu", "Uniwersytecie"]),
        ("Belgrad", ["Belgradu", "Belgradzie"]),
        ("Marta", ["Marty", "Marcie", "Martę"]),
        ("Ankara", ["Ankary", "Ankarze"]),
        ("Jerzy", ["Jerzego", "Jerzemu"]),
    ],
)
def test_cases_of_short_and_of_changing_words_have_one_base_form(
    base: str, forms: list[str]
) -> None:
    words = dict.fromkeys([*forms, base], 1)
    assert base_forms(words, POLISH) == dict.fromkeys(words, base)


@pytest.mark.parametrize("word", ["Listy", "Dary", "Rower", "Unia", "Unii", "Pokój", "Rada"])
def test_words_that_end_like_cases_are_no_given_names(word: str) -> None:
    assert not is_given_name(word, POLISH)


def test_no_given_name_is_made_up_that_the_corpus_does_not_write() -> None:
    words = dict.fromkeys(["Miny", "Karola", "Ewy"], 1)
    assert base_forms(words, POLISH, openings=words) == {word: word for word in words}
