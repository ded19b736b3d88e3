"""Association of entities: which belong together, how strongly, and the best sentence.

All of it is arithmetic on columns: one row per mention, in the order of the text.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from graphrag_index.schema.list_columns import distinct_pairs, gather_lists

# Mentions whose pairs are formed at once: bounds memory, not results.
BLOCK = 400_000
# Two entities as one number: source * _WIDTH + target.
_WIDTH = 1 << 32
# Evidence that scores less is no quotable sentence that names both.
_SAID = 5.0
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
        sum of what its pairs of mentions count, `mention`, the row of the first mention
        of the best evidence, and `said`, whether a quotable sentence names both.
    """
    parts = [
        _best_of_pairs(links, pl.col("worth").sum())
        for links in _links(mentions, max_links, neighbour_weight)
    ]
    if not parts:
        parts = [pl.DataFrame(schema={"pair": pl.Int64, "evidence": pl.Float64})]
        parts = [part.with_columns(score=pl.lit(0.0), mention=pl.lit(0)) for part in parts]
    pairs = _best_of_pairs(pl.concat(parts), pl.col("evidence").sum())
    return pairs.select(
        (pl.col("pair") // _WIDTH).cast(pl.Int32).alias("source"),
        (pl.col("pair") % _WIDTH).cast(pl.Int32).alias("target"),
        "evidence",
        pl.col("mention").cast(pl.Int32),
        said=pl.col("score") >= _SAID,
    )


def text_units_of_pairs(
    pairs: pl.DataFrame, mentions: pl.DataFrame, max_links: int, neighbour_weight: float
) -> pl.Series:
    """List the text units in which each pair stands together, ascending.

    The links are formed a second time, for the pairs that were kept: most pairs are
    pruned, and to carry lists for all of them would take several times the memory.
    """
    keys = pairs["source"].cast(pl.Int64) * _WIDTH + pairs["target"]
    order = np.argsort(keys.to_numpy(), kind="stable")
    ordered = keys.to_numpy()[order]
    text_unit = mentions["text_unit"].to_numpy()
    owners, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for links in _links(mentions, max_links, neighbour_weight):
        linked = links["pair"].to_numpy()
        at = np.minimum(np.searchsorted(ordered, linked), max(len(ordered) - 1, 0))
        kept = ordered[at] == linked if len(ordered) else np.zeros(len(linked), bool)
        owners.append(order[at[kept]])
        values.append(text_unit[links["mention"].to_numpy()[kept]].astype(np.int64))
    owner, value = distinct_pairs(np.concatenate(owners), np.concatenate(values))
    return gather_lists(owner, pl.Series(value), len(keys))


def _links(
    mentions: pl.DataFrame, max_links: int, neighbour_weight: float
) -> Iterator[pl.DataFrame]:
    """Yield the links between neighbouring mentions, block by block.

    `pair` is one number for both entities, `worth` what the link counts, `score` how well
    the sentence says it, `mention` the row of the first mention.
    """
    document = mentions["document"].to_numpy()
    sentence = mentions["sentence"].to_numpy()
    entity = mentions["entity"].to_numpy().astype(np.int64)
    start = mentions["start"].to_numpy()
    quotable = mentions["quotable"].to_numpy()
    length = mentions["sentence_length"].to_numpy()
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
            # The best evidence names both close together in a quotable sentence of a good
            # length; a long sentence is still better than any heading or list.
            gap = np.minimum(start[b] - start[a], 400).astype(np.float32)
            off = np.minimum(np.abs(length[a] - GOOD_LENGTH), 400).astype(np.float32)
            score = 4.0 * same + 2 * _SAID * (quotable[a] & same) - gap / 400 - off / 400
            source, target = np.minimum(entity[a], entity[b]), np.maximum(entity[a], entity[b])
            blocks.append(
                pl.DataFrame(
                    {
                        "pair": source * _WIDTH + target,
                        "worth": np.where(same, 1.0, neighbour_weight),
                        "score": score.astype(np.float64),
                        "mention": a,
                    }
                )
            )
            if not len(rows):
                break
        yield pl.concat(blocks)


def _best_of_pairs(links: pl.DataFrame, evidence: pl.Expr) -> pl.DataFrame:
    """Sum the evidence of equal pairs; the earliest of equally good mentions is kept."""
    return (
        links.sort("pair", "score", "mention", descending=[False, True, False])
        .group_by("pair", maintain_order=True)
        .agg(evidence=evidence, score=pl.col("score").first(), mention=pl.col("mention").first())
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
