from graphrag_nlp.text.noun_phrases import find_noun_phrase, phrase_grammar
from tests.fixtures.cases import cases


@cases("text, word, expected")
def test_an_english_phrase_is_complete_or_not_found(text: str, word: str, expected: str) -> None:
    assert find_noun_phrase(text, word, phrase_grammar("en")) == expected


@cases("language, text, word, expected")
def test_phrases_of_other_languages_have_their_complement(
    language: str, text: str, word: str, expected: str
) -> None:
    assert find_noun_phrase(text, word, phrase_grammar(language)) == expected
