"""The fast test of one word agrees with the ratings of known places."""

import pytest

from graphrag_nlp.names.known_names import is_place, rate_known_places


@pytest.mark.parametrize(
    "word",
    ["Kassel", "Peru", "Québec", "Que\u0301bec", "L’Aquila", "Mo’i", "Höfling", "Donau", "Krüger"],
)
def test_a_word_is_a_place_if_it_is_rated_as_one(word: str) -> None:
    assert is_place(word) == bool(rate_known_places([word])[0])
