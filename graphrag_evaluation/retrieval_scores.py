"""Scores of a ranking against the gold items of a question."""

from collections.abc import Hashable, Sequence, Set
from math import log2


def retrieval_scores(
    ranked: Sequence[Hashable], gold: Set[Hashable], cutoffs: Sequence[int] = (2, 5, 10)
) -> dict[str, float]:
    """Return recall@k, all_gold@k and ndcg@k for each cutoff, and mrr; empty without gold items.

    A repeated item counts at its first position. recall@k is the share of the gold items among
    the first k, all_gold@k is 1 if all are there, and ndcg@k weighs position i by
    1 / log2(i + 1) (Järvelin & Kekäläinen, ACM TOIS 20, 2002). mrr is 1 / position of the first
    gold item, and 0 if there is none up to the last cutoff.
    """
    if not gold:
        return {}
    positions = [i for i, item in enumerate(dict.fromkeys(ranked), start=1) if item in gold]
    scores = {}
    for k in cutoffs:
        found = [i for i in positions if i <= k]
        best = sum(1 / log2(i + 1) for i in range(1, min(k, len(gold)) + 1))
        scores[f"recall@{k}"] = len(found) / len(gold)
        scores[f"all_gold@{k}"] = float(len(found) == len(gold))
        scores[f"ndcg@{k}"] = sum(1 / log2(i + 1) for i in found) / best
    first = positions[0] if positions and positions[0] <= max(cutoffs) else None
    return {**scores, "mrr": 1 / first if first else 0.0}
