import polars as pl
import pytest

from graphrag_nlp.names.name_words import more_given_names
from graphrag_nlp.text.languages import detect_language, language_of, languages
from graphrag_nlp.text.places import KINDS, find_places, read_places
from tests.fixtures.cases import cases

PROSE = {
    "en": "The ship left the harbour in the morning and nobody was on board.",
    "de": "Das Schiff verließ den Hafen am Morgen und niemand war an Bord.",
    "pl": "Statek opuścił port rano i nikogo nie było na pokładzie, ale to nie był koniec.",
    "fr": "Le navire quitta le port dans la matinée et personne n'était à bord.",
    "es": "El barco salió del puerto por la mañana y no había nadie a bordo.",
    "it": "La nave lasciò il porto nella mattina e non era nessuno a bordo della nave.",
    "pt": "O navio saiu do porto pela manhã e não havia ninguém a bordo do navio.",
    "nl": "Het schip verliet de haven in de ochtend en er was niemand aan boord.",
    "sv": "Skeppet lämnade hamnen på morgonen och det var inte någon ombord.",
    "ru": "Корабль вышел из порта утром, и на борту не было никого.",
    "el": "Το πλοίο έφυγε από το λιμάνι το πρωί και δεν ήταν κανείς μέσα.",
    "zh": "船早上离开了港口，船上没有人。",
    "ja": "船は朝に港を出た。船には誰もいなかった。",
    "ko": "배는 아침에 항구를 떠났고 배에는 아무도 없었다.",
    "ar": "غادرت السفينة الميناء في الصباح ولم يكن أحد على متنها.",
    "he": "הספינה עזבה את הנמל בבוקר ואף אחד לא היה עליה.",
    "hi": "जहाज सुबह बंदरगाह से निकला और उस पर कोई नहीं था।",
    "bn": "জাহাজটি সকালে বন্দর ছেড়ে গেল।",
    "th": "เรือออกจากท่าในตอนเช้า",
    "ka": "გემი დილით ნავსადგურიდან გავიდა.",
}


@pytest.mark.parametrize("code", PROSE)
def test_the_language_of_a_sentence_is_told_by_its_script_and_function_words(code: str) -> None:
    assert detect_language(PROSE[code]) == code


@cases("text, code")
def test_words_that_languages_share_do_not_tell_short_texts_apart(text: str, code: str) -> None:
    assert detect_language(text) == code


@cases("text, code")
def test_a_language_without_rules_is_not_taken_for_one_that_has_them(text: str, code: str) -> None:
    assert detect_language(text) == code
    assert language_of(code).function_words == frozenset()


def test_letters_tell_the_language_where_no_function_word_does() -> None:
    assert detect_language("Maria Kowal pisała. Poznał Marię Kowal.") == "pl"
    assert detect_language("Kos Łukasz, Łódź.") == "und"


@pytest.mark.parametrize("text", ["", "12345", "ok", "😀😀", "Zxqv brr"])
def test_a_text_that_tells_nothing_has_no_language(text: str) -> None:
    assert detect_language(text) == "und"


def test_names_in_another_script_do_not_make_a_text_of_that_language() -> None:
    text = "The poet Li Bai (李白) was born in the year 701 and is still read in the schools."
    assert detect_language(text) == "en"


def test_an_unknown_code_is_a_language_of_which_nothing_is_known() -> None:
    assert language_of("xx").function_words == frozenset()


@pytest.mark.parametrize("code", languages())
def test_word_lists_are_in_lower_case(code: str) -> None:
    language = languages()[code]
    for words in (language.function_words, language.determiners, language.person_verbs):
        assert all(word == word.lower() for word in words)


def places_of(name: str) -> list[tuple[str, str]]:
    found = find_places(pl.Series([name]))
    return [(kind, country) for _, kind, country, _ in found.iter_rows()]


def test_a_name_has_all_places_that_it_can_mean() -> None:
    assert places_of("Georgia") == [("country", "GE"), ("region", "US")]
    assert places_of("München") == [("city", "DE")]
    assert places_of("Europe") == [("continent", "")]
    assert places_of("Medicaid") == []


def test_countries_are_known_in_many_languages() -> None:
    for name in ("Germany", "Deutschland", "Alemania", "Niemcy", "Германия", "ドイツ", "ألمانيا"):
        assert places_of(name)[0] == ("country", "DE"), name


def test_accents_tell_places_from_other_names() -> None:
    assert places_of("Bélgica") == [("country", "BE")]
    assert ("country", "BE") not in places_of("Belgica")
    assert ("city", "BR") in places_of("Sao Paulo")
    assert ("city", "BR") in places_of("São Paulo")


def test_short_names_are_known_in_capitals_only() -> None:
    for name in ("US", "U.S.", "USA", "U.S"):
        assert ("country", "US") in places_of(name), name
    assert places_of("UK") == places_of("U.K.") == [("country", "GB")]
    assert places_of("us") == []


def test_rows_follow_the_names_and_the_larger_city_comes_first() -> None:
    found = find_places(pl.Series(["Nowhere at all", "Birmingham", "Paris"]))
    assert found["row"].is_sorted()
    assert set(found["row"]) == {1, 2}
    cities = found.filter(pl.col("row") == 1, pl.col("kind") == "city")["population"].to_list()
    assert len(cities) > 1
    assert cities == sorted(cities, reverse=True)


def test_the_table_is_normalized_and_sorted() -> None:
    places = read_places()
    assert places["name"].is_sorted()
    assert places["kind"].dtype == pl.Enum(KINDS)
    assert places.filter(pl.col("name").str.contains(r"[\p{Lu}\s]{2}|\p{Lu}")).is_empty()


def test_given_names_of_other_languages_are_known() -> None:
    assert {"Rajesh", "Björk", "Agnieszka", "Mark"} <= more_given_names()
