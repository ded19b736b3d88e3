"""Blocking: the search for candidate pairs of names, without comparing all pairs.

Each block assigns one or more keys to every name. Names with the same key become candidate pairs.
A key of too many names is ignored, so that the number of pairs grows linearly with the names.
Keys are hashes, split into partitions: all names of a key are in one partition.
"""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.resolution.name_similarity import MIN_LETTERS_OF_NAME, Name, is_initial
from graphrag_index.step import Partitions, ShardFrames, Shards
from graphrag_index.storage.partitions import hash_partitions
from graphrag_nlp.list_columns import gather_lists
from graphrag_nlp.text.normalize import UNSPACED, fold

Vectors = npt.NDArray[np.float32]

BLOCKS = ("first letters", "initials", "letters", "spelling", "words")
# Maximum number of names with the same key at which all of them are paired with each other. In a
# larger group, each name is paired with the most mentioned name only.
MAX_FULLY_PAIRED_NAMES = 10
# A key is ignored if more names than this have it.
MAX_NAMES_OF_KEY = 200
# A word is ignored if more names than this contain it; fewer names are all paired.
MAX_NAMES_OF_WORD = 20
# Maximum number of similar names for a name; the next constant is their minimum cosine similarity.
MAX_SIMILAR_NAMES = 3
MIN_VECTOR_SIMILARITY = 0.75
# Number of vectors in a batch. Batches limit the memory used, and do not change the result.
VECTORS_PER_BATCH = 1_024
# Number of names in a shard, and in a partition of their keys.
NAMES_PER_SHARD = 4_000
NAMES_PER_PARTITION = 40_000

# One row per key of a name. A key pairs names only if `is_reason` is true for one of them.
_KEY_COLUMNS = {
    "block": pl.UInt8,  # position in `BLOCKS`
    "number": pl.UInt32,
    "key": pl.UInt64,
    "is_reason": pl.Boolean,
}
_TEXT_COLUMNS = {"block": pl.Int32, "text": pl.String}
# One row per parsed name.
_NAME_COLUMNS: dict[str, Any] = {
    "number": pl.UInt32,
    "title": pl.String,
    "letters": pl.String,
    "n_words": pl.Int64,
    "acronym": pl.String,
    "has_initials": pl.Boolean,
    "keys": pl.List(pl.Struct(_TEXT_COLUMNS)),
}
_PAIR_COLUMNS = {"block": pl.UInt8, "left": pl.UInt32, "right": pl.UInt32}


class Candidates(NamedTuple):
    """Candidate pairs of names, and acronyms that names explain.

    `pairs` has one row per pair, sorted: `left` < `right` are the positions of the two names, and
    `share_first_letters` is true if one of them may be an acronym of the other. `explained` has
    pairs (acronym, letters of the full name) of names such as "Royal Society (RS)".
    """

    pairs: pl.DataFrame
    explained: set[tuple[str, str]]


def parse_names(titles: pl.Series, shards: Shards) -> pl.DataFrame:
    """Parse names and make their keys for all blocks except "spelling"; keep their order."""
    numbered = titles.rename("title").to_frame().with_row_index("number")
    parts = [part["names"] for _, part in shards.map(_parse_shard, _split(numbered))]
    return pl.concat([pl.DataFrame(schema=_NAME_COLUMNS), *parts])


def find_candidate_pairs(names: pl.DataFrame, shards: Shards) -> Candidates:
    """Find candidate pairs of parsed names, which are sorted by frequency."""
    found = [pl.DataFrame(schema=_PAIR_COLUMNS)]
    n = 1 + names.height // NAMES_PER_PARTITION
    with shards.open_partitions(n, _KEY_COLUMNS) as keys:
        for part in names.iter_slices(NAMES_PER_SHARD):
            rows = part.select("number", "has_initials", "keys").explode("keys").unnest("keys")
            rows = rows.drop_nulls("text")
            is_reason = pl.col("has_initials") | (pl.col("block") != BLOCKS.index("initials"))
            _append_keys(_hash_keys(rows.with_columns(is_reason=is_reason)), keys)
        for _, made in shards.map(_make_spelling_keys, _split(_select_long_names(names))):
            _append_keys(made["keys"], keys)
        work = ((number, {"keys": rows}) for number, rows in keys)
        found += [made["pairs"] for _, made in shards.map(_pair_names, work)]
    pairs = pl.concat(found)
    # Drop pairs of which one name has more than twice as many words: less than half can match.
    left, right = (names["n_words"].gather(pairs[side]) for side in ("left", "right"))
    is_possible = (2 * left >= right) & (2 * right >= left)
    pairs = (
        pairs.filter((pl.col("block") != BLOCKS.index("words")) | is_possible)
        .group_by(pl.col("left", "right").cast(pl.Int64))
        .agg(share_first_letters=(pl.col("block") == BLOCKS.index("first letters")).any())
        .sort("left", "right")
    )
    explained = names.filter(pl.col("acronym") != "").select("acronym", "letters")
    return Candidates(pairs, set(explained.iter_rows()))


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


