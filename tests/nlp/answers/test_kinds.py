"""The kind of answer that a question wants, and the spans of it in a sentence."""

from graphrag_nlp.answers.kinds import WantedAnswer, find_answer_spans, find_wanted_answer
from graphrag_nlp.text.languages import detect_language, language_of
from tests.fixtures.cases import cases


@cases("question, kind")
def test_the_kind_of_a_question_is_told_from_its_words(question: str, kind: str) -> None:
    assert find_wanted_answer(question, language_of(detect_language(question))).kind == kind


def test_who_at_the_start_asks_for_the_subject() -> None:
    english = language_of("en")
    assert find_wanted_answer("Who invited Ann?", english).is_subject
    assert not find_wanted_answer("By whom was Ann invited?", english).is_subject


def find(sentence: str, kind: str, asked: str = "", **types: str) -> list[tuple[str, float]]:
    spans = find_answer_spans(
        sentence, frozenset(asked.lower().split()), WantedAnswer(kind), language_of("en"), types
    )
    return [(sentence[start:end], fit) for start, end, fit in spans]


@cases("sentence, kind, spans")
def test_spans_of_a_kind_are_found(sentence: str, kind: str, spans: list[str]) -> None:
    assert [span for span, _ in find(sentence, kind)] == spans


def test_a_name_of_the_wanted_type_fits_best() -> None:
    found = find("Later Olga met Jan Blum in Bern.", "person", "olga", bern="geo")
    assert found == [("Jan Blum", 0.5), ("Bern", 0.1)]
    assert ("Bern", 1.0) in find("Later Olga met Jan Blum in Bern.", "place", bern="geo")


def test_a_number_before_the_counted_noun_fits_best() -> None:
    wanted = find_wanted_answer("How many chairs are there?", language_of("en"))
    sentence = "In 2 rooms stand 30 old chairs."
    spans = find_answer_spans(sentence, frozenset(), wanted, language_of("en"), {})
    assert [(sentence[s.start : s.end], s.fit) for s in spans] == [("2", 1.0), ("30", 1.5)]
