"""Blocking: candidate pairs are names that share a key, instead of all pairs.

Each block gives every name one or more keys, and names with the same key are a pair. A key that
too many names have is ignored, so that the number of pairs grows with that of names.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.resolution.name_similarity import SHORT_LETTERS
from graphrag_index.resolution.parsed_name import Name, is_initial
from graphrag_index.text.normalize import UNSPACED, fold

Vectors = npt.NDArray[np.float32]

# Names of one key that are all paired; of more each is paired with the first, the most mentioned.
MAX_GROUP = 10
# A key that more names share is ignored.
MAX_SHARED = 200
# A word that more names have is too common to make a pair of two.
MAX_NAMES_OF_WORD = 20
# Neighbours of a vector that are looked at, and how near they must be.
N_NEIGHBOURS = 3
MIN_SIMILARITY = 0.75
# Vectors compared at once: bounds memory.
BATCH_VECTORS = 1_024
# Names whose letters are compared at once: each gives as many keys as it has letters.
BATCH_NAMES = 50_000


def candidates(names: Sequence[Name]) -> pl.DataFrame:
    """Find candidate pairs of names, the most frequent first, by their letters and words.

    Returns `left` < `right`, numbers of the names, and `blocks`, the sorted names of the keys
    that they share; ordered by the numbers.
    """
    keys = {
        "letters": _letter_keys(names),
        "first letters": _acronym_keys(names),
        "initials": _initial_keys(names),
    }
    found = [_pairs(_keyed(rows), block) for block, rows in keys.items()]
    return (
        pl.concat([*found, _one_letter_apart(names), _sharing_words(names)])
        .group_by("left", "right")
        .agg(pl.col("block").unique().sort().alias("blocks"))
        .sort("left", "right")
    )


def neighbours(vectors: Vectors, numbers: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Find pairs of names by their vectors: `left`, `right` and `similarity`.

    All vectors are compared with all others: it is for some thousands.
    """
    rows: list[tuple[int, int, float]] = []
    for start in range(0, len(vectors), BATCH_VECTORS):
        similarities = vectors[start : start + BATCH_VECTORS] @ vectors.T
        for at, row in enumerate(similarities, start):
            row[at] = -1
            for near in np.argsort(-row, kind="stable")[:N_NEIGHBOURS]:
                if row[near] >= MIN_SIMILARITY:
                    left, right = sorted((int(numbers[at]), int(numbers[near])))
                    rows.append((left, right, round(float(row[near]), 3)))
    schema = {"left": pl.Int64, "right": pl.Int64, "similarity": pl.Float64}
    pairs = pl.DataFrame(rows, schema=schema, orient="row")
    return pairs.group_by("left", "right").agg(pl.col("similarity").max()).sort("left", "right")


Keys = Iterator[tuple[int, str]]


def _letter_keys(names: Sequence[Name]) -> Keys:
    for number, name in enumerate(names):
        # "Novak, Anna", whatever the order that is right.
        in_any_order = "".join(sorted(name.plain.words))
        keys = {name.letters, name.plain.letters, "".join(name.spelled_out), in_any_order}
        yield from ((number, key) for key in keys if key)


def _acronym_keys(names: Sequence[Name]) -> Keys:
    for number, name in enumerate(names):
        for key in [name.letters] if name.is_acronym else name.first_letters:
            yield number, key


def _initial_keys(names: Sequence[Name]) -> Keys:
    """Yield surname and first letter, of names with an initial and names that fit it."""
    made = [
        (number, f"{fold(parts[-1])} {fold(parts[0])[:1]}", any(map(is_initial, parts[:-1])))
        for number, name in enumerate(names)
        if name.may_be_person and not is_initial((parts := name.parts)[-1])
    ]
    telling = {key for _, key, has_initial in made if has_initial}
    yield from ((number, key) for number, key, _ in made if key in telling)


def _keyed(rows: Keys) -> pl.DataFrame:
    """Return the keys that several names share."""
    found = list(rows)
    columns = {"number": [number for number, _ in found], "key": [key for _, key in found]}
    keyed = pl.DataFrame(columns, schema={"number": pl.Int64, "key": pl.String})
    return keyed.filter(pl.col("key").is_duplicated())


def _pairs(keyed: pl.DataFrame, block: str) -> pl.DataFrame:
    """Pair names with the same key: all of a few, and each of more with the first."""
    size = pl.len().over("key")
    keyed = keyed.with_columns(size=size, first=pl.col("number").min().over("key"))
    keyed = keyed.filter(pl.col("size").is_between(2, MAX_SHARED))
    few = keyed.filter(pl.col("size") <= MAX_GROUP)
    all_pairs = few.join(few, on="key").filter(pl.col("number") < pl.col("number_right"))
    to_first = keyed.filter(
        (pl.col("size") > MAX_GROUP) & (pl.col("number") > pl.col("first"))
    ).select(pl.col("first").alias("left"), pl.col("number").alias("right"))
    pairs = all_pairs.select(left="number", right="number_right")
    return pl.concat([pairs, to_first]).unique().with_columns(block=pl.lit(block))


def _one_letter_apart(names: Sequence[Name]) -> pl.DataFrame:
    """Pair names that are equal without one letter of either or both."""
    letters = pl.DataFrame(
        {"letters": [name.plain.letters for name in names]}, schema={"letters": pl.String}
    ).with_row_index("number")
    is_long = pl.col("letters").str.len_chars() >= SHORT_LETTERS
    is_plain = ~pl.col("letters").str.contains(r"\p{N}|" + UNSPACED)
    # Names with equal letters are pairs already, so one of them is enough.
    distinct = letters.filter(is_long & is_plain).unique("letters", keep="first").sort("number")
    hashes = [pl.DataFrame(schema={"number": pl.Int64, "key": pl.UInt64})]
    for batch in distinct.iter_slices(BATCH_NAMES):
        n_letters = pl.col("letters").str.len_chars()
        at = batch.with_columns(at=pl.int_ranges(0, n_letters + 1)).explode("at")
        shorter = pl.concat_str(
            pl.col("letters").str.slice(0, pl.col("at")),
            pl.col("letters").str.slice(pl.col("at") + 1),
        )
        hashes.append(at.select(pl.col("number").cast(pl.Int64), key=shorter.hash()))
    # One name has a key twice that loses either of two equal letters.
    keyed = pl.concat(hashes).filter(pl.col("key").is_duplicated()).unique()
    return _pairs(keyed, "spelling")


def _sharing_words(names: Sequence[Name]) -> pl.DataFrame:
    """Pair names that share a rare word, and at least half of all their words."""
    keyed = _keyed(
        (number, word)
        for number, name in enumerate(names)
        for word in set(name.plain.words)
        if len(word) > 3
    )
    rare = keyed.filter(pl.len().over("key") <= MAX_NAMES_OF_WORD)
    pairs = (
        rare.join(rare, on="key")
        .filter(pl.col("number") < pl.col("number_right"))
        .select(left="number", right="number_right")
        .unique()
    )
    n_words = [len(set(names[number].plain.words)) for number in rare["number"]]
    size = rare.select("number", pl.Series("size", n_words, pl.Int64)).unique()
    pairs = pairs.join(size, left_on="left", right_on="number").join(
        size, left_on="right", right_on="number", suffix="_right"
    )
    # Only where one may hold all words of the other can they share half of all.
    small, large = pl.min_horizontal("size", "size_right"), pl.max_horizontal("size", "size_right")
    pairs = pairs.filter(small * 2 >= large).select("left", "right")
    return pairs.with_columns(block=pl.lit("words"))
