"""The words of a question in texts, by stem."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

# Maximum number of characters between a word and a number beside it.
NEAR_CHARS = 80


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


def count_stems(texts: Sequence[str], stems: Sequence[str]) -> tuple["np.ndarray", "np.ndarray"]:
    """Count the words of each text (row) with each stem (column), and flag those near a number.

    For few texts, this is faster than `match_stems`. A number is near in the same sentence, at most
    `NEAR_CHARS` characters away.
    """
    counts = np.zeros((len(texts), len(stems)))
    near = np.zeros(counts.shape, bool)
    prefixes = [_prefix_of(stem) for stem in stems]
    for row, text in enumerate(texts):
        lower = text.lower()
        for column, prefix in enumerate(prefixes):
            place = lower.find(prefix)
            while place >= 0:
                if not lower[place - 1 : place].isalnum():
                    counts[row, column] += 1
                    near[row, column] = near[row, column] or _is_near_number(lower, place)
                place = lower.find(prefix, place + len(prefix))
    return counts, near


def _is_near_number(text: str, place: int) -> bool:
    before = re.split(r"[.!?\n]\s", text[max(0, place - NEAR_CHARS) : place])[-1]
    after = re.split(r"[.!?\n]\s", text[place : place + NEAR_CHARS], maxsplit=1)[0]
    return any(character.isdigit() for character in before + after)


def _prefix_of(stem: str) -> str:
    """Return the prefix that all words with a stem share: "coun" for country and countries."""
    if len(stem) > 5:
        return stem[: max(len(stem) - 2, 4)]
    # The stem of "story" and "stories" is "stori", which "story" does not contain.
    return stem.removesuffix("i") if len(stem) > 3 else stem
