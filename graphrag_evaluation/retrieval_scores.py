"""Scores of a ranking against the gold items of a question."""

from collections.abc import Hashable, Sequence, Set
from math import log2


def retrieval_scores(
    ranked: Sequence[Set[Hashable]], gold: Set[Hashable], cutoffs: Sequence[int] = (2, 5, 10)
) -> dict[str, float]:
    """Return recall@k, all_gold@k and ndcg@k for each cutoff, and mrr; empty without gold items.

    Each position of the ranking has the items that its passage holds: a passage can hold several
    gold spans, or none. recall@k is the share of the gold items in the first k positions, and
    all_gold@k is 1 if all are there. ndcg@k weighs each of these by 1 / log2(rank + 1) (Järvelin &
    Kekäläinen, ACM TOIS 20, 2002), where the items of one passage have ranks one after another:
    the score is 1 if nothing else comes before them. mrr is 1 / position of the first gold item,
    and 0 if there is none up to the last cutoff.
    """
    if not gold:
        return {}
    found: set[Hashable] = set()
    n_found, gains, rank = [0], [0.0], 1
    for items in ranked:
        new = (gold & set(items)) - found
        found |= new
        n_found.append(len(found))
        gains.append(sum(_gain(rank + i) for i in range(len(new))))
        rank += max(1, len(new))
    scores = {}
    for k in cutoffs:
        last = min(k, len(ranked))
        # Passages with several items can hold more than k.
        n_best = max(min(k, len(gold)), n_found[last])
        best = sum(_gain(i) for i in range(1, n_best + 1))
        scores[f"recall@{k}"] = n_found[last] / len(gold)
        scores[f"all_gold@{k}"] = float(n_found[last] == len(gold))
        scores[f"ndcg@{k}"] = sum(gains[: last + 1]) / best
    first = next((i for i, n in enumerate(n_found) if n and i <= max(cutoffs)), 0)
    return {**scores, "mrr": 1 / first if first else 0.0}


def _gain(rank: int) -> float:
    return 1 / log2(rank + 1)
