"""Pairs of entities that are mentioned together, and the best sentences about each entity.

Mentions are linked block by block. A pair of entities may have links in several blocks: the pairs
of all blocks are partitioned by a hash, and each partition is merged alone. Blocks and partitions
limit memory, and can be processed by workers.
"""

import numpy as np
import polars as pl

from graphrag_nlp.corpus import ShardFrames
from graphrag_nlp.list_columns import (
    Integers,
    distinct_pairs,
    gather_lists,
    spread_lists,
)
from graphrag_nlp.names.span_usage import DEFINED, INITIAL

# Number of mentions in a block. The evidence of a pair is first summed in each block, so another
# number may change the last digit of a weight.
BLOCK_MENTIONS = 400_000
MAX_DESCRIPTION_SENTENCES = 2  # maximum number of sentences in the description of an entity
# A pair of entities is stored as one number: source * _PAIR_FACTOR + target.
_PAIR_FACTOR = 1 << 32
# Score that a link has, or exceeds, only if one quotable sentence contains both names.
_MIN_QUOTE_SCORE = 5.0
# Number of characters of an ideal quotation: sentences of about this length score highest.
IDEAL_QUOTE_CHARS = 160

# Columns of the mentions that are linked. `sentence` is the row of the sentence in its table, and
# `text_unit` is the number of the last text unit with the mention.
LINKED_COLUMNS = {
    **dict.fromkeys(("document", "start", "entity", "text_unit", "sentence"), pl.Int32),
    **dict.fromkeys(("sentence_length", "sentence_start"), pl.Int32),
    "quotable": pl.Boolean,
    "flags": pl.UInt8,
}
PAIR_COLUMNS = {
    **{"pair": pl.Int64, "evidence": pl.Float64, "score": pl.Float64},
    **{"mention": pl.Int32, "sentence": pl.Int32, "text_units": pl.List(pl.Int32)},
}
RATED_COLUMNS = {
    **dict.fromkeys(("entity", "sentence", "mention"), pl.Int32),
    "score": pl.Float64,
}


def link_block(shard: ShardFrames, max_links: int, neighbour_weight: float) -> ShardFrames:
    """Return the pairs and the best sentences of the mentions in one block.

    The frame `mentions` has the mentions of the block. The frame `following` has the next
    `max_links` mentions, with which the last mentions of the block are linked.
    """
    mentions = shard["mentions"]
    following = pl.concat([mentions, shard["following"]])
    return {
        "pairs": pair_mentions(following, len(mentions), max_links, neighbour_weight),
        "sentences": rate_sentences(mentions),
    }


def pair_mentions(
    mentions: pl.DataFrame, n_first: int, max_links: int, neighbour_weight: float
) -> pl.DataFrame:
    """Link mentions of two entities in the same sentence or in neighbouring sentences.

    Each of the first `n_first` mentions is linked with at most `max_links` later mentions. A link
    inside one sentence counts 1; a link between neighbouring sentences counts `neighbour_weight`.

    Returns
    -------
    pairs
        One row per pair of entities, sorted by `pair`, the number of the pair. `evidence` is the
        sum of the links, `score` rates the best link as evidence, `mention` is the row of its
        first mention and `sentence` the sentence of this mention. `text_units` has the text units
        with a link.
    """
    links = _link_mentions(mentions, n_first, max_links, neighbour_weight)
    links = links.sort("pair", "score", "mention", descending=[False, True, False])
    pairs = _sum_links(links, "value")
    text_unit = mentions["text_unit"].gather(links["mention"]).to_numpy()
    owners, values = distinct_pairs(_number_groups(links["pair"]), text_unit)
    return pairs.with_columns(
        pl.col("mention").cast(pl.Int32),
        sentence=mentions["sentence"].gather(pairs["mention"]),
        text_units=gather_lists(owners, pl.Series(values, dtype=pl.Int32), len(pairs)),
    ).select(*PAIR_COLUMNS)


