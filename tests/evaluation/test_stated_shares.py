"""Coverage of statements by texts, and the sentences of answers with their citations."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphrag_query
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.scores import (
    citation_scores,
    cited_sentences,
    outcome_scores,
    retrieval_scores,
)
from graphrag_evaluation.stated_shares import (
    THRESHOLD,
    WordWeights,
    stated_shares,
    statement_scores,
)
from graphrag_query.answer import Answer, Citation, Outcome
from graphrag_query.index import Index

CORPUS = [
    "The ship Endurance was crushed by ice in the Weddell Sea in November 1915.",
    "Tom Crean was born near Annascaul in County Kerry. He joined the navy in 1893.",
    *(f"Report number {n} tells how the weather changed on day {n}." for n in range(200)),
]
ANSWERABLE = EvaluationQuestion("1", "Who led it?", answers=("Scott", "R. F. Scott"))
UNANSWERABLE = EvaluationQuestion("2", "Who runs the bakery?", is_answerable=False)


@pytest.mark.parametrize(
    ("statement", "text", "is_covered"),
    [
        ("Endurance was crushed in the Weddell Sea in 1915.", CORPUS[0], True),
        # The name stands in the sentence before.
        ("Tom Crean joined the navy in 1893.", CORPUS[1], True),
        ("Ice crushed the Endurance.", "", False),
        ("Tom Crean opened a public house in Annascaul in 1927.", CORPUS[0], False),
        ("", CORPUS[0], False),
    ],
)
def test_a_statement_is_covered_by_a_text_that_has_its_words(
    statement: str, text: str, is_covered: bool
) -> None:
    [score] = statement_scores([statement], [text], WordWeights(CORPUS))
    assert (score >= THRESHOLD) is is_covered


def test_missing_numbers_lower_the_score() -> None:
    weights = WordWeights(CORPUS)
    statements = ["Crean joined the navy in 1893.", "Crean joined the navy in 1899."]
    right, wrong = statement_scores(statements, CORPUS, weights)
    assert right > wrong


# All words have the same weight: none occurs in a corpus.
@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Penguins swim. Whales dive. Seals bark.", 1.0),  # one window of three sentences
        ("Penguins swim. Nothing happened. Whales dive. Nothing happened. Seals bark.", 5 / 6),
        ("Penguins swim. Whales dive. Nothing happened. Seals bark.", 5 / 6),
        ("Penguins swim. Whales dive.", 2 / 3),
        ("", 0.0),
    ],
)
def test_near_sentences_count_less_than_those_of_the_window(text: str, share: float) -> None:
    statement = "Penguins swim, whales dive, seals bark."
    assert stated_shares([statement], [text], WordWeights([])) == pytest.approx([share])


def test_the_number_of_a_statement_may_stand_near() -> None:
    far = "Nothing happened. " * 9
    texts = ["Penguins swim 12 miles.", "Penguins swim miles.", f"Penguins swim miles. {far}12."]
    there, missing, apart = (
        stated_shares(["Penguins swim 12 miles."], [text], WordWeights([]))[0] for text in texts
    )
    assert there == pytest.approx(1)
    assert missing == apart == pytest.approx(3 / 4 - 0.15)


def test_words_of_several_texts_are_not_added_up() -> None:
    weights = WordWeights(CORPUS)
    statement = "Endurance was crushed by ice in the Weddell Sea."
    parts = ["The Endurance was crushed.", "Ice drifts.", "The Weddell Sea is cold."]
    [apart] = statement_scores([statement], parts, weights)
    [joined] = statement_scores([statement], [" ".join(parts)], weights)
    assert apart < joined


def test_sentences_have_the_citations_of_their_claim() -> None:
    text = (
        "## Tom Crean and the navy\n\nTom Crean joined the navy. "
        "He sailed on the Discovery later. [2] [3]\n"
        "These passages fit the question:\n"
        "1. **Nimrod expedition** (8 documents) [Data: Reports (26)]\n"
        "Shackleton led the Nimrod expedition [1]. Nobody supports this last sentence."
    )
    assert cited_sentences(text) == [
        ("Tom Crean joined the navy.", [2, 3], {}),
        ("He sailed on the Discovery later.", [2, 3], {}),
        ("**Nimrod expedition** (8 documents)", [], {"Reports": {26}}),
        ("Shackleton led the Nimrod expedition.", [1], {}),
        ("Nobody supports this last sentence.", (), {}),
    ]


def test_the_scores_of_a_ranking() -> None:
    scores = retrieval_scores([{"a"}, {"x"}, {"b", "a"}, set()], {"a", "b"}, cutoffs=(2, 3))
    assert scores == {
        **{"recall@2": 0.5, "all_gold@2": 0.0},
        **{"recall@3": 1.0, "all_gold@3": 1.0},
        "mrr": 1.0,
    }


def test_what_lies_behind_the_last_cutoff_does_not_count() -> None:
    scores = retrieval_scores([{"x"}, set(), {"a"}], {"a"}, cutoffs=(2,))
    assert scores == {"recall@2": 0.0, "all_gold@2": 0.0, "mrr": 0.0}


def test_without_gold_items_there_is_no_score() -> None:
    assert retrieval_scores([{"a"}], set()) == {}


def test_a_passage_can_hold_all_gold_spans() -> None:
    for k in (1, 2, 10):
        scores = retrieval_scores([{1, 2}, {1}], {1, 2}, cutoffs=(k,))
        assert scores == {f"recall@{k}": 1, f"all_gold@{k}": 1, "mrr": 1}


@given(st.lists(st.sets(st.integers(1, 5)), max_size=6), st.sets(st.integers(1, 5), min_size=1))
def test_scores_are_shares_and_recall_grows(ranked: list[set[int]], gold: set[int]) -> None:
    scores = retrieval_scores(ranked, gold, cutoffs=(1, 2, 4))
    assert all(0 <= score <= 1 + 1e-9 for score in scores.values())
    assert scores["recall@1"] <= scores["recall@2"] <= scores["recall@4"]


@pytest.mark.parametrize(
    ("question", "outcome", "text", "expected"),
    [
        (ANSWERABLE, "answered", "It was r.f. scott!", {"outcome_right": 1, "said": 1}),
        # A name is not part of another one.
        (ANSWERABLE, "answered", "It was Scotty.", {"outcome_right": 1, "said": 0}),
        (
            ANSWERABLE,
            "no_evidence",
            "",
            {"outcome_right": 0, "no_evidence_precision": 0, "said": 0},
        ),
        (UNANSWERABLE, "answered", "Scott.", {"outcome_right": 0, "no_evidence_recall": 0}),
        (
            UNANSWERABLE,
            "no_evidence",
            "",
            {"outcome_right": 1, "no_evidence_precision": 1, "no_evidence_recall": 1},
        ),
        # A failure is right for no question.
        (ANSWERABLE, "provider_error", "", {"outcome_right": 0}),
        (UNANSWERABLE, "index_incomplete", "", {"outcome_right": 0}),
    ],
)
def test_scores_of_an_outcome(
    question: EvaluationQuestion, outcome: str, text: str, expected: dict[str, float]
) -> None:
    assert outcome_scores(question, Answer(question.text, text, Outcome(outcome))) == expected


@pytest.fixture(scope="module")
def index(sample_project: Path) -> Iterator[Index]:
    with graphrag_query.open(sample_project / "output") as index:
        yield index


def cite(index: Index, quote: str, number: int = 1) -> Citation:
    """Return the citation of a sentence of the sample."""
    unit = next(
        unit for unit in index.store.scan("text_units").collect().rows(named=True)
        if quote in unit["text"]
    )  # fmt: skip
    start = unit["start_char"] + unit["text"].index(quote)
    place = (start, start + len(quote), quote, unit["human_readable_id"])
    return Citation(number, "", unit["document_id"], "", *place)


def answered(text: str, *citations: Citation) -> Answer:
    return Answer("?", text, Outcome.ANSWERED, citations=citations)


def test_quotations_must_stand_at_their_place(index: Index) -> None:
    weights = WordWeights([])
    found = cite(index, "Tom Crean")
    others = [
        replace(found, start_char=found.start_char + 1),
        replace(found, quote="Tom Green"),
        replace(found, text_unit=10**6),
    ]
    scores = citation_scores(index, answered("Said [1].", found, *others), weights)
    assert scores["citations_valid"] == 1 / 4
    assert "citations_valid" not in citation_scores(index, answered("Said."), weights)


def test_sentences_are_supported_by_what_they_cite(index: Index) -> None:
    weights = WordWeights(unit["text"] for unit in index.store.text_units(range(20)).values())
    crean = cite(index, "Annascaul")
    said = "Crean was born near Annascaul in County Kerry."
    for text, share in [
        (f"{said} [1]", 1.0),
        (f"{said} [2]", 0.0),
        (f"{said} [1] The bakery in Zürich sells chocolate croissants. [1]", 0.5),
        ("A bakery in Kerry sells chocolate croissants and bread. [1]", 0.0),
    ]:
        assert citation_scores(index, answered(text, crean), weights)["supported"] == share, text
    rows = index.store.scan("community_reports").select("community", "title").collect().rows()
    (number, title), (other, _) = rows[0], rows[-1]
    for cited, share in ((number, 1.0), (other, 0.0), (10**6, 0.0)):
        answer = answered(f"This is {title}. [Data: Reports ({cited})]")
        assert citation_scores(index, answer, weights)["supported"] == share, cited


def test_an_answer_without_evidence_has_no_citation_scores(index: Index) -> None:
    answer = Answer("?", "Nobody knows of this bakery. [1]", Outcome.NO_EVIDENCE)
    assert citation_scores(index, answer, WordWeights([])) == {}
