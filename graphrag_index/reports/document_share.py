"""The maximum share of one document in a report, with and without a model."""

from collections.abc import Collection

# Number of documents from which the share of one document is limited.
MIN_DOCUMENTS = 3


def limit_document(sizes: Collection[int], max_total: int, max_share: float) -> int:
    """Return the maximum size of one document, so that none has more than a share of all.

    `sizes` has what each document could give, in sentences or tokens, and `max_total` is the
    maximum for all documents together. With fewer than `MIN_DOCUMENTS` documents, nothing is
    limited. The result is at least 1.
    """
    if len(sizes) < MIN_DOCUMENTS:
        return max_total
    lowest, highest = 1, max_total
    # The share that a limit leaves to other documents falls as the limit grows.
    while lowest < highest:
        limit = (lowest + highest + 1) // 2
        total = min(max_total, sum(min(size, limit) for size in sizes))
        if limit <= max_share * total:
            lowest = limit
        else:
            highest = limit - 1
    return lowest
