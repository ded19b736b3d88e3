"""Blocking: the search for candidate pairs of names, without comparing all pairs.

Each block assigns one or more keys to every name. Names with the same key become candidate pairs.
A key of too many names is ignored, so that the number of pairs grows linearly with the names.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.resolution.name_similarity import MIN_LETTERS_OF_NAME
from graphrag_index.resolution.parsed_name import Name, is_initial
from graphrag_index.text.normalize import UNSPACED, fold

Vectors = npt.NDArray[np.float32]

# Maximum number of names with the same key at which all of them are paired with each other. In a
# larger group, each name is paired with the most mentioned name only.
MAX_FULLY_PAIRED_NAMES = 10
# A key is ignored if more names than this have it.
MAX_NAMES_OF_KEY = 200
# A word is ignored if more names than this contain it.
MAX_NAMES_OF_WORD = 20
# Maximum number of similar names for a name; the next constant is their minimum cosine similarity.
MAX_SIMILAR_NAMES = 3
MIN_VECTOR_SIMILARITY = 0.75
# Number of vectors in a batch. Batches limit the memory used, and do not change the result.
VECTORS_PER_BATCH = 1_024
# Number of names in a batch of `_pair_by_spelling`, which makes a key for each letter of a name.
NAMES_PER_BATCH = 50_000


def find_candidate_pairs(names: Sequence[Name]) -> pl.DataFrame:
    """Find candidate pairs of names by letters and words; `names` are sorted by frequency.

    Returns one row per pair: `left` < `right` are the positions of the two names, and `blocks`
    are the sorted names of the blocks that found the pair. Rows are sorted by `left`, `right`.
    """
    found = [
        _pair_names(_keep_shared_keys(_make_letter_keys(names)), "letters"),
        _pair_names(_keep_shared_keys(_make_acronym_keys(names)), "first letters"),
        _pair_names(_keep_shared_keys(_make_initial_keys(names)), "initials"),
        _pair_by_spelling(names),
        _pair_by_words(names),
    ]
    return (
        pl.concat(found)
        .group_by("left", "right")
        .agg(pl.col("block").unique().sort().alias("blocks"))
        .sort("left", "right")
    )


def find_similar_pairs(vectors: Vectors, numbers: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Find pairs of names with similar vectors: `left`, `right` and `similarity`.

    Every vector is compared with every other one, so use this for a few thousand names only.
    """
    rows: list[tuple[int, int, float]] = []
    for start in range(0, len(vectors), VECTORS_PER_BATCH):
        similarities = vectors[start : start + VECTORS_PER_BATCH] @ vectors.T
        for at, row in enumerate(similarities, start):
            row[at] = -1
            for near in np.argsort(-row, kind="stable")[:MAX_SIMILAR_NAMES]:
                if row[near] >= MIN_VECTOR_SIMILARITY:
                    left, right = sorted((int(numbers[at]), int(numbers[near])))
                    rows.append((left, right, round(float(row[near]), 3)))
    schema = {"left": pl.Int64, "right": pl.Int64, "similarity": pl.Float64}
    pairs = pl.DataFrame(rows, schema=schema, orient="row")
    return pairs.group_by("left", "right").agg(pl.col("similarity").max()).sort("left", "right")


# Pairs (position of a name, key of the name).
NameKeys = Iterator[tuple[int, str]]


def _make_letter_keys(names: Sequence[Name]) -> NameKeys:
    for number, name in enumerate(names):
        # Sort the words, so that "Anna Novak" and "Novak Anna" get the same key.
        in_any_order = "".join(sorted(name.plain.words))
        keys = {name.letters, name.plain.letters, "".join(name.words_without_umlauts), in_any_order}
        yield from ((number, key) for key in keys if key)


def _make_acronym_keys(names: Sequence[Name]) -> NameKeys:
    for number, name in enumerate(names):
        for key in [name.letters] if name.is_acronym else name.acronyms:
            yield number, key


