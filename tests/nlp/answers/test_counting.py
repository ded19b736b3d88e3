from graphrag_nlp.answers.counting import CountRequest, read_count_request
from graphrag_nlp.text.languages import detect_language, language_of
from tests.fixtures.cases import cases

# Words that ask, beside the function words of the languages.
QUESTION_WORDS = set(
    "who what which when where in how was wer welche wann wie qui quelles combien quién qué "
    "cuántos".split()
)


def read(question: str, *dates: str) -> CountRequest | None:
    language = language_of("es" if "¿" in question else detect_language(question))
    return read_count_request(question, language, language.function_words | QUESTION_WORDS, dates)


@cases("question, counted, kind, terms")
def test_questions_for_a_number_say_what_to_count(
    question: str, counted: str, kind: str | None, terms: list[str]
) -> None:
    request = read(question)
    assert request is not None
    assert (request.counted, request.kind, [*request.terms]) == (counted, kind, terms)


@cases("question")
def test_other_questions_are_no_request_for_a_count(question: str) -> None:
    assert read(question) is None


def test_dates_that_the_question_names_are_no_subject() -> None:
    request = read("How many letters of March 2024 mention Berlin?", "March 2024")
    assert request is not None
    assert (request.terms, request.years) == (("Berlin",), ())
