"""Sentences that documents repeat."""

import polars as pl
from polars.testing import assert_frame_equal

from graphrag_index.reports.repeated_sentences import (
    MAX_SENTENCES,
    MIN_DOCUMENTS,
    find_repeated,
    hash_sentences,
    mark_repeated,
)

OFFER, NEWS = "The best films on Netflix for you.", "Netflix opened a studio in Bern."


def test_sentences_of_several_documents_do_not_stand_alone() -> None:
    quoted = pl.DataFrame(
        {
            "document": [*range(MIN_DOCUMENTS), 0, 0, *range(MIN_DOCUMENTS - 1)],
            "text": [OFFER] * (MIN_DOCUMENTS + 2) + [NEWS] * (MIN_DOCUMENTS - 1),
            "clarity": [2] * (MIN_DOCUMENTS + 1) + [0] + [2] * (MIN_DOCUMENTS - 1),
        },
        {"document": pl.Int32, "text": pl.String, "clarity": pl.Int8},
    )
    # The parts do not matter.
    repeated = find_repeated([hash_sentences(quoted[:2]), hash_sentences(quoted[2:])])
    clarity = [1] * (MIN_DOCUMENTS + 1) + [0] + [2] * (MIN_DOCUMENTS - 1)
    expected = quoted.with_columns(pl.Series("clarity", clarity, pl.Int8))
    assert_frame_equal(mark_repeated(quoted, repeated), expected)
    assert_frame_equal(mark_repeated(quoted, find_repeated([])), quoted)


def test_copies_of_a_text_are_quoted() -> None:
    copies = pl.DataFrame(
        [(at, f"{NEWS} {n}") for at in range(MIN_DOCUMENTS) for n in range(MAX_SENTENCES + 1)],
        {"document": pl.Int32, "text": pl.String},
        orient="row",
    )
    assert find_repeated([hash_sentences(copies)]).is_empty()
