"""Which entities belong together, how strongly, and which sentence says so best.

All of it is arithmetic on columns: one row per mention, in the order of the text.
"""

import numpy as np
import polars as pl

# Mentions whose pairs are formed at once: bounds memory, not results.
BLOCK = 400_000
# The best evidence is a sentence of about this many characters.
GOOD_LENGTH = 160


def pair_mentions(mentions: pl.DataFrame, max_links: int, neighbour_weight: float) -> pl.DataFrame:
    """Link mentions of two entities in one sentence or in neighbouring ones.

    A mention is linked with at most `max_links` mentions after it, so the number of
    pairs grows with the text, however many names stand in one place.

    Parameters
    ----------
    mentions
        `document`, `sentence`, `start`, `entity`, `text_unit`, `quotable`, `sentence_length`,
        sorted by document and start; one row per mention.
    neighbour_weight
        What a pair in neighbouring sentences counts; one in the same sentence counts 1.

    Returns
    -------
    pairs
        One row per pair of entities, `source` < `target`, sorted by both: `evidence`, the
        sum of what its pairs of mentions count, `text_units`, those of their first mentions,
        ascending, and `mention`, the row of the first mention of the best evidence.
    """
    document = mentions["document"].to_numpy()
    sentence = mentions["sentence"].to_numpy()
    entity = mentions["entity"].to_numpy()
    start = mentions["start"].to_numpy()
    quotable = mentions["quotable"].to_numpy()
    length = mentions["sentence_length"].to_numpy()
    text_unit = mentions["text_unit"].to_numpy()
    parts = []
    for begin in range(0, len(entity), BLOCK):
        rows = np.arange(begin, min(begin + BLOCK, len(entity)))
        blocks = []
        for distance in range(1, max_links + 1):
            first = rows[rows + distance < len(entity)]
            second = first + distance
            apart = sentence[second] - sentence[first]
            near = (document[first] == document[second]) & (apart <= 1)
            # If a mention is too far, so are those behind it.
            rows = first[near]
            linked = near & (entity[first] != entity[second])
            if neighbour_weight == 0:
                linked &= apart == 0
            a, b = first[linked], second[linked]
            same = apart[linked] == 0
            # Names close together in a quotable sentence of a good length say it best.
            gap = np.minimum(start[b] - start[a], 400).astype(np.float32)
            off = np.minimum(np.abs(length[a] - GOOD_LENGTH), 400).astype(np.float32)
            score = 4.0 * same + 2.0 * (quotable[a] & same) - gap / 400 - off / 400
            blocks.append(
                pl.DataFrame(
                    {
                        "source": np.minimum(entity[a], entity[b]),
                        "target": np.maximum(entity[a], entity[b]),
                        "worth": np.where(same, 1.0, neighbour_weight),
                        "score": score.astype(np.float32),
                        "mention": a.astype(np.int32),
                        "text_unit": text_unit[a],
                    }
                )
            )
            if not len(rows):
                break
        parts.append(_sum_pairs(pl.concat(blocks), pl.col("worth").sum(), pl.col("text_unit")))
    if not parts:
        return pl.DataFrame(
            schema={
                **{"source": pl.Int32, "target": pl.Int32, "evidence": pl.Float64},
                **{"text_units": pl.List(pl.Int32), "mention": pl.Int32},
            }
        )
    pairs = _sum_pairs(pl.concat(parts), pl.col("evidence").sum(), pl.col("text_units").explode())
    return pairs.drop("score")


def _sum_pairs(pairs: pl.DataFrame, evidence: pl.Expr, text_units: pl.Expr) -> pl.DataFrame:
    """Sum up rows of the same pair; of equally good evidence the earliest stays."""
    return (
        pairs.sort("source", "target", "score", "mention", descending=[False, False, True, False])
        .group_by("source", "target", maintain_order=True)
        .agg(
            evidence=evidence,
            text_units=text_units.unique().sort(),
            score=pl.col("score").first(),
            mention=pl.col("mention").first(),
        )
    )


def associate(pairs: pl.DataFrame, n_mentions: np.ndarray) -> pl.DataFrame:
    """Add the `weight` of each pair: its evidence times how far it exceeds chance.

    The factor is log2(1 + observed / expected), where two names are expected to
    meet in proportion to the mentions of both; it is always positive, unlike
    pointwise mutual information, which it approaches for strong associations.
    It is divided by its largest possible value, so that a weight is at most the evidence.
    """
    total = float(n_mentions.sum())
    expected = (
        n_mentions[pairs["source"].to_numpy()].astype(np.float64)
        * n_mentions[pairs["target"].to_numpy()]
        / max(total, 1.0)
    )
    evidence = pairs["evidence"].to_numpy()
    lift = np.log2(1 + evidence / expected) / np.log2(2 + total)
    return pairs.with_columns(weight=pl.Series(evidence * lift, dtype=pl.Float64))
