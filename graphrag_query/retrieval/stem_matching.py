"""The words of a question in texts, by stem."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl


def match_stems(
    texts: pl.Series, stems: Sequence[str], before: Mapping[str, str] | None = None
) -> "np.ndarray":
    """Return a boolean matrix: whether each text (row) contains a word with each stem (column).

    `before` maps stems to what may be written before them in the same word: "wolfgang" of the
    name "WolfgangSchulz".
    """
    if not stems:
        return np.zeros((len(texts), 0), bool)
    starts = {stem: f"(?:{re.escape(start)})?" for stem, start in (before or {}).items()}
    lower = pl.select(text=texts.str.to_lowercase())
    # One call with all expressions scans the texts once; separate calls would scan them each time.
    held: np.ndarray = lower.select(
        pl.col("text")
        .str.contains(rf"\b{starts.get(stem, '')}{re.escape(_prefix_of(stem))}")
        .alias(str(column))
        for column, stem in enumerate(stems)
    ).to_numpy()
    return held


def _prefix_of(stem: str) -> str:
    """Return the prefix that all words with a stem share: "coun" for country and countries."""
    if len(stem) > 5:
        return stem[: max(len(stem) - 2, 4)]
    # The stem of "story" and "stories" is "stori", which "story" does not contain.
    return stem.removesuffix("i") if len(stem) > 3 else stem
