"""The kind of answer that a question wants, and the spans of it in a sentence."""

import pytest

from graphrag_nlp.answers.kinds import WantedAnswer, find_answer_spans, find_wanted_answer
from graphrag_nlp.text.languages import detect_language, language_of


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many chairs had been given away?", "number"),
        ("How long did the war last?", "duration"),
        ("What time do they meet for pizza?", "time"),
        ("In what year was the bridge finished?", "date"),
        ("Which city is the seat of the court?", "place"),
        ("Who is the mother of Olga Nowak?", "person"),
        ("Why did the mill close?", "reason"),
        ("Which team won?", "organization"),
        ("What song does Olga suggest?", "title"),
        ("Is the mill closed?", "yes_no"),
        ("The mill, which was built by the Duke, burned down when?", "date"),
        ("In 1990, what was the population of the town where Olga lived?", "number"),
        ("What was the name of the town Olga lived in?", "place"),
        ("Which snacks does Olga like?", "other"),
        ("What did the mayor say?", "other"),
        ("Wie viele Stühle wurden verschenkt?", "number"),
        ("In welcher Stadt steht das Gericht?", "place"),
        ("Pourquoi le moulin est-il fermé ?", "reason"),
        ("¿Cuándo se construyó el puente?", "date"),
        ("Chi ha costruito il ponte?", "person"),
        ("Dlaczego młyn został zamknięty?", "reason"),
        ("Где находится мельница?", "place"),
        ("谁建造了这座桥？", "person"),
        ("橋はいつ完成しましたか？", "date"),
        ("Altdorf", "other"),
    ],
)
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


@pytest.mark.parametrize(
    ("sentence", "kind", "spans"),
    [
        ("Built on 3 May 1801, sold in 1990.", "date", ["3 May 1801", "1990"]),
        ("We meet on Friday at 8:30 pm.", "date", ["Friday at 8:30 pm"]),
        ("We meet at noon or at 5 pm.", "time", ["noon", "5 pm"]),
        ("It cost $1.5 million, or 20 %.", "number", ["$1.5 million", "20 %"]),
        ("Twenty men waited for three days.", "duration", ["three days"]),
        ("He read “The Old Mill” in Bern.", "title", ["The Old Mill", "Old Mill", "Bern"]),
        ("It closed because it was old.", "reason", ["because it was old."]),
        ("It closed in May.", "other", []),
    ],
)
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
