"""Types of names of which no rule is sure."""

import numpy as np

from graphrag_nlp.names.type_classifier import (
    WordRating,
    classify_types,
    is_latin,
    rate_names,
    rate_words,
)


def test_words_are_rated_by_people_and_towns() -> None:
    rated = rate_words(["Schmitt", "Maria", "Burkburnett", "Qqxzw"])
    assert rated["Schmitt"].surname == 4
    assert rated["Maria"].given_name == 3
    assert rated["Burkburnett"].town == 2
    assert rated["Qqxzw"] == WordRating(0, 0, 0)
    assert rate_words(["SCHMITT"])["SCHMITT"] == rated["Schmitt"]


def test_names_of_the_dictionary_have_its_types() -> None:
    rated = rate_names(["Wollstonecraft", "Halicarnassus", "Cinderella", "Qqxzw"])[:, 7:]
    assert rated.tolist() == [[100, 0, 0, 0], [0, 100, 0, 0], [50, 0, 0, 50], [0, 0, 0, 0]]


def test_scores_are_integers_and_do_not_depend_on_other_names() -> None:
    names = ["Schmitt", "Neil Young", "Ferrysburg"]
    together = rate_names(names)
    assert together.dtype == np.int64
    assert [rate_names([name])[0].tolist() for name in names] == together.tolist()


def test_only_latin_letters_are_classified() -> None:
    assert all(map(is_latin, ("Schmitt", "O’Brien", "Łódź")))
    assert not any(map(is_latin, ("Зефирия", "Αθήνα", "東京")))
    assert classify_types([], [], [], 0.0) == []
