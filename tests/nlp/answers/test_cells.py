"""The statement that answers a question about one thing in one period."""

from collections.abc import Sequence

import pytest

from graphrag_nlp.answers.cells import CellStatement, Topic
from graphrag_nlp.answers.statements import Passage, find_stems
from graphrag_nlp.text.languages import detect_language, language_of
from graphrag_nlp.text.periods import find_periods
from tests.fixtures.cases import cases


def choose(question: str, topic: str, texts: Sequence[str]) -> tuple[Topic, list[CellStatement]]:
    """Choose among statements, each in a passage of its own, the best passage first."""
    language = language_of(detect_language(question))
    passages = [Passage(n, text, "", 0, 0.0, 0.0, (), "") for n, text in enumerate(texts)]
    asked = Topic(sorted(find_stems(topic)), [passages], language)
    return asked, asked.choose(0, next(iter(find_periods(question)), None), question)


@cases("question, topic, texts, value")
def test_the_value_of_a_cell(question: str, topic: str, texts: list[str], value: str) -> None:
    asked, found = choose(question, topic, texts)
    clear = [one.written_value for one in found if asked.is_clear(one)]
    assert next(iter(clear), "") == value


def test_a_topic_that_is_said_without_figures_wants_none() -> None:
    texts = ["The risk of fire is high.", "The risk of flood is low.", "It rained for 3 days."]
    asked, found = choose("What was the risk of A in Q3 2022?", "risk", texts)
    assert not asked.wants_figure
    assert [one.statement.text for one in found[:2]] == texts[:2]


def test_nothing_is_chosen_without_the_words_of_the_topic() -> None:
    for texts in ([], ["It rained for 3 days."]):
        asked, found = choose("What was the margin of A?", "margin", texts)
        assert not any(map(asked.is_clear, found))


@pytest.mark.parametrize(
    ("text", "is_clear"),
    [
        ("Net debt fell to $9 million.", True),
        ("A rival had a net debt of $3 million.", False),
        ("Net debt is what the board discusses.", False),
    ],
)
def test_other_documents_tell_the_form_of_a_figure(text: str, is_clear: bool) -> None:
    asked, [found] = choose("What was the net debt of A in Q3 2022?", "net debt", [text])
    others = [f"Net debt fell to ${n} million." for n in range(20, 25)]
    for names, clear in (("ABCDE", is_clear), ("AAAAA", is_clear or "rival" in text)):
        # A form that only one thing has is no form of the series.
        asked.read_others(list(map(Passage, range(5), others, names)), "")
        assert asked.wants_figure
        assert asked.is_clear(found) is clear
        assert asked.is_outdone(found) is not clear
    assert asked.is_outdone(None)


CODES = [f"It failed with error code E-{n}." for n in range(20, 25)]
ILLS = ("acute asthma", "mild migraine", "severe bursitis", "bilateral eczema", "sinusitis")
DIAGNOSES = [f"After the tests the diagnosis is {ill} (code J{n})." for n, ill in enumerate(ILLS)]


@pytest.mark.parametrize(
    ("topic", "others", "text", "is_clear"),
    [
        ("error code", CODES, "It failed with error code E-4711.", True),
        ("error code", CODES, "An office wrote to us about the error code E-4711.", False),
        ("error code", CODES, "The error code alone does not tell the cause.", False),
        # What a statement states is no part of its form.
        (
            *("diagnosis", DIAGNOSES),
            *("After the tests the diagnosis is stable bilateral arthritis (code M10).", True),
        ),
        ("diagnosis", DIAGNOSES, "A sister has a diagnosis of acute asthma (code J1).", False),
    ],
)
def test_other_documents_tell_that_a_topic_wants_a_code(
    topic: str, others: list[str], text: str, is_clear: bool
) -> None:
    asked, [found] = choose(f"What was the {topic} of A in Q3 2022?", topic, [text])
    asked.read_others(list(map(Passage, range(5), others, "ABCDE")), "")
    assert asked.wants_figure
    assert asked.is_clear(found) is is_clear
    assert asked.is_outdone(found) is not is_clear
    assert found.value is None


def test_without_other_documents_nothing_is_outdone() -> None:
    asked, [found] = choose("What was the margin?", "margin", ["The margin was 4%."])
    asked.read_others([], "")
    assert asked.is_clear(found)
    assert not asked.is_outdone(None)