def _split(rows: pl.DataFrame) -> Iterator[tuple[None, ShardFrames]]:
    return ((None, {"names": part}) for part in rows.iter_slices(NAMES_PER_SHARD))


def _append_keys(rows: pl.DataFrame, keys: Partitions) -> None:
    keys.append(rows, hash_partitions(rows["key"], keys.n))


def _parse_shard(shard: ShardFrames) -> ShardFrames:
    parsed: list[tuple[str, int, str, bool]] = []
    owners: list[int] = []
    keys: list[tuple[int, str]] = []
    for at, title in enumerate(shard["names"]["title"]):
        name = Name(title)
        plain = name.plain
        words = set(plain.words)
        acronym = ""
        if "acronym" in plain.left_out:
            acronym = fold(name.bracketed_words.replace(".", ""))
        # Sort the words, so that "Anna Novak" and "Novak Anna" get the same key.
        in_any_order = "".join(sorted(plain.words))
        letters = {name.letters, plain.letters, "".join(name.words_without_umlauts), in_any_order}
        found: dict[str, Collection[str]] = {
            "letters": letters - {""},
            "first letters": [name.letters] if name.is_acronym else name.acronyms,
            "words": [word for word in words if len(word) > 3],
        }
        has_initials = False
        if name.may_be_person and not is_initial((parts := name.person_words)[-1]):
            found["initials"] = [f"{fold(parts[-1])} {fold(parts[0])[:1]}"]
            has_initials = any(map(is_initial, parts[:-1]))
        parsed.append((plain.letters, len(words), acronym, has_initials))
        own = sorted((BLOCKS.index(block), text) for block in found for text in found[block])
        owners += [at] * len(own)
        keys += own
    columns = {name: _NAME_COLUMNS[name] for name in ("letters", "n_words", "acronym")}
    schema = {**columns, "has_initials": pl.Boolean}
    values = pl.DataFrame(keys, _TEXT_COLUMNS, orient="row").to_struct()
    lists = gather_lists(np.array(owners, np.int64), values, len(parsed)).alias("keys")
    rows = pl.DataFrame(parsed, schema, orient="row").with_columns(lists)
    return {"names": pl.concat([shard["names"], rows], how="horizontal").select(*_NAME_COLUMNS)}


def _make_spelling_keys(shard: ShardFrames) -> ShardFrames:
    """Make keys that names share if they become equal without one letter of one or both."""
    letters = pl.col("letters")
    at = shard["names"].with_columns(at=pl.int_ranges(0, letters.str.len_chars() + 1)).explode("at")
    shorter = pl.concat_str(letters.str.slice(0, pl.col("at")), letters.str.slice(pl.col("at") + 1))
    block = pl.lit(BLOCKS.index("spelling"), pl.Int32)
    rows = at.select("number", block=block, text=shorter, is_reason=pl.lit(True))
    return {"keys": _hash_keys(rows)}


def _select_long_names(names: pl.DataFrame) -> pl.DataFrame:
    """Select the names that may differ in a letter; keep one of several with equal letters."""
    letters = pl.col("letters")
    is_long = letters.str.len_chars() >= MIN_LETTERS_OF_NAME
    is_plain = ~letters.str.contains(r"\p{N}|" + UNSPACED)
    # The block "letters" pairs names with equal letters.
    distinct = names.filter(is_long & is_plain).unique("letters", keep="first")
    return distinct.select("number", "letters").sort("number")


def _hash_keys(keys: pl.DataFrame) -> pl.DataFrame:
    """Return rows (`number`, `block`, `text`, `is_reason`) as rows of `_KEY_COLUMNS`."""
    # Add the number of the block, so that equal texts in two blocks are different keys.
    key = pl.col("text").hash() + pl.col("block").cast(pl.UInt64)
    return keys.select(pl.col("block").cast(pl.UInt8), "number", key.alias("key"), "is_reason")


def _pair_names(shard: ShardFrames) -> ShardFrames:
    """Pair names with the same key; in a large group, pair each name with the first name only."""
    # Most keys have one name only. Drop duplicate rows: a name gets a key twice if either of two
    # equal letters is removed.
    keyed = shard["keys"].filter(pl.col("key").is_duplicated()).unique()
    is_word = pl.col("block") == BLOCKS.index("words")
    size, first = pl.len().over("key"), pl.col("number").min().over("key")
    max_names = pl.when(is_word).then(MAX_NAMES_OF_WORD).otherwise(MAX_NAMES_OF_KEY)
    keyed = keyed.filter((size <= max_names) & pl.col("is_reason").any().over("key"))
    lefts = keyed.filter(is_word | (size <= MAX_FULLY_PAIRED_NAMES) | (pl.col("number") == first))
    pairs = lefts.join(keyed, on="key").filter(pl.col("number") < pl.col("number_right"))
    return {"pairs": pairs.select("block", left="number", right="number_right").unique()}
