"""Whole answers without a model: text and citations."""

from collections.abc import Sequence

from graphrag_index.schema.settings.searches import LocalSearch
from graphrag_query.answer import Answer, Context, Outcome
from graphrag_query.answering.quoted_answer import quote_answer
from graphrag_query.index import Index
from graphrag_query.question.question import Question
from tests.fixtures.cases import cases


def ask(index: Index, question: str, texts: Sequence[str]) -> Answer:
    """Answer a question from texts, each of which is a document."""
    units = {
        i: {
            "human_readable_id": i,
            "start_char": 0,
            "text": text,
            "title": f"{i}.txt",
            "document": i,
            "document_id": str(i),
            "path": f"{i}.txt",
            "prepended": "",
            "source": text,
        }
        for i, text in enumerate(texts)
    }
    asked = Question(question, index.store)
    answer = quote_answer(
        asked, units, dict.fromkeys(units, 1.0), LocalSearch(), Context({}, "", 0, {})
    )
    for citation in answer.citations:
        text = texts[int(citation.document_id)]
        assert text[citation.start_char : citation.end_char] == citation.quote
    return answer


NEAR_MISSES = [
    f"{person} of Altdorf met Olga Nowak in the {place} and asked the smith for help."
    for person, place in zip(
        ("Ann Bell", "Ben Ney", "Jan Blum", "Otto Lenz", "Rosa Klein", "Tom Ames"),
        ("garden", "church", "harbour", "market", "forest", "station"),
        strict=True,
    )
]


def test_a_certain_value_stands_before_the_sentence(index: Index) -> None:
    answer = ask(index, "When was the mill built?", ["The mill was built in 1801. It is red."])
    assert answer.text.startswith("1801 — The mill was built in 1801. [1]")


@cases("question, text")
def test_no_yes_or_no_is_decided(index: Index, question: str, text: str) -> None:
    answer = ask(index, question, [text])
    assert not answer.text.startswith(("Yes", "No —", "No.", "Ja", "Nein", "Oui", "Non"))
    assert answer.citations[0].quote in text


def test_a_comparison_begins_with_the_name_that_it_chooses(index: Index) -> None:
    texts = ["Otto Lenz was born in 1931 in Bern.", "Ann Bell was born in 1950 in Rome."]
    answer = ask(index, "Who is older, Ann Bell or Otto Lenz?", texts)
    assert answer.text == f"Otto Lenz — {texts[0]} [1] {texts[1]} [2]"


def test_a_heading_is_not_quoted_beside_sentences(index: Index) -> None:
    text = "The old mill and the red school\n\nThe red school stands by the old mill."
    answer = ask(index, "Where is the red school of the mill?", [text])
    assert [c.quote for c in answer.citations] == ["The red school stands by the old mill."]


def test_a_row_is_quoted_with_its_columns_and_cited_as_it_stands(index: Index) -> None:
    table = "| Town | Mayor |\n| --- | --- |\n| Altdorf | Olga Nowak |\n| Bern | Jan Blum |\n"
    answer = ask(index, "Who is the mayor of Altdorf?", [table])
    assert answer.text.startswith("Altdorf; Mayor: Olga Nowak [1]")
    assert answer.citations[0].quote == "| Altdorf | Olga Nowak |"


def test_only_the_nearest_sentences_follow_if_none_answers_clearly(index: Index) -> None:
    answer = ask(index, "Who sutured the elbow of Olga Nowak in Altdorf?", NEAR_MISSES)
    before = 'No sentence found answers this clearly. Nearest, without "sutured", "elbow": '
    assert answer.text.startswith(f"{before}{answer.citations[0].quote} [1]")
    assert len(answer.citations) <= 2


def test_what_says_all_words_is_clear(index: Index) -> None:
    texts = [*NEAR_MISSES, "Otto Lenz sutured the elbow of Olga Nowak in Altdorf."]
    answer = ask(index, "Who sutured the elbow of Olga Nowak in Altdorf?", texts)
    assert answer.text.startswith(texts[-1])


def test_words_of_another_language_than_the_documents_prove_nothing(index: Index) -> None:
    answer = ask(index, "Welcher Chirurg nähte den Ellbogen von Olga Nowak?", NEAR_MISSES)
    assert "Satz" not in answer.text


@cases("question, expected")
def test_a_refusal_speaks_the_language_of_the_question(
    index: Index, question: str, expected: str
) -> None:
    answer = ask(index, question, ["The baker sells bread and rolls at the old market on Fridays."])
    assert (answer.text, answer.outcome) == (expected, Outcome.NO_EVIDENCE)
