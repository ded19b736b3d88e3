"""The maximum share of one document in a report, with and without a model."""

from collections.abc import Collection, Iterable

import numpy as np
import polars as pl

from graphrag_nlp.list_columns import Integers, RowGroups

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


def find_main_documents(text_units: RowGroups, document_of: Integers) -> Integers:
    """Return the document of more than half of the text units of each row; -1 without one.

    `text_units` groups text units by row, and `document_of` has the document of each text unit.
    """
    counted = (
        pl.DataFrame({"row": text_units.owners, "document": document_of[text_units.rows]})
        .group_by("row", "document")
        .len()
        .filter(2 * pl.col("len") > pl.col("len").sum().over("row"))
    )
    main = np.full(len(text_units.bounds) - 1, -1, np.int64)
    main[counted["row"].to_numpy()] = counted["document"].to_numpy()
    return main


class DocumentRoom:
    """The tokens that the rows of each document may still take in one context.

    A row is given as (document, tokens); -1 is a row of several documents, which is not limited.
    """

    def __init__(self, rows: Iterable[tuple[int, int]], max_total: int, max_share: float) -> None:
        """Set the limit of a document from all rows that the context could have."""
        sizes: dict[int, int] = {}
        for number, (document, cost) in enumerate(rows):
            # A row of several documents counts as a document of its own.
            key = document if document >= 0 else -1 - number
            sizes[key] = sizes.get(key, 0) + cost
        largest = max((size for key, size in sizes.items() if key >= 0), default=0)
        self._limit = limit_document(sizes.values(), max_total, max_share)
        self.limits_nothing = largest <= self._limit
        self._used: dict[int, int] = {}

    def has_room(self, rows: Iterable[tuple[int, int]]) -> bool:
        """Return whether some more rows fit; the first rows of a document always do."""
        for document, cost in _add_up(rows).items():
            used = self._used.get(document, 0)
            if used and used + cost > self._limit:
                return False
        return True

    def take(self, rows: Iterable[tuple[int, int]]) -> None:
        for document, cost in _add_up(rows).items():
            self._used[document] = self._used.get(document, 0) + cost


def _add_up(rows: Iterable[tuple[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for document, cost in rows:
        if document >= 0:
            total[document] = total.get(document, 0) + cost
    return total
