"""Sentences that a report on a theme may quote."""

import numpy as np
import polars as pl

from graphrag_index.reports.own_sentences import OwnSentences, read_own_sentences


def table(*rows: tuple[int, int, bool, list[str]]) -> pl.LazyFrame:
    return pl.LazyFrame(
        rows, ["community", "level", "theme", "text_unit_ids"], orient="row", infer_schema_length=9
    )


def select(own: OwnSentences, *pairs: tuple[int, int]) -> list[bool]:
    report, sentence = np.array(pairs).T
    return own.select(report, sentence.astype(np.int32)).tolist()


def test_a_theme_quotes_its_own_text_units_and_other_communities_quote_all() -> None:
    communities = table(
        (0, 0, True, ["t0", "t1"]),
        (1, 0, True, ["t2"]),
        (2, 1, True, ["t0"]),
        (3, 2, False, ["t0", "t1", "t2"]),
    )
    # The reports are on the communities 3, 2, 0 and 1; sentence n is in text unit n.
    own = read_own_sentences(
        communities,
        pl.Series([3, 2, 0, 1]),
        pl.Series(["t0", "t1", "t2"]),
        np.arange(3),
    )
    assert select(own, (0, 0), (0, 1), (0, 2)) == [True, True, True]
    assert select(own, (1, 0), (1, 1), (1, 2)) == [True, False, False]
    assert select(own, (2, 0), (2, 1), (2, 2)) == [True, True, False]
    assert select(own, (3, 0), (3, 1), (3, 2)) == [False, False, True]


def test_a_theme_without_a_sentence_of_its_own_quotes_all() -> None:
    own = OwnSentences(np.arange(3), [(np.array([0, 1]), np.array([0, 0, 1]))])
    assert select(own, (1, 0), (1, 1), (0, 0), (0, 2)) == [True, True, True, False]
