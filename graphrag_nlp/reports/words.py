"""Words that set the sentences of a report apart from the corpus.

They are compared by their log-likelihood ratio [1]_, and weigh more if many text units and
headlines of the report have them.

References
----------
.. [1] Dunning, Accurate methods for the statistics of surprise and coincidence, CL 19 (1993).
"""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_nlp.list_columns import Integers, number_values
from graphrag_nlp.text.languages import language_of
from graphrag_nlp.text.noun_phrases import NO_THEMES

# Words of at least four letters, in scripts with spaces between words.
_LETTER = r"[\p{L}&&[^\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]"
_WORD = rf"{_LETTER}[{_LETTER[1:-1]}\p{{M}}]{{3,29}}"
# Maximum number of words in the list of the corpus. All other words count as rare as the last one.
MAX_CORPUS_WORDS = 50_000
# Number of bits to which counts of the corpus are rounded up. So the weights of most words, and
# with them most reports, stay the same when a few documents change.
COUNT_BITS = 3
# Maximum number of words of a report, and of headlines that increase the weight of a word.
MAX_WORDS, MAX_HEADLINES = 10, 3
# Factor for the weight of a word that only one of several text units of a report has.
LONE_FACTOR = 0.1


class CorpusWords(NamedTuple):
    """The rounded number of sentences of the corpus, and of those with each word (`word`, `n`)."""

    n_sentences: int
    counts: pl.DataFrame


def split_words(texts: pl.Series, languages: pl.Series) -> pl.Series:
    """Return the words of each sentence that may name a theme, in lower case and singular.

    Names are left out by their capital letter. In German, whose nouns have a capital letter, words
    without one are left out.
    """
    split = (
        # The first word of a sentence has a capital letter, whatever it is.
        pl.DataFrame({"text": texts, "language": languages})
        .with_row_index("row")
        .select(
            "row",
            "language",
            form=pl.col("text").str.replace(r"^\P{L}*\p{L}+", "").str.extract_all(_WORD),
        )
        .explode("form")
        .drop_nulls("form")
    )
    # Texts repeat most forms, so each distinct form is examined only once.
    numbers, distinct = number_values(split["form"])
    lower = distinct.str.to_lowercase()
    is_capital = distinct.str.head(1) != lower.str.head(1)
    kept = np.zeros(split.height, bool)
    for code in split["language"].unique():
        fits = is_capital == language_of(code).capitalizes_nouns
        fits &= ~lower.is_in(_excluded_words(code).implode())
        kept |= (split["language"] == code).to_numpy() & fits.to_numpy()[numbers]
    words = split.select("row").filter(kept)
    words = words.with_columns(word=singular(lower).gather(numbers[kept])).unique()
    grouped = words.sort("row", "word").group_by("row", maintain_order=True).agg("word")
    rows = pl.DataFrame({"row": pl.int_range(len(texts), dtype=pl.UInt32, eager=True)})
    return rows.join(grouped, on="row", how="left", maintain_order="left")["word"].alias("words")


def singular(words: pl.Series) -> pl.Series:
    """Convert plural words to the singular by a rough rule."""
    return words.str.replace(r"ies$", "y").str.replace(r"([^sui])s$", "${1}")


@cache
def _excluded_words(language: str) -> pl.Series:
    return pl.Series(sorted(language_of(language).function_words | NO_THEMES))


def count_words(words: pl.Series) -> tuple[int, pl.DataFrame]:
    """Return the number of sentences, and of those that have each word."""
    counted = words.explode().drop_nulls().value_counts(name="n")
    return len(words), counted.select(word="words", n=pl.col("n").cast(pl.UInt32))


def sum_counts(parts: Iterable[tuple[int, pl.DataFrame]]) -> CorpusWords:
    """Add up the results of `count_words`, and keep the most frequent words."""
    none = pl.DataFrame(schema={"word": pl.String, "n": pl.UInt32})
    sizes, frames = zip((0, none), *parts, strict=True)
    counts = pl.concat(frames).group_by("word").agg(pl.sum("n"))
    counts = counts.sort("n", "word", descending=[True, False]).head(MAX_CORPUS_WORDS)
    rounded = round_up(counts["n"].to_numpy().astype(np.int64))
    [n_sentences] = round_up(np.array([sum(sizes)]))
    return CorpusWords(int(n_sentences), counts.with_columns(n=pl.Series(rounded)))


def round_up(counts: Integers) -> Integers:
    """Round counts up to numbers with `COUNT_BITS` significant bits."""
    unit = 1 << np.maximum(np.frexp(counts)[1] - COUNT_BITS, 0).astype(np.int64)
    rounded: Integers = -(-counts // unit) * unit
    return rounded


def split_headlines(documents: pl.DataFrame) -> pl.DataFrame:
    """Return the words of the column `headline`: `document` and `word`; names are no exception."""
    words = pl.col("headline").str.to_lowercase().str.extract_all(_WORD)
    split = documents.select("document", word=words).explode("word").drop_nulls("word")
    return split.with_columns(singular(split["word"])).unique()


def rank_words(words: pl.DataFrame, headlines: pl.DataFrame, corpus: CorpusWords) -> pl.DataFrame:
    """Return the best words of each report: `report`, `word` and `weight`.

    `words` has a row for each word of a sentence: `report`, `row`, `source` (the text unit),
    `document` and `word`. `headlines` is the result of `split_headlines`.
    """
    rarest = corpus.counts["n"].min() or 1
    n_all = max(corpus.n_sentences, 2)
    sizes = words.group_by("report").agg(
        size=pl.col("row").n_unique(), sources=pl.col("source").n_unique()
    )
    in_headlines = (
        words.join(headlines, on=["document", "word"], how="semi")
        .group_by("report", "word")
        .agg(n_headlines=pl.col("document").n_unique().clip(upper_bound=MAX_HEADLINES))
    )
    n, size, total = pl.col("n"), pl.col("size"), pl.col("total")
    n_sources, sources = pl.col("n_sources"), pl.col("sources")
    expected = size * total / n_all
    rest = total - n
    likelihood = 2 * (
        n * (n / expected).log()
        + pl.when(rest > 0).then(rest * (rest / (total - expected)).log()).otherwise(0.0)
    )
    return (
        words.group_by("report", "word")
        .agg(n=pl.len().cast(pl.Float64), n_sources=pl.col("source").n_unique())
        .join(sizes, on="report")
        .join(in_headlines, on=["report", "word"], how="left")
        .join(corpus.counts.rename({"n": "total"}), on="word", how="left")
        .with_columns(total=pl.max_horizontal(total.fill_null(rarest), n).cast(pl.Float64))
        # A word of few text units says little of the others, however often it is in them.
        .with_columns(
            weight=likelihood
            * (n_sources / n * n_sources / sources).sqrt()
            * (1 + pl.col("n_headlines").fill_null(0))
            * pl.when((n_sources == 1) & (sources > 1)).then(LONE_FACTOR).otherwise(1.0)
        )
        .filter(pl.col("weight") > 0)
        .sort("report", "weight", "word", descending=[False, True, False])
        .filter(pl.int_range(pl.len()).over("report") < MAX_WORDS)
        .select("report", "word", "weight")
    )
