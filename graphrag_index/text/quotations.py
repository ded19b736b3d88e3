"""Quotable rows of the table `sentences`, and their words on one line."""

import re
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

# Documents read at once: bounds memory, not results.
BATCH_DOCUMENTS = 512

# A line in so many documents, or so often in one, is a footer or header.
MIN_REPEATS = 3
# A document of so large a share of repeated lines is a copy of others, and keeps them.
COPIED_SHARE = 0.8
# Marks of quoted mail before a line, but not "> 5 mm".
_QUOTE_MARKS = re.compile(r"^(?:[^\S\n]*>)+(?![^\S\n]*\d)", re.MULTILINE)
# A word cut at the end of a line, but not "Vor- und Nachteile".
_HYPHEN = re.compile(
    r"(?<=([^\W\d_]))[-\u00ad\u2010]\s*\n\s*"
    r"(?!(?:and|or|to|nor|und|oder|bis|bzw|sowie|et|ou|y|o|e|i|lub|oraz)\b)(?=([^\W\d_]))"
)
_NO_LETTERS = re.compile(r"[\s>\-\u00ad\u2010]")

Integers = npt.NDArray[np.int64]


def quotable(sentences: pl.DataFrame) -> pl.Series:
    """Return a mask of the rows of `sentences` that can be quoted.

    It is a whole sentence, and its line is not repeated throughout the corpus as footers,
    notices and running heads are. Lines of documents that are copies of others are
    no furniture, nor is any paragraph on one long line.
    """
    # A run of sentences on one line counts once.
    begins = pl.any_horizontal(
        pl.col("document", "line").ne_missing(pl.col("document", "line").shift())
    )
    lines = (
        sentences.select("document", "line", "quotable", run=begins.cum_sum())
        .with_row_index("row")
        .filter("quotable", pl.col("line") != 0)
        # Most lines occur once; without them the rest is quick.
        .filter(pl.len().over("line") >= MIN_REPEATS)
    )
    often = (
        lines.group_by("line", "document")
        .agg(times=pl.col("run").n_unique())
        .group_by("line")
        .agg(times=pl.max("times"), documents=pl.len())
        .filter(pl.max_horizontal("times", "documents") >= MIN_REPEATS)
    )
    furniture = (
        lines.join(often, on="line", how="semi")
        .join(sentences.group_by("document").agg(sentences=pl.sum("quotable")), on="document")
        .filter(pl.len().over("document") < COPIED_SHARE * pl.col("sentences"))
    )
    flags = sentences["quotable"].to_numpy(writable=True)
    flags[furniture["row"].to_numpy()] = False
    return pl.Series("quotable", flags)


def one_line(text: str) -> str:
    """Put a quotation on one line, without marks of quoted mail and hyphens of line ends."""
    if "\n" in text:
        text = _HYPHEN.sub(_joined, _QUOTE_MARKS.sub("", text))
    return " ".join(text.split())


def _joined(hyphen: re.Match[str]) -> str:
    return "" if hyphen[1].islower() and hyphen[2].islower() else "-"


def find_quotation(quotation: str, text: str) -> tuple[int, int] | None:
    """Find a quotation that `one_line` may have changed; None if the text lacks it."""
    places = [at for at, c in enumerate(text) if not _NO_LETTERS.match(c)]
    letters = _NO_LETTERS.sub("", quotation)
    at = "".join(text[place] for place in places).find(letters)
    if at < 0 or not letters:
        return None
    return places[at], places[at + len(letters) - 1] + 1


class Quotations:
    """Chosen sentences on one line each, with their places.

    `places` has one row per sentence, in order: `document` (its number), `start_char`,
    `end_char`; `texts` their words.
    """

    def __init__(self, documents: pl.LazyFrame, sentences: pl.DataFrame, rows: Integers) -> None:
        self.rows = np.unique(rows)
        self.places = sentences[self.rows].select("document", "start_char", "end_char")
        # One Arrow column: a Python string for each would take three times the memory.
        self.texts = _texts(documents, self.places)

    def positions(self, rows: Integers) -> Integers:
        """Return the positions of sentences in `texts` and `places`."""
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
            found.append(one_line(text[start:end]))
        parts.append(pl.Series(found, dtype=pl.String))
    return pl.concat(parts)
