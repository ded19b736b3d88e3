"""Words that set reports apart from the corpus."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.reports.words import (
    CorpusWords,
    count_words,
    rank_words,
    round_up,
    split_headlines,
    split_words,
    sum_counts,
)
from tests.fixtures.cases import cases

NO_HEADLINES = pl.DataFrame(schema={"document": pl.Int32, "word": pl.String})
SENTENCES = [
    "The storm flooded the harbours near Bern.",
    "Sailors feared the storm and other storms.",
    "Der Sturm traf die Häfen von Bern.",
    "嵐が来た。",
]


def words_of(*documents: list[str], report: int = 0) -> pl.DataFrame:
    """The words of a report, one sentence for each document, which is its text unit as well."""
    rows = [(report, at, at, at, word) for at, words in enumerate(documents) for word in words]
    return pl.DataFrame(rows, ["report", "row", "source", "document", "word"], orient="row")


def corpus(n: int = 1_000, **counts: int) -> CorpusWords:
    frame = pl.DataFrame({"word": [*counts, "rare"], "n": [*counts.values(), 1]})
    return CorpusWords(n, frame)


def test_words_are_nouns_and_verbs_but_no_names_and_no_function_words() -> None:
    languages = pl.Series(["en", "en", "de", "ja"])
    assert split_words(pl.Series(SENTENCES), languages).to_list() == [
        ["flooded", "harbour", "storm"],
        ["feared", "storm"],
        ["bern", "häfen", "sturm"],
        None,
    ]


def test_the_corpus_counts_sentences_with_a_word() -> None:
    words = split_words(pl.Series(SENTENCES[:2]), pl.Series(["en", "en"]))
    n, counts = sum_counts([count_words(words), count_words(words)])
    assert n == 4
    assert dict(counts.iter_rows()) == {"storm": 4, "feared": 2, "flooded": 2, "harbour": 2}


def test_a_corpus_without_sentences_has_no_words() -> None:
    n_sentences, counts = sum_counts([])
    assert (n_sentences, counts.height) == (0, 0)


@cases("documents, counts, expected")
def test_words_that_set_the_report_apart_come_first(
    documents: list[list[str]], counts: dict[str, int], expected: list[str]
) -> None:
    best = rank_words(words_of(*documents), NO_HEADLINES, corpus(**counts))
    assert best["word"].to_list() == expected


def test_a_word_in_headlines_comes_before_one_in_texts_alone() -> None:
    words = words_of(["storm", "tide"], ["storm", "tide"])
    headlines = split_headlines(pl.DataFrame({"document": [0], "headline": ["Tides of May"]}))
    best = rank_words(words, headlines, corpus(storm=10, tide=10))
    assert best["word"].to_list() == ["tide", "storm"]


@given(st.lists(st.integers(1, 2**40), min_size=1))
def test_counts_are_rounded_up_to_three_bits(counts: list[int]) -> None:
    for count, rounded in zip(counts, round_up(np.array(counts)).tolist(), strict=True):
        assert count <= rounded < count * 1.25 + 1
        assert bin(rounded).rstrip("0").count("1") <= 3
        assert len(bin(rounded).removeprefix("0b").rstrip("0")) <= 3
