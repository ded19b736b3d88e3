"""Fit text into one line of a terminal."""

import unicodedata

# A longer title would push the numbers beside it off the screen.
MAX_WIDTH = 60


def fit_line(text: str, max_width: int = MAX_WIDTH) -> str:
    """Shorten a text to one terminal line of at most `max_width` columns.

    Names come from documents: characters that move the cursor or reverse the writing direction
    are removed.
    """
    clean = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if display_width(clean) <= max_width:
        return clean
    cut = clean[: max_width - 1]
    while display_width(cut) >= max_width:
        cut = cut[:-1]
    return f"{cut}…"


def display_width(text: str) -> int:
    """Count the terminal columns of a text: wide letters take two, combining accents none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
