"""Literal tables of names and their normal forms."""

import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.text.languages import find_stems, language_of
from graphrag_nlp.text.normalize import (
    fold,
    fold_in_place,
    fold_name,
    fold_names,
    is_unspaced,
    letters,
    letters_accented,
    letters_with_offsets,
    phonetic_key,
    remove_formatting,
    stem_word,
    title_key,
)
from tests.fixtures.cases import cases


@cases("name, folded")
def test_folding_drops_case_accents_and_width(name: str, folded: str) -> None:
    assert fold(name) == fold_name(name) == folded
    assert fold(folded) == folded


@cases("one, other")
def test_titles_that_look_the_same_are_one_entity(one: str, other: str) -> None:
    assert title_key(one) == title_key(other)


@cases("text, plain")
def test_formatting_is_removed_where_it_says_nothing(text: str, plain: str) -> None:
    assert remove_formatting(text) == plain


@given(st.text(alphabet="aЖ海 .\u200b\u200d\u200e\xad\u2060\n"))
def test_only_formatting_is_removed(text: str) -> None:
    plain = remove_formatting(text)
    assert fold(plain) == fold(text)
    assert remove_formatting(plain) == plain


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_names_lose_the_possessive_and_texts_keep_it() -> None:
    assert fold("Goethe’s house") == "goethe s house"
    assert fold_name("Goethe’s house") == "goethe house"
    assert fold_name("McDonald'S") == "mcdonald"
    assert fold_name("'sgravenhage") == "sgravenhage"


@given(st.lists(st.text(st.sampled_from("aS'’ ß́.Éが゙ı"))))
def test_columns_of_names_fold_as_single_names(names: list[str]) -> None:
    column = pl.DataFrame({"name": names}, {"name": pl.String})
    assert column.select(fold_names(pl.col("name")))["name"].to_list() == list(
        map(fold_name, names)
    )


def test_each_character_folds_alike_in_columns() -> None:
    codes = (code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    characters = [c for c in map(chr, codes) if unicodedata.category(c) != "Cn"]
    column = pl.DataFrame({"name": characters}).select("name", folded=fold_names(pl.col("name")))
    assert [c for c, folded in column.iter_rows() if folded != fold_name(c)] == []


def test_letters_leave_out_punctuation_and_tell_offsets() -> None:
    assert letters("Jean-Luc  Picard’s Œuvre") == "jeanlucpicardsoeuvre"
    assert letters_with_offsets("É-ß 김") == ("ess김", [0, 2, 2, 4])
    assert letters_accented("Café Noir") == "cafénoir"


def test_titles_keep_accents_and_punctuation() -> None:
    assert title_key("  Café　Noir ") == title_key("CAFÉ NOIR") == "café noir"
    assert title_key("Café") != title_key("Cafe")
    assert title_key("C++") != title_key("C")


@given(st.text())
def test_folding_in_place_keeps_the_length(text: str) -> None:
    assert len(fold_in_place(text)) == len(text)


def test_folding_in_place_keeps_accents() -> None:
    assert fold_in_place("İÉ\u202fB") == "İé b"


@pytest.mark.parametrize("text", ["漢字", "かな", "ไทย", "ລາວ", "မြန်မာ", "ខ្មែរ", "a 々"])
def test_scripts_without_spaces(text: str) -> None:
    assert is_unspaced(text)
    assert not is_unspaced("Việt Nam, 한국, हिन्दी")


@pytest.mark.parametrize(
    ("forms", "expected"),
    [
        (("study", "studies", "studied"), "studi"),
        (("country", "countries"), "countri"),
        (("explore", "explored", "exploring", "explores"), "explor"),
        (("ship", "ships"), "ship"),
        (("news",), "news"),
    ],
)
def test_stems_are_those_of_snowball(forms: tuple[str, ...], expected: str) -> None:
    assert {stem_word(form) for form in forms} == {expected}


def test_cases_of_a_name_share_a_stem() -> None:
    polish = language_of("pl")
    assert find_stems("Pawła", polish) & find_stems("Paweł", polish)
    assert find_stems("Skłodowskiej-Curie", polish) & find_stems("Skłodowska-Curie", polish)
    assert not find_stems("Pawła", polish) & find_stems("Piotr", polish)


def test_spellings_of_one_sound() -> None:
    assert phonetic_key("schwarz") == phonetic_key("shwarz") != ""
    assert phonetic_key("li") == phonetic_key("москва") == ""


def test_threads_stem_words_at_the_same_time() -> None:
    starts = ("nation", "relat", "organiz", "happi", "conditi", "sens")
    ends = ("al", "ally", "ations", "izing", "fulness", "ness", "ible", "ated", "s")
    words = [start + end for start in starts for end in ends]
    alone = [stem_word(word) for word in words]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            stem_word.cache_clear()
            with ThreadPoolExecutor(4) as threads:
                parts = [words[at:] + words[:at] for at in range(4)]
                found = list(threads.map(lambda part: list(map(stem_word, part)), parts))
            for at, stems in enumerate(found):
                assert stems == alone[at:] + alone[:at]
    finally:
        sys.setswitchinterval(interval)
