"""Passages that are shortened to what they say about the subject of a question."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphrag_query.question.question_words import content_words
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
