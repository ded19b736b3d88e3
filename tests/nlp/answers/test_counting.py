import pytest

from graphrag_nlp.answers.counting import CountRequest, read_count_request
from graphrag_nlp.text.languages import detect_language, language_of

# Words that ask, beside the function words of the languages.
QUESTION_WORDS = set(
    "who what which when where in how was wer welche wann wie qui quelles combien quién qué "
    "cuántos".split()
)


def read(question: str, *dates: str) -> CountRequest | None:
    language = language_of("es" if "¿" in question else detect_language(question))
    return read_count_request(question, language, language.function_words | QUESTION_WORDS, dates)


@pytest.mark.parametrize(
    ("question", "counted", "kind", "terms"),
    [
        ("How many documents mention fire?", "documents", None, ("fire",)),
        ("How many documents mention Article 50?", "documents", None, ("Article 50",)),
        (
            "How many documents mention Article 5 and Article 50?",
            "documents",
            None,
            ("Article 5", "Article 50"),
        ),
        (
            "How many documents mention text 5 of the treaty?",
            "documents",
            None,
            ("text 5", "treaty"),
        ),
        ("How many documents mention Rule 5?", "documents", None, ("Rule 5",)),
        ("How many documents mention the 5 towns?", "documents", None, ("towns",)),
        ("Wie viele Artikel erwähnen Artikel 5?", "documents", None, ("Artikel 5",)),
        ("Since when is Article 50 mentioned?", "dates", None, ("Article 50",)),
        ("How many articles of 2017 mention Oslo?", "documents", None, ("Oslo",)),
        ("How many documents mention letters?", "documents", None, ("letters",)),
        ("How many speeches mention Oslo?", "documents", None, ("Oslo",)),
        ("Wie viele Reden erwähnen Oslo?", "documents", None, ("Oslo",)),
        ("¿Cuántos discursos mencionan Oslo?", "documents", None, ("Oslo",)),
        (
            "How many of the articles are about asylum seekers?",
            "documents",
            None,
            ("asylum seekers",),
        ),
        ("How many articles mention “Pacific plan”?", "documents", None, ("Pacific plan",)),
        ("How many documents are there in total?", "documents", None, ()),
        ("How often is Tom Crean mentioned?", "occurrences", None, ("Tom Crean",)),
        ("Which people are mentioned most often?", "entities", "person", ()),
        (
            "Who is named most often in texts on the Bank of England?",
            "entities",
            "person",
            ("Bank of England",),
        ),
        (
            "What regions are most frequently mentioned with outbreaks?",
            "entities",
            "geo",
            ("outbreaks",),
        ),
        ("How many different countries are mentioned?", "distinct", "geo", ()),
        ("How many companies are there in total?", "distinct", "organization", ()),
        ("¿Qué países se mencionan más?", "entities", "geo", ()),
        ("¿Qué países se mencionan más a menudo?", "entities", "geo", ()),
        ("Is Scott or Amundsen mentioned more often?", "subjects", None, ("Scott", "Amundsen")),
        ("Which documents mention fire most often?", "top_documents", None, ("fire",)),
        ("Since when is Zimbabwe mentioned?", "dates", None, ("Zimbabwe",)),
        ("When were strikes first reported?", "dates", None, ("strikes",)),
        ("In which month do most articles mention Oslo?", "trend", None, ("Oslo",)),
        ("How many messages per month mention Alice?", "trend", None, ("Alice",)),
        ("Wie viele Dokumente erwähnen Scott?", "documents", None, ("Scott",)),
        ("Welche Orte werden am häufigsten genannt?", "entities", "geo", ()),
        ("Combien de documents mentionnent Paris ?", "documents", None, ("Paris",)),
        ("¿Cuántos documentos mencionan a Madrid?", "documents", None, ("Madrid",)),
    ],
)
def test_questions_for_a_number_say_what_to_count(
    question: str, counted: str, kind: str | None, terms: tuple[str, ...]
) -> None:
    request = read(question)
    assert request is not None
    assert (request.counted, request.kind, request.terms) == (counted, kind, terms)


@pytest.mark.parametrize(
    "question",
    [
        "How many people in the articles were killed?",
        "Since when has he been president?",
        "How many people were reported killed?",
        "In which year did Barca lose as mentioned in the conversation?",
        "How often do trains run?",
        "What topics are discussed most often?",
        "What is the most common cause of death?",
        "How many people died?",
        "What are the main themes?",
    ],
)
def test_other_questions_are_no_request_for_a_count(question: str) -> None:
    assert read(question) is None


def test_dates_that_the_question_names_are_no_subject() -> None:
    request = read("How many letters of March 2024 mention Berlin?", "March 2024")
    assert request is not None
    assert (request.terms, request.years) == (("Berlin",), ())
