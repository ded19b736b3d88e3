"""Names that the first sentence of a paragraph defines."""

from graphrag_nlp.names.whole_names import find_defined_names
from graphrag_nlp.text.languages import language_of
from tests.fixtures.cases import cases


@cases("language, text, name")
def test_the_name_before_a_definition_is_found(language: str, text: str, name: str) -> None:
    found = find_defined_names(text, language_of(language))
    assert [text[start:end] for start, end in found] == [name]


@cases("language, text")
def test_other_words_before_a_verb_are_left_to_other_rules(language: str, text: str) -> None:
    assert not [*find_defined_names(text, language_of(language))]