def _make_initial_keys(names: Sequence[Name]) -> NameKeys:
    """Yield surname and first letter as key, if at least one name with this key has an initial."""
    made = [
        (number, f"{fold(parts[-1])} {fold(parts[0])[:1]}", any(map(is_initial, parts[:-1])))
        for number, name in enumerate(names)
        if name.may_be_person and not is_initial((parts := name.person_words)[-1])
    ]
    keys_of_initials = {key for _, key, has_initial in made if has_initial}
    yield from ((number, key) for number, key, _ in made if key in keys_of_initials)


def _keep_shared_keys(rows: NameKeys) -> pl.DataFrame:
    """Return rows (number, key) without the keys that only one name has."""
    schema = {"number": pl.Int64, "key": pl.String}
    keyed = pl.DataFrame(list(rows), schema, orient="row")
    return keyed.filter(pl.col("key").is_duplicated())


def _pair_names(keyed: pl.DataFrame, block: str) -> pl.DataFrame:
    """Pair names with the same key; in a large group, pair each name with the first name only."""
    size, first = pl.len().over("key"), pl.col("number").min().over("key")
    keyed = keyed.filter(size <= MAX_NAMES_OF_KEY)
    lefts = keyed.filter((size <= MAX_FULLY_PAIRED_NAMES) | (pl.col("number") == first))
    return _join_by_key(lefts, keyed, block)


def _join_by_key(lefts: pl.DataFrame, rights: pl.DataFrame, block: str) -> pl.DataFrame:
    """Return the distinct pairs of rows with the same key, with `left` < `right`."""
    pairs = lefts.join(rights, on="key").filter(pl.col("number") < pl.col("number_right"))
    return pairs.select(left="number", right="number_right", block=pl.lit(block)).unique()


def _pair_by_spelling(names: Sequence[Name]) -> pl.DataFrame:
    """Pair names that become equal if one letter is removed from one or both of them."""
    texts = pl.Series("letters", [name.plain.letters for name in names], pl.String)
    letters = texts.to_frame().with_row_index("number")
    n_letters = pl.col("letters").str.len_chars()
    is_long = n_letters >= MIN_LETTERS_OF_NAME
    is_plain = ~pl.col("letters").str.contains(r"\p{N}|" + UNSPACED)
    # Keep one of several names with equal letters: `_make_letter_keys` pairs those names already.
    distinct = letters.filter(is_long & is_plain).unique("letters", keep="first").sort("number")
    hashes = [pl.DataFrame(schema={"number": pl.Int64, "key": pl.UInt64})]
    for batch in distinct.iter_slices(NAMES_PER_BATCH):
        at = batch.with_columns(at=pl.int_ranges(0, n_letters + 1)).explode("at")
        shorter = pl.concat_str(
            pl.col("letters").str.slice(0, pl.col("at")),
            pl.col("letters").str.slice(pl.col("at") + 1),
        )
        hashes.append(at.select(pl.col("number").cast(pl.Int64), key=shorter.hash()))
    # Drop duplicate rows: a name gets a key twice if either of two equal letters is removed.
    keyed = pl.concat(hashes).filter(pl.col("key").is_duplicated()).unique()
    return _pair_names(keyed, "spelling")


def _pair_by_words(names: Sequence[Name]) -> pl.DataFrame:
    """Pair names that share a rare word and may share at least half of their words."""
    keyed = _keep_shared_keys(
        (number, word)
        for number, name in enumerate(names)
        for word in set(name.plain.words)
        if len(word) > 3
    )
    rare = keyed.filter(pl.len().over("key") <= MAX_NAMES_OF_WORD)
    pairs = _join_by_key(rare, rare, "words")
    n_words = pl.Series([len(set(name.plain.words)) for name in names], dtype=pl.Int64)
    left, right = n_words.gather(pairs["left"]), n_words.gather(pairs["right"])
    # Drop pairs of which one name has more than twice as many words: they share less than half.
    return pairs.filter((2 * left >= right) & (2 * right >= left))
