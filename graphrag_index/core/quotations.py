"""The words of sentences, fetched from their documents by row of the table `sentences`."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

# Documents read at once: bounds memory, not results.
BATCH_DOCUMENTS = 512

Integers = npt.NDArray[np.int64]


class Quotations:
    """Chosen sentences, on one line each, and where they stand.

    `places` has one row per sentence, in order: `document` (its number), `start_char`,
    `end_char`; `texts` their words.
    """

    def __init__(self, documents: pl.LazyFrame, sentences: pl.DataFrame, rows: Integers) -> None:
        self.rows = np.unique(rows)
        self.places = sentences[self.rows].select("document", "start_char", "end_char")
        # One Arrow column: a Python string for each would take three times the memory.
        self.texts = _texts(documents, self.places)

    def positions(self, rows: Integers) -> Integers:
        """Return where sentences stand in `texts` and `places`."""
        return np.searchsorted(self.rows, rows)


def _texts(documents: pl.LazyFrame, places: pl.DataFrame) -> pl.Series:
    """Cut sentences out of their documents, batch by batch."""
    n_documents = documents.select(pl.len()).collect().item()
    steps = np.arange(0, n_documents + BATCH_DOCUMENTS, BATCH_DOCUMENTS)
    bounds = np.searchsorted(places["document"].to_numpy(), steps).tolist()
    parts = [pl.Series(dtype=pl.String)]
    for batch, (first, last) in enumerate(pairwise(bounds)):
        if first == last:
            continue
        offset = batch * BATCH_DOCUMENTS
        texts = documents.select("text").slice(offset, BATCH_DOCUMENTS).collect().to_series()
        current, text, found = -1, "", []
        for document, start, end in places[first:last].iter_rows():
            if document != current:
                current, text = document, texts[document - offset]
            found.append(" ".join(text[start:end].split()))
        parts.append(pl.Series(found, dtype=pl.String))
    return pl.concat(parts)
