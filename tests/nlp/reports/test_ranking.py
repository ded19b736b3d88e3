"""The score of a sentence: its terms, centrality and lead, times its quality."""

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from graphrag_nlp.reports.ranking import (
    MAX_REPEATED_SENTENCES,
    MIN_REPEATING_DOCUMENTS,
    find_repeated,
    hash_sentences,
    is_name_list,
    mark_repeated,
    rank_report_sentences,
    rate_wording,
)
from graphrag_nlp.reports.words import CorpusWords
from tests.fixtures.cases import cases

CORPUS = CorpusWords(1_000, pl.DataFrame({"word": ["storm", "road"], "n": [8, 400]}))
DOCUMENTS = pl.DataFrame({"document": [0, 1, 2], "headline": ["", "", ""]})
OFFER, NEWS = "The best films on Netflix for you.", "Netflix opened a studio in Bern."
TEXT = "Ann of Bern lost her boat, and nobody in the town of Thun knew why it sank."


def ranked(*changes: dict[str, Any]) -> list[int]:
    """Rank sentences that differ in something; return their numbers, best first."""
    default = {
        **{"report": 0, "entities": [5], "centrality": 0.5, "text": TEXT, "language": "en"},
        **{"words": ["road"], "clarity": 2, "source": 0, "document": 0, "start_char": 900},
    }
    rows = [{**default, "sentence": at, **change} for at, change in enumerate(changes)]
    lists = {"entities": pl.List(pl.Int32), "words": pl.List(pl.String)}
    frame = pl.DataFrame(rows, schema_overrides=lists)
    return rank_report_sentences(frame, DOCUMENTS, CORPUS)[0]["sentence"].to_list()


@cases("better")
def test_terms_centrality_and_lead_raise_the_score(better: dict[str, Any]) -> None:
    worse = {"text": TEXT[:30]} if "text" in better else {}
    assert ranked(worse, better) == [1, 0]


def test_only_the_clearest_sentences_are_ranked() -> None:
    assert ranked({"clarity": 1}, {"clarity": 2}, {"clarity": 0}) == [1]
    assert ranked({"clarity": 0}, {"clarity": 0}) == [0, 1]
    # The lead of a document that mentions no member has to be clear.
    assert ranked({"clarity": 1, "entities": []}, {"clarity": 1}) == [1]
    assert sorted(ranked({"entities": []}, {"clarity": 1})) == [0, 1]


def test_the_terms_of_a_sentence_are_its_best_words_first() -> None:
    rows = {
        "report": [0, 0],
        "sentence": [0, 1],
        "entities": [[5], [5]],
        "centrality": [0.5, 0.5],
        "text": [TEXT, TEXT],
        "language": ["en", "en"],
        "words": [["road", "storm"], ["storm"]],
        "clarity": [2, 2],
        "source": [0, 1],
        "document": [0, 1],
        "start_char": [900, 900],
    }
    found, words = rank_report_sentences(pl.DataFrame(rows), DOCUMENTS, CORPUS)
    assert found.select("sentence", "terms").rows() == [(0, "storm road"), (1, "storm")]
    assert words["word"].to_list() == ["storm", "road"]


@cases("language, text, factor")
def test_sentences_on_what_somebody_thinks_or_told_before_count_less(
    language: str, text: str, factor: float
) -> None:
    rated = rate_wording(pl.Series([text]), pl.Series([language]))
    assert rated.to_list() == pytest.approx([factor])


def test_lists_of_names_are_not_quoted_but_sentences_in_capitals_are() -> None:
    texts = [
        "Ann Bo Cy DeeEd Fay Gus Hal IdaJo Kit LeoMax Dr.",
        "THE PUMP IS CONTROLLED BY THE KESTREL 300 CONTROLLER.",
        "Bern baut die Brücke im Mai wieder auf.",
    ]
    is_list = pl.DataFrame({"text": texts}).select(is_name_list(pl.col("text"))).to_series()
    assert is_list.to_list() == [True, False, False]


def test_sentences_of_several_documents_do_not_stand_alone() -> None:
    n = MIN_REPEATING_DOCUMENTS
    quoted = pl.DataFrame(
        {
            "document": [*range(n), 0, 0, *range(n - 1)],
            "text": [OFFER] * (n + 2) + [NEWS] * (n - 1),
            "clarity": [2] * (n + 1) + [0] + [2] * (n - 1),
        },
        {"document": pl.Int32, "text": pl.String, "clarity": pl.Int8},
    )
    # The parts do not matter.
    repeated = find_repeated([hash_sentences(quoted[:2]), hash_sentences(quoted[2:])])
    clarity = [1] * (n + 1) + [0] + [2] * (n - 1)
    expected = quoted.with_columns(pl.Series("clarity", clarity, pl.Int8))
    assert_frame_equal(mark_repeated(quoted, repeated), expected)
    assert_frame_equal(mark_repeated(quoted, find_repeated([])), quoted)


def test_copies_of_a_text_are_quoted() -> None:
    copies = pl.DataFrame(
        [
            (at, f"{NEWS} {n}")
            for at in range(MIN_REPEATING_DOCUMENTS)
            for n in range(MAX_REPEATED_SENTENCES + 1)
        ],
        {"document": pl.Int32, "text": pl.String},
        orient="row",
    )
    assert find_repeated([hash_sentences(copies)]).is_empty()
