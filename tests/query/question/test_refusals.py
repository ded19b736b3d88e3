"""Sentences of answers without evidence, in the language of the question."""

import pytest

from graphrag_nlp.text.languages import language_of
from graphrag_query.question.refusals import format_no_answer


@pytest.mark.parametrize(
    ("code", "of_documents", "expected"),
    [
        ("es", {"de", "en"}, " Los documentos están en alemán e inglés."),
        ("es", {"de", "fr"}, " Los documentos están en alemán y francés."),
        ("es", {"es", "fr"}, "."),
        ("en", {"de", "es", "fr"}, " The documents are in German, Spanish and French."),
        ("en", {"el"}, "."),
        ("en", set(), "."),
        ("ja", {"en"}, "No passage that was read answers this."),
    ],
)
def test_the_other_languages_of_the_documents_are_named(
    code: str, of_documents: set[str], expected: str
) -> None:
    text = format_no_answer(language_of(code), of_documents)
    assert text.endswith(expected)
    assert text.count(".") == 1 + expected.startswith(" ")
