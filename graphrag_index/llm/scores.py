"""Parsing of scores and ratings in the replies of models: 4, "4/5", "80 %", "8 out of 10"."""

import math
import re

_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")
_SCALE = re.compile(r"\s*(?:/|out of|of|von|sur|z)\s*(\d+(?:[.,]\d+)?)")
# Maximum number of characters that are searched for a score: a faulty reply may have a number with
# thousands of digits.
MAX_SEARCHED_CHARS = 200
# A larger number is no score on any scale.
MAX_NUMBER = 1e9


def parse_score(value: object, highest: float) -> float | None:
    """Parse a score from 0 to `highest`; None if there is none.

    Scores on another scale are converted, and the result is clipped. In a list, the first value
    counts.
    """
    if isinstance(value, list | tuple):
        return parse_score(value[0], highest) if value else None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        score = float(value) if abs(value) < MAX_NUMBER else math.nan
    else:
        score = _parse_text(str(value), highest)
    return None if math.isnan(score) else min(float(highest), max(0.0, score))


def _parse_text(text: str, highest: float) -> float:
    """Parse the first score in a text; NaN if there is none."""
    number = _NUMBER.search(text[:MAX_SEARCHED_CHARS])
    if number is None:
        return math.nan
    score = _parse_decimal(number[0])
    scale = _SCALE.match(text, number.end())
    if scale and _parse_decimal(scale[1]) > 0:
        return score * (highest / _parse_decimal(scale[1]))
    return score * (highest / 100) if text[number.end() :].lstrip().startswith("%") else score


def _parse_decimal(text: str) -> float:
    return float(text.replace(",", "."))
