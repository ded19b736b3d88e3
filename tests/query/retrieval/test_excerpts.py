"""Passages that are shortened to what they say about the subject of a question."""

import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.text.languages import language_of
from graphrag_query.question.question_words import content_words
from graphrag_query.retrieval.related_words import RelatedWords
from graphrag_query.retrieval.report_passages import GAP, shorten_to_subject


def units(*texts: str, language: str = "en") -> dict[int, dict[str, Any]]:
    return {7 + n: {"text": text, "language": language} for n, text in enumerate(texts)}


def texts_of(shortened: dict[int, Any]) -> dict[int, str]:
    return {number: unit["text"] for number, unit in shortened.items()}


def test_statements_on_the_subject_are_kept_with_the_sentences_that_depend_on_them() -> None:
    text = (
        "Ann Lee built boats. She sold two of them in Hull. The harbour was deep. "
        "Ice closed it in May. Later Lee went home."
    )
    [short] = texts_of(shorten_to_subject(units(text), content_words("Ann Lee"))).values()
    assert short == (f"Ann Lee built boats. She sold two of them in Hull.{GAP}Later Lee went home.")


def test_a_statement_is_kept_if_only_a_sentence_that_depends_on_it_has_the_subject() -> None:
    text = "The ship sank in May. It was the Belgica. A storm came."
    [short] = texts_of(shorten_to_subject(units(text), content_words("Belgica"))).values()
    assert short == "The ship sank in May. It was the Belgica."


def test_a_text_without_the_subject_is_kept_whole_behind_the_others() -> None:
    given = units("The ice was thick. It broke.", "The Fram was strong. Snow fell.", "Fram!")
    assert texts_of(shorten_to_subject(given, content_words("Fram"))) == {
        8: "The Fram was strong.",
        9: "Fram!",
        7: "The ice was thick. It broke.",
    }


def test_texts_of_other_languages_are_split_by_their_own_pronouns() -> None:
    text = "Anna baute Boote. Sie verkaufte zwei. Der Hafen war tief."
    shortened = shorten_to_subject(units(text, language="de"), content_words("Anna"))
    assert texts_of(shortened) == {7: "Anna baute Boote. Sie verkaufte zwei."}


def test_nothing_is_shortened_without_texts_or_words() -> None:
    assert shorten_to_subject({}, ["fram"]) == {}
    assert texts_of(shorten_to_subject(units("One. Two."), [])) == {7: "One. Two."}
    assert texts_of(shorten_to_subject(units("", " "), ["fram"])) == {7: "", 8: " "}


@given(st.lists(st.text(max_size=80), max_size=4))
def test_excerpts_are_parts_of_their_texts_in_order(texts: list[str]) -> None:
    given_units = units(*texts)
    shortened = texts_of(shorten_to_subject(given_units, ["a"]))
    assert shortened.keys() == given_units.keys()
    for number, short in shortened.items():
        pattern = ".*".join(map(re.escape, short.split(GAP)))
        assert re.search(pattern, given_units[number]["text"], re.S)


def related(words: str, language: str = "en", others: str = "de fr es") -> RelatedWords:
    return RelatedWords.find(words.split(), language_of(language), frozenset(others.split()))


def test_a_word_counts_most_and_a_similar_word_more_than_others() -> None:
    texts = ["The physician left.", "A doctor came.", "Penguins swim.", ""]
    similar, same, other, none = related("doctor").match(texts)[:, 0].tolist()
    assert same == pytest.approx(1)
    assert 0 < similar < 1
    assert other == none == 0


def test_no_texts_have_no_matches() -> None:
    assert related("doctor").match([]).shape == (0, 1)


@pytest.mark.parametrize(
    ("language", "word", "text"),
    [
        ("en", "strikes", "Der Warnstreik dauert bis Freitag."),
        ("en", "floods", "Las inundaciones cortaron la carretera."),
        ("en", "courts", "Le tribunal a rejeté la demande."),
        ("de", "gericht", "The court dismissed the claim."),
        ("fr", "grève", "La huelga sigue hasta el lunes."),
    ],
)
def test_words_of_a_subject_are_found_in_other_languages(
    language: str, word: str, text: str
) -> None:
    found = related(word, language, "en de fr es")
    texts = pl.Series([text, "Nothing of the kind."])
    first, second = found.match_other_languages(texts)[:, 0]
    assert first > 0
    assert second == 0


def test_words_of_the_same_origin_are_found_in_other_languages() -> None:
    found = related("archipelago")
    assert not any(found.patterns)
    assert found.match_other_languages(pl.Series(["Das Archipel", "El archipiélago"])).any()


def test_a_short_word_that_two_languages_share_counts_only_as_a_whole() -> None:
    texts = pl.Series(["Crash in the admin.", "An administrator left."])
    matches = related("admin", "de", "en").match_other_languages(texts)[:, 0]
    assert (matches > 0).tolist() == [True, False]
    assert not related("rat", "de", "en").match_other_languages(pl.Series(["A rat ran."])).any()


def test_the_end_of_a_german_compound_counts_and_other_words_that_contain_it_do_not() -> None:
    matches = related("sport").match_other_languages(
        pl.Series(["Der Sportverein", "Der Transport", "Der Transporter"])
    )
    assert (matches[:, 0] > 0).tolist() == [True, False, False]


def test_languages_that_the_corpus_lacks_are_not_looked_for() -> None:
    assert related("strikes", others="de").patterns != related("strikes").patterns
    assert not any(related("strikes", others="").patterns)