def merge_pairs(
    shard: ShardFrames, n_mentions: Integers, min_evidence: float, min_weight: float
) -> ShardFrames:
    """Merge the pairs of several blocks, weight them, and drop weak pairs.

    `n_mentions` has the number of mentions of each entity. The result has one row per pair, with
    `source` < `target`. `is_quotable` is true if a quotable sentence names both entities.
    """
    columns = ("pair", "evidence", "score", "mention")
    links = shard["pairs"].select(*columns).with_row_index("row")
    links = links.sort("pair", "score", "mention", descending=[False, True, False])
    pairs = _sum_links(links, "evidence", "row").select(
        *("evidence", "mention", "row"),
        source=(pl.col("pair") // _PAIR_FACTOR).cast(pl.Int32),
        target=(pl.col("pair") % _PAIR_FACTOR).cast(pl.Int32),
        is_quotable=pl.col("score") >= _MIN_QUOTE_SCORE,
    )
    pairs = weight_pairs(pairs, n_mentions)
    is_kept = pl.col("evidence") >= min_evidence, pl.col("weight") >= min_weight
    kept = pairs.select(pl.all_horizontal(is_kept)).to_series().to_numpy()
    # Collect the text units of all rows of the kept pairs.
    group = _number_groups(links["pair"])
    rows = links["row"].to_numpy()[kept[group]]
    row, text_units = spread_lists(shard["pairs"]["text_units"].gather(rows))
    number = np.cumsum(kept) - 1
    owners, values = distinct_pairs(number[group[kept[group]]][row], text_units.to_numpy())
    pairs = pairs.filter(kept)
    return {
        "pairs": pairs.with_columns(
            sentence=shard["pairs"]["sentence"].gather(pairs["row"]),
            text_units=gather_lists(owners, pl.Series(values), len(pairs)),
        ).drop("row")
    }


def _link_mentions(
    mentions: pl.DataFrame, n_first: int, max_links: int, neighbour_weight: float
) -> pl.DataFrame:
    """Return the links of the first mentions with the mentions after them.

    `pair` is the number of the pair, `value` is the weight of the link, `score` rates the link as
    evidence, and `mention` is the row of the first mention.
    """
    names = ("document", "sentence", "start", "quotable", "sentence_length")
    document, sentence, start, quotable, length = (mentions[name].to_numpy() for name in names)
    entity = mentions["entity"].to_numpy().astype(np.int64)
    rows = np.arange(n_first)
    blocks = []
    for distance in range(1, max_links + 1):
        first = rows[rows + distance < len(entity)]
        second = first + distance
        apart = sentence[second] - sentence[first]
        near = (document[first] == document[second]) & (apart <= 1)
        # Stop comparing a mention once the other one is too far away: later ones are even farther.
        rows = first[near]
        linked = near & (entity[first] != entity[second])
        if neighbour_weight == 0:
            linked &= apart == 0
        a, b = first[linked], second[linked]
        same = apart[linked] == 0
        # The best evidence is a quotable sentence of a good length in which both names are
        # close together; even a long sentence is better than any heading or list.
        gap = np.minimum(start[b] - start[a], 400).astype(np.float32)
        off = np.minimum(np.abs(length[a] - IDEAL_QUOTE_CHARS), 400).astype(np.float32)
        score = 4.0 * same + 2 * _MIN_QUOTE_SCORE * (quotable[a] & same) - gap / 400 - off / 400
        source, target = np.minimum(entity[a], entity[b]), np.maximum(entity[a], entity[b])
        columns = {
            "pair": source * _PAIR_FACTOR + target,
            "value": np.where(same, 1.0, neighbour_weight),
            "score": score.astype(np.float64),
            "mention": a,
        }
        blocks.append(pl.DataFrame(columns))
        if not len(rows):
            break
    return pl.concat(blocks)


def _sum_links(sorted_links: pl.DataFrame, evidence: str, *first: str) -> pl.DataFrame:
    """Sum the evidence of each pair, and keep its first link, which is the best."""
    kept = (pl.col(name).first() for name in ("score", "mention", *first))
    groups = sorted_links.group_by("pair", maintain_order=True)
    return groups.agg(pl.col(evidence).sum().alias("evidence"), *kept)


def _number_groups(sorted_keys: pl.Series) -> Integers:
    """Return the number of the group of equal keys for each row, from 0."""
    keys = sorted_keys.to_numpy()
    return np.cumsum(_find_first_rows(keys)) - 1


def weight_pairs(pairs: pl.DataFrame, n_mentions: np.ndarray) -> pl.DataFrame:
    """Add the column `weight` to pairs: the evidence times the strength of the association.

    The strength is log2(1 + evidence / expected evidence), divided by the largest possible value,
    so it is 0–1. For strong associations it is close to pointwise mutual information, never
    negative.
    """
    total = float(n_mentions.sum())
    source, target = (n_mentions[pairs[end].to_numpy()] for end in ("source", "target"))
    expected = source.astype(np.float64) * target / max(total, 1.0)
    evidence = pairs["evidence"].to_numpy()
    lift = np.log2(1 + evidence / expected) / np.log2(2 + total)
    return pairs.with_columns(weight=pl.Series(evidence * lift, dtype=pl.Float64))


def rate_sentences(mentions: pl.DataFrame) -> pl.DataFrame:
    """Return the sentences of some mentions that describe each entity best, with a score.

    A sentence has a high score if it begins with the name, defines the name ("... was a ..."), is
    early in the document, and has a medium length. `mention` is a row number. Entities without a
    quotable sentence are left out.
    """
    rows = mentions.with_row_index("mention").filter("quotable")
    flags = rows["flags"].to_numpy()
    start, begin, length = (
        rows[name].to_numpy() for name in ("start", "sentence_start", "sentence_length")
    )
    score = 3.0 * ((flags & DEFINED) > 0) + 1.5 * ((flags & INITIAL) > 0)
    score -= np.minimum(np.abs(length - 150), 300) / 200
    score -= np.minimum(start - begin, 200) / 200
    score -= np.minimum(start, 20_000) / 20_000
    rated = rows.with_columns(pl.col("mention").cast(pl.Int32), score=pl.Series(score))
    return choose_best_sentences(rated.select(*RATED_COLUMNS))


def choose_best_sentences(rated: pl.DataFrame) -> pl.DataFrame:
    """Choose the best sentences of each entity; the result is sorted by entity and mention."""
    rated = rated.sort("entity", "mention")
    entity, sentence, score = (rated[name].to_numpy() for name in ("entity", "sentence", "score"))
    is_first = _find_first_rows(entity)
    starts, group = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    chosen = np.zeros(len(entity), bool)
    for _ in range(MAX_DESCRIPTION_SENTENCES if len(entity) else 0):
        # Take the best mention of each entity (on a tie, the first), then one in another sentence.
        rows = np.flatnonzero(score == np.maximum.reduceat(score, starts)[group])
        rows = rows[_find_first_rows(group[rows])]
        chosen[rows[score[rows] > -np.inf]] = True
        score = np.where(sentence == sentence[rows][group], -np.inf, score)
    best: pl.DataFrame = rated.filter(chosen)
    return best


def _find_first_rows(*sorted_columns: np.ndarray) -> np.ndarray:
    """Return a mask: True for the first row of each group of equal neighbouring rows."""
    first = np.zeros(len(sorted_columns[0]), bool)
    first[:1] = True
    for column in sorted_columns:
        first[1:] |= column[1:] != column[:-1]
    return first
