"""Sentences that several documents repeat word by word, such as notices of a publisher.

They name members, but say nothing of the documents. Reports quote them last. Documents that repeat
several sentences are copies or versions of one text, whose sentences are quoted as others are.
"""

from collections.abc import Sequence

import polars as pl

# Minimum number of documents that repeat a sentence, and maximum number of sentences that the same
# documents repeat.
MIN_DOCUMENTS, MAX_SENTENCES = 3, 2


def hash_sentences(quoted: pl.DataFrame) -> pl.DataFrame:
    """Return the `hash` of each distinct sentence of a `document`."""
    return quoted.select("document", hash=pl.col("text").hash()).unique()


def find_repeated(hashed: Sequence[pl.DataFrame]) -> pl.Series:
    """Return the hashes of repeated sentences; `hashed` are results of `hash_sentences`."""
    if not hashed:
        return pl.Series(dtype=pl.UInt64)
    repeated = (
        pl.concat(hashed)
        .unique()
        .filter(pl.len().over("hash") >= MIN_DOCUMENTS)
        .group_by("hash")
        .agg(documents=pl.col("document").sort())
    )
    return repeated.filter(pl.len().over("documents") <= MAX_SENTENCES)["hash"].sort()


def mark_repeated(quoted: pl.DataFrame, repeated: pl.Series) -> pl.DataFrame:
    """Lower the clarity of repeated sentences to that of those that do not stand alone."""
    is_repeated = pl.col("text").hash().is_in(repeated.implode())
    clarity = pl.when(is_repeated).then(pl.col("clarity").clip(upper_bound=1))
    return quoted.with_columns(clarity=clarity.otherwise(pl.col("clarity")))
